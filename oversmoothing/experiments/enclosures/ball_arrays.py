"""Matrices of balls from exact numbers and back, and sums that keep their balls."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.support.sizes import Array

Ball = Any  # flint.arb, which carries no types
Balls = Any  # flint.arb_mat


def exact(values: Array) -> Balls:
    """The matrix [m, n] of exactly these numbers."""
    m, n = values.shape
    return flint.arb_mat(m, n, [flint.arb(x) for x in values.ravel().tolist()])


def exact_row(values: Array) -> list[Ball]:
    """The numbers as a list."""
    return [flint.arb(x) for x in values.tolist()]


def of_rows(rows: Sequence[Sequence[Ball]]) -> Balls:
    """The matrix of these rows."""
    return flint.arb_mat(len(rows), len(rows[0]), [x for row in rows for x in row])


def entrywise(M: Balls, f: Callable[[Ball], Ball]) -> Balls:
    """f of every entry."""
    return flint.arb_mat(M.nrows(), M.ncols(), [f(x) for x in M.entries()])


def total(values: Iterable[Ball]) -> Ball:
    """The sum of balls, 0 of none."""
    return sum(values, flint.arb(0))


def middles(M: Balls) -> Array:
    """The middles of the balls, rounded to binary64."""
    values = [float(x.mid()) for x in M.entries()]
    return np.array(values).reshape(M.nrows(), M.ncols())


def every_finite(M: Balls) -> bool:
    """Whether every ball is of finite radius."""
    return all(x.is_finite() for x in M.entries())
