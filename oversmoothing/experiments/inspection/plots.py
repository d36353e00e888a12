"""A report and a comparison as pictures; the layer on every x axis."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.sentences import ACCOUNT, SUBLAYERS
from oversmoothing.experiments.inspection.states import ALONE, CLUSTER_COLOURS, TOGETHER, patch_side
from oversmoothing.simulations.drawing.picture import (
    FULL_WIDTH,
    PALETTE,
    band,
    decade_axis,
    new_figure,
    style,
)

_LINES = (("blue", "-"), ("vermillion", "--"), ("green", ":"), ("purple", "-."))
_REGION = {
    "zero": ("light", "0 (exact)"),
    "universal_disc": ("vermillion", "|h + 1/2| ≤ 1/2"),
    "positive": ("blue", "Re h > 0"),
    "other": ("orange", "other"),
}
# Of each panel, in reading order: its title, the label of its y axis, its lines (a column and what
# it is called), what is said where there are none of them, the room above them for the legend.
_PANELS: tuple[tuple[str, str, dict[str, str], str, float], ...] = (
    ("Differences over what tokens share", "HFC/LFC (geometric mean)",
     {"log_hfc_lfc": "all tokens", "log_hfc_lfc_without_cls": "without CLS"}, "", 0.0),
    ("Angles between tokens", "cosine between tokens (signed)",
     {"cos_mean": "mean", "cos_min": "smallest", "cos_mean_desunk": "mean, no largest direction"},
     "", 0.3),
    ("Directions in use", "effective rank",
     {"effective_rank": "all tokens", "effective_rank_without_cls": "without CLS",
      "effective_rank_desunk": "no largest direction"}, "", 0.3),
    ("What each part adds", "change of ln HFC/LFC", {}, "", 0.6),
    ("Where the eigenvalues of H lie", "share of the eigenvalues of H", {}, "", 0.45),
    ("Do tokens turn toward H's direction?", "tilt (gain in mean |cos|)",
     {"tilt_residual": "toward largest |1 + h|", "tilt_modulus": "toward largest |h|"},
     "not measured: a larger budget does", 0.35),
    ("How attention mixes", "attention, mean over heads",
     {"dobrushin_mean": "Dobrushin coefficient", "subdominant_mean": "subdominant |a|",
      "attention_drift": "drift from the layer before"}, "", 0.35),
    ("What the weights look like", "weights",
     {"asymmetry": "asymmetry of H", "departure_from_normality": "departure from normality",
      "negative_gains_attention": "negative gains, attention",
      "negative_gains_ffn": "negative gains, FFN"}, "", 0.0),
    ("What each head does", "head", {}, "", 0.0),
    ("Which share of the tokens came together", "share of the tokens",
     {"merged_share": "joined to another", "largest_cluster": "in the largest cluster"},
     "no tokens were looked at", 0.0),
)  # fmt: skip
# Ends of the y axes that are shares.
_SHARES = {"e": (0.0, 1.45), "h": (-0.02, 1.02), "j": (-0.02, 1.25)}


def draw(table: pd.DataFrame, heads: pd.DataFrame, title: str) -> Figure:
    """Ten panels of a report's tables, on the Agg canvas and with no pyplot state."""
    inner = table.iloc[1:]
    with style():
        figure, axes = new_figure(5, 2, width=FULL_WIDTH + 1.5, height=12.0)
        panels = dict(zip("abcdefghij", axes.ravel(), strict=True))
        _account(panels["d"], inner)
        _regions(panels["e"], inner)
        _tilt(panels["f"], inner)
        _heads(figure, panels["i"], heads)
        for (letter, panel), (name, label, lines, missing, room) in zip(
            panels.items(), _PANELS, strict=True
        ):
            _lines(panel, table if letter in "abcj" else inner, lines)
            if missing and not set(lines) & set(table):
                panel.text(0.5, 0.5, missing, ha="center", transform=panel.transAxes)
            low, high = panel.get_ylim()
            panel.set_ylim(*_SHARES.get(letter, (low, high + room * (high - low))))
            panel.set_ylabel(label)
            panel.set_xlabel("layer (0: input)" if letter in "abcj" else "layer")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            panel.set_title(f"{letter}  {name}", loc="left", fontweight="bold")
            if panel.get_legend_handles_labels()[0]:
                place = "upper right" if letter in "bc" else "best"
                panel.legend(fontsize=6.5, ncols=2, loc=place)
        decade_axis(panels["a"])
        panels["g"].set_ylim(bottom=0)
        panels["e"].set_yticks([0, 0.25, 0.5, 0.75, 1])
        figure.suptitle(title)
    return figure


def _lines(axis: Axes, table: pd.DataFrame, names: dict[str, str]) -> None:
    """Columns against the layer, with their bands from _p05 to _p95; of natural logs log10."""
    for k, (name, label) in enumerate(names.items()):
        if name not in table:
            continue
        colour, scale = PALETTE[_LINES[k][0]], np.log(10) if name.startswith("log_") else 1.0
        axis.plot(table["layer"], table[name] / scale, _LINES[k][1], color=colour, marker="o",
                  label=label)  # fmt: skip
        if f"{name}_p05" in table:
            low, high = table[f"{name}_p05"] / scale, table[f"{name}_p95"] / scale
            # One band is filled; of those over it the edges tell them apart.
            if k == 0:
                axis.fill_between(table["layer"], low, high, color=colour, alpha=0.12, linewidth=0)
            for edge in (low, high):
                axis.plot(table["layer"], edge, color=colour, linewidth=0.5, linestyle="--")


def _account(axis: Axes, inner: pd.DataFrame) -> None:
    shown = ACCOUNT if "log_change_attention_body" in inner else SUBLAYERS
    _stack(axis, inner, {f"log_change_{name}": look for name, look in shown.items()})
    whole = sum(inner[f"log_change_{name}"] for name in shown)
    axis.plot(inner["layer"], whole, "k.", label="whole layer")
    axis.axhline(0, color=PALETTE["grey"], linewidth=0.7)


def _stack(axis: Axes, inner: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    """Bars of the columns, of (colour, label) each, stacked upward and downward by sign."""
    up, down = np.zeros(len(inner)), np.zeros(len(inner))
    for name, (colour, label) in looks.items():
        value = inner[name].to_numpy()
        base = np.where(value >= 0, up, down)
        axis.bar(inner["layer"], value, bottom=base, color=PALETTE[colour], label=label, width=0.8)
        up, down = up + np.maximum(value, 0), down + np.minimum(value, 0)


def _regions(axis: Axes, inner: pd.DataFrame) -> None:
    _stack(axis, inner, {f"h_{name}": look for name, look in _REGION.items()})
    if "consensus_share" in inner:
        share, label = inner["consensus_share"], "consensus dominates (E2)"
        axis.plot(inner["layer"], share, "k.-", linewidth=0.8, label=label)


def _tilt(axis: Axes, inner: pd.DataFrame) -> None:
    """Beside the tilt that of random directions."""
    for k, name in enumerate(("tilt_residual_random", "tilt_modulus_random")):
        if name in inner:
            label = None if k else "random directions"
            axis.plot(inner["layer"], inner[name], ":", color=PALETTE[_LINES[k][0]], label=label)
            axis.axhline(0, color=PALETTE["grey"], linewidth=0.7)


def _heads(figure: Figure, axis: Axes, heads: pd.DataFrame) -> None:
    """What every head does to ln HFC/LFC by being there: blue smooths, orange sharpens; white
    where its interval holds 0, or there is none."""
    if heads.empty:
        axis.text(0.5, 0.5, "no heads were looked at", ha="center", transform=axis.transAxes)
        return
    told = (heads["log_change_low"] > 0) | (heads["log_change_high"] < 0)
    shown = heads.assign(log_change=heads["log_change"].where(told, 0.0))
    grid = shown.pivot(index="head", columns="layer", values="log_change")
    reach = max(float(np.nanmax(np.abs(grid.to_numpy()))), 1e-12)
    colours = LinearSegmentedColormap.from_list(
        "smooths to sharpens", [PALETTE["blue"], "#FFFFFF", PALETTE["vermillion"]]
    )
    drawn = axis.pcolormesh(
        grid.columns, grid.index, grid.to_numpy(), cmap=colours, vmin=-reach, vmax=reach
    )
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.grid(visible=False)
    bar = figure.colorbar(drawn, ax=axis)
    bar.set_label("effect on ln HFC/LFC (white: open)", fontsize=7)


_LAYERS = 5
# Texts of at most so many tokens have their words written under them, cut to so many letters.
_WRITTEN = 64
_LETTERS = 12


def draw_tokens(tokens: pd.DataFrame, pixels: NDArray[np.float64] | None, title: str) -> Figure:
    """tokens: input, layer, token, cluster, and word where they have words; pixels [inputs, H, W,
    3] in [0, 1], or None.

    Every cluster of two tokens or more has a colour, the largest six their own, the rest grey.
    """
    inputs = sorted(tokens["input"].unique())
    side = None if pixels is None else patch_side(int(tokens["token"].max()) + 1, pixels.shape)
    depth = int(tokens["layer"].max())
    # The input, the last layer, and some between.
    some = sorted({round(k * depth / (_LAYERS - 1)) for k in range(_LAYERS)})
    layers = [] if side is None else some
    height = 1.0 + (1.9 if side is None else 1.55) * len(inputs)
    with style():
        figure, axes = new_figure(
            len(inputs), len(layers) + 1, width=FULL_WIDTH + 1.5, height=height
        )
        for row, number in zip(axes, inputs, strict=True):
            own = tokens[tokens["input"] == number]
            if pixels is None or side is None:
                _by_position(row[0], own)
            else:
                _on_image(row, own, pixels[number], side, layers)
        figure.suptitle(f"{title}: tokens joined by cosines of {TOGETHER} or more")
    return figure


def _rgba(cluster: NDArray[np.int64]) -> NDArray[np.float64]:
    """[..., 4]; transparent for a token by itself."""
    names = (*CLUSTER_COLOURS, "grey")
    colours = np.array([(*to_rgb(PALETTE[name]), 0.6) for name in names] + [(0.0, 0.0, 0.0, 0.0)])
    kind = np.where(cluster == ALONE, len(names), np.minimum(cluster, len(CLUSTER_COLOURS)))
    return np.take(colours, kind, axis=0)


def _on_image(
    row: NDArray[np.object_], tokens: pd.DataFrame, image: NDArray[np.float64], side: int,
    layers: list[int],
) -> None:  # fmt: skip
    first, *others = row
    first.imshow(image)
    first.set_title("image", fontsize=8)
    grey = np.repeat(image.mean(-1, keepdims=True), 3, axis=-1)
    size = image.shape[0] // side
    for axis, layer in zip(others, layers, strict=True):
        cluster = tokens[tokens["layer"] == layer].sort_values("token")["cluster"].to_numpy()
        patches = cluster[len(cluster) - side * side :].reshape(side, side)
        axis.imshow(grey)
        axis.imshow(_rgba(patches).repeat(size, axis=0).repeat(size, axis=1))
        share = 100 * float((cluster != ALONE).mean())
        name = "input" if layer == 0 else f"layer {layer}"
        axis.set_title(f"{name}: {share:.0f} %", fontsize=8)
    for axis in row:
        axis.set_xticks([])
        axis.set_yticks([])
        axis.grid(visible=False)


def _by_position(axis: Axes, tokens: pd.DataFrame) -> None:
    grid = tokens.pivot(index="layer", columns="token", values="cluster").to_numpy()
    axis.imshow(_rgba(grid), aspect="auto", origin="lower", interpolation="nearest")
    axis.set_xlabel("token")
    if "word" in tokens and grid.shape[1] <= _WRITTEN:
        words = tokens[tokens["layer"] == 0].sort_values("token")["word"]
        # Letters that the font may lack are not drawn; the table has every word.
        plain = [word.replace("\u2581", "_") for word in words]  # a blank that is a token
        drawn = [word[:_LETTERS] if word.isascii() else "?" for word in plain]
        axis.set_xticks(range(len(drawn)), drawn, rotation=90, fontsize=6, parse_math=False)
    axis.set_ylabel("layer (0: input)")
    axis.grid(visible=False)


def draw_comparison(table: pd.DataFrame, names: tuple[str, str], title: str) -> Figure:
    """Three panels of a comparison's table, on the Agg canvas and with no pyplot state.

    Models of different depth have their first and last layer alone: their places are 0 and 1.
    """
    whole = "second_layer" not in table
    x = table["layer"].to_numpy() if whole else np.arange(len(table))
    with style():
        figure, axes = new_figure(1, 3, width=FULL_WIDTH + 2.5, height=2.9)
        ratio, difference, parts = axes.ravel()
        for name, label, (colour, line) in zip(("first", "second"), names, _LINES, strict=False):
            ratio.plot(x, table[f"{name}_hfc_lfc"], f"o{line}", color=PALETTE[colour], label=label)
        ratio.set_ylabel("HFC/LFC (geometric mean)")
        for name, label, colour in (
            ("since_input", "ln HFC/LFC since the input", "blue"),
            ("cos_mean", "mean cosine", "vermillion"),
        ):
            difference.plot(x, table[name], "o-", color=PALETTE[colour], label=label)
            band(difference, x, table[f"{name}_low"], table[f"{name}_high"], PALETTE[colour])
        difference.set_ylabel("second less first")
        for k, (name, (colour, label)) in enumerate(SUBLAYERS.items()):
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
