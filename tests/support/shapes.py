"""The checker of shapes: of a signature the arrays alone.

What users get wrong (a depth that is no number, a method that does not exist) reaches the function,
whose own sentence the tests ask for.
"""

import os
from collections.abc import Callable
from typing import Any, get_args

import pytest
from beartype import beartype
from jaxtyping import AbstractArray

# `make test-all` asks for it; see tests/conftest.py.
CHECKED = bool(os.environ.get("OVERSMOOTHING_SHAPES"))
only_where_checked = pytest.mark.skipif(not CHECKED, reason="shapes are checked in `make test-all`")


def has_shape(annotation: Any) -> bool:
    """Whether an array with a shape stands in it, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        return True
    return any(has_shape(part) for part in get_args(annotation))


def shapes(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its shapes checked at every call."""
    said = function.__annotations__
    function.__annotations__ = {name: one for name, one in said.items() if has_shape(one)}
    return beartype(function)
