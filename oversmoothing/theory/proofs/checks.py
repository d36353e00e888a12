"""The checks that steps of proofs execute: each returns nothing, and raises where it fails."""

from collections.abc import Sequence
from typing import Any

import sympy as sp

from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.proofs.claim import Hypothesis, Instance

# Of the balls in `certain`.
BITS = 1536


def entries(found: Any) -> list[Any]:
    """A scalar, a matrix or nested lists as one flat list; None: nothing."""
    if found is None:
        return []
    if isinstance(found, sp.MatrixBase):
        return list(found)
    if isinstance(found, list | tuple):
        return [entry for part in found for entry in entries(part)]
    return [found]


def is_zero(found: Any) -> bool:
    """Whether fractions are 0, or expressions of sympy identically 0, every entry of them.

    Raises ValueError where there are no entries.
    """
    parts = entries(found)
    if not parts:
        raise ValueError("nothing is there to be 0")
    return all(simplified(entry) == 0 for entry in parts)


def simplified(entry: Any) -> Any:
    """An expression of sympy, expanded and simplified as far as it goes; a number as it is."""
    if not isinstance(entry, sp.Basic):
        return entry
    expanded = sp.expand(entry, power_exp=True)
    return expanded if expanded == 0 else sp.simplify(expanded)


def vanishes(found: Any) -> None:
    """Every entry is identically 0."""
    for entry in entries(found):
        left = simplified(entry)
        assert left == 0, f"the residual is {left}, not 0"


def equal(found: object, expected: object) -> None:
    assert found == expected, f"found {found}, expected {expected}"


def certain(condition: object) -> None:
    """A comparison of balls: true only where every point of the balls satisfies it."""
    with at_precision(BITS):
        assert condition


def meets(hypotheses: Sequence[Hypothesis], case: Instance) -> None:
    """The instance satisfies every hypothesis."""
    unmet = [h.words for h in hypotheses if not h.holds(case)]
    assert not unmet, f"not satisfied: {unmet}"
