"""HFC/LFC and the cosines of a run against depth, from its table alone.

The ratio is drawn from its logarithm, so that 1e-4000 still has its place; 0, infinite and
undefined values leave a gap and are never clipped to a number.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from oversmoothing.simulations.drawing.picture import (
    PALETTE,
    band,
    decade_axis,
    new_figure,
    plot_log,
    style,
)
from oversmoothing.simulations.drawing.result import Result, Sentence, Table
from oversmoothing.simulations.state import choose_device
from oversmoothing.theory.support.errors import InputError

COSINES = {"cos_mean": ("mean of the pairs", "blue"), "cos_min": ("least of them", "vermillion")}
CLOSED_FORM = "closed form"
# From this depth, or order of magnitude, on an axis may be logarithmic.
GREAT = 100
# Up to so many depths each has a marker.
_MARKED = 80
# The least span of the axis of the cosines: rounding is not drawn as movement.
_SPAN = 0.1


def draw_metrics(table: pd.DataFrame, axes: Sequence[Axes] | None = None) -> NDArray[np.object_]:
    """Two panels, HFC/LFC and the cosines, in the axes given or in a new figure; returns them.

    table: depth, log_hfc_lfc, cos_mean, cos_min, and batch where there are several runs: then the
    lines are medians, and bands reach from the least to the largest. Raises `InputError` for
    another number of axes.
    """
    with style():
        panels = np.asarray(new_figure(1, 2)[1] if axes is None else axes, dtype=object).ravel()
        if len(panels) != 2 or not all(isinstance(panel, Axes) for panel in panels):
            raise InputError("give two Axes of matplotlib, for HFC/LFC and for the cosines")
        ratio, cosine = panels
        _ratio(ratio, table)
        _cosines(cosine, table)
        for panel in panels:
            _layers(panel, table["depth"])
    return panels


def draw_run(table: pd.DataFrame, title: str, log_rate: float | None = None) -> Figure:
    """`draw_metrics` with what is predicted of the run beside it (`predictions`)."""
    ratio, cosine = draw_metrics(table)
    with style():
        for label, values in predictions(table, log_rate).items():
            line, colour = ("--", "orange") if label == CLOSED_FORM else (":", "grey")
            look = {"color": PALETTE[colour], "linestyle": line}
            plot_log(ratio, table["depth"], values, label=label, **look)
            ratio.lines[0].set_label("simulation")
            falls = table["log_hfc_lfc"].iloc[-1] < 0
            ratio.legend(loc="lower left" if falls and _steep(table) else "best")
        cosine.figure.suptitle(title)
    figure: Figure = cosine.figure
    return figure


# Of a run, the columns that a terminal shows, and the units of those that have one.
SHOWN = ("depth", "log_hfc_lfc", "predicted_log_hfc_lfc", "cos_mean", "cos_min", "effective_rank")
UNITS = dict.fromkeys(("log_hfc_lfc", "predicted_log_hfc_lfc"), "ln")


def run_result(
    name: str, configuration: Any, device: str, table: pd.DataFrame, said: Sequence[Sentence],
    details: dict[str, Any], log_rate: float | None,
) -> Result:  # fmt: skip
    """A run of layers; configuration: a dataclass with n, d and seed. log_rate: the slope of log
    HFC/LFC that is predicted."""
    asked = asdict(configuration)
    if "eigenvalues" in (options := asked.get("value_options", {})):
        options["eigenvalues"] = [f"{h:g}" for h in options["eigenvalues"]]
    n, d = asked["n"], asked["d"]
    title = f"{name}: {n} token{'s' * (n != 1)}, {d} feature{'s' * (d != 1)}, seed {asked['seed']}"
    shown = [column for column in SHOWN if column in table]
    units = {column: unit for column, unit in UNITS.items() if column in table}
    return Result(
        name,
        title,
        {"layers": Table(table, units, shown, "{:.6g}", few=True)},
        said,
        {"schema_version": 2, "configuration": asked, "device": str(choose_device(device))},
        details=details,
        picture=lambda: draw_run(table, title, log_rate),
    )


def predictions(table: pd.DataFrame, log_rate: float | None = None) -> dict[str, pd.Series]:
    """What is predicted of log HFC/LFC at the depths of a table, by its name in the legend.

    The closed form where the table has it; its limit, or else the slope log_rate per layer where
    that is negative, through the last measured ratio.
    """
    depth, measured = table["depth"], table["log_hfc_lfc"]
    curves = {}
    if "predicted_log_hfc_lfc" in table and np.isfinite(table["predicted_log_hfc_lfc"]).any():
        curves[CLOSED_FORM] = table["predicted_log_hfc_lfc"]
    limit = table["predicted_limit"].iloc[0] if "predicted_limit" in table else np.nan
    known = np.isfinite(measured)
    if np.isfinite(limit) and limit > 0:
        curves["predicted limit"] = pd.Series(np.log(limit), index=table.index)
    elif log_rate is not None and -np.inf < log_rate < 0 and known.any():
        last = table[known].iloc[-1]
        curves["predicted rate"] = last["log_hfc_lfc"] + log_rate * (depth - last["depth"])
    return curves


def great(values: Sequence[int] | pd.Series) -> bool:
    """Whether a linear axis would crowd these depths, or orders of magnitude: few of them lie in
    its second half."""
    sizes = np.abs(np.asarray(values, dtype=float))
    sizes = sizes[np.isfinite(sizes)]
    largest = max(sizes, default=0)
    return bool(largest >= GREAT and np.mean(sizes >= largest / 2) < 0.4)


def _steep(table: pd.DataFrame) -> bool:
    """Whether the axis of the ratio is logarithmic in the orders of magnitude themselves."""
    return great(table["depth"]) and great(table["log_hfc_lfc"] / np.log(10.0))


def _ratio(axis: Axes, table: pd.DataFrame) -> None:
    axis.set_ylabel("HFC/LFC (Frobenius)")
    if not np.isfinite(table["log_hfc_lfc"]).any():
        _nothing(axis, "0, infinite or undefined\nat every depth")
        return
    low, middle, high = _spread(table, "log_hfc_lfc")
    plot_log(axis, middle.index, middle, color=PALETTE["blue"], **_marks(middle))
    if "batch" in table:
        scale = 1 / np.log(10.0)
        band(axis, low.index, low * scale, high * scale, PALETTE["blue"])
        runs = f"median of {table['batch'].nunique()} runs, least to largest"
        axis.legend([axis.lines[0]], [runs])
    if _steep(table):
        axis.set_yscale("symlog", linthresh=1.0)
        axis.set_ylabel("HFC/LFC (Frobenius); each step\nten times as many powers of ten")
    decade_axis(axis)


def _cosines(axis: Axes, table: pd.DataFrame) -> None:
    axis.set_ylabel("cosine of token pairs (signed)")
    values = table[list(COSINES)].to_numpy()
    if np.isnan(values).all():
        _nothing(axis, "undefined at every depth:\nfewer than two tokens that are not 0")
        return
    for name, (label, colour) in COSINES.items():
        low, middle, high = _spread(table, name)
        axis.plot(middle.index, middle, color=PALETTE[colour], label=label, **_marks(middle))
        if "batch" in table:
            band(axis, low.index, low, high, PALETTE[colour])
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    span = max(_SPAN, most - least)
    # Around what there is, and no further than cosines go.
    bottom = min(max((least + most - span) / 2, -1.0), 1.0 - span)
    axis.set_ylim(bottom - 0.06 * span, bottom + 1.06 * span)
    axis.legend()


def _spread(table: pd.DataFrame, name: str) -> tuple[pd.Series, pd.Series, pd.Series]:
    """The least, the median and the largest at each depth, over the finite values of the runs."""
    finite = table[name].where(np.isfinite(table[name]))
    by = finite.groupby(table["depth"])
    return by.min(), by.median(), by.max()


def _marks(values: pd.Series) -> dict[str, Any]:
    return {"marker": "o"} if len(values) <= _MARKED else {}


def _layers(axis: Axes, depths: pd.Series) -> None:
    axis.set_xlabel("layer")
    if great(depths):
        # Linear up to layer 1, so that layer 0 has a place.
        decades = math.log10(depths.max())
        axis.set_xscale("symlog", linthresh=1.0, linscale=max(0.4, 0.12 * decades))
        axis.set_xlim(-0.05, float(depths.max()) ** 1.03)
    else:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _nothing(axis: Axes, why: str) -> None:
    axis.text(0.5, 0.5, why, ha="center", va="center", transform=axis.transAxes)
    axis.set_yticks([])
