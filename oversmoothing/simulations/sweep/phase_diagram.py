"""Phase diagram of a sweep: the share of SMOOTHING and the measured slope over two of its axes.

A cell is one value of x, y and panel; what else the sweep varies (seeds, say) is counted in it.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.ndimage import convolve1d

from oversmoothing.simulations.drawing.picture import (
    FULL_WIDTH,
    PALETTE,
    VERDICT_COLOUR,
    new_figure,
    style,
    write_figure,
)
from oversmoothing.simulations.sweep.config import PARAMETERS
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.formulas import Outcome

MAX_PANELS = 6
# Where |log r| times the depth is below this, the depth cannot tell smoothing from bounded.
SLOW = 5.0
_COUNTS = tuple(one for one in Outcome if one != Outcome.UNDEFINED)

# The share has no white and the slope is white at 0 alone; cells without a value are hatched.
_SHARE = mpl.colormaps["cividis"]
_SLOPE = LinearSegmentedColormap.from_list(
    "slope", [VERDICT_COLOUR[Outcome.SMOOTHING], "#FFFFFF", VERDICT_COLOUR[Outcome.NON_SMOOTHING]]
)
_NOTHING: Any = {"facecolor": PALETTE["light"], "edgecolor": PALETTE["grey"], "hatch": "////"}

# What an axis is called where the name of its parameter is no word of the field.
_WORDS = {
    "n": "tokens n",
    "d": "features d",
    "depth": "layers",
    "temperature": "temperature of attention",
    "asymmetry": "antisymmetric share",
    "low": "lower end of the eigenvalues of $H$",
    "high": "upper end of the eigenvalues of $H$",
    "scale": "scale of $H$",
    "radius": "radius of the disc of eigenvalues",
    "centre": "centre of the disc of eigenvalues",
}


def cells(table: pd.DataFrame, x: str, y: str, panel: str | None = None) -> pd.DataFrame:
    """One row a cell of the table of a sweep.

    Columns: x_name, y_name, panel_name and their values x, y, panel; points, the count of each
    verdict in small letters, errors; share (SMOOTHING over SMOOTHING, NON_SMOOTHING and TIE; NaN
    without any), slope and predicted (medians of the measured slope of log HFC/LFC and of
    log(rho_Q/rho_C), per layer; NaN without), runs (points with one head, a SMOOTHING or
    NON_SMOOTHING verdict and a measured ratio), agree (those that do as their verdict says: HFC/LFC
    at the last layer is below 1/sqrt(n - 1), where no bounded run can stay (T1f), if SMOOTHING, and
    not if NON_SMOOTHING), slow (those that do not, and whose |log r| is too small for their depth).
    Raises `InputError` for a name that is no parameter of the sweep.
    """
    for name in (x, y) if panel is None else (x, y, panel):
        if name not in PARAMETERS or table[name].isna().all():
            known = [p for p in PARAMETERS if p in table and table[p].nunique() > 1]
            raise InputError(f"no axis '{name}' in this sweep; it has {', '.join(known)}")
    if len({x, y, panel}) < 3:
        raise InputError(f"x, y and panel must differ: {x}, {y}, {panel}")
    verdict, status, rate = table["verdict"], table["status"], table["predicted_log_rate"]
    ratio = table.get("log_hfc_lfc", pd.Series(np.nan, table.index))
    smooth = verdict == Outcome.SMOOTHING
    # Several heads have no common pi, and no such floor.
    runs = (smooth | (verdict == Outcome.NON_SMOOTHING)) & (table["heads"] == 1) & ratio.notna()
    right = (ratio < -0.5 * np.log((table["n"] - 1).clip(lower=1))) == smooth
    counted = {name.lower(): verdict == name for name in _COUNTS} | {"errors": status == "error"}
    compared = {"runs": runs, "agree": runs & right,
                "slow": runs & ~right & (rate.abs() * table["depth"] < SLOW)}  # fmt: skip
    medians = {"slope": table.get("slope", np.nan), "predicted": rate.replace(-np.inf, np.nan)}
    places = {"panel": "" if panel is None else table[panel], "x": table[x], "y": table[y]}
    points = pd.DataFrame(places | counted | medians | compared)
    panels = points["panel"].nunique()
    if panels > MAX_PANELS:
        raise InputError(f"{panel} has {panels} values; at most {MAX_PANELS} panels can be drawn")
    cell = points.groupby(["panel", "y", "x"], sort=True)
    of_cell = cell[[*counted, *compared]].sum()
    decided = of_cell["smoothing"] + of_cell["non_smoothing"] + of_cell["tie"]
    of_cell = of_cell.assign(
        x_name=x, y_name=y, panel_name=panel or "", points=cell.size(),
        share=of_cell["smoothing"] / decided.where(decided > 0), **cell[[*medians]].median(),
    ).reset_index()  # fmt: skip
    names = ["x_name", "y_name", "panel_name", "panel", "x", "y", "points"]
    return of_cell[[*names, *counted, "share", *medians, *compared]]


def draw(table: pd.DataFrame) -> Figure:
    """A column a panel: above the share, below the slope (where it was measured), from `cells`."""
    panels = list(dict.fromkeys(table["panel"]))
    names = (str(table[f"{name}_name"].iloc[0]) for name in ("x", "y", "panel"))
    across, up, by = (_WORDS.get(name, name) for name in names)
    measured = bool(table["slope"].notna().any())
    rows = 2 if measured else 1
    with style():
        figure, axes = new_figure(
            rows, len(panels), width=max(FULL_WIDTH, 1.6 * len(panels)), height=2.5 * rows + 0.5,
            sharex=True, sharey=True,
        )  # fmt: skip
        top = (float(np.nanmax(np.abs(table["slope"]))) if measured else 0.0) or 1.0
        what = [
            ("share", _SHARE, Normalize(0.0, 1.0), "share of draws that smooth"),
            ("slope", _SLOPE, SymLogNorm(top / 100, vmin=-top, vmax=top, base=10),
             "median change of\nln HFC/LFC per layer"),
        ]  # fmt: skip
        for row, (name, colours, norm, label) in enumerate(what[:rows]):
            for column, panel in enumerate(panels):
                axis: Axes = axes[row, column]
                part = table[table["panel"] == panel]
                grid = _grid(part, table, name)
                image = axis.pcolormesh(grid, cmap=colours, norm=norm, rasterized=True)
                axis.patch.set(**_NOTHING)
                axis.grid(False)
                _boundary(axis, _grid(part, table, "share"))
                if row == 0 and by:
                    axis.set_title(f"{by} = {label_of(panel)}")
                if row == rows - 1:
                    axis.set_xlabel(across)
                if column == 0:
                    axis.set_ylabel(up)
            bar = figure.colorbar(image, ax=list(axes[row]), label=label, pad=0.01, aspect=14)
            if isinstance(norm, SymLogNorm):
                # 0 and the two largest powers of ten below `top`, of both signs.
                large = 10.0 ** np.floor(np.log10(top))
                bar.set_ticks([-large, -large / 10, 0.0, large / 10, large])
                bar.minorticks_off()
        # Cells stand at whole numbers: each tick carries the value of its cell.
        for which, name in ((axes[0, 0].xaxis, "x"), (axes[0, 0].yaxis, "y")):
            values = sorted(table[name].unique())
            shown = shown_ticks(values)
            which.set_ticks([k + 0.5 for k in shown], [label_of(values[k]) for k in shown])
        _legend(figure, table)
    return figure


def _legend(figure: Figure, table: pd.DataFrame) -> None:
    """What is drawn beside the colours, where there is such."""
    share = table["share"]
    handles: list[Any] = []
    if share.min() < 0.5 < share.max():
        draws = f"half of the draws smooth ({table['points'].mean():.4g} in a cell)"
        handles.append(Line2D([], [], color="black", linewidth=0.9, label=draws))
    if share.isna().any():
        handles.append(Patch(**_NOTHING, label="no decided draw"))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=2)


def _grid(part: pd.DataFrame, table: pd.DataFrame, name: str) -> Any:
    """The values of a panel as [y, x], NaN where the sweep has no cell, masked."""
    xs, ys = sorted(table["x"].unique()), sorted(table["y"].unique())
    wide = part.pivot(index="y", columns="x", values=name).reindex(index=ys, columns=xs)
    return np.ma.masked_invalid(wide.to_numpy(dtype=float))


def _boundary(axis: Axes, share: Any) -> None:
    """The line where half of the points smooth, through the centres of the cells.

    Of shares averaged over neighbouring cells: a few draws a cell scatter about the line.
    """
    values = averaged(share.filled(np.nan))
    inside = values[np.isfinite(values)]
    if min(values.shape) > 1 and len(inside) and inside.min() < 0.5 < inside.max():
        x, y = np.arange(values.shape[1]) + 0.5, np.arange(values.shape[0]) + 0.5
        axis.contour(x, y, values, levels=[0.5], colors="black", linewidths=0.9)


def averaged(values: Any) -> Any:
    """With weights 1, 2, 1 along each axis, over the cells that are there."""
    known = np.isfinite(values)
    total, weight = np.where(known, values, 0.0), known.astype(float)
    for axis in (0, 1):
        total, weight = (
            convolve1d(each, (1.0, 2.0, 1.0), axis, mode="constant") for each in (total, weight)
        )
    return np.where(known, total / np.where(weight > 0, weight, 1.0), np.nan)


def shown_ticks(values: list[Any]) -> range:
    """Which of the values carry a label: few, evenly spaced, and the shortest to write."""
    count = len(values)
    steps = [s for s in range(1, count) if (count - 1) % s == 0 and 3 <= (count - 1) // s + 1 <= 6]
    if count <= 3 or not steps:
        return range(0, count, -(-count // 6))
    length = [len(label_of(value).lstrip("\u2212")) for value in values]
    return range(0, count, min(steps, key=lambda step: max(length[::step])))


def label_of(value: Any) -> str:
    # Half of a rounding error is not a value: -1.1e-16 in the middle of a range is 0.
    if isinstance(value, str):
        return value
    return f"{round(float(value), 12) + 0.0:.3g}".replace("-", "\u2212")


def caption(table: pd.DataFrame) -> str:
    """What is shown, in words, with the counts and how the runs agree with the verdicts."""
    names = [str(table[f"{k}_name"].iloc[0]) for k in ("x", "y", "panel")]
    total = {name.lower(): int(table[name.lower()].sum()) for name in _COUNTS}
    points, errors = int(table["points"].sum()), int(table["errors"].sum())
    counted = ", ".join(f"{n:,} {name.upper()}" for name, n in total.items() if n)
    per_cell = points / len(table)
    text = (
        f"Share of SMOOTHING verdicts over {names[0]} and {names[1]}"
        + (f", a column for each {names[2]}" if names[2] else "")
        + f": {points:,} points in {len(table):,} cells of {per_cell:.4g} on average. Black: where "
        "half of the draws smooth (shares averaged over neighbouring cells). Hatched: no decided "
        "point. Cells are drawn in equal size. "
        f"{counted or 'No verdict'}" + (f"; {errors:,} points failed." if errors else ".")
    )
    if table["slope"].notna().any():
        text += (
            " Below: median change of the natural log of HFC/LFC (Frobenius) per layer, measured "
            "over the last half of the layers; white where it levels off, as most of what is "
            "NON_SMOOTHING does; a pale colour there is an oscillation and no trend. In the table "
            "'predicted' is log(rho_Q/rho_C), the rate at which differences gain on consensus: "
            "HFC/LFC follows it down, and up only until it levels off."
        )
    runs, agree, slow = (int(table[name].sum()) for name in ("runs", "agree", "slow"))
    if runs:
        text += (
            f" {agree:,} of {runs:,} runs of one head do as their verdict says: SMOOTHING ends "
            "below HFC/LFC = 1/sqrt(n - 1), where no bounded run can stay (T1f), NON_SMOOTHING does"
            " not"
        )
    if runs > agree:
        text += (
            f"; in {slow:,} of {runs - agree:,} others |log(rho_Q/rho_C)| times the depth is below "
            f"{SLOW:g}: too few layers to tell"
        )
    return text + ("." if runs else "")


def write(table: pd.DataFrame, folder: Path, name: str, title: str) -> list[Path]:
    """folder/NAME.png, .pdf, .csv and .txt from `cells`."""
    return write_figure(draw(table), table, caption(table), folder / name, title)
