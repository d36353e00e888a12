"""The growth of differences as one picture: by layer, how far the closed form holds, the ratio."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oversmoothing.experiments.stability.found import HOLDS, Stability
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style

_LINES = (
    ("mean", "consensus itself", "grey", "-", ""),
    ("across", "across, at consensus (jvp)", "blue", "-", ""),
    ("closed", "the same, closed form (T8c)", "blue", "", "o"),
    ("actual", "on the inputs' streams (jvp)", "vermillion", "-", ""),
    ("observed", "really perturbed there", "vermillion", "", "x"),
    ("exponent_1", "largest exponent along them", "green", "--", ""),
)


def draw(found: Stability) -> Figure:
    """Three panels, on the Agg canvas and with no pyplot state."""
    frame, far = found.to_frame(), found.far()
    x = frame["layer"].to_numpy()
    with style():
        figure, axes = new_figure(1, 3, width=FULL_WIDTH + 3, height=3.2)
        growth, holds, ratio = axes.ravel()
        for name, label, colour, line, marker in _LINES:
            growth.plot(
                x, frame[name], line, marker=marker, color=PALETTE[colour], label=label,
                markerfacecolor="none",
            )  # fmt: skip
        for name, colour in (("actual", "vermillion"), ("across", "blue")):
            growth.fill_between(
                x, frame[f"{name}_low"], frame[f"{name}_high"], color=PALETTE[colour], alpha=0.15,
                linewidth=0,
            )  # fmt: skip
        growth.axhline(0, color=PALETTE["black"], linewidth=0.5)
        growth.set(xlabel="layer", ylabel="ln growth in the layer")
        # Below the axes: nowhere else is room for six lines in every case.
        growth.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        growth.xaxis.set_major_locator(MaxNLocator(integer=True))
        # 0 has no place on a logarithmic axis.
        t = np.maximum(far["distance"].to_numpy(), 0.003)
        layers = [f"r2_layer_{k + 1}" for k in range(found.depth)]
        for name in layers:
            holds.plot(t, far[name].clip(lower=-1), color=PALETTE["light"], linewidth=0.8)
        holds.plot([], [], color=PALETTE["light"], label="one layer")
        holds.plot(t, far["r2"].clip(lower=-1), "o-", color=PALETTE["blue"], label="all layers")
        holds.fill_between(
            t, far["r2_low"].clip(lower=-1), far["r2_high"].clip(lower=-1),
            color=PALETTE["blue"], alpha=0.15, linewidth=0,
        )  # fmt: skip
        holds.axhline(HOLDS, color=PALETTE["grey"], linewidth=0.7, linestyle=":")
        holds.set(
            xscale="log", ylim=(-1.05, 1.05), xlabel="distance from consensus (1: the streams)",
            ylabel="R² of the closed form\n(below −1 drawn at −1)",
        )  # fmt: skip
        holds.set_xticks([0.003, 0.01, 0.1, 1.0], ["0", ".01", ".1", "1"])
        holds.minorticks_off()
        holds.legend(fontsize=6.5, loc="lower left")
        logs = found.arrays["logs"]
        depth = np.arange(len(logs))
        ratio.plot(depth, np.exp(logs), color=PALETTE["light"], linewidth=0.8)
        ratio.plot([], [], color=PALETTE["light"], label="one input")
        ratio.plot(depth, np.exp(logs.mean(1)), "o-", color=PALETTE["black"], label="measured")
        across = found.arrays["closed"][:, :, 0] - found.arrays["mean"]
        linear = logs[0].mean() + np.concatenate([[0], np.cumsum(np.nanmean(across, axis=1))])
        ratio.plot(
            depth, np.exp(linear), "--", color=PALETTE["blue"], label="if consensus' growth held"
        )
        ratio.set(yscale="log", xlabel="layer (0: input)", ylabel="HFC/LFC")
        ratio.xaxis.set_major_locator(MaxNLocator(integer=True))
        plain = FuncFormatter(lambda value, _: f"{value:g}")
        ratio.yaxis.set_major_formatter(plain)
        ratio.yaxis.set_minor_formatter(plain)
        ratio.legend(fontsize=6.5)
        titles = ("a  Growth by layer", "b  How far the closed form holds", "c  Finite depth")
        for title, panel in zip(titles, axes.ravel(), strict=True):
            panel.set_title(title, loc="left", fontweight="bold")
        figure.suptitle(f"{found.model}: differences between tokens, {found.inputs} inputs")
    return figure
