"""What the project's own networks read: pixels in patches, or characters; and what a token sees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.models.inputs import WHITE, Images
from oversmoothing.experiments.models.pictures import scaled, upright_rgb
from oversmoothing.theory.support.errors import InputError


@dataclass(frozen=True)
class Reads:
    """What a network reads and says: `kind` 'pixels' [b, c, s, s] cut into patches, with a CLS
    token, or 'characters' [b, n] of a vocabulary of `inputs` numbers, with scores of every token.

    tokens: how many, CLS apart; inputs: numbers of a patch, or of the vocabulary; outputs: scores.
    """

    kind: Literal["pixels", "characters"]
    tokens: int
    inputs: int
    outputs: int
    channels: int = 1
    causal: bool = False
    mean: tuple[float, ...] = (0.5,)
    deviation: tuple[float, ...] = (0.5,)
    alphabet: str = ""

    @property
    def patch(self) -> int:
        """Pixels along the side of a patch."""
        return math.isqrt(self.inputs // self.channels)

    @property
    def side(self) -> int:
        """Pixels along the side of an image."""
        return self.patch * math.isqrt(self.tokens)


def seen(mask: str, reads: Reads) -> Tensor | None:
    """Which tokens j (columns) token i sees, [n, n] bool; None: all, or all earlier ones.

    On a grid of patches, which all see CLS and are seen by it: 'local' within one patch in every
    direction, 'strided' every second patch along rows and columns, 'axial' its row and its column.
    Along characters: 'local' the last 8, 'strided' every eighth before it; the union with the token
    itself. Local and axial masks connect all tokens, so that A has one closed class (T1); strided
    patches alone would fall into four classes, which CLS joins.
    """
    if mask == "dense":
        return None
    if reads.kind == "characters":
        apart = torch.arange(reads.tokens)[:, None] - torch.arange(reads.tokens)
        near = apart.abs() < 8 if mask == "local" else apart % 8 == 0
        if mask == "axial":
            raise InputError("an axial mask is of patches in rows and columns: choose local")
        return near & (apart >= 0) if reads.causal else near
    side = math.isqrt(reads.tokens)
    row, column = torch.arange(side).repeat_interleave(side), torch.arange(side).repeat(side)
    across, along = row[:, None] - row, column[:, None] - column
    if mask == "local":
        near = (across.abs() <= 1) & (along.abs() <= 1)
    elif mask == "strided":
        near = (across % 2 == 0) & (along % 2 == 0)
    else:
        near = (across == 0) | (along == 0)
    whole = torch.ones(1 + reads.tokens, 1 + reads.tokens, dtype=torch.bool)
    whole[1:, 1:] = near
    return whole


@dataclass(frozen=True)
class Pixels(Images):
    """Pictures as the project's own networks read them: colours resized by the means of boxes;
    greys [m, size, size] of their exact size, bright is ink, as on the digits' black ground."""

    @property
    def shape(self) -> tuple[int, ...]:
        size = (self.size, self.size)
        return size if len(self.mean) == 1 else (len(self.mean), *size)

    def check(self, batch: Any) -> Any:
        """As of all images; greys may have an axis of their one channel."""
        one = len(self.mean) == 1 and isinstance(batch, Tensor) and batch.ndim == 4
        return super().check(batch[:, 0] if one and batch.shape[1] == 1 else batch)

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing is in the place of settings: the network was trained so."""
        return ()

    @property
    def usual(self) -> Any:
        """Of greys the digits' validation images: what is read where no pictures are named."""
        return None if len(self.mean) > 1 else lambda n: digits().validation.pixels[:n]

    def answers(self, inputs: Any) -> Tensor | None:
        """The classes of the first of the usual images, where these are the inputs."""
        usual = isinstance(inputs, Tensor) and len(self.mean) == 1
        return digits().validation.labels[: len(inputs)] if usual else None

    def pixels(self, image: Image.Image) -> Tensor:
        rgb = upright_rgb(image)
        if len(self.mean) == 1:
            if rgb.size != self.shape:
                name = image.info.get("file", "an image")
                raise InputError(
                    f"'{name}' is {rgb.width} x {rgb.height} pixels, the model reads {self.size} x "
                    f"{self.size}: resize or crop it first"
                )
            return scaled(np.asarray(rgb.convert("L"), dtype=np.float64) / WHITE)
        rgb = rgb.resize((self.size, self.size), Image.Resampling.BOX)
        values = (np.asarray(rgb, dtype=np.float64) / WHITE - self.mean) / self.std
        return torch.from_numpy(values.astype(np.float32)).permute(2, 0, 1)


def numbers(reads: Reads, texts: list[Any]) -> Tensor:
    """Texts, or tensors [n], as numbers of characters [b, n], cut to what the network reads.

    Raises `InputError` for texts of different lengths, and for characters it does not know."""
    rows = []
    for text in texts:
        if isinstance(text, str):
            if odd := sorted(set(text[: reads.tokens]) - set(reads.alphabet)):
                raise InputError(f"the network knows no {odd[0]!r}: it knows {reads.alphabet!r}")
            text = torch.tensor([reads.alphabet.index(letter) for letter in text[: reads.tokens]])
        rows.append(text[: reads.tokens])
    if len({len(row) for row in rows}) != 1:
        raise InputError(f"texts of different lengths: give {reads.tokens} characters of each")
    return torch.stack(rows)
