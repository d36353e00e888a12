"""What a ladder is fitted and scored on: inputs drawn apart by the seed, and altered copies.

Of the copies the first is the mirror image, the others are square crops of 3/4 to all of the side,
mirrored half of the time. The model is run on them; they belong to calibration and cost nothing for
a held-out image.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.named import named_texts
from oversmoothing.experiments.models.pictures import (
    SPLITS,
    cifar100,
    is_cifar100,
    named_pictures,
    real_inputs,
)
from oversmoothing.theory.support.errors import InputError

SMALLEST = 0.75


@dataclass(frozen=True)
class SplitInputs:
    """Inputs for calibration, others that are held out, and where they are from, in words."""

    calibration: Sequence[Any]
    held_out: Sequence[Any]
    origin: str


def split_inputs(
    model: Model,
    *,
    images: str | None = None,
    text: Path | None = None,
    tokens: int = 64,
    calibration: int = 100,
    held_out: int = 200,
    held_out_from: int = 0,
    seed: int = 0,
    data_dir: Path | None = None,
) -> SplitInputs:
    """Images of a folder, texts of a file (one a line, cut to `tokens`), or CIFAR-100, also where
    no images are named; a folder or file is looked for here, then within `data_dir`.

    calibration, held_out: how many; held_out_from: leave out the first so many of the held-out
    draw. Raises `InputError` where there are too few.
    """
    first = calibration + held_out_from
    wanted = first + held_out
    random = np.random.default_rng(seed)
    if model.modality == "text":
        texts = _texts(model, text, tokens, data_dir)
        chosen = [texts[k] for k in _drawn(random, len(texts), wanted)]
        origin = f"{Path(str(text)).name}, cut to {tokens} tokens"
        return SplitInputs(chosen[:calibration], chosen[first:], origin)
    if images is not None and not is_cifar100(images):
        folder = named_pictures(images, None, data_dir)
        pictures = folder.chosen(_drawn(random, len(folder), wanted))
        origin = f"{Path(images).name}, split by the seed"
        return SplitInputs(pictures[:calibration], pictures[first:], origin)
    data = real_inputs(data_dir)
    train = cifar100(data, "train")
    known = np.sort(random.permutation(len(train))[:calibration])
    other = np.random.default_rng([seed, 1])
    held = np.sort(other.permutation(SPLITS["test"])[held_out_from : held_out_from + held_out])
    if len(known) < calibration or len(held) < held_out:
        raise InputError("CIFAR-100 has 50,000 train and 10,000 test images: ask for fewer")
    return SplitInputs(
        list(cifar100(data, "train", known.tolist())),
        list(cifar100(data, "test", held.tolist())),
        "CIFAR-100: calibration from the train images, held out from the test images, by the seed",
    )


def _drawn(random: np.random.Generator, there: int, wanted: int) -> list[int]:
    if there < wanted:
        raise InputError(
            f"there are {there} inputs and {wanted} are needed: give more, or lower --calibration "
            "and --held-out"
        )
    return [int(k) for k in random.permutation(there)[:wanted]]


def _texts(model: Model, text: Path | None, tokens: int, data_dir: Path | None) -> list[Any]:
    """Token ids [tokens] of every text that is long enough."""
    if text is None:
        raise InputError(f"the model '{model.name}' reads text: give --text FILE, one text a line")
    ids = [model.prepare([line])["input_ids"][0] for line in named_texts(text, data_dir)]
    return [each[:tokens] for each in ids if len(each) >= tokens]


def altered(images: Sequence[Image.Image], number: int, seed: int) -> Iterator[Image.Image]:
    """`number` copies of every image, copy by copy: all mirrors first."""
    random = np.random.default_rng(seed)
    for copy in range(number):
        for image in images:
            if copy == 0:
                yield image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
                continue
            width, height = image.size
            share = random.uniform(SMALLEST, 1.0)
            w, h = share * width, share * height
            x, y = random.uniform(0, width - w), random.uniform(0, height - h)
            crop = image.transform(
                (width, height),
                Image.Transform.EXTENT,
                (x, y, x + w, y + h),
                Image.Resampling.BICUBIC,
            )
            mirror = random.random() < 0.5
            yield crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror else crop
