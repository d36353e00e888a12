"""The configuration of a training run: everything that decides its weights, and its name.

Two runs with equal configurations are the same run: the results cache is addressed by the hash of
the configuration.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from oversmoothing.experiments.digits.images import CLASSES, IMAGE_SIZE, TRAIN, VALIDATION
from oversmoothing.experiments.digits.vit import Architecture
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text

# Name on the command line -> form of H. 'vit-random' is the ordinary model before training.
VARIANTS = {"vit": "free", "vit+": "plus", "vit-": "minus", "vit-random": "free"}
TRAINED = ("vit", "vit+", "vit-")
# Signs have no place in a folder name.
_FOLDER = {"vit": "vit", "vit+": "vit-plus", "vit-": "vit-minus", "vit-random": "vit-random"}
# Raised whenever code changes what a configuration trains to, so that old results are not reused.
RECIPE = 2


@dataclass(frozen=True)
class TrainConfig:
    """Every choice of one training run; the defaults are the ones behind the figures.

    variant: vit, vit+, vit- or vit-random. depth, width, heads, patch, ffn_ratio, value_scale:
    see `experiments.digits.vit.Architecture`. epochs (0 for vit-random), batch_size: of the run.
    learning_rate: peak, after a linear warm-up over `warmup` of all steps, then a cosine to 0.
    weight_decay: of weight matrices alone. label_smoothing in [0, 1). shift (pixels), rotation
    (degrees), zoom (share): reach of the augmentation. log_every: epochs between two entries of
    the log; the logged epoch with the lowest validation loss is kept. probe_images: validation
    images on which the spectra of attention are logged.
    Raises `InputError` for a value out of range.
    """

    variant: str = "vit"
    seed: int = 0
    depth: int = 8
    width: int = 64
    heads: int = 4
    patch: int = 2
    ffn_ratio: int = 2
    value_scale: float = 0.5
    epochs: int = 30
    batch_size: int = 32
    learning_rate: float = 2e-3
    warmup: float = 0.05
    weight_decay: float = 0.3
    label_smoothing: float = 0.1
    shift: float = 0.5
    rotation: float = 8.0
    zoom: float = 0.05
    log_every: int = 5
    probe_images: int = 16

    def __post_init__(self) -> None:
        for field in fields(self):
            self._check_type(field.name, type(field.default))
        if self.variant not in VARIANTS:
            raise InputError(
                f"unknown variant '{self.variant}': choose one of {', '.join(VARIANTS)}"
            )
        for name in ("depth", "width", "heads", "patch", "ffn_ratio", "log_every"):
            self._check_range(name, 1, None)
        self._check_range("probe_images", 1, VALIDATION)
        self._check_range("batch_size", 1, TRAIN)
        self._check_range("seed", 0, 2**63 - 1)
        self._check_range("epochs", 0, None)
        for name in ("learning_rate", "weight_decay", "shift", "rotation", "zoom"):
            self._check_range(name, 0, None)
        for name in ("warmup", "label_smoothing", "zoom"):
            self._check_range(name, 0, 0.99)
        if self.value_scale <= 0:
            raise InputError(f"value_scale is {self.value_scale}: it must be above 0")
        if (self.variant == "vit-random") != (self.epochs == 0):
            raise InputError(
                f"epochs is {self.epochs} with variant '{self.variant}': 0 epochs and "
                "'vit-random' (the untrained model) go together"
            )
        self.architecture()

    def _check_type(self, name: str, kind: type) -> None:
        value = getattr(self, name)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            object.__setattr__(self, name, float(value))
        elif not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{name} is {value!r}: it must be of type {kind.__name__}")

    def _check_range(self, name: str, low: float, high: float | None) -> None:
        value = getattr(self, name)
        # Written so that NaN fails.
        if not (value >= low and (high is None or value <= high) and value < float("inf")):
            bound = f"at least {low}" if high is None else f"between {low} and {high}"
            raise InputError(f"{name} is {value}: it must be {bound}")

    def architecture(self) -> Architecture:
        """The shape of the model. Raises `InputError` where its parts do not fit together."""
        return Architecture(
            image_size=IMAGE_SIZE,
            patch=self.patch,
            width=self.width,
            depth=self.depth,
            heads=self.heads,
            ffn_ratio=self.ffn_ratio,
            classes=CLASSES,
            form=VARIANTS[self.variant],
            value_scale=self.value_scale,
        )

    def folder_name(self) -> str:
        """digits-<variant>-<hash>: the first 12 hexadecimal digits of the SHA-256 of all fields."""
        canonical = json.dumps({"recipe": RECIPE, **asdict(self)}, sort_keys=True)
        digest = hashlib.sha256(canonical.encode()).hexdigest()[:12]
        return f"digits-{_FOLDER[self.variant]}-{digest}"

    def to_json_object(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json_object(cls, value: object, source: str) -> TrainConfig:
        """The configuration of a JSON object; `source` names its origin in messages.

        Raises `InputError` for anything but an object, an unknown key, or a bad value.
        """
        if not isinstance(value, dict):
            raise InputError(f"{source} must hold a JSON object, {{...}}, of configuration fields")
        known = [field.name for field in fields(cls)]
        for key in value:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
                raise InputError(f"{source} has the unknown key '{key}': {hint}")
        try:
            return cls(**value)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error


def default_config(variant: str, seed: int = 0) -> TrainConfig:
    """The configuration behind the figures for one variant. Raises `InputError` if unknown."""
    if variant == "vit-random":
        return TrainConfig(variant=variant, seed=seed, epochs=0)
    return TrainConfig(variant=variant, seed=seed)


def configurations(path: str | None, variant: str | None, seed: int | None) -> list[TrainConfig]:
    """Those of a JSON file of fields (none: the default's), for one variant or all trained ones.

    variant, seed: go before the file's. Raises `InputError` for a file that holds no such object.
    """
    fields = {} if path is None else _read_fields(path)
    if variant == "all" or (variant is None and "variant" not in fields):
        variants = list(TRAINED)
    else:
        variants = [variant or fields["variant"]]
    given = {} if seed is None else {"seed": seed}
    source = path or "the command line"
    return [
        TrainConfig.from_json_object({**fields, **given, "variant": each}, source)
        for each in variants
    ]


def _read_fields(path: str) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"'{path}' is not JSON ({error}): mend it there") from error
    if not isinstance(value, dict):
        raise InputError(f"'{path}' must hold a JSON object, {{...}}, of configuration fields")
    return value
