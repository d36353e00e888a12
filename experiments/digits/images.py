"""The data of the trained models: scikit-learn's handwritten digits in one fixed split.

1797 grey images of 8x8 pixels, ten classes, shipped with scikit-learn, so that nothing is
downloaded. Validation images serve every choice (epoch, learning rate, figures); the test images
score a finished model once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from oversmoothing.theory.support.extras import required

IMAGE_SIZE = 8
CLASSES = 10
# Images in each part.
TRAIN, VALIDATION, TEST = 1077, 360, 360
# The grey levels of the data set run from 0 to 16; pixels are stored as level / 8 - 1.
GREY_LEVELS = 16.0
# The split never follows the seed of a training run: accuracies of two seeds share their images.
SPLIT_SEED = 4301


@dataclass(frozen=True)
class Images:
    """Pixels [m, 8, 8] float32 in [-1, 1] (ink is 1) and labels [m] int64."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> Images:
        return Images(self.pixels.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Digits:
    """The three parts: 60 % train, 20 % validation, 20 % test, each with the class shares of
    the whole."""

    train: Images
    validation: Images
    test: Images


def scaled(grey: np.ndarray) -> Tensor:
    """Grey values in [0, 1] (1 is ink) as the pixels that the models read, float32 in [-1, 1]."""
    return torch.from_numpy(np.asarray(2.0 * grey - 1.0, dtype=np.float32))


@cache
def digits() -> Digits:
    """The split, the same on every call and every machine."""
    train_test_split = required("sklearn.model_selection").train_test_split
    bunch = required("sklearn.datasets").load_digits()
    labels = bunch.target.astype(np.int64)
    pixels = scaled(bunch.images / GREY_LEVELS)
    everything = np.arange(len(labels))
    rest, test = train_test_split(
        everything, test_size=0.2, random_state=SPLIT_SEED, stratify=labels
    )
    train, validation = train_test_split(
        rest, test_size=0.25, random_state=SPLIT_SEED, stratify=labels[rest]
    )

    def part(index: np.ndarray) -> Images:
        chosen = torch.from_numpy(np.sort(index))
        return Images(pixels[chosen].contiguous(), torch.from_numpy(labels)[chosen])

    return Digits(part(train), part(validation), part(test))


def augmented(
    pixels: Tensor, generator: torch.Generator, *, shift: float, rotation: float, zoom: float
) -> Tensor:
    """Each image shifted, rotated and scaled at random, bilinearly, the background moving in.

    `pixels` [m, s, s] -> [m, s, s]; each quantity is uniform within its reach, `shift` in pixels,
    `rotation` in degrees, `zoom` as a share, drawn from `generator` (on the CPU) alone.
    """
    m, size, _ = pixels.shape
    draw = 2 * torch.rand(4, m, generator=generator) - 1
    angle = draw[0] * math.radians(rotation)
    scale = 1 + draw[1] * zoom
    # affine_grid measures in half-widths of the image.
    move = draw[2:] * shift * 2 / size
    cosine, sine = scale * angle.cos(), scale * angle.sin()
    rows = torch.stack([cosine, -sine, move[0], sine, cosine, move[1]], dim=-1).view(m, 2, 3)
    grid = functional.affine_grid(rows.to(pixels.device), [m, 1, size, size], align_corners=False)
    # Outside the image grid_sample reads 0: sampled is the ink above the background, pixel + 1.
    ink = functional.grid_sample(pixels[:, None] + 1, grid, align_corners=False)
    return ink[:, 0] - 1
