"""Pictures for trained models: image files, CIFAR-100 from the folder of real data, photographs.

The first two are sequences that open a picture when it is asked for: thousands take no memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

from PIL import Image, UnidentifiedImageError

from oversmoothing.experiments.models.data import CIFAR100, real_inputs
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.extras import required

TRAIN_IMAGES, TEST_IMAGES = 50_000, 10_000


class _Pictures(Sequence[Image.Image]):
    """What both share: slices are lists, iteration is lazy."""

    def picture(self, index: int) -> Image.Image:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Image.Image: ...
    @overload
    def __getitem__(self, index: slice) -> list[Image.Image]: ...
    def __getitem__(self, index: int | slice) -> Image.Image | list[Image.Image]:
        if isinstance(index, slice):
            return [self.picture(k) for k in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.picture(index % len(self))

    def __iter__(self) -> Iterator[Image.Image]:
        return (self.picture(k) for k in range(len(self)))


@dataclass(frozen=True)
class PictureFolder(_Pictures):
    """The image files of a folder, in the order of the names, at most `count` of them.

    Hidden files and subfolders are passed over. Raises `InputError` for a folder that is none or
    holds no files and, when it is opened, for a file that is no intact image of 8 bits a channel.
    """

    files: tuple[Path, ...]

    @classmethod
    def of(cls, folder: str | Path, count: int | None = None) -> PictureFolder:
        place = Path(folder)
        if not place.is_dir():
            raise InputError(f"'{place}' is not a folder: give a folder of image files to --images")
        files = sorted(p for p in place.iterdir() if p.is_file() and not p.name.startswith("."))
        if not files:
            raise InputError(
                f"the folder '{place}' holds no files: put image files (PNG, JPEG) in it"
            )
        return cls(tuple(files[:count]))

    def __len__(self) -> int:
        return len(self.files)

    def picture(self, index: int) -> Image.Image:
        path = self.files[index]
        try:
            with Image.open(path) as image:
                if image.mode.startswith(("I", "F")):
                    raise InputError(
                        f"'{path}' has more than 8 bits a channel ({image.mode}): save it as 8-bit"
                    )
                found = image.convert("RGB")
        except UnidentifiedImageError as error:
            raise InputError(f"'{path}' is not an image: take it out of the folder") from error
        except (OSError, SyntaxError, Image.DecompressionBombError) as error:
            # Pillow raises SyntaxError for broken PNG chunks.
            raise InputError(f"the image '{path}' cannot be read ({error}): replace it") from error
        found.info["file"] = str(path)
        return found


@dataclass(frozen=True)
class Cifar100(_Pictures):
    """Images of CIFAR-100 (Krizhevsky 2009) as stored on the Hugging Face hub, by index.

    folder: real inputs, holding cifar100/. split: 'train' (50,000) or 'test' (10,000), in the order
    of the shards. indices: which of them, in which order. Raises `InputError` where the data set is
    not there or not whole.
    """

    folder: Path
    split: str
    indices: tuple[int, ...]

    @classmethod
    def of(
        cls, data: Path | None, split: str = "test", indices: Sequence[int] | None = None
    ) -> Cifar100:
        if data is None or not (data / "cifar100").is_dir():
            where = "no folder was named" if data is None else f"'{data}' holds no cifar100"
            raise InputError(
                f"CIFAR-100 is needed and {where}: give --data-dir, or set OVERSMOOTHING_DATA, to "
                "a folder with cifar100/*.parquet"
            )
        total = {"train": TRAIN_IMAGES, "test": TEST_IMAGES}.get(split)
        if total is None:
            raise InputError(f"CIFAR-100 has the splits train and test, not '{split}'")
        chosen = tuple(range(total)) if indices is None else tuple(int(k) for k in indices)
        if any(not 0 <= k < total for k in chosen):
            raise InputError(f"the {split} images of CIFAR-100 are numbered 0 to {total - 1}")
        return cls(data / "cifar100", split, chosen)

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def _png(self) -> list[bytes]:
        parquet, broken = required("pyarrow.parquet"), required("pyarrow").ArrowInvalid
        files = sorted(self.folder.rglob(f"*{self.split}*.parquet"))
        found: list[bytes] = []
        for path in files:
            try:
                table = parquet.read_table(path, columns=["img"])
            except (OSError, KeyError, broken) as error:
                raise InputError(f"'{path}' cannot be read ({error}): replace it") from error
            found += [row["bytes"] for row in table.column("img").to_pylist()]
        if len(found) <= max(self.indices, default=0):
            raise InputError(
                f"'{self.folder}' holds {len(found)} {self.split} images of CIFAR-100 in "
                f"{len(files)} files: a shard is missing"
            )
        return found

    def picture(self, index: int) -> Image.Image:
        with Image.open(io.BytesIO(self._png[self.indices[index]])) as image:
            return image.convert("RGB")


def named_pictures(
    name: str, count: int | None, data_dir: str | Path | None
) -> Cifar100 | PictureFolder:
    """The first `count` pictures of a folder, or test images of CIFAR-100 in the real inputs where
    that is the name and no folder has it.

    Raises `InputError` where there are none.
    """
    if name == CIFAR100 and not Path(name).is_dir():
        return Cifar100.of(real_inputs(data_dir), "test", None if count is None else range(count))
    return PictureFolder.of(name, count)


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
