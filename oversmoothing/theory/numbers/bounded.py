"""Vectors and numbers in float64 with a bound on what each entry is off by."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers.rounding import TINY, UNIT, gamma, inflated
from oversmoothing.theory.support.arrays import Array


@dataclass(frozen=True)
class Bounded:
    """A complex vector or number within `error` of `value`, entry by entry."""

    value: NDArray[Any]
    error: Array

    def dot(self, other: "Bounded") -> "Bounded":
        """sum x y, without conjugation."""
        size, more = np.abs(self.value), np.abs(other.value)
        error = size @ other.error + self.error @ (more + other.error)
        rounding = 2 * gamma(2 * len(size) + 2) * (size @ more)
        total = inflated(np.asarray(error + rounding), 2 * len(size) + 8)
        return Bounded(np.asarray(self.value @ other.value), total)

    def norm(self) -> tuple[float, float]:
        """Bounds of ||x||."""
        k = len(self.value)
        middle, off = float(np.linalg.norm(self.value)), float(np.linalg.norm(self.error))
        # Squares that underflow cost less than the last term.
        reach = off + gamma(2 * k + 4) * middle + 2.0**-500
        reach = float(inflated(np.asarray(reach), 2 * k + 8))
        return max(0.0, middle - reach) * (1 - 2 * UNIT), (middle + reach) * (1 + 2 * UNIT)


def times(M: Array, x: Bounded, relative: float = UNIT) -> Bounded:
    """M x for every matrix whose entries are within `relative` of those of M [n, k]."""
    k, size = M.shape[1], np.abs(M)
    error = size @ (
        x.error
        + (2 * gamma(2 * k + 2) + relative) * (1 + 2 * relative) * (np.abs(x.value) + x.error)
    )
    return Bounded(M @ x.value, inflated(error + 2 * k * TINY, 2 * k + 8))
