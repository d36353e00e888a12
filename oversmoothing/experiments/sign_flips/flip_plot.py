"""The flips as one picture: the effect layer by layer, and predicted against measured."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from oversmoothing.experiments.sign_flips.flip_result import FROZEN, GAP, FlipResult
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style


def draw(found: FlipResult) -> Figure:
    """Two panels (Post-LN: one that says something), on the Agg canvas and with no pyplot state."""
    table = found.by_layer()
    with style():
        figure, axes = new_figure(1, 3, width=FULL_WIDTH + 2.5, height=3.0)
        layers, frozen, gap = axes.ravel()
        for flip, colour in (("gain", "vermillion"), ("gain and shift", "purple")):
            own = table[table["flip"] == flip]
            for target, line in (("layer", "-"), ("attention", ":")):
                layers.plot(
                    own["layer"], own[f"effect_{target}"], line, marker="o", color=PALETTE[colour],
                    label=f"{flip}: over the {target}",
                )  # fmt: skip
        own = table[table["flip"] == "gain"]
        if GAP in own:
            layers.plot(own["layer"], own[GAP], "x--", color=PALETTE["blue"], label=GAP)
        layers.axhline(0, color=PALETTE["black"], linewidth=0.5)
        layers.set(xlabel="layer flipped", ylabel="effect on ln HFC/LFC (mean)")
        layers.xaxis.set_major_locator(MaxNLocator(integer=True))
        # Below the axes: nowhere else is room in every case.
        layers.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        y = found.effects["gain", "layer"].ravel()
        for panel, name in ((frozen, FROZEN), (gap, GAP)):
            values = found.predictions.get(("gain", "layer", name))
            if values is None:
                panel.set_axis_off()
                panel.text(0.5, 0.5, "Post-LN: T8d predicts no effect\non the attention sublayer",
                           ha="center", va="center")  # fmt: skip
                continue
            x = values.ravel()
            colours = np.tile(np.arange(values.shape[1]), len(values))
            panel.scatter(x, y, s=5, c=colours, cmap="viridis", linewidths=0)
            ends = [min(y.min(), x.min()), max(y.max(), x.max())]
            panel.plot(ends, ends, color=PALETTE["grey"], linewidth=0.7)
            panel.set(xlabel=f"predicted: {name}", ylabel="measured effect over the layer")
            r2 = found.scores["gain", "layer", name].r2
            panel.text(0.03, 0.95, f"R² {r2:.2f} (held out)", transform=panel.transAxes, va="top",
                       fontsize=7)  # fmt: skip
        titles = ("a  Effect by layer", "b  Attention frozen", "c  The theory's spectra")
        for title, panel in zip(titles, axes.ravel(), strict=True):
            panel.set_title(title, loc="left", fontweight="bold")
        figure.suptitle(f"{found.model}: the gain of one layer's norm at attention flipped")
    return figure
