"""A comparison as one picture: both models against depth, and the difference with its intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style


def draw(table: pd.DataFrame, names: tuple[str, str], title: str) -> Figure:
    """Three panels of a comparison's table, on the Agg canvas and with no pyplot state.

    Models of different depth have their first and last layer alone: their places are 0 and 1.
    """
    whole = "second_layer" not in table
    x = table["layer"].to_numpy() if whole else np.arange(len(table))
    with style():
        figure, axes = new_figure(1, 3, width=FULL_WIDTH + 2.5, height=2.9)
        ratio, difference, parts = axes.ravel()
        for name, label, colour in zip(
            ("first", "second"), names, ("blue", "vermillion"), strict=True
        ):
            ratio.plot(x, table[f"{name}_hfc_lfc"], "o-", color=PALETTE[colour], label=label)
        ratio.set_ylabel("HFC/LFC (geometric mean)")
        for name, label, colour in (
            ("since_input", "ln HFC/LFC since the input", "blue"),
            ("cos_mean", "mean cosine", "vermillion"),
        ):
            difference.plot(x, table[name], "o-", color=PALETTE[colour], label=label)
            low, high = table[f"{name}_low"], table[f"{name}_high"]
            difference.fill_between(x, low, high, color=PALETTE[colour], alpha=0.15, linewidth=0)
        difference.set_ylabel("second less first")
        for k, (name, label, colour) in enumerate(
            (("attention", "attention", "blue"), ("ffn", "FFN", "vermillion"))
        ):
            value = table[f"log_change_{name}"].to_numpy()
            ends = table[[f"log_change_{name}_low", f"log_change_{name}_high"]].to_numpy().T
            parts.bar(x + 0.4 * k - 0.2, value, 0.4, color=PALETTE[colour], label=label)
            parts.errorbar(
                x + 0.4 * k - 0.2, value, np.abs(ends - value), fmt="none",
                ecolor=PALETTE["black"], elinewidth=0.7,
            )  # fmt: skip
        parts.set_ylabel("change of ln HFC/LFC,\nsecond less first")
        titles = ("a  Both by layer", "b  Difference so far", "c  Difference by sublayer")
        for title_of_panel, panel in zip(titles, axes.ravel(), strict=True):
            panel.set_title(title_of_panel, loc="left", fontweight="bold")
            panel.set_xlabel("layer (0: input)" if whole else "input, end")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            panel.legend(fontsize=6.5)
            if panel is not ratio:
                panel.axhline(0, color=PALETTE["grey"], linewidth=0.7)
        figure.suptitle(title)
    return figure
