"""A network's design, and the configuration of a training run: all that decides its weights.

Two runs with equal configurations are the same run: the results cache is addressed by the hash of
the configuration.
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from oversmoothing.experiments.digits.data import SIZES, Reads, Sizes
from oversmoothing.simulations.generators.options import requirement
from oversmoothing.theory.support.errors import InputError, unknown
from oversmoothing.theory.support.files import read_json, read_toml
from oversmoothing.theory.support.sizes import POINTS, SIZE

# Heads with values of their own, and one H for all heads on the mean of their attention.
HEADED = ("ord", "sym", "plus", "minus", "clip+", "clip-")
# Forms of a whole H (`experiments.forms`) that shared values alone can have.
WHOLE = ("clip-plus", "clip-minus", "sigmoid-plus", "sigmoid-minus", "disc", "interval", "band")
SHARED = ("shared", "shared plus", "shared minus", *(f"shared {form}" for form in WHOLE))
FORMS = (*HEADED, *SHARED)
# Name on the command line -> form of H. 'vit-random' is the ordinary model before training.
VARIANTS = {"vit": "ord", "vit+": "plus", "vit-": "minus", "vit-random": "ord"}
TRAINED = ("vit", "vit+", "vit-")
FORM_OF = {
    **VARIANTS, "vit-sym": "sym", "vit-clip-plus": "clip+", "vit-clip-minus": "clip-",
    **{f"vit-{form.replace(' ', '-')}": form for form in SHARED},
}  # fmt: skip
# Signs have no place in a folder name.
_FOLDER = {"vit+": "vit-plus", "vit-": "vit-minus"}
# Raised whenever code changes what a configuration trains to, so that old results are not reused.
RECIPE = 3
_RECIPES = Path(__file__).parent / "recipes"

Count = Annotated[int, Ge(1), Le(SIZE)]
Size = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(0.99)]


class Choices(BaseModel):
    """A network but for its form and what it reads.

    std: of the start of every weight of a layer; .035 at width 64 gives H the rms eigenvalue of a
    DeiT's start. start: of W_V and W_O of `ord`, 'mimetic' as in arXiv 2305.09828, 'small mimetic'
    the same with the ||H||_F of a normal start. placement: of the norms; 'sandwich' has one behind
    each sublayer too, 'peri' also one behind the embedding (arXiv 2502.02732). signed: the first
    layers that have the form, or a list of their numbers from 1; the others are `ord`, or where
    values are shared `shared` (None: all have it). mask: which tokens a token sees. tied: one H for
    all layers that have the same form. gains: of the norms in front of the sublayers, 'free',
    'positive' (exp g), 'negative' (-exp g), or 'fixed' (1, not trained). drop_path: the share of
    images whose branch is left out in the last layer. band_p, band_q: the band [-q, -p].

    Raises `InputError` for an unknown key and a value of another type or out of range.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    width: Count = 64
    depth: Count = 6
    heads: Count = 4
    ratio: Count = 2
    std: float = Field(default=0.035, gt=0)
    start: Literal["normal", "mimetic", "small mimetic"] = "normal"
    placement: Literal["pre", "post", "sandwich", "peri"] = "pre"
    signed: Count | list[Count] | None = None
    mask: Literal["dense", "local", "strided", "axial"] = "dense"
    tied: bool = False
    gains: Literal["free", "positive", "negative", "fixed"] = "free"
    drop_path: Share = 0.0
    band_p: float = Field(default=0.5, gt=0, lt=1)
    band_q: float = Field(default=1.0, gt=0, le=1)

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InputError(_sentence(type(self), error)) from error

    def but(self, **changes: Any) -> Self:
        """The same with other values."""
        return type(self)(**{**dict(self), **changes})

    @model_validator(mode="after")
    def _is_a_network(self) -> Self:
        layers = self.signed if isinstance(self.signed, list) else [1]
        numbered = bool(layers) and sorted(set(layers)) == layers and layers[-1] <= self.depth
        return self._hold(
            (self.width % self.heads == 0,
             f"width {self.width} is not a multiple of heads {self.heads}: choose one that is"),
            (self.band_p < self.band_q,
             f"band_p {self.band_p} and band_q {self.band_q}: the band [-q, -p] needs p < q"),
            (numbered,
             f"signed {layers}: give numbers of layers from 1 to depth {self.depth}, each once, in "
             "rising order"),
        )  # fmt: skip

    def _hold(self, *conditions: tuple[bool, str]) -> Self:
        """Itself where each of (condition, what is wrong without it) holds."""
        for right, words in conditions:
            if not right:
                raise InputError(words)
        return self


class Design(Choices):
    """A network, without what it reads.

    form: of H, one of `FORMS`. removal: the mean token is taken out behind every layer
    (2312.06182). laplacian: how many heads have I - A for A (2602.09297).
    """

    form: str = "ord"
    removal: bool = False
    laplacian: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _has_a_form(self) -> Self:
        return self._hold(
            (self.form in FORMS, f"form is {self.form!r}: choose {', '.join(FORMS)}"),
            (self.laplacian <= self.heads,
             f"{self.laplacian} Laplacian heads of {self.heads}: no more than all"),
        )  # fmt: skip

    def form_of(self, number: int) -> str:
        """The form of layer `number`, from 1."""
        signed = self.signed
        chosen = number in signed if isinstance(signed, list) else number <= (signed or number)
        return self.form if chosen else "shared" if self.form in SHARED else "ord"


class TrainConfig(Choices):
    """Every choice of one training run; the defaults are the ones behind the figures, and the
    network is that of the study.

    variant: its name on the command line. patch: the side of one. data: 'digits', 'cifar10' or
    'cifar100'; fraction: the share of its training images that is used, the same images in every
    run.
    epochs (0 for vit-random), batch_size: of the run. learning_rate: peak, after a linear warm-up
    over `warmup` of all steps, then a cosine to 0. weight_decay: of weight matrices alone.
    augmentation: 'affine', by at most shift (pixels), rotation (degrees), zoom (share), or 'deit'
    (`training_loop.py`). precision: of the training pass, weights stay float32. watch_every: steps
    between two looks at stream and spectra while training (0: none). log_every: epochs between
    two entries of the log; the logged epoch with the lowest validation loss is kept. probe_images:
    validation images on which the spectra of attention are logged.
    """

    variant: str = "vit"
    seed: int = Field(0, ge=0, le=2**63 - 1)
    patch: Count = 2
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
    data: Literal["digits", "cifar10", "cifar100"] = "digits"
    fraction: float = Field(1.0, gt=0, le=1)
    augmentation: Literal["affine", "deit"] = "affine"
    precision: Literal["float32", "bfloat16"] = "float32"
    watch_every: int = Field(200, ge=0, le=POINTS)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        return self._hold(
            (self.variant in FORM_OF,
             f"variant = {self.variant!r}: it must be one of {', '.join(FORM_OF)}"),
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
        )  # fmt: skip

    @property
    def design(self) -> Design:
        """The network."""
        shared = {name: getattr(self, name) for name in Choices.model_fields}
        return Design(form=FORM_OF[self.variant], **shared)

    @property
    def reads(self) -> Reads:
        """What it reads: greys or colours in [-1, 1]."""
        size, channels = self.sizes.size, self.sizes.channels
        half = (0.5,) * channels
        return Reads(
            "pixels", (size // self.patch) ** 2, channels * self.patch**2, self.sizes.classes,
            channels, False, half, half,
        )  # fmt: skip

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

    def folder_name(self) -> str:
        """<data>-<variant>-<hash>: the first 12 hexadecimal digits of the SHA-256 of all fields."""
        canonical = json.dumps({"recipe": RECIPE, **self.model_dump()}, sort_keys=True)
        digest = hashlib.sha256(canonical.encode()).hexdigest()[:12]
        return f"{self.data}-{_FOLDER.get(self.variant, self.variant)}-{digest}"

    @classmethod
    def from_json_object(cls, value: object, source: str) -> "TrainConfig":
        """The configuration of a JSON object or TOML table; `source` names it in messages."""
        if not isinstance(value, dict):
            raise InputError(f"{source} must hold a JSON object, {{...}}, of configuration fields")
        try:
            return cls(**value)
        except InputError as error:
            raise InputError(f"{source}: {error}") from error


def _sentence(model: type[Choices], error: ValidationError) -> str:
    first = error.errors()[0]
    if not first["loc"]:
        return str(first["ctx"]["error"])
    name, known = str(first["loc"][0]), list(model.model_fields)
    if name in known:
        return f"{name} = {first['input']!r}: it must be {requirement(model.model_fields[name])}"
    return str(unknown("key", name, known, f"Known: {', '.join(known)}."))


def default_config(variant: str, seed: int = 0) -> TrainConfig:
    """The configuration behind the figures for one variant. Raises `InputError` if unknown."""
    own: dict[str, Any] = {"epochs": 0} if variant == "vit-random" else {}
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
    fields: Any = {} if named is None else recipe(named)
    if path is not None:
        fields = read_json(path) if path == "-" or path.endswith(".json") else read_toml(path)
    given = {} if seed is None else {"seed": seed}
    if not isinstance(fields, dict):
        return [TrainConfig.from_json_object(fields, source)]
    own = variant or fields.get("variant", "all")
    return [
        TrainConfig.from_json_object({**fields, **given, "variant": each}, source)
        for each in (TRAINED if own == "all" else [own])
    ]
