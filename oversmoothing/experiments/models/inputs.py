"""Raw inputs into batches: pictures and strings, as each model was trained to read them.

preprocessor_config.json (or processor_config.json) of a model folder names the image processor of
the Hugging Face library that resizes, crops, rescales and normalises its pictures. Its variant for
PIL is taken also where torchvision is installed: the pixels are the same with and without it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from oversmoothing.experiments.models.checkpoints import read_object
from oversmoothing.experiments.models.library import quiet, refusing
from oversmoothing.experiments.models.pictures import (
    CHANNELS,
    PIXELS,
    by_channel,
    open_clip_settings,
    upright_rgb,
)
from oversmoothing.simulations.state import fetched
from oversmoothing.theory.support.errors import InputError, required
from oversmoothing.theory.support.files import read_text

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
HALF = (0.5, 0.5, 0.5)
WHITE = 255.0
# Of a side to which pictures are resized, cropped or padded.
SIDE = int(PIXELS**0.5)
_STATISTICS = {"mean": "image_mean", "std": "image_std"}
# What names the processor, or the code that wrote the file: no setting of the pixels.
_NAMES = {"image_processor_type", "feature_extractor_type", "processor_class", "auto_map",
          "_valid_processor_keys", "transformers_version"}  # fmt: skip


def stacked(inputs: list[Any]) -> Tensor:
    """Tensors of one shape as a batch. Raises `InputError` for different shapes."""
    shapes = {tuple(each.shape) for each in inputs}
    if len(shapes) > 1:
        raise InputError(f"the inputs have different shapes, {sorted(shapes)}: make them equal")
    return torch.stack(inputs)


@dataclass(frozen=True)
class Images:
    """PIL images, or tensors of that shape -> pixels [m, 3, size, size] float32: RGB, the whole
    resized, (value in [0, 1] - mean) / std. edge: the shorter side before the middle is cut out
    (squeezed: both sides), where the source says it; resample: how, in PIL's words."""

    size: int
    mean: tuple[float, ...] = HALF
    std: tuple[float, ...] = HALF
    edge: int | None = None
    squeezed: bool = True
    resample: str = "BICUBIC"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is used in the place of settings."""
        if self.edge is not None:
            return ()
        mean, std = (
            f"{each[0]:g}" if len(set(each)) == 1 else str(tuple(each))
            for each in (self.mean, self.std)
        )
        return (
            "how the source reads pictures is not said, or not understood: they are resized whole "
            f"to {self.size} x {self.size} (bicubic), and mean {mean} and std {std} are used",
        )

    @classmethod
    def of(
        cls, module: nn.Module, *, mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None, beside: Mapping[str, Any] | None = None,
    ) -> Images:  # fmt: skip
        """Of the size that a module in memory reads, and as its `pretrained_cfg` (timm's) says, or
        in timm's words what lies `beside` it; mean and std, where neither given nor said, are 0.5.
        """
        stated = timm_settings(module) or beside or {}
        config, patches = (getattr(module, name, None) for name in ("config", "patch_embed"))
        size = getattr(module, "image_size", None) or getattr(config, "image_size", None)
        size = size or getattr(patches, "img_size", None) or stated.get("input_size", (None,))[1:]
        if isinstance(size, tuple | list) and len(set(size)) == 1:
            size = size[0]
        if not isinstance(size, int):
            raise InputError(f"the model reads images of size {size}: only squares are understood")
        mean, std = (x or stated.get(name, HALF) for name, x in {"mean": mean, "std": std}.items())
        share, mode = stated.get("crop_pct"), stated.get("crop_mode", "center")
        how = str(stated.get("interpolation", "bicubic")).upper()
        whole = mode not in ("center", "squash") or how not in ("BICUBIC", "BILINEAR")
        if share is None or whole:
            return cls(size, tuple(mean), tuple(std))
        if type(share) not in (int, float) or not size / SIDE <= share <= 1:
            raise InputError(
                f"pretrained_cfg states crop_pct {share!r}: give the share of a picture's shorter "
                "side that is kept, above 0 and at most 1"
            )
        edge = math.floor(size / share)
        return cls(size, tuple(mean), tuple(std), edge, mode == "squash", how)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the pixels of one image."""
        return 3, self.size, self.size

    def pixels(self, image: Image.Image) -> Tensor:
        """One image in `shape`, float32."""
        rgb = upright_rgb(image)
        edge = self.size if self.edge is None else self.edge
        width, height = (min(rgb.size),) * 2 if self.squeezed else rgb.size
        if not self.squeezed:
            _check_enlarged(rgb, edge)
        sides = edge * width // min(rgb.size), edge * height // min(rgb.size)
        rgb = rgb.resize(sides, Image.Resampling[self.resample])
        left, top = (round((side - self.size) / 2) for side in sides)
        rgb = rgb.crop((left, top, left + self.size, top + self.size))
        values = (np.asarray(rgb, dtype=np.float64) / WHITE - self.mean) / self.std
        return torch.from_numpy(values.astype(np.float32)).permute(2, 0, 1)

    def check(self, batch: Any) -> Any:
        """The batch of pixels, when its shape is what the model reads."""
        pixels = batch.get("pixel_values") if isinstance(batch, Mapping) else batch
        shape = tuple(getattr(pixels, "shape", ()))
        if not shape or shape[0] == 0 or shape[1:] != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise InputError(
                f"the pixels have the shape {shape}, the model reads (m, {wanted}), m >= 1: give "
                "PIL images or resize them"
            )
        return batch

    def __call__(self, images: Sequence[Any]) -> Tensor:
        if not images:
            raise InputError("there are no images: give at least one")
        if isinstance(images[0], Tensor) and all(isinstance(image, Tensor) for image in images):
            pixels: Tensor = self.check(stacked(list(images)))
            return pixels
        pictures = []
        # One after the other: of pictures in files a single one is held as large as it is.
        for number in range(len(images)):
            image = images[number]
            if not isinstance(image, Image.Image):
                raise InputError(
                    f"input {number} is a {type(image).__name__}, the model reads images: give PIL "
                    "images or a tensor of pixels"
                )
            pictures.append(self.pixels(image))
            del image  # or it is there while the next is decoded
        return torch.stack(pictures)


@dataclass
class Texts:
    """Strings -> {input_ids, attention_mask} [m, n], padded on the right to the longest.

    tokenizer: a callable of the Hugging Face kind, or a function without arguments that loads one
    at the first use. Strings longer than the model or its tokenizer reads, or than `tokens`, are
    cut, where the tokenizer can (truncation=), and counted in `cut`. What is still too long for the
    model is refused, token ids too.
    """

    vocabulary: int | None
    longest: int | None
    tokenizer: Any
    tokens: int | None = None
    cut: int = 0

    @classmethod
    def of(cls, module: nn.Module, tokenizer: Any = None) -> Texts:
        """As the module's config says."""
        config = getattr(module, "config", None)
        longest = getattr(config, "max_position_embeddings", None)
        # XLNet says -1: texts of any length.
        at_most = longest if longest is not None and longest > 0 else None
        return cls(getattr(config, "vocab_size", None), at_most, tokenizer)

    def check(self, batch: Any) -> Any:
        """The batch of token ids, when they and their length are what the model reads."""
        ids = batch.get("input_ids") if isinstance(batch, Mapping) else batch
        if not isinstance(ids, Tensor):
            raise InputError("the batch has no input_ids: give token ids as a tensor [m, n]")
        if ids.ndim != 2 or ids.is_floating_point() or ids.numel() == 0:
            raise InputError(f"token ids are integers [m, n], not {ids.dtype} {tuple(ids.shape)}")
        if self.longest is not None and ids.shape[1] > self.longest:
            raise InputError(
                f"a text has {ids.shape[1]} tokens, the model reads at most {self.longest}: cut it"
            )
        mask = batch.get("attention_mask") if isinstance(batch, Mapping) else None
        kept = [] if mask is None or mask.shape != ids.shape else [mask.bool().any(1).all()]
        low, high, *all_kept = (int(each) for each in fetched([ids.min(), ids.max(), *kept]))
        if mask is not None and not any(all_kept):
            raise InputError(
                f"the attention mask {tuple(mask.shape)} must have the shape of the ids "
                f"{tuple(ids.shape)} and keep a token of every text"
            )
        if low < 0 or (self.vocabulary is not None and high >= self.vocabulary):
            raise InputError(
                f"token ids from {low} to {high}; the model knows 0 to {self.vocabulary}, exclusive"
            )
        return batch

    def __call__(self, texts: list[Any]) -> dict[str, Tensor]:
        if texts and all(isinstance(each, Tensor) for each in texts):
            ids = self.check(stacked(texts))
            return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if not texts or not all(isinstance(each, str) and each for each in texts):
            raise InputError("the model reads text: give a list of strings, none of them empty")
        if self.tokenizer is None:
            raise InputError(
                "this model came without a tokenizer: give open_model(..., tokenizer=), or "
                "token ids as a tensor [m, n]"
            )
        if not hasattr(self.tokenizer, "convert_ids_to_tokens"):
            self.tokenizer = self.tokenizer()
        encoded = [self._encoded(text) for text in texts]
        if not all(encoded):
            raise InputError("a text has no tokens: give longer strings")
        rows = [torch.tensor(each) for each in encoded]
        # Padding is masked and left out: any known id serves.
        padding = getattr(self.tokenizer, "pad_token_id", None) or 0
        ids = pad_sequence(rows, batch_first=True, padding_value=padding)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        checked: dict[str, Tensor] = self.check({"input_ids": ids, "attention_mask": mask})
        return checked

    def words(self, ids: list[int]) -> list[str] | None:
        """What the tokenizer calls each token: its text without the blanks around it, or where
        that is nothing that can be printed, its piece; None without a tokenizer."""
        if not callable(getattr(self.tokenizer, "convert_ids_to_tokens", None)):
            try:
                self.tokenizer = self.tokenizer and self.tokenizer()
            except InputError:  # a folder without one, whose token ids are read all the same
                return None
        pieces = getattr(self.tokenizer, "convert_ids_to_tokens", None)
        if not callable(pieces):
            return None
        words, decode = [], getattr(self.tokenizer, "decode", None)
        for number, piece in zip(ids, pieces(ids), strict=True):
            text = decode([number]).strip() if decode is not None else ""
            shown = text if text and text.isprintable() else str(piece)
            words.append("".join(letter if letter.isprintable() else "\ufffd" for letter in shown))
        return words

    @property
    def notes(self) -> tuple[str, ...]:
        """That texts were cut, where any were."""
        if not self.cut:
            return ()
        texts = "1 text was" if self.cut == 1 else f"{self.cut} texts were"
        return (f"{texts} cut to the first {self._limit()} tokens",)

    def _limit(self) -> int | None:
        """How many tokens are read at most. Without a limit, tokenizers state one beyond 10^29."""
        stated = (self.longest, getattr(self.tokenizer, "model_max_length", None), self.tokens)
        # 1e30 is a number of tokens, too.
        return min((int(each) for each in stated if each is not None), default=None)

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text)["input_ids"]
        limit = self._limit()
        cuts = "truncation" in inspect.signature(self.tokenizer).parameters
        if limit is None or len(ids) <= limit or not cuts:
            return ids
        self.cut += 1
        # By the tokenizer, which keeps the special tokens at both ends.
        ids = self.tokenizer(text, truncation=True, max_length=limit)["input_ids"]
        return ids


def text_lines(path: Path) -> list[str]:
    r"""The texts of a file: its lines, without the blanks around them and without empty ones. A
    line ends at \n alone (VT, FF, NEL, U+2028 are part of a text, a byte order mark is not). Raises
    `InputError` for a file that cannot be read or holds no text."""
    lines = read_text(path).removeprefix("\ufeff").split("\n")
    texts = [line.strip(" \t\r") for line in lines if line.strip()]
    if not texts:
        raise InputError(f"'{path}' holds no text: write one text a line in it")
    return texts


@dataclass(frozen=True)
class ProcessedImages(Images):
    """PIL images, turned upright and RGB, as `processor` (of the Hugging Face library) makes them,
    float32; file: where its settings stand; unread: which of them it does not read."""

    processor: Any = None
    file: Path = Path()
    unread: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The settings that are not read, where there are any."""
        kind = type(self.processor).__name__
        said = f"'{self.file.name}' states {', '.join(self.unread)}, which its {kind} does not read"
        return (said,) if self.unread else ()

    def pixels(self, image: Image.Image) -> Tensor:
        rgb = upright_rgb(image)
        _check_enlarged(rgb, getattr(self.processor.size, "shortest_edge", None) or 0)
        made = _made(self.processor, rgb, self.file)
        if made.shape != self.shape:
            raise InputError(
                f"'{self.file}' makes pixels {_by(made.shape)} of a picture of {rgb.width} x "
                f"{rgb.height}, the model reads {_by(self.shape)}: state a crop_size there, or "
                "crop the pictures to squares"
            )
        return made


def images_of(
    module: nn.Module, *, folder: Path | None = None, mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
) -> Images:  # fmt: skip
    """How a module reads pictures: as its folder states, else as `Images.of` says; mean, std: in
    the place of those stated. Raises `InputError` for settings that no image processor of the
    library takes, and where it makes no pictures that the module reads."""
    stated = None if folder is None else _stated(folder)
    beside = open_clip_settings(folder) if folder is not None and stated is None else None
    plain = Images.of(module, mean=mean, std=std, beside=beside)
    if stated is None:
        return plain
    file, settings = stated
    _check(file, settings)
    processor = _loaded(file, settings)
    if mean or std:
        if not processor.do_normalize:
            processor.image_mean, processor.image_std = (0.0,) * CHANNELS, (1.0,) * CHANNELS
        processor.do_normalize = True
        processor.image_mean = tuple(mean or processor.image_mean)
        processor.image_std = tuple(std or processor.image_std)
    trial = _made(processor, Image.new("RGB", (plain.size, plain.size), "white"), file)
    size = trial.shape[-1]
    if trial.shape != (CHANNELS, size, size) or not torch.isfinite(trial).all():
        raise InputError(
            f"'{file}' makes of a white square no finite pixels of {CHANNELS} square channels, but "
            f"{_by(trial.shape)} numbers up to {trial.abs().max():g}: correct it"
        )
    # Models that take no such argument fit their positions to every size by themselves.
    fixed = "interpolate_pos_encoding" in inspect.signature(module.forward).parameters
    if fixed and size != plain.size:
        raise InputError(
            f"'{file}' makes pictures of {size} x {size} pixels, the model reads {plain.size} x "
            f"{plain.size}: correct its size or crop_size"
        )
    unread = {name for name, value in settings.items() if value} - _NAMES
    unread -= set(processor.valid_kwargs.__annotations__)
    normal = processor.do_normalize
    return ProcessedImages(
        size, _three(processor.image_mean if normal else 0.0),
        _three(processor.image_std if normal else 1.0),
        processor=processor, file=file, unread=tuple(sorted(unread)),
    )  # fmt: skip


def timm_settings(module: nn.Module) -> Mapping[str, Any]:
    """How a model of timm reads pictures, in timm's words; empty for what is none."""
    stated: Any = getattr(module, "pretrained_cfg", None)
    sides = stated.get("input_size") if isinstance(stated, Mapping) else None
    return dict(stated) if isinstance(sides, list | tuple) and len(sides) == CHANNELS else {}


def _check_enlarged(rgb: Image.Image, edge: int) -> None:
    if edge**2 * max(rgb.size) > PIXELS * min(rgb.size):
        raise InputError(
            f"{rgb.width} x {rgb.height} pixels with the shorter side resized to {edge} are "
            f"more than {PIXELS // 10**6} million: crop the picture first"
        )


def _stated(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The file of a folder with the settings of its image processor, and these; as the library
    does, those within processor_config.json first."""
    whole = folder / "processor_config.json"
    if whole.exists() and "image_processor" in (held := read_object(whole)):
        return whole, held["image_processor"]
    plain = folder / "preprocessor_config.json"
    return (plain, read_object(plain)) if plain.exists() else None


def _check(file: Path, settings: Any) -> None:
    """Raises `InputError` for statistics that are no numbers, and for sides beyond `SIDE`."""
    if not isinstance(settings, dict):
        raise InputError(f"'{file}': image_processor must be a JSON object")
    for name, key in _STATISTICS.items():
        value = settings.get(key)
        if value is not None and settings.get("do_normalize", True):
            by_channel(_three(value), name, str(file))
    for key in ("size", "crop_size", "pad_size"):
        value = settings.get(key)
        sides = list(value.values()) if isinstance(value, dict) else value
        for side in sides if isinstance(sides, list) else [sides]:
            if isinstance(side, int | float) and not 0 < side <= SIDE:
                raise InputError(f"'{file}': a side in {key} is {side}: give 1 to {SIDE} pixels")


def _loaded(file: Path, settings: dict[str, Any]) -> Any:
    transformers = required("transformers")
    what = f"'{file}' names no image processor that can be loaded"
    advice = f": correct it; its type is {settings.get('image_processor_type')}"
    with refusing(what, advice), quiet(transformers.utils.logging):
        return transformers.AutoImageProcessor.from_pretrained(
            file.parent, backend="pil", trust_remote_code=False, local_files_only=True
        )


def _made(processor: Any, image: Image.Image, file: Path) -> Tensor:
    """What the processor makes of one RGB picture, float32; [3, h, w] of most."""
    with refusing(f"the settings in '{file}' cannot be used", ": correct them"):
        made: Tensor = processor(image, return_tensors="pt")["pixel_values"][0].float()
        return made


def _three(value: Any) -> Any:
    """A number for all channels as one a channel; all else as it is."""
    return (value,) * CHANNELS if type(value) in (int, float) else value


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
