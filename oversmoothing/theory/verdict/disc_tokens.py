"""The tokens of an eigenvector of A within bounds, and the ratio HFC/LFC that they tend to."""

import math
from dataclasses import dataclass

import numpy as np

from oversmoothing.theory.numbers.bounded import Bounded
from oversmoothing.theory.numbers.rounding import UNIT, gamma, inflated
from oversmoothing.theory.verdict.limits import Limits

# A limit is a number where its bounds leave less than this of it open (relative).
_KNOWN = 1e-7


@dataclass(frozen=True)
class Tokens:
    """The tokens of the eigenvector of one a: `spread` = P v [n], and its mean over the tokens."""

    spread: Bounded
    mean: Bounded

    def ratio(self, balanced: bool) -> Limits:
        """HFC/LFC -> ||P v|| / (sqrt n |mean v|), rank 1 (T1f)."""
        if balanced:
            return Limits("infinity", float("inf"), 1)
        if not abs(complex(self.mean.value)) > float(self.mean.error) * (1 + 8 * UNIT):
            return Limits(None, None, 1)
        mean = Bounded(self.mean.value[None], self.mean.error[None])
        return Limits("constant", ratio_of(self.spread, mean, len(self.spread.value)), 1)

    def turning(self) -> Bounded | None:
        """(s.s) / |s|^2 - m^2 / |m|^2 for the spread s and the mean m: where it is not 0, ||HFC||^2
        and ||LFC||^2 turn differently with e^(2 i L phase) (T3f). None where m may be 0."""
        mean, off = complex(self.mean.value), float(self.mean.error)
        low, high = self.spread.norm()
        if not (abs(mean) > 2 * off and low > 0):
            return None
        square = self.spread.dot(self.spread)
        around, other = square.value / (low * high), mean**2 / abs(mean) ** 2
        error = (square.error + abs(square.value) * (high / low - 1)) / low**2
        error = error + 4 * off / (abs(mean) - off) + 32 * UNIT
        return Bounded(np.asarray(around - other), inflated(np.asarray(error), 16))


def ratio_of(spread: Bounded, mean: Bounded, n: int) -> float | None:
    """||spread|| / (sqrt n ||mean||) where its bounds leave a number."""
    (low, high), (least, most) = spread.norm(), mean.norm()
    if not least > 0:
        return None
    low, high = low / most / math.sqrt(n), high / least / math.sqrt(n)
    middle = (low + high) / 2
    return middle if high - low <= _KNOWN * middle and 0 < middle < math.inf else None


def from_quotient(y: Bounded) -> Bounded:
    """Q y [n] for y [n-1], Q as in `layer.quotient.complement_basis`."""
    n = len(y.value) + 1
    root = np.sqrt(n)
    total, size = y.value.sum() / root, np.abs(y.value)
    sums = inflated(np.asarray((y.error.sum() + gamma(n + 6) * size.sum()) / root), n + 8)
    value = np.concatenate([[-total], y.value - total / (root + 1)])
    error = np.concatenate([[sums], y.error + sums / (root + 1) + 4 * UNIT * np.abs(value[1:])])
    return Bounded(value, inflated(error, 8))
