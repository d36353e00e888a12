"""Pictures of a model folder, made ready by the folder's own image processor.

preprocessor_config.json (or processor_config.json) says how the model was given its pictures:
resized to what, cropped, rescaled, normalised. The image processor of the Hugging Face library that
it names does all of that. Its variant for PIL is taken also where torchvision is installed, so that
the pixels are the same with and without it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from oversmoothing.experiments.models.inputs import CHANNELS, Images, read_object
from oversmoothing.experiments.models.library import first_line, quiet
from oversmoothing.experiments.models.pictures import PIXELS, upright_rgb
from oversmoothing.theory.support.errors import InputError, required

# Of a mean or std of pixels: beyond it float32 would not hold what comes out.
LARGEST = 1e6
# Of a side to which pictures are resized, cropped or padded.
SIDE = int(PIXELS**0.5)
_STATISTICS = {"mean": "image_mean", "std": "image_std"}
# What names the processor, or the code that wrote the file: no setting of the pixels.
_NAMES = {"image_processor_type", "feature_extractor_type", "processor_class", "auto_map",
          "_valid_processor_keys", "transformers_version"}  # fmt: skip


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
        edge = getattr(self.processor.size, "shortest_edge", None) or 0
        if edge**2 * max(rgb.size) > PIXELS * min(rgb.size):
            raise InputError(
                f"{rgb.width} x {rgb.height} pixels with the shorter side resized to {edge} are "
                f"more than {PIXELS // 10**6} million: crop the picture first"
            )
        made = _made(self.processor, rgb, self.file)
        if made.shape != self.shape:
            raise InputError(
                f"'{self.file}' makes pixels {_by(made.shape)} of a picture of {rgb.width} x "
                f"{rgb.height}, the model reads {_by(self.shape)}: state a crop_size there, or "
                "crop the pictures to squares"
            )
        return made


def images_of(
    module: nn.Module,
    *,
    folder: Path | None = None,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
) -> Images:
    """How a module reads pictures: as its folder states, else as `Images.of` says.

    mean, std: in the place of those stated. Raises `InputError` for settings that no image
    processor of the library takes, and where it makes no pictures that the module reads.
    """
    plain = Images.of(module, mean=mean, std=std)
    stated = None if folder is None else _stated(folder)
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
        size,
        _three(processor.image_mean if normal else 0.0),
        _three(processor.image_std if normal else 1.0),
        processor,
        file,
        tuple(sorted(unread)),
    )


def by_channel(value: Any, name: str, place: str) -> tuple[float, ...]:
    """The mean or std of pixels that a file states, a number a channel; each std is positive.

    Raises `InputError` for anything else.
    """
    right = isinstance(value, list | tuple) and len(value) == CHANNELS
    if right:
        right = all(type(x) in (int, float) and abs(x) < LARGEST for x in value)
    if not right or (name == "std" and min(value) <= 0.0):
        kind = "positive numbers" if name == "std" else "numbers"
        raise InputError(f"'{place}': the {name} of pixels must be a list of {CHANNELS} {kind}")
    return tuple(value)


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
    try:
        with quiet(transformers.utils.logging):
            return transformers.AutoImageProcessor.from_pretrained(
                file.parent, backend="pil", trust_remote_code=False, local_files_only=True
            )
    except Exception as error:  # the library raises many kinds
        raise InputError(
            f"'{file}' names no image processor that can be loaded ({first_line(error)}): correct "
            f"it; its type is {settings.get('image_processor_type')}"
        ) from error


def _made(processor: Any, image: Image.Image, file: Path) -> Tensor:
    """What the processor makes of one RGB picture, float32; [3, h, w] of most."""
    try:
        made: Tensor = processor(image, return_tensors="pt")["pixel_values"][0].float()
    except Exception as error:  # the library raises many kinds
        raise InputError(
            f"the settings in '{file}' cannot be used ({first_line(error)}): correct them"
        ) from error
    return made


def _three(value: Any) -> Any:
    """A number for all channels as one a channel; all else as it is."""
    return (value,) * CHANNELS if type(value) in (int, float) else value


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
