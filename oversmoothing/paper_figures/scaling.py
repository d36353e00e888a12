"""Figure: how time and peak memory grow with n, d, L and the number of points of a sweep.

The numbers are measured when the figure is drawn, each size in a process of its own.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.paper_figures.costs.growth import RESOLUTION_MIB, measure
from oversmoothing.paper_figures.figure_base import PALETTE, Context, label_panels, new_figure

NAME = "scaling"
TITLE = "Time and memory against tokens, width, depth and points"
SHORT = (
    "How time and memory grow: the exponent is the slope of a line fitted on two logarithmic "
    "axes, with its standard error."
)
NOT_SHOWN = (
    "One machine, one thread, a few sizes, measured when the figure was drawn. A fitted slope "
    "is no law: below some hundred tokens overheads flatten it."
)

VARIABLES = {"n": "tokens n", "d": "features d", "L": "layers L", "points": "points of a sweep"}
QUANTITIES = {"seconds": "seconds", "MiB": "peak memory, MiB"}
COLOURS = (PALETTE["blue"], PALETTE["vermillion"])


def data(context: Context) -> pd.DataFrame:
    """The table of `paper_figures.costs.growth.measure`; some 20 s on a quiet machine."""
    return measure(progress=context.progress)


def draw(table: pd.DataFrame) -> Figure:
    """Above time, below memory, a column a variable; both axes logarithmic, lines are the fits."""
    figure, axes = new_figure(2, len(VARIABLES), height=5.2, sharex="col")
    for row, (quantity, unit) in enumerate(QUANTITIES.items()):
        for column, (variable, label) in enumerate(VARIABLES.items()):
            chosen = (table["quantity"] == quantity) & (table["variable"] == variable)
            _panel(axes[row, column], table[chosen])
            if row == 1:
                axes[row, column].set_xlabel(label)
            else:
                axes[row, column].set_title(_title(table[chosen]), fontsize="small")
        axes[row, 0].set_ylabel(unit)
    label_panels(axes)
    return figure


def _title(table: pd.DataFrame) -> str:
    names = list(table["series"].unique())
    whole = str(names[0]) if len(names) == 1 else str(names[0]).split(", ", 1)[1]
    # Two lines: above a narrow panel one would run into its neighbour.
    return whole.replace(", ", ",\n", 1) if len(names) == 1 else whole


def _panel(axis: Axes, table: pd.DataFrame) -> None:
    axis.set_xscale("log")
    sizes = sorted(table["size"].unique())
    parts = list(zip(table.groupby("series", sort=False), COLOURS, strict=False))
    if all(_unseen(part) for (_, part), _ in parts):
        _empty(axis, [(_short(str(name), table), colour) for (name, _), colour in parts])
    else:
        axis.set_yscale("log")
        for (_, part), colour in parts:
            _points(axis, part, colour)
        low, high = axis.get_ylim()
        # Room for the words above the points, and a decade at the least.
        axis.set_ylim(low / 1.5, max(high, 4 * low) * 6.0 ** len(parts))
        for k, ((name, part), colour) in enumerate(parts):
            _say(axis, k, f"{_short(str(name), table)}{_exponent(part)}", colour)
    axis.set_xticks([float(x) for x in sizes], [_size(int(x)) for x in sizes])
    axis.minorticks_off()


def _points(axis: Axes, part: pd.DataFrame, colour: str) -> None:
    size, value = part["size"].to_numpy(float), part["value"].to_numpy(float)
    slope = float(part["exponent"].iloc[0])
    axis.plot(size, np.where(value > 0, value, np.nan), "o", color=colour)
    if math.isfinite(slope):
        middle = np.log(size).mean()
        fit = np.log(value).mean() + slope * (np.log(size) - middle)
        axis.plot(size, np.exp(fit), "-", color=colour)


def _short(name: str, table: pd.DataFrame) -> str:
    return f"{name.split(',')[0]}:\n" if table["series"].nunique() > 1 else ""


def _say(axis: Axes, number: int, text: str, colour: str) -> None:
    words = axis.text(
        0.04, 0.98 - 0.18 * number, text, transform=axis.transAxes, va="top", color=colour,
        fontsize="small", linespacing=1.1,
    )  # fmt: skip
    words.set_in_layout(False)


def _empty(axis: Axes, names: list[tuple[str, str]]) -> None:
    """Nothing that could be seen: said in the middle, with no scale that would promise points."""
    axis.set_yticks([])
    axis.grid(False)
    what = " and\n".join(name.rstrip(":\n") for name, _ in names)
    text = f"{what}:\nbelow {RESOLUTION_MIB:g} MiB\nat every size" if what else "too small to see"
    words = axis.text(
        0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center",
        color=PALETTE["grey"], fontsize="small",
    )  # fmt: skip
    words.set_in_layout(False)


def _unseen(part: pd.DataFrame) -> bool:
    """Memory that grows by less than can be seen."""
    none = not math.isfinite(float(part["exponent"].iloc[0]))
    return bool(none and part["quantity"].iloc[0] == "MiB" and part["value"].max() < RESOLUTION_MIB)


def _size(size: int) -> str:
    return f"{size // 1000}k" if size >= 1000 else str(size)


def _exponent(part: pd.DataFrame) -> str:
    slope, error = float(part["exponent"].iloc[0]), float(part["exponent_error"].iloc[0])
    if math.isfinite(slope):
        return f"exponent {slope + 0.0:.2f} ± {error:.2f}".replace("-0.00", "0.00")
    return f"below {RESOLUTION_MIB:g} MiB" if _unseen(part) else "no fit"


def caption(table: pd.DataFrame) -> str:
    """What was measured, and every exponent beside that of theory."""
    said = []
    for (name, variable, quantity), part in table.groupby(
        ["series", "variable", "quantity"], sort=False
    ):
        what = "time" if quantity == "seconds" else "memory"
        expected = f"{part['expected'].iloc[0]:g}"
        said.append(f"{what} in {variable} ({name}): {_exponent(part)}, in theory {expected}")
    return (
        "Time (least of some repeats, one thread, float64) and growth of the peak resident memory "
        "(inputs included), each size in a fresh process. Exponents are slopes of least squares "
        "lines in log-log, with their standard errors; the theory's hold for large sizes. Memory "
        f"that grows by less than {RESOLUTION_MIB:g} MiB is below what can be seen. "
        + "; ".join(said)
        + "."
    )
