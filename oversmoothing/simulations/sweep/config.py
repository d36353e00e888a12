"""The file that says what to sweep: TOML with [fixed], [axes] and the measures wanted.

    measures = ["ratio", "cosine"]
    [fixed]
    n = 32
    value = "interval"
    [axes]
    temperature = { from = 0.1, to = 10.0, steps = 12, scale = "log" }
    high = { from = -0.5, to = 0.5, steps = 11 }
    seed = [0, 1, 2]

An axis is a list or a range; the points are the product of the axes. A parameter that is not given
has its default (`PARAMETERS`: the sizes that every point has and the options of the generators).
"""

import difflib
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.options import Options, choices, requirement, scalar_type
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import parse_toml, read_text

Value = int | float | str

ATTENTION_KINDS = tuple(ATTENTION)
# A list of eigenvalues is no entry of a table: spectra are drawn, from interval, disc, plus_minus.
VALUE_KINDS = tuple(kind for kind in VALUE_PROJECTION if kind != "spectrum")
AttentionKind: Any = Literal[ATTENTION_KINDS]
ValueKind: Any = Literal[VALUE_KINDS]


class EveryPoint(Options):
    """What every point has."""

    attention: AttentionKind = Field(default="softmax", description="how A is drawn")
    value: ValueKind = Field(default="ginibre", description="how H is drawn")
    n: int = Field(default=32, ge=1, le=sizes.SIZE, description="tokens")
    d: int = Field(default=16, ge=1, le=sizes.SIZE, description="features")
    heads: int = Field(
        default=1,
        ge=1,
        le=sizes.SIZE,
        description="heads: X' = X + sum over h of A_h X W_h / heads",
    )
    depth: int = Field(default=1000, ge=2, le=sizes.DEPTH, description="layers")
    seed: int = Field(
        default=0, ge=0, le=sizes.SEED, description="one of several draws of the same point"
    )


@dataclass(frozen=True)
class Parameter:
    """One parameter: its field in the models, and the kinds of A and of H that use it.

    users: None where every point does.
    """

    name: str
    field: FieldInfo
    default: Value
    users: frozenset[str] | None

    @cached_property
    def kind(self) -> type:
        """int, float or str."""
        return scalar_type(self.field)

    @cached_property
    def _reader(self) -> TypeAdapter[Value]:
        wanted: Any = Literal[choices(self.field)] if self.kind is str else self.kind
        for limit in self.field.metadata:
            wanted = Annotated[wanted, limit]
        return TypeAdapter(wanted, config=ConfigDict(strict=True, allow_inf_nan=False))

    def check(self, value: object) -> Value:
        """The value in this parameter's type. Raises `InputError` for another type or range."""
        try:
            entry = self._reader.validate_python(value)
        except ValidationError as error:
            plain = " (write it without '.')" if self.kind is int and type(value) is float else ""
            raise InputError(
                f"{self.name} = {value!r}: it must be {requirement(self.field)}{plain}"
            ) from error
        if self.users is not None:
            sizes.refuse_extreme(self.name, entry)
        # -0.0 and 0.0 are one point.
        return entry + 0.0 if isinstance(entry, float) else entry

    def used_by(self, attention: str, value: str) -> bool:
        """Whether a point with these kinds of A and H depends on this parameter."""
        return self.users is None or attention in self.users or value in self.users


def _parameters() -> dict[str, Parameter]:
    kinds: dict[str, type[Options]] = {kind: ATTENTION[kind] for kind in ATTENTION_KINDS}
    kinds |= {kind: VALUE_PROJECTION[kind] for kind in VALUE_KINDS}
    fields = dict(EveryPoint.model_fields)
    users: dict[str, frozenset[str]] = {}
    for kind, model in kinds.items():
        for name, field in model.model_fields.items():
            fields.setdefault(name, field)
            users[name] = users.get(name, frozenset()) | {kind}
    # The order of the columns of every table so far.
    fields["basis"] = fields.pop("basis")
    # The size of a Jordan block is a number in a table, not "as large as d".
    default = {name: field.default for name, field in fields.items()} | {"size": 2}
    return {
        name: Parameter(name, field, default[name], users.get(name))
        for name, field in fields.items()
    }


PARAMETERS: dict[str, Parameter] = _parameters()


# Of the points, their seeds and the columns: another version is another sweep.
SCHEMA_VERSION = 1
MAX_POINTS = 2_000_000
MEASURES = ("ratio", "cosine", "rank", "limits")
DEFAULT_MEASURES = ("ratio", "cosine", "rank")

_EXAMPLES = Path(__file__).parent / "examples"
_RANGE = ("from", "to", "steps", "scale")
_TOP = ("title", "measures", "fixed", "axes")


@dataclass(frozen=True)
class Config:
    """A validated sweep. fixed and axes together name every parameter exactly once.

    axes: name -> distinct values, in the order of the file (the last axis moves fastest). measures:
    which outcomes are computed beside the verdict.
    """

    fixed: dict[str, Value]
    axes: dict[str, tuple[Value, ...]]
    measures: tuple[str, ...] = DEFAULT_MEASURES
    title: str = ""

    @property
    def size(self) -> int:
        """The product of the lengths of the axes."""
        return math.prod(len(values) for values in self.axes.values())

    def to_json_object(self) -> dict[str, Any]:
        """What determines the table: schema, fixed values, axes and measures."""
        return {
            "schema_version": SCHEMA_VERSION,
            "fixed": dict(sorted(self.fixed.items())),
            "axes": [[name, list(values)] for name, values in self.axes.items()],
            "measures": list(self.measures),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of that, in hex: equal digests are equal tables."""
        text = json.dumps(self.to_json_object(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


def examples() -> list[str]:
    """Names of the configurations that come with the package."""
    return sorted(path.stem for path in _EXAMPLES.glob("*.toml"))


def example(name: str) -> Config:
    """A configuration that comes with the package. Raises `InputError` for another name."""
    if name not in examples():
        raise InputError(f"no example '{name}'; there are {', '.join(examples())}")
    return parse(read_text(_EXAMPLES / f"{name}.toml"), f"example {name}")


def parse(text: str, source: str) -> Config:
    """A configuration from TOML text; `source` names it in errors."""
    table = parse_toml(text, f"'{source}'")
    try:
        return make_config(table)
    except InputError as error:
        raise InputError(f"'{source}': {error}") from error


def make_config(data: Mapping[str, Any]) -> Config:
    """A configuration from the tables of the file. Raises `InputError`."""
    _known(data, _TOP, "key")
    fixed_table, axes_table = _table(data, "fixed"), _table(data, "axes")
    twice = sorted(fixed_table.keys() & axes_table.keys())
    if twice:
        raise InputError(f"{', '.join(twice)} is both in [fixed] and in [axes]: give it once")
    for table in (fixed_table, axes_table):
        _known(table, PARAMETERS, "parameter")
    axes = {name: _axis(PARAMETERS[name], given) for name, given in axes_table.items()}
    fixed = {
        name: parameter.check(fixed_table.get(name, parameter.default))
        for name, parameter in PARAMETERS.items()
        if name not in axes
    }
    title = data.get("title", "")
    if not isinstance(title, str):
        raise InputError("title must be a string")
    config = Config(fixed, axes, _measures(data.get("measures", DEFAULT_MEASURES)), title)
    if config.size > MAX_POINTS:
        lengths = " x ".join(f"{len(values)} {name}" for name, values in axes.items())
        raise InputError(
            f"{lengths} = {config.size:,} points; at most {MAX_POINTS:,} fit one sweep: shorten an "
            "axis or split the sweep"
        )
    if not (fixed_table or axes_table):
        raise InputError("it names no parameter: give [axes], [fixed] or both, as in n = 32")
    _refuse_unused(config, [*fixed_table, *axes_table])
    return config


def _known(given: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    names = list(known)
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise InputError(f"unknown {what} '{key}'{hint}; there are {', '.join(names)}")


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f"[{name}] must be a table of parameters")
    return table


def _measures(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise InputError(f"measures must be a list of names out of {', '.join(MEASURES)}")
    _known(dict.fromkeys(given), MEASURES, "measure")
    return tuple(name for name in MEASURES if name in given)


def _axis(parameter: Parameter, given: Any) -> tuple[Value, ...]:
    name = parameter.name
    if isinstance(given, dict):
        return _range(parameter, given)
    if not isinstance(given, list):
        raise InputError(
            f"axis {name} = {given!r} must be a list or a range like "
            "{ from = 0.1, to = 10.0, steps = 9, scale = 'log' }; a single value goes in [fixed]"
        )
    if not given:
        raise InputError(f"axis {name} is empty: give it values, or a fixed value")
    values = [parameter.check(value) for value in given]
    if len(set(values)) < len(values):
        raise InputError(f"axis {name} lists a value twice: each point is computed once")
    return tuple(values)


def _range(parameter: Parameter, given: dict[str, Any]) -> tuple[Value, ...]:
    """Evenly spaced values, both ends included; of an integer the distinct rounded ones."""
    name = parameter.name
    _known(given, _RANGE, f"key of the range of {name}:")
    if parameter.kind is str:
        raise InputError(f"axis {name} takes a list of names, not a range")
    missing = [key for key in _RANGE[:3] if key not in given]
    if missing:
        raise InputError(f"the range of {name} lacks {', '.join(missing)}")
    low, high = parameter.check(given["from"]), parameter.check(given["to"])
    assert not isinstance(low, str) and not isinstance(high, str)
    steps, scale = given["steps"], given.get("scale", "linear")
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_POINTS:
        raise InputError(
            f"the range of {name} has steps = {steps!r}; it must be an integer from 1 to "
            f"{MAX_POINTS:,}: the number of values"
        )
    if scale not in ("linear", "log"):
        raise InputError(f"the range of {name} has scale = {scale!r}: it must be linear or log")
    if (low != high) != (steps > 1):
        raise InputError(f"the range of {name} from {low} to {high} does not fit {steps} steps")
    if scale == "log" and not (low > 0 and high > 0):
        raise InputError(f"the log range of {name} needs both ends > 0, not {low} and {high}")
    spaced = np.geomspace(low, high, steps) if scale == "log" else np.linspace(low, high, steps)
    # The ends as they were written; geomspace rounds them.
    values = [float(low), *(float(x) for x in spaced[1:-1]), float(high)][:steps]
    if parameter.kind is int:
        return tuple(dict.fromkeys(parameter.check(round(x)) for x in values))
    return tuple(parameter.check(x) for x in values)


def _refuse_unused(config: Config, given: list[str]) -> None:
    """A given parameter that no point uses is a mistake of whoever gave it."""

    def kinds(name: str) -> tuple[Value, ...]:
        return config.axes.get(name) or (config.fixed[name],)

    for name in given:
        parameter = PARAMETERS[name]
        if not any(
            parameter.used_by(str(a), str(v)) for a in kinds("attention") for v in kinds("value")
        ):
            users = [k for k in (*ATTENTION_KINDS, *VALUE_KINDS) if k in (parameter.users or ())]
            which = "attention" if users[0] in ATTENTION_KINDS else "value"
            raise InputError(
                f"{name} is given, but no point uses it: it belongs to {which} = "
                f"{', '.join(users)}, and {which} is {', '.join(map(str, kinds(which)))}"
            )


def named_config(path: str | None, name: str | None) -> tuple[str, Config]:
    """A file's configuration or that of an example, with its name.

    Raises `InputError` for both and for neither.
    """
    if path is not None and name is None:
        return Path(path).stem, parse(read_text(path), path)
    if name is not None and path is None:
        return name, example(name)
    raise InputError("give either a CONFIG.toml or --example NAME, one of " + ", ".join(examples()))
