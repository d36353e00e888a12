"""The checks that steps of proofs execute, each raises where it fails.

A state at every depth L at once is a formula in sympy, proved by `induction` over the layers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs.claim import Hypothesis, Instance


def entries(value: Any) -> list[Any]:
    """A scalar, a matrix or nested lists as one flat list; None: nothing.

    Raises ValueError for a truth value: False is 0 to Python, and says that something is not so.
    """
    if value is None:
        return []
    if isinstance(value, bool | np.bool_):
        raise ValueError(f"{value} is a truth value: assert it, or give what must be 0")
    if isinstance(value, sp.MatrixBase):
        return list(value)
    if isinstance(value, list | tuple):
        return [entry for part in value for entry in entries(part)]
    return [value]


def is_zero(value: Any) -> bool:
    """Whether fractions are 0, or expressions of sympy identically 0, every entry of them.

    Raises ValueError where there are no entries.
    """
    parts = entries(value)
    if not parts:
        raise ValueError("nothing is there to be 0")
    return all(simplified(entry) == 0 for entry in parts)


def simplified(entry: Any) -> Any:
    """An expression of sympy, expanded and simplified as far as it goes; a number as it is."""
    if not isinstance(entry, sp.Basic):
        return entry
    expanded = sp.expand(entry, power_exp=True)
    return expanded if expanded == 0 else sp.simplify(expanded)


def vanishes(value: Any) -> None:
    """Every entry is identically 0."""
    for entry in entries(value):
        left = simplified(entry)
        assert left == 0, f"the residual is {left}, not 0"


def equal(value: object, expected: object) -> None:
    assert value == expected, f"found {value}, expected {expected}"


def meets(hypotheses: Sequence[Hypothesis], case: Instance) -> None:
    """The instance satisfies every hypothesis."""
    unmet = [h.words for h in hypotheses if not h.holds(case)]
    assert not unmet, f"not satisfied: {unmet}"


# ------------------------------------------------------------------------- at all depths at once

L = sp.Symbol("L", integer=True, nonnegative=True)


def symbolic(X: Matrix) -> sp.Matrix:
    """The same matrix in sympy."""
    return sp.Matrix([[sp.Rational(x.numerator, x.denominator) for x in row] for row in X])


def induction(A: Matrix, H: Matrix, X0: Matrix, state: sp.Matrix, squared: Any = None) -> None:
    """X_L = state(L) for all L: X_0 at L = 0, and one layer takes state(L) to state(L + 1).

    squared: (HFC/LFC)^2 of the state, an expression in L.
    """
    a, w, x0 = symbolic(A), symbolic(H).T, symbolic(X0)
    vanishes(state.subs(L, 0) - x0)
    vanishes(state.subs(L, L + 1) - state - a * state * w)
    if squared is not None:
        vanishes(squared_ratio(state) - squared)


def around(mean: Any, half: Any) -> sp.Matrix:
    """Two tokens of one feature: mean - half and mean + half."""
    return sp.Matrix([mean - half, mean + half])


def squared_ratio(state: sp.Matrix) -> sp.Expr:
    """(HFC/LFC)^2 of a state in sympy, real entries."""
    n = state.rows
    mean = [sum(state[i, j] for i in range(n)) / n for j in range(state.cols)]
    hfc = sum((state[i, j] - mean[j]) ** 2 for i in range(n) for j in range(state.cols))
    return sp.simplify(sp.expand(hfc) / sp.expand(n * sum(m**2 for m in mean)))
