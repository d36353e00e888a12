"""Pictures for trained models: files, CIFAR-100, photographs; where real inputs lie."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np
import torch
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from oversmoothing.experiments.models.checkpoints import read_object
from oversmoothing.theory.support.errors import InputError, required
from oversmoothing.theory.support.files import file_size

CIFAR100 = "cifar100"  # what --images calls it
SPLITS = {"train": 50_000, "test": 10_000}  # of CIFAR-100
VARIABLE = "OVERSMOOTHING_DATA"
# The most of one picture, 9,000 x 9,000: decoded it takes 4 bytes each.
PIXELS = 81 * 10**6
# Of a mean or std of pixels: beyond it float32 would not hold what comes out.
LARGEST = 1e6
CHANNELS = 3
OPEN_CLIP = "open_clip_config.json"
_CLIP = {
    "mean": (0.48145466, 0.4578275, 0.40821073), "std": (0.26862954, 0.26130258, 0.27577711),
}  # fmt: skip


def real_inputs(given: str | os.PathLike[str] | None = None) -> Path | None:
    """Where trained models and data sets lie, which are never part of the project: the folder
    given, else that of the environment variable OVERSMOOTHING_DATA, else None.

    Raises `InputError` where it is named and does not exist.
    """
    named = given if given is not None else os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        source = "--data-dir" if given is not None else VARIABLE
        raise InputError(f"the folder '{folder}' of {source} does not exist: name one that does")
    return folder


def within(name: str, data_dir: str | os.PathLike[str] | None) -> str:
    """The name, or where no such path exists and the folder of real inputs holds it, its place."""
    data = real_inputs(data_dir)
    inside = None if data is None else data / name
    return str(inside) if inside and not Path(name).exists() and inside.exists() else name


def looked_in(data_dir: str | os.PathLike[str] | None) -> str:
    """Where `within` looks, in words."""
    data = real_inputs(data_dir)
    if data is None:
        return f"here (no data folder is named: --data-dir, or {VARIABLE})"
    return f"here or in the data folder '{data}'"


@dataclass(frozen=True)
class Pictures(Sequence[Image.Image]):
    """A picture for each item, opened when it is asked for: thousands take no memory."""

    items: Sequence[Any]
    opened: Callable[[Any], Image.Image]

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Image.Image: ...
    @overload
    def __getitem__(self, index: slice) -> Pictures: ...
    def __getitem__(self, index: int | slice) -> Image.Image | Pictures:
        if isinstance(index, slice):
            return Pictures(self.items[index], self.opened)
        return self.opened(self.items[index])

    def chosen(self, indices: Sequence[int]) -> Pictures:
        """Those of the indices, in their order."""
        return Pictures([self.items[k] for k in indices], self.opened)


def upright_rgb(image: Image.Image) -> Image.Image:
    """The picture as a viewer shows it: turned as its EXIF data say, RGB of 8 bits a channel; the
    very same where it is that already, for a copy of a large one is half of what it takes.

    Raises `InputError` for more than `PIXELS` pixels, and for integers of more than 8 bits or
    floats, whose black and white nothing states (a conversion would clip them).
    """
    _refuse(image)
    # A copy also where nothing is to be turned, so it is asked first.
    turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
    upright = ImageOps.exif_transpose(image) if turned else image
    return upright if upright.mode == "RGB" else upright.convert("RGB")


def _refuse(image: Image.Image) -> None:
    """What `upright_rgb` raises, before anything is decoded."""
    name = image.info.get("file", "an image")
    if image.width * image.height > PIXELS:
        raise InputError(
            f"'{name}' has {image.width} x {image.height} pixels, more than {PIXELS // 10**6} "
            "million: make it smaller"
        )
    if image.mode.startswith(("I", "F")):
        raise InputError(
            f"'{name}' has more than 8 bits a channel ({image.mode}): save it as 8-bit"
        )


def scaled(grey: np.ndarray) -> Tensor:
    """Grey values in [0, 1] (1 is ink) as pixels, float32 in [-1, 1]."""
    return torch.from_numpy(np.asarray(2.0 * grey - 1.0, dtype=np.float32))


def picture_folder(folder: str | Path, count: int | None = None) -> Pictures:
    """The image files of a folder, in the order of the names, at most `count` of them, without
    hidden ones. Raises `InputError` for a folder that is none or holds no files, for pipes and
    devices and, when it is opened, for a file that is no intact image or as `upright_rgb` does."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"'{place}' is not a folder: give a folder of image files to --images")
    files = sorted(p for p in place.iterdir() if not p.is_dir() and not p.name.startswith("."))
    if not files:
        raise InputError(f"the folder '{place}' holds no files: put image files (PNG, JPEG) in it")
    for path in files[:count]:
        file_size(path)
    return Pictures(files[:count], lambda path: _opened(path, str(path)))


def _opened(file: Path | BinaryIO, name: str) -> Image.Image:
    try:
        with Image.open(file) as image:
            image.info["file"] = name
            _refuse(image)
            # In place: the picture as it lay is gone before the next copy is made.
            ImageOps.exif_transpose(image, in_place=True)
            upright = upright_rgb(image)
            upright.load()  # where nothing had to be turned or converted
            return upright
    except UnidentifiedImageError as error:
        raise InputError(f"'{name}' is not an image: take it out of the folder") from error
    except InputError:
        raise
    except Exception as error:  # Pillow raises many kinds for broken files, SyntaxError among them
        raise InputError(f"the image '{name}' cannot be read ({error}): replace it") from error


def cifar100(
    data: Path | None, split: str = "test", indices: Sequence[int] | None = None
) -> Pictures:
    """Images of CIFAR-100 (Krizhevsky 2009) as stored on the Hugging Face hub, by `indices`, in
    their order; split: 'train' or 'test'; data: the folder of real inputs, holding cifar100/.
    Raises `InputError` where the set is not there or, when a picture is opened, not whole."""
    if data is None or not (data / "cifar100").is_dir():
        where = "no folder was named" if data is None else f"'{data}' holds no cifar100"
        raise InputError(
            f"CIFAR-100 is needed and {where}: give --data-dir, or set OVERSMOOTHING_DATA, to "
            "a folder with cifar100/*.parquet"
        )
    if split not in SPLITS:
        raise InputError(f"CIFAR-100 has the splits train and test, not '{split}'")
    total = SPLITS[split]
    chosen = range(total) if indices is None else indices
    if any(not 0 <= k < total for k in chosen):
        raise InputError(f"the {split} images of CIFAR-100 are numbered 0 to {total - 1}")
    stored = cache(lambda: _shards(data / "cifar100", split, max(chosen, default=0)))
    return Pictures(
        chosen, lambda k: _opened(io.BytesIO(stored()[k]), f"image {k} of CIFAR-100 {split}")
    )


def _shards(folder: Path, split: str, last: int) -> list[bytes]:
    """The image files of a split, up to image `last` at least."""
    parquet, broken = required("pyarrow.parquet"), required("pyarrow").ArrowInvalid
    files = sorted(folder.rglob(f"*{split}*.parquet"))
    images: list[bytes] = []
    for path in files:
        try:
            file_size(path)
            table = parquet.read_table(path, columns=["img"])
        except (OSError, KeyError, broken) as error:
            raise InputError(f"'{path}' cannot be read ({error}): replace it") from error
        images += [row["bytes"] for row in table.column("img").to_pylist()]
    if len(images) <= last:
        raise InputError(
            f"'{folder}' holds {len(images)} {split} images of CIFAR-100 in {len(files)} files: a "
            "shard is missing"
        )
    return images


def is_cifar100(name: str) -> bool:
    """Whether the name stands for CIFAR-100: no folder here has it."""
    return name == CIFAR100 and not Path(name).is_dir()


def named_pictures(
    name: str, count: int | None, data_dir: str | os.PathLike[str] | None
) -> Pictures:
    """The first `count` pictures of a folder, here or within the real inputs, or test images of
    CIFAR-100 where that is the name and no folder here has it."""
    if is_cifar100(name):
        return cifar100(real_inputs(data_dir), "test", None if count is None else range(count))
    place = within(name, data_dir)
    if not Path(place).exists():
        raise InputError(
            f"no images '{name}' were found {looked_in(data_dir)}: give a folder of image files to "
            "--images"
        )
    return picture_folder(place, count)


def photographs(count: int) -> list[Image.Image]:
    """`count` images: scikit-learn's two photographs and crops of them."""
    load_sample_images = required("sklearn.datasets").load_sample_images
    whole = [Image.fromarray(array) for array in load_sample_images().images]
    width, height = whole[0].size
    side = min(width, height)
    # Squares of decreasing size along the diagonal of both photographs, alternately.
    crops = []
    for step in range(count - len(whole)):
        part, shift = int(side * 0.8 ** (step // 2 + 1)), 24 * (step // 2)
        crops.append(whole[step % 2].crop((shift, shift, shift + part, shift + part)))
    return [*whole, *crops][:count]


def by_channel(value: Any, name: str, place: str) -> tuple[float, ...]:
    """The mean or std of pixels that a file states, a number a channel; each std is positive."""
    right = isinstance(value, list | tuple) and len(value) == CHANNELS
    right = right and all(type(x) in (int, float) and abs(x) < LARGEST for x in value)
    if not right or (name == "std" and min(value) <= 0.0):
        kind = "positive numbers" if name == "std" else "numbers"
        raise InputError(f"'{place}': the {name} of pixels must be a list of {CHANNELS} {kind}")
    return tuple(value)


def open_clip_settings(folder: Path) -> dict[str, Any] | None:
    """What open_clip says of pictures in a folder that has its settings, in timm's words; its own
    usual values for what it leaves out."""
    file = folder / OPEN_CLIP
    stated = read_object(file).get("preprocess_cfg") if file.exists() else None
    if not isinstance(stated, dict):
        return None
    pixels = {x: by_channel(stated.get(x, usual), x, str(file)) for x, usual in _CLIP.items()}
    mode = str(stated.get("resize_mode", "shortest")).replace("shortest", "center")
    how = stated.get("interpolation", "bicubic")
    return {**pixels, "crop_pct": 1.0, "crop_mode": mode, "interpolation": how}
