"""A call that must be refused, on one line."""

from collections.abc import Callable
from typing import Any

import pytest

from oversmoothing.theory.support.errors import InputError


def refuses(
    said: str, call: Callable[..., Any], /, *given: Any, error: type[BaseException] = InputError,
    **named: Any,
) -> None:  # fmt: skip
    """The call raises the error, and the regular expression is found in what it says; "": any."""
    with pytest.raises(error, match=said or None):
        call(*given, **named)
