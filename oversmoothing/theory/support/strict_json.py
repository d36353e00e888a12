"""The one reader of JSON that a user writes, and of the numbers in it: nothing is read by halves.

A repeated key, NaN or Infinity, nesting without end and numbers of endless digits are refused, each
with a sentence, before anything of their size is made. (`theory.checker` has a reader of its own.)
"""

import json
import math
import re
from os import PathLike
from typing import Any

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text

DEPTH = 64
# Digits of a number as it is written out in full: those it has, and those its exponent adds. Python
# itself prints no integer of more than 4,300.
DIGITS = 4000
_NUMBER = re.compile(
    r"\s*[+-]?(?P<whole>\d[\d_]*)?(?:/(?P<below>\d[\d_]*)|(?:\.(?P<part>[\d_]*))?"
    r"(?:[eE](?P<exponent>[+-]?\d[\d_]*))?)\s*"
)


def read_json(path: str | PathLike[str]) -> Any:
    """The value of a JSON file. Raises `InputError` naming the file and what is wrong in it."""
    return parse_json(read_text(path), f"'{path}'")


def parse_json(text: str, name: str) -> Any:
    """`read_json` of a text; name is what messages call it."""

    def integer(digits: str) -> int:
        _refuse_length(len(digits.lstrip("-")), name)
        return int(digits)

    def decimal(digits: str) -> float:
        refuse_endless(digits, name)
        value = float(digits)
        if math.isinf(value):
            raise InputError(
                f"{name}: {digits} is beyond the range of binary64 (1.8e308): write it in quotes, "
                "as an exact number, or scale"
            )
        return value

    def constant(word: str) -> float:
        raise InputError(f"{name} holds {word}: JSON has no nan and no infinity")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = sorted({key for key in keys if keys.count(key) > 1})
            raise InputError(f"{name}: {_shown(twice)} occurs more than once: keep one")
        return found

    try:
        value = json.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=constant,
            parse_int=integer,
            parse_float=decimal,
        )
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise InputError(f"{name} is nested too deeply to be read") from error
    if _depth(value) > DEPTH:
        raise InputError(f"{name} is nested too deeply to be read (more than {DEPTH} levels)")
    return value


def refuse_endless(text: str, name: str) -> None:
    """Raise `InputError` for a number that is longer written out than `DIGITS`."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        _refuse_length(len(text), name)
        return
    digits = sum(len(found[part] or "") for part in ("whole", "part"))
    exponent = found["exponent"] or "0"
    _refuse_length(max(digits, len(found["below"] or ""), len(exponent)), name)
    _refuse_length(digits + abs(int(exponent)), name)


def _refuse_length(digits: int, name: str) -> None:
    if digits > DIGITS:
        raise InputError(f"{name} has a number of more than {DIGITS} digits: that is the most here")


def _shown(keys: list[str]) -> str:
    """A few keys, none of them endless."""
    shown = [repr(key if len(key) <= 40 else key[:40] + "...") for key in keys[:8]]
    return ", ".join(shown) + (" ..." if len(keys) > 8 else "")


def _depth(value: Any) -> int:
    """Levels of nesting, counted without recursion."""
    depth, level = 0, [value]
    while level:
        inner = [
            list(each.values()) if isinstance(each, dict) else each
            for each in level
            if isinstance(each, dict | list)
        ]
        depth += bool(inner)
        level = [each for group in inner for each in group]
    return depth
