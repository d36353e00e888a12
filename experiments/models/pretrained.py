"""A pretrained vision transformer in float64, as `certify-model` reads it, and pictures for it.

The model itself is opened and watched by the bridge (`experiments.inspection`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.theory.support.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PretrainedViT:
    """A model of images whose forward pass runs in float64."""

    model: Model

    @property
    def heads(self) -> int:
        return self.model.layers[0].heads.number

    def layers(self) -> Iterator[tuple[Array, Array]]:
        """(W_V [d, heads r], W_proj [heads r, d]) of each layer in X W form (rows = tokens).

        Head h uses columns h r ... (h + 1) r of W_V and the same rows of W_proj; float64.
        """
        for layer in self.model.layers:
            heads = layer.heads.double()
            W_V = heads.W_V.transpose(0, 1).flatten(1)
            yield W_V.contiguous().numpy(), heads.W_O.flatten(0, 1).contiguous().numpy()

    def attention(self, pixels: Tensor) -> list[Array]:
        """Per layer the attention [images, heads, n, n] of pixels [images, 3, s, s], float64.

        Raises `InputError` where it does not give the model's own output.
        """
        found: list[Array] = []
        for trace in extract(self.model, pixels).traces:
            assert trace.attention is not None
            found.append(trace.attention.numpy())
        return found

    def prepare(self, images: list[Image.Image]) -> Tensor:
        """Images as pixels [m, 3, s, s]: RGB, resized (bicubic), normalised for the model."""
        pixels: Tensor = self.model.prepare(images)
        return pixels


def load_vit(source: str | Path) -> PretrainedViT:
    """Open a model of images from a folder, a file or the hub; see `open_model`.

    Raises `InputError` as it does, and for a model that reads text.
    """
    model = open_model(source, dtype=torch.float64)
    if model.modality != "vision":
        raise InputError(f"'{source}' reads text: give a model of images")
    return PretrainedViT(model)


def photographs(count: int) -> list[Image.Image]:
    """`count` images: scikit-learn's two photographs and crops of them."""
    from sklearn.datasets import load_sample_images

    whole = [Image.fromarray(array) for array in load_sample_images().images]
    width, height = whole[0].size
    side = min(width, height)
    found = [*whole]
    # Squares of decreasing size along the diagonal of both photographs, alternately.
    step = 0
    while len(found) < count:
        part, shift = int(side * 0.8 ** (step // 2 + 1)), 24 * (step // 2)
        box = (shift, shift, shift + part, shift + part)
        found.append(whole[step % 2].crop(box))
        step += 1
    return found[:count]
