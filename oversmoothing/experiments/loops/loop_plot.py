"""Loops as one picture: HFC/LFC against the number of loops, block by block, and the prediction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from oversmoothing.experiments.loops.loop_result import LoopResult
from oversmoothing.experiments.loops.outcomes import COLLAPSED
from oversmoothing.experiments.loops.predictors import LOCAL
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style

COLUMNS = 4
KINDS = {
    "collapsed": "blue",
    "falling as a power": "sky",
    "at rest elsewhere": "vermillion",
    "still moving": "orange",
    "a cycle": "purple",
}


def draw(found: LoopResult) -> Figure:
    """A panel a group, and one of predicted against measured; Agg canvas, no pyplot state."""
    panels = len(found.groups) + 1
    rows = math.ceil(panels / COLUMNS)
    loops = np.arange(1, found.loops + 1)
    with style():
        figure, axes = new_figure(rows, COLUMNS, width=FULL_WIDTH + 2, height=2.1 * rows + 0.5)
        for spare in axes.ravel()[panels:]:
            spare.set_axis_off()
        ends = found.predicted[LOCAL]
        for group, panel in enumerate(axes.ravel()[: panels - 1]):
            curves = np.exp(found.curves[group, 1:])
            panel.plot(loops, curves, color=PALETTE["light"], linewidth=0.6)
            panel.plot(loops, np.exp(np.median(found.curves[group, 1:], axis=1)),
                       color=PALETTE["black"])  # fmt: skip
            law = float(np.exp(np.clip(np.median(ends[group]), -20, 5)))
            panel.plot([found.loops], [law], "D", color=PALETTE["blue"], clip_on=False)
            panel.axhline(COLLAPSED, color=PALETTE["grey"], linewidth=0.7, linestyle=":")
            panel.set(xscale="log", yscale="log", ylim=(2e-3, 20))
            panel.set_title(f"blocks {found.label(group)}", loc="left", fontsize=8)
        for panel in axes[:, 0]:
            panel.set_ylabel("HFC/LFC")
        last = axes.ravel()[panels - 1]
        _scatter(found, last)
        figure.supxlabel(
            f"loops (log); black: median of {found.inputs} inputs; diamond: end by the local law; "
            f"dotted: HFC/LFC = {COLLAPSED:g}", fontsize=8,
        )  # fmt: skip
        figure.suptitle(f"{found.model}: blocks looped {found.loops} times")
    return figure


def _scatter(found: LoopResult, axes: Any) -> None:
    """Predicted against measured, by what became of each run."""
    name = LOCAL if found.chosen is None else found.chosen.name
    for kind, colour in KINDS.items():
        own = [row for row in found.rows if row["kind"] == kind]
        if own:
            x = np.exp(np.clip([row["predicted"][name] for row in own], -6, 3))
            axes.plot(x, [row["end"] for row in own], "o", markersize=2,
                      color=PALETTE[colour], label=kind)  # fmt: skip
    axes.plot([2e-3, 20], [2e-3, 20], color=PALETTE["grey"], linewidth=0.7)
    axes.set(xscale="log", yscale="log", xlim=(2e-3, 20), ylim=(2e-3, 20))
    axes.set_title(f"measured against\n{name}", loc="left", fontsize=8)
    axes.legend(fontsize=5.5)
