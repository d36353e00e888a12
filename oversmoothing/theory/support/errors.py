"""The one error that bad input raises, and what is said of a library that only an extra brings."""

import operator
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any


class InputError(ValueError):
    """Input that cannot be used. The message says what was wrong and what to do about it.

    The command line prints the message alone and exits with status 2; library users catch it as
    a `ValueError`.

    >>> import oversmoothing
    >>> try:
    ...     oversmoothing.verdict(A=[["1/2", "1/4"], [0, 1]], H=[[1]])
    ... except oversmoothing.InputError as error:
    ...     print(str(error).split(":")[0])
    A is not row-stochastic
    """


class CloseRootsError(InputError):
    """Eigenvalues of a rational matrix lie too close together to be isolated."""


class RequirementError(RuntimeError):
    """A result that the project promises did not come out: the message gives the numbers.

    Or an extra that is needed is not installed: the message names it.

    The command line prints the message and exits with status 1.
    """


def unknown(kind: str, name: str, known: Iterable[str], todo: str) -> InputError:
    """A name that is none of those known: the nearest, and in a line of its own what to do."""
    from difflib import get_close_matches

    names = {each.lower(): str(each) for each in known}
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.55)
    likely = f" Did you mean '{names[near[0]]}'?" if near else ""
    return InputError(f"no {kind} '{name}'.{likely}\n{todo}")


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The value as an int. Raises `InputError` where it is none, or is less than `least`."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise InputError(f"{name} is {value!r}: give a whole number") from error
    if least is not None and number < least:
        raise InputError(f"{name} is {number}: it must be at least {least}")
    return number


# What each extra brings, by the names that are imported.
_BROUGHT = {
    "commands": "PIL annotated_types jinja2 joblib markupsafe pandas pydantic rich safetensors "
    "threadpoolctl tqdm typer",
    "prove": "cvc5 latex2mathml z3",
    "models": "gguf transformers huggingface_hub sklearn accelerate",
    "training": "kornia lightning pytorch_lightning",
    "figures": "psutil",
    "sweep": "pyarrow",
    "cluster": "dask distributed",
}
EXTRA_OF = {name: extra for extra, names in _BROUGHT.items() for name in names.split()}


# Digits of a number as it is written out in full: those it has, and those its exponent adds. Python
# itself prints no integer of more than 4,300.
DIGITS = 4000
_NUMBER = re.compile(
    r"\s*[+-]?(?P<whole>\d[\d_]*)?(?:/(?P<below>\d[\d_]*)|(?:\.(?P<part>[\d_]*))?"
    r"(?:[eE](?P<exponent>[+-]?\d[\d_]*))?)\s*"
)


def refuse_endless(text: str, name: str) -> None:
    """Raise `InputError` for a number that is longer written out than `DIGITS`."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        refuse_length(len(text), name)
        return
    digits = sum(len(match[part] or "") for part in ("whole", "part"))
    exponent = match["exponent"] or "0"
    refuse_length(max(digits, len(match["below"] or ""), len(exponent)), name)
    refuse_length(digits + abs(int(exponent)), name)


def refuse_length(digits: int, name: str) -> None:
    """Raise `InputError` for so many digits."""
    if digits > DIGITS:
        raise InputError(f"{name} has a number of more than {DIGITS} digits: that is the most here")


def required(name: str) -> Any:
    """The module of that name, imported.

    Raises `RequirementError` where it or one that it needs is of an extra that is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise explained(error) from error


def explained(error: ModuleNotFoundError) -> Exception:
    """A `RequirementError` that names the extra; the error itself where no extra would help."""
    name = str(error.name).split(".")[0]
    if name not in EXTRA_OF:
        return error
    return RequirementError(
        f"{name} is not installed: pip install 'oversmoothing[{EXTRA_OF[name]}]', or [all]"
    )
