"""The data of the trained models: their sizes, and the default, handwritten digits.

1797 grey images of 8x8 pixels, ten classes, shipped with scikit-learn, so that nothing is
downloaded, in one fixed split. Validation images serve every choice (epoch, learning rate,
figures); the test images score a finished model once. CIFAR is read by `cifar.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from oversmoothing.experiments.models.pictures import scaled
from oversmoothing.theory.support.errors import required


@dataclass(frozen=True)
class Sizes:
    """Images of `size` x `size` pixels and `channels` colours, and how many are in each part."""

    size: int
    channels: int
    classes: int
    train: int
    validation: int
    test: int


# CIFAR's own 50,000 training images hold the validation part.
SIZES = {
    "digits": Sizes(8, 1, 10, 1077, 360, 360),
    "cifar10": Sizes(32, 3, 10, 45_000, 5_000, 10_000),
    "cifar100": Sizes(32, 3, 100, 45_000, 5_000, 10_000),
}
# The grey levels of the data set run from 0 to 16; pixels are stored as level / 8 - 1.
GREY_LEVELS = 16.0
# The split never follows the seed of a training run: accuracies of two seeds share their images.
SPLIT_SEED = 4301


@dataclass(frozen=True)
class Images:
    """Pixels and labels [m] int64.

    Digits [m, 8, 8] are float32 in [-1, 1] (ink is 1); CIFAR [m, 3, 32, 32] is kept as uint8.
    """

    pixels: Tensor
    labels: Tensor

    def inputs(self, chosen: Tensor | slice = slice(None)) -> Tensor:
        """What a model reads of the chosen ones: float32 in [-1, 1]."""
        pixels = self.pixels[chosen]
        return pixels.float() / 127.5 - 1 if pixels.dtype == torch.uint8 else pixels

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> Images:
        return Images(self.pixels.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Parts:
    """The three parts, each with the class shares of the whole (digits: 60, 20 and 20 %)."""

    train: Images
    validation: Images
    test: Images

    def to(self, device: torch.device | str) -> Parts:
        return Parts(self.train.to(device), self.validation.to(device), self.test.to(device))

    def with_fraction(self, fraction: float) -> Parts:
        """The same with round(fraction m) of the m training images: the smaller share lies within
        the larger, each has the class shares of the whole, and neither follows a run's seed."""
        if fraction == 1:
            return self
        labels = self.train.labels.cpu().numpy()
        shuffled = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
        # Where an image stands within its class, from 0 to 1: a prefix takes all classes alike.
        place = np.empty(len(labels))
        for label in np.unique(labels):
            own = shuffled[labels[shuffled] == label]
            place[own] = (np.arange(len(own)) + 0.5) / len(own)
        count = max(1, round(fraction * len(labels)))
        chosen = torch.from_numpy(np.sort(np.argsort(place, kind="stable")[:count]))
        kept = Images(self.train.pixels[chosen], self.train.labels[chosen])
        return Parts(kept, self.validation, self.test)


@cache
def digits() -> Parts:
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

    return Parts(part(train), part(validation), part(test))


def augmented(
    pixels: Tensor, generator: torch.Generator, *, shift: float, rotation: float, zoom: float
) -> Tensor:
    """Each image shifted, rotated and scaled at random, bilinearly, the background moving in.

    `pixels` [m, s, s] or [m, c, s, s] -> the same shape; each quantity is uniform within its reach,
    `shift` in pixels, `rotation` in degrees, `zoom` as a share, drawn from `generator` (on the CPU)
    alone.
    """
    m, size = len(pixels), pixels.shape[-1]
    planes = pixels.view(m, -1, size, size)
    draw = 2 * torch.rand(4, m, generator=generator) - 1
    angle = draw[0] * math.radians(rotation)
    scale = 1 + draw[1] * zoom
    # affine_grid measures in half-widths of the image.
    move = draw[2:] * shift * 2 / size
    cosine, sine = scale * angle.cos(), scale * angle.sin()
    rows = torch.stack([cosine, -sine, move[0], sine, cosine, move[1]], dim=-1).view(m, 2, 3)
    grid = functional.affine_grid(rows.to(pixels.device), list(planes.shape), align_corners=False)
    # Outside the image grid_sample reads 0: sampled is the ink above the background, pixel + 1.
    ink = functional.grid_sample(planes + 1, grid, align_corners=False)
    return ink.view(pixels.shape) - 1
