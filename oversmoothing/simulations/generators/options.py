"""A generator's options as a model: each kind declares its own, with their ranges and words.

`simulate`, the sweep's TOML and calls from Python share them: `choose` makes a generator from a
kind and options, and whatever is wrong with these becomes one sentence.
"""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import SEED, refuse_extreme


class Options(BaseModel):
    """What a generator takes beside sizes and randomness."""

    # Built when first used: a worker of a sweep needs two of them.
    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )


Generator = TypeVar("Generator", bound=Options)


def scalar_type(field: FieldInfo) -> type:
    """int, float or str (of a choice), None left out."""
    annotation = field.annotation
    if get_origin(annotation) is UnionType:
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    return str if get_origin(annotation) is Literal else annotation  # type: ignore[return-value]


def choices(field: FieldInfo) -> tuple[str, ...]:
    """The names that a choice may have; none for a number."""
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def requirement(field: FieldInfo) -> str:
    """What a value must be, in words."""
    kind, names = scalar_type(field), choices(field)
    if names:
        return f"one of {', '.join(names)}"
    if kind not in (int, float):
        return {str: "a text in quotes", bool: "true or false"}.get(kind, "a list of numbers")
    low, above, high = (
        next((getattr(m, name) for m in field.metadata if hasattr(m, name)), None)
        for name in ("ge", "gt", "le")
    )
    wanted = "an integer" if kind is int else "a number"
    if above is not None:
        return f"{wanted} > {above:g}" + (f", at most {high:g}" if high is not None else "")
    if high is not None:
        return f"{wanted} from {low:g} to {'2^63 - 1' if high == SEED else f'{high:g}'}"
    return f"{wanted} that is finite" if low is None else f"{wanted} >= {low:g}"


def choose(
    what: str, known: Mapping[str, type[Generator]], kind: str, options: Mapping[str, Any]
) -> Generator:
    """The generator of that kind with these options. Raises `InputError` in one sentence."""
    if kind not in known:
        raise InputError(f"no {what} '{kind}'; there are {', '.join(known)}")
    for name, value in options.items():
        refuse_extreme(name, value)
    try:
        return known[kind](**options)
    except ValidationError as error:
        raise InputError(_sentence(what, known, kind, error)) from error


def _sentence(
    what: str, known: Mapping[str, type[Generator]], kind: str, error: ValidationError
) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0])
    if first["type"] == "missing":
        return f"{what} '{kind}' needs {name}"
    if first["type"] == "extra_forbidden":
        owners = [other for other, one in known.items() if name in one.model_fields]
        belongs = f" (it belongs to {', '.join(owners)})" if owners else ""
        return f"{what} '{kind}' takes no option '{name}'{belongs}"
    field = known[kind].model_fields[name]
    return f"{name} = {first['input']!r}: it must be {requirement(field)}"
