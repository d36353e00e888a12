"""The one error that bad input raises, in every package of the project."""

import operator
from typing import Any


class InputError(ValueError):
    """Input that cannot be used. The message says what was wrong and what to do about it.

    The command line prints the message alone and exits with status 2; library users catch it as
    a `ValueError`.
    """


class RequirementError(RuntimeError):
    """A result that the project promises did not come out: the message gives the numbers.

    Or an extra that is needed is not installed: the message names it.

    The command line prints the message and exits with status 1.
    """


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The value as an int. Raises `InputError` where it is none, or is less than `least`."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise InputError(f"{name} is {value!r}: give a whole number") from error
    if least is not None and number < least:
        raise InputError(f"{name} is {number}: it must be at least {least}")
    return number
