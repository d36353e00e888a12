"""The data of the trained models (handwritten digits, the default, CIFAR-10, CIFAR-100), what the
project's own networks read, pixels in patches or characters, and what a token of theirs sees.

Digits: 1797 grey images of 8x8 pixels, ten classes, shipped with scikit-learn, so that nothing is
downloaded, in one fixed split. Validation images serve every choice (epoch, learning rate,
figures); the test images score a finished model once.

CIFAR (Krizhevsky 2009): local parquet, the original archives, or the hub. What stands in the folder
of real inputs, in this order: `cifar100/*.parquet` as on the Hugging Face hub;
`cifar-100-binary.tar.gz`, the binary version of the original archive, or the folder
`cifar-100-binary` that it unpacks to (cifar-10-binary.tar.gz and cifar-10-batches-bin for the
other). The original's version for Python is a pickle and is not read. `hub` fetches the parquet
files with the hub's own client and reads those.
"""

import io
import math
import sys
import tarfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from oversmoothing.experiments.models.inputs import WHITE, Images
from oversmoothing.experiments.models.pictures import scaled, upright_rgb
from oversmoothing.theory.support.errors import InputError, required
from oversmoothing.theory.support.files import file_size

# The grey levels of the data set run from 0 to 16; pixels are stored as level / 8 - 1.
GREY_LEVELS = 16.0
# The split never follows the seed of a training run: accuracies of two seeds share their images.
SPLIT_SEED = 4301
HUB = {"cifar10": "uoft-cs/cifar10", "cifar100": "uoft-cs/cifar100"}
LABEL = {"cifar10": "label", "cifar100": "fine_label"}
ARCHIVE = {"cifar10": "cifar-10-binary.tar.gz", "cifar100": "cifar-100-binary.tar.gz"}
UNPACKED = {"cifar10": "cifar-10-batches-bin", "cifar100": "cifar-100-binary"}
# In front of the 3,072 bytes of an image: one label, or the coarse and the fine one.
LABELS = {"cifar10": 1, "cifar100": 2}
FILES = {
    "cifar10": ([f"data_batch_{k}.bin" for k in range(1, 6)], ["test_batch.bin"]),
    "cifar100": (["train.bin"], ["test.bin"]),
}
PIXELS = 3 * 32 * 32
OFFICIAL = (50_000, 10_000)


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


@dataclass(frozen=True)
class LabelledImages:
    """Pixels and labels [m] int64.

    Digits [m, 8, 8] are float32 in [-1, 1] (ink is 1); CIFAR [m, 3, 32, 32] is kept as uint8.
    """

    pixels: Tensor
    labels: Tensor

    def inputs(self, chosen: Tensor | slice = slice(None)) -> Tensor:
        """What a model reads of the chosen ones: float32 in [-1, 1]."""
        pixels = self.pixels[chosen]
        return pixels.float() / 127.5 - 1 if pixels.dtype == torch.uint8 else pixels

    def chosen(self, which: Tensor | slice) -> "LabelledImages":
        """Some of them."""
        return LabelledImages(self.pixels[which], self.labels[which])

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> "LabelledImages":
        return LabelledImages(self.pixels.to(device), self.labels.to(device))


@dataclass(frozen=True)
class DataParts:
    """The three parts, each with the class shares of the whole (digits: 60, 20 and 20 %)."""

    train: LabelledImages
    validation: LabelledImages
    test: LabelledImages

    def to(self, device: torch.device | str) -> "DataParts":
        return DataParts(self.train.to(device), self.validation.to(device), self.test.to(device))

    def with_fraction(self, fraction: float, seed: int = SPLIT_SEED) -> "DataParts":
        """The same with round(fraction m) of the m training images, drawn by the seed: of one seed
        the smaller share lies within the larger, and each has the class shares of the whole."""
        if fraction == 1:
            return self
        labels = self.train.labels.cpu().numpy()
        shuffled = np.random.default_rng(seed).permutation(len(labels))
        # Where an image stands within its class, from 0 to 1: a prefix takes all classes alike.
        place = np.empty(len(labels))
        for label in np.unique(labels):
            own = shuffled[labels[shuffled] == label]
            place[own] = (np.arange(len(own)) + 0.5) / len(own)
        count = max(1, round(fraction * len(labels)))
        chosen = torch.from_numpy(np.sort(np.argsort(place, kind="stable")[:count]))
        return replace(self, train=self.train.chosen(chosen))


@cache
def digits() -> DataParts:
    """The split, the same on every call and every machine."""
    bunch = required("sklearn.datasets").load_digits()
    labels = torch.from_numpy(bunch.target.astype(np.int64))
    whole = LabelledImages(scaled(bunch.images / GREY_LEVELS), labels)
    rest, test = _split(whole, np.arange(len(labels)), 0.2)
    parts = *_split(whole, rest, 0.25), test
    return DataParts(*(_sorted(whole, each) for each in parts))


def _split(images: LabelledImages, among: np.ndarray, share: float) -> tuple[np.ndarray, ...]:
    """(others, a share of these images, or so many), both with the class shares of all of them."""
    split = required("sklearn.model_selection").train_test_split
    labels = images.labels.numpy()[among]
    return tuple(split(among, test_size=share, random_state=SPLIT_SEED, stratify=labels))


def _sorted(images: LabelledImages, index: np.ndarray) -> LabelledImages:
    return images.chosen(torch.from_numpy(np.sort(index)))


def augmented(
    pixels: Tensor, generator: torch.Generator, *, shift: float, rotation: float, zoom: float
) -> Tensor:
    """Each image shifted, rotated and scaled at random, bilinearly, the background moving in:
    `pixels` [m, s, s] or [m, c, s, s] -> the same shape; uniform within the reach of `shift` in
    pixels, `rotation` in degrees, `zoom` as a share, drawn from `generator` (on the CPU) alone."""
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


@cache
def cifar(name: str, data: Path | None, *, hub: bool = False, progress: bool = True) -> DataParts:
    """The parts of 'cifar10' or 'cifar100': 45,000 train, 5,000 validation, 10,000 test. data: the
    folder of real inputs; hub: fetch what it does not hold. The validation images are drawn from
    the 50,000 by a fixed seed, the same number of each class. Raises `InputError` where the data
    set is not there or not whole."""
    whole, test = (
        LabelledImages(torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64)))
        for pixels, labels in _official(name, data, hub, progress)
    )
    for which, wanted, images in zip(("train", "test"), OFFICIAL, (whole, test), strict=True):
        own = images.labels.numpy()
        if len(own) != wanted or set(np.bincount(own)) != {wanted // SIZES[name].classes}:
            raise InputError(
                f"{name}: {len(own)} {which} images of {len(np.unique(own))} classes were "
                f"found, {wanted} of {SIZES[name].classes} in equal numbers belong to it: a file "
                "is missing or is of another data set"
            )
    train, validation = _split(whole, np.arange(len(whole)), SIZES[name].validation)
    return DataParts(_sorted(whole, train), _sorted(whole, validation), test)


def _official(name: str, data: Path | None, hub: bool, progress: bool) -> Any:
    """((pixels [50000, 3, 32, 32] uint8, labels), (of the test images))."""
    if data is not None:
        if any((data / name).rglob("*.parquet")):
            return [_parquet(name, data / name, part, progress) for part in ("train", "test")]
        for place in (data / UNPACKED[name], data / ARCHIVE[name]):
            if place.exists():
                return [_binary(name, place, files) for files in FILES[name]]
    if hub:
        fetched = _fetched(name)
        return [_parquet(name, fetched, part, progress) for part in ("train", "test")]
    where = "no folder was named" if data is None else f"'{data}' holds none of it"
    raise InputError(
        f"{name} is needed and {where}: give --data-dir, or set OVERSMOOTHING_DATA, to a folder "
        f"with {name}/*.parquet or {ARCHIVE[name]}, or --hub to fetch it"
    )


def _fetched(name: str) -> Path:
    client = required("huggingface_hub")
    try:
        return Path(
            client.snapshot_download(HUB[name], repo_type="dataset", allow_patterns="*.parquet")
        )
    except (OSError, ValueError, client.errors.HfHubHTTPError) as error:
        first = " ".join(str(error).split())[:200]
        raise InputError(
            f"{name} could not be fetched from the hub ({first}): put its parquet files into a "
            "data folder instead"
        ) from error


def _parquet(name: str, folder: Path, part: str, progress: bool) -> tuple[np.ndarray, np.ndarray]:
    parquet, broken = required("pyarrow.parquet"), required("pyarrow").ArrowInvalid
    pixels, labels = [], []
    files = sorted(folder.rglob(f"{part}*.parquet"))
    if not files:
        raise InputError(f"'{folder}' holds no {part}*.parquet: a file of {name} is missing")
    for path in tqdm(
        files, desc=f"{name} {part}", unit="file", file=sys.stderr, disable=not progress or None
    ):
        try:
            file_size(path)
            table = parquet.read_table(path).to_pydict()
            images = table.get("img") or table["image"]
            own = table[LABEL[name]]
            decoded = [_decoded(each["bytes"]) for each in images]
        except (OSError, KeyError, TypeError, broken) as error:
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            raise InputError(f"'{path}' cannot be read as {name} ({reason}): replace it") from error
        pixels += decoded
        labels += own
    return np.stack(pixels), np.array(labels)


def _decoded(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as image:
        array = np.asarray(image.convert("RGB"))
    if array.shape != (32, 32, 3):
        raise OSError(f"an image has the shape {array.shape}")
    return array.transpose(2, 0, 1)


def _binary(name: str, place: Path, files: list[str]) -> tuple[np.ndarray, np.ndarray]:
    front = LABELS[name]
    rows = []
    for each in files:
        content = _content(place, each)
        if not content or len(content) % (front + PIXELS):
            raise InputError(
                f"'{each}' of '{place}' has {len(content)} bytes, no multiple of the "
                f"{front + PIXELS} of an image of {name}: replace it"
            )
        rows.append(np.frombuffer(content, dtype=np.uint8).reshape(-1, front + PIXELS))
    table = np.concatenate(rows)
    return table[:, front:].reshape(-1, 3, 32, 32).copy(), table[:, front - 1]


def _content(place: Path, name: str) -> bytes:
    try:
        if place.is_dir():
            return (place / name).read_bytes()
        with tarfile.open(place) as archive:
            member = next(each for each in archive.getmembers() if Path(each.name).name == name)
            stream = archive.extractfile(member)
            assert stream is not None
            return stream.read()
    except (OSError, EOFError, tarfile.TarError, StopIteration, AssertionError) as error:
        reason = " ".join(str(error).split())[:200] or f"it holds no {name}"
        raise InputError(f"'{place}' cannot be read ({reason}): replace it") from error


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
    near = {
        "local": (across.abs() <= 1) & (along.abs() <= 1),
        "strided": (across % 2 == 0) & (along % 2 == 0),
        "axial": (across == 0) | (along == 0),
    }[mask]
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
    """Texts, or tensors [n], as numbers of characters [b, n], cut to what the network reads."""
    rows = [text[: reads.tokens] for text in texts]
    for k, text in enumerate(rows):
        if isinstance(text, str):
            if odd := sorted(set(text) - set(reads.alphabet)):
                raise InputError(f"the network knows no {odd[0]!r}: it knows {reads.alphabet!r}")
            rows[k] = torch.tensor([reads.alphabet.index(letter) for letter in text])
    if len({len(row) for row in rows}) != 1:
        raise InputError(f"texts of different lengths: give {reads.tokens} characters of each")
    return torch.stack(rows)
