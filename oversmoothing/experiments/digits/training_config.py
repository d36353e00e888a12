"""The configuration of a training run: everything that decides its weights, and its name.

Two runs with equal configurations are the same run: the results cache is addressed by the hash of
the configuration.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from oversmoothing.experiments.digits.data import SIZES, Sizes
from oversmoothing.simulations.generators.options import requirement
from oversmoothing.theory.support.errors import InputError, unknown
from oversmoothing.theory.support.files import read_json, read_toml
from oversmoothing.theory.support.sizes import POINTS, SIZE

# Name on the command line -> form of H. 'vit-random' is the ordinary model before training.
VARIANTS = {"vit": "free", "vit+": "plus", "vit-": "minus", "vit-random": "free"}
TRAINED = ("vit", "vit+", "vit-")
# The further forms of H (`experiments.forms`): 'vit-band' and so on.
FURTHER = ("clip-minus", "clip-plus", "sigmoid-minus", "sigmoid-plus", "disc", "interval", "band")
FORM_OF = {**VARIANTS, **{f"vit-{form}": form for form in FURTHER}}
Variant = Literal[
    "vit", "vit+", "vit-", "vit-random", "vit-clip-minus", "vit-clip-plus", "vit-sigmoid-minus",
    "vit-sigmoid-plus", "vit-disc", "vit-interval", "vit-band",
]  # fmt: skip
# Signs have no place in a folder name.
_FOLDER = {"vit+": "vit-plus", "vit-": "vit-minus"}
# Choices that came later: they enter a run's name only where they are not the default, so that
# results that were stored before keep theirs.
_LATER = (
    "band_p", "band_q", "tied", "form_layers", "placement", "gains", "data", "fraction",
    "augmentation", "drop_path", "precision", "watch_every",
)  # fmt: skip
# Raised whenever code changes what a configuration trains to, so that old results are not reused.
RECIPE = 2
_RECIPES = Path(__file__).parent / "recipes"

Count = Annotated[int, Ge(1), Le(SIZE)]
Size = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(0.99)]


class TrainConfig(BaseModel):
    """Every choice of one training run; the defaults are the ones behind the figures.

    depth, width, heads, patch, ffn_ratio: of `experiments.digits.vit.ViT`. value_scale: about how
    far from zero the spectrum of H starts. band_p, band_q: the band [-q, -p] of vit-band. tied: one
    H for all layers that have the same form. form_layers: numbers, from 1, of the layers that have
    the variant's form; the others' H is free (None: all have it). placement: Pre-LN or Post-LN.
    gains: of the two norms in each layer, 'free', 'positive' (exp g), 'negative' (-exp g), or
    'fixed' (1, not trained); the norm in front of the classifier stays free.
    data: 'digits', 'cifar10' or 'cifar100'; fraction: the share of its training images that is
    used, the same images in every run.
    epochs (0 for vit-random), batch_size: of the run. learning_rate: peak, after a linear warm-up
    over `warmup` of all steps, then a cosine to 0. weight_decay: of weight matrices alone.
    augmentation: 'affine', by at most shift (pixels), rotation (degrees), zoom (share), or 'deit'
    (`training_loop.py`). drop_path: the share of images whose branch is left out in the last layer.
    precision: of the training pass, weights stay float32. watch_every: steps between two looks at
    stream and spectra while training (0: none). log_every: epochs between
    two entries of the log; the logged epoch with the lowest validation loss is kept. probe_images:
    validation images on which the spectra of attention are logged.
    Raises `InputError` for an unknown key and a value of another type or out of range.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    variant: Variant = "vit"
    seed: int = Field(0, ge=0, le=2**63 - 1)
    depth: Count = 8
    width: Count = 64
    heads: Count = 4
    patch: Count = 2
    ffn_ratio: Count = 2
    value_scale: float = Field(0.5, gt=0)
    epochs: int = Field(30, ge=0, le=POINTS)
    batch_size: Count = 32
    learning_rate: Size = 2e-3
    warmup: Share = 0.05
    weight_decay: Size = 0.3
    label_smoothing: Share = 0.1
    shift: Size = 0.5
    rotation: Size = 8.0
    zoom: Share = 0.05
    log_every: Count = 5
    probe_images: int = Field(16, ge=1, le=SIZES["digits"].validation)
    band_p: float = Field(0.5, gt=0, lt=1)
    band_q: float = Field(1.0, gt=0, le=1)
    tied: bool = False
    form_layers: list[Count] | None = None
    placement: Literal["pre", "post"] = "pre"
    gains: Literal["free", "positive", "negative", "fixed"] = "free"
    data: Literal["digits", "cifar10", "cifar100"] = "digits"
    fraction: float = Field(1.0, gt=0, le=1)
    augmentation: Literal["affine", "deit"] = "affine"
    drop_path: Share = 0.0
    precision: Literal["float32", "bfloat16"] = "float32"
    watch_every: int = Field(200, ge=0, le=POINTS)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InputError(_sentence(error)) from error

    @model_validator(mode="after")
    def _fits_together(self) -> TrainConfig:
        layers = self.form_layers
        numbered = layers is None or (
            bool(layers) and sorted(set(layers)) == layers and layers[-1] <= self.depth
        )
        for right, words in (
            ((self.variant == "vit-random") == (self.epochs == 0),
             f"epochs is {self.epochs} with variant '{self.variant}': 0 epochs and 'vit-random' "
             "(the untrained model) go together"),
            (self.sizes.size % self.patch == 0,
             f"patch {self.patch} does not divide the image size {self.sizes.size}: choose one "
             "that does"),
            (self.batch_size <= self.train_images,
             f"batch_size {self.batch_size} is more than the {self.train_images} training images "
             f"of {self.data} at fraction {self.fraction:g}: choose at most that"),
            (self.augmentation != "deit" or self.sizes.channels > 1,
             f"augmentation 'deit' is for colour pictures, {self.data} are grey: leave it out"),
            (self.width % self.heads == 0,
             f"width {self.width} is not a multiple of heads {self.heads}: choose one that is"),
            (self.band_p < self.band_q,
             f"band_p {self.band_p} and band_q {self.band_q}: the band [-q, -p] needs p < q"),
            (numbered,
             f"form_layers {layers}: give numbers of layers from 1 to depth {self.depth}, each "
             "once, in rising order"),
        ):  # fmt: skip
            if not right:
                raise InputError(words)
        return self

    @property
    def sizes(self) -> Sizes:
        """Of the images."""
        return SIZES[self.data]

    @property
    def train_images(self) -> int:
        """How many training images are used."""
        return max(1, round(self.fraction * self.sizes.train))

    @property
    def per_epoch(self) -> int:
        """Steps an epoch: what does not fill a batch is left out, others in each epoch."""
        return self.train_images // self.batch_size

    @property
    def form(self) -> str:
        """The form of H by its name in `experiments.forms`."""
        return FORM_OF[self.variant]

    def form_of_layer(self, number: int) -> str:
        """The form of H in layer `number`, from 1: the variant's, or free where not chosen."""
        chosen = self.form_layers is None or number in self.form_layers
        return self.form if chosen else "free"

    def form_options(self, form: str) -> dict[str, float]:
        """The options of a form: p and q of the band."""
        return {"p": self.band_p, "q": self.band_q} if form == "band" else {}

    def folder_name(self) -> str:
        """<data>-<variant>-<hash>: the first 12 hexadecimal digits of the SHA-256 of all fields."""
        fields = self.model_dump()
        for name in _LATER:
            if fields[name] == type(self).model_fields[name].default:
                del fields[name]
        canonical = json.dumps({"recipe": RECIPE, **fields}, sort_keys=True)
        digest = hashlib.sha256(canonical.encode()).hexdigest()[:12]
        return f"{self.data}-{_FOLDER.get(self.variant, self.variant)}-{digest}"

    @classmethod
    def from_json_object(cls, value: object, source: str) -> TrainConfig:
        """The configuration of a JSON object or TOML table; `source` names it in messages."""
        if not isinstance(value, dict):
            raise InputError(f"{source} must hold a JSON object, {{...}}, of configuration fields")
        try:
            return cls(**value)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    if not first["loc"]:
        return str(first["ctx"]["error"])
    name, known = str(first["loc"][0]), list(TrainConfig.model_fields)
    if name in known:
        wanted = requirement(TrainConfig.model_fields[name])
        return f"{name} = {first['input']!r}: it must be {wanted}"
    return str(unknown("key", name, known, f"Known: {', '.join(known)}."))


def default_config(variant: str, seed: int = 0) -> TrainConfig:
    """The configuration behind the figures for one variant. Raises `InputError` if unknown."""
    own = {"epochs": 0} if variant == "vit-random" else {}
    return TrainConfig(variant=variant, seed=seed, **own)


def recipes() -> list[str]:
    """Names of the configuration files that come with the package."""
    return sorted(path.stem for path in _RECIPES.glob("*.toml"))


def recipe(name: str) -> dict[str, Any]:
    """The fields of a configuration that comes with the package. Raises `InputError`."""
    if name not in recipes():
        raise unknown("recipe", name, recipes(), f"Choose {', '.join(recipes())}.")
    return read_toml(_RECIPES / f"{name}.toml")


def configurations(
    path: str | None, variant: str | None, seed: int | None, named: str | None = None
) -> list[TrainConfig]:
    """Those of a TOML or JSON file of fields, or of the recipe `named` (none: the default's), for
    one variant or all trained ones.

    variant, seed: go before the file's. Raises `InputError` for a file that holds no such fields.
    """
    if path is not None and named is not None:
        raise InputError(f"both '{path}' and the recipe '{named}' are given: choose one")
    source = path or (f"the recipe {named}" if named else "the command line")
    fields: Any = {}
    if named is not None:
        fields = recipe(named)
    elif path is not None:
        fields = read_json(path) if path == "-" or path.endswith(".json") else read_toml(path)
    given = {} if seed is None else {"seed": seed}
    if not isinstance(fields, dict):
        return [TrainConfig.from_json_object(fields, source)]
    own = variant or fields.get("variant", "all")
    return [
        TrainConfig.from_json_object({**fields, **given, "variant": each}, source)
        for each in (TRAINED if own == "all" else [own])
    ]
