"""Which tokens come together, drawn: on the image where there is one, else position by layer."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.token_clusters import (
    ALONE,
    CLUSTER_COLOURS,
    TOGETHER,
    patch_side,
)
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style

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
    with style():
        number = int(tokens["token"].max()) + 1
        side = None if pixels is None else patch_side(number, pixels.shape)
        if pixels is not None and side is not None:
            layers = _shown(int(tokens["layer"].max()))
            height = 1.0 + 1.55 * len(inputs)
            figure, axes = new_figure(
                len(inputs), len(layers) + 1, width=FULL_WIDTH + 1.5, height=height
            )
            for row, number in zip(np.atleast_2d(axes), inputs, strict=True):
                _on_image(row, tokens[tokens["input"] == number], pixels[number], side, layers)
        else:
            figure, axes = new_figure(
                len(inputs), 1, width=FULL_WIDTH + 1.5, height=1.0 + 1.9 * len(inputs)
            )
            for axis, number in zip(np.ravel(axes), inputs, strict=True):
                _by_position(axis, tokens[tokens["input"] == number])
        figure.suptitle(f"{title}: tokens joined by cosines of {TOGETHER} or more")
    return figure


def _shown(depth: int) -> list[int]:
    """The input, the last layer, and some between."""
    return sorted({round(k * depth / (_LAYERS - 1)) for k in range(_LAYERS)})


def _rgba(cluster: NDArray[np.int64]) -> NDArray[np.float64]:
    """[..., 4]; transparent for a token by itself."""
    names = (*CLUSTER_COLOURS, "grey")
    colours = np.array([(*to_rgb(PALETTE[name]), 0.6) for name in names] + [(0.0, 0.0, 0.0, 0.0)])
    kind = np.where(cluster == ALONE, len(names), np.minimum(cluster, len(CLUSTER_COLOURS)))
    found: NDArray[np.float64] = colours[kind]
    return found


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
