"""All cases that round to the same floats, in balls: what a verdict in binary64 has to hold for.

An entry x stands for every number within half a unit in the last place, 0 for 0 alone. A is taken
through E = I - A, whose diagonal is the sum of what a token gives to the others: 1 - a then has
small relative errors however close to 1 an eigenvalue a is.

Attention from logits is enclosed in balls, where nothing underflows, or in float64 with a proven
error of exp. The float64 exp is written out, so that its error is a theorem and not a library's
promise. For -800 <= t <= 0 let k = rint(t log2 e) and r = t - k log 2, computed as (t - k c) - k c'
with c the first 32 bits of log 2 (k c is exact) and c' the rest: |r| < 0.36, and with u = 2^-53 the
computed r is off by less than 2u. The Taylor polynomial of degree 13 is off by less than 0.36^14 /
14! 1.44 < u / 8, and Horner's scheme by gamma_28 e^0.36, relative to e^r >= e^-0.36. Together less
than 61 u, and 64 u pays for products of errors too; the power of two is exact, and an underflow
loses at most 2^-1074.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import factorial

import numpy as np

from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers import flint
from oversmoothing.theory.numbers.rounding import (
    UNIT,
    at_precision,
    gamma,
    inflated,
    of_others,
    to_ball,
)
from oversmoothing.theory.support.sizes import Array

# Half a unit in the last place, relative, and the most that a subnormal number can be off.
_UNIT, _LEAST = 2.0**-53, 2.0**-1074
_ROUND_UP = 1 + 2.0**-20


@dataclass(frozen=True)
class RoundingCell:
    """The cell of a layer [n, d] in binary64."""

    case: Layer

    @cached_property
    def _attention(self) -> list[list[flint.arb]]:
        """The entries of A, row by row."""
        if self.case.logits is None:
            given = self.case.given["A"].floats
            error = np.abs(given.sum(axis=1) - 1) + (1 + len(given)) * _UNIT
            return [
                [_ball(x, e) for x in row]
                for row, e in zip(given.tolist(), error.tolist(), strict=True)
            ]
        rows = []
        for row in self.case.logits.tolist():
            top = _ball(max(row), _UNIT)
            rows.append(_shares(None if x == -np.inf else _ball(x, _UNIT) - top for x in row))
        return rows

    @cached_property
    def departures(self) -> list[list[flint.acb]]:
        """E = I - A."""
        n = self.case.n
        A = self._attention
        return [
            [flint.acb(self._given_away(i) if i == j else -A[i][j]) for j in range(n)]
            for i in range(n)
        ]

    def _given_away(self, i: int) -> flint.arb:
        """1 - A_ii: the sum of the others, or the difference where that is known better."""
        A = self._attention
        others = sum((x for j, x in enumerate(A[i]) if j != i), flint.arb(0))
        rest = 1 - A[i][i]
        return others if others.rad() <= rest.rad() else rest

    @cached_property
    def value(self) -> list[list[flint.acb]]:
        """H."""
        if self.case.factors is None:
            return cell_of(self.case.given["H"].floats)
        W_V, W_proj = (flint.acb_mat(cell_of(M)) for M in self.case.factors)
        return (W_V * W_proj).transpose().tolist()


def cell_of(M: Array) -> list[list[flint.acb]]:
    """All that rounds to the entries of M."""
    return [[flint.acb(_ball(x, _UNIT)) for x in row] for row in M.tolist()]


def _ball(x: float, relative: float) -> flint.arb:
    if not x:
        return flint.arb(0)
    radius = max(abs(x) * relative, _LEAST / 2)
    return flint.arb(x, radius * _ROUND_UP)


def softmax_balls(logits: Sequence[Sequence[Fraction | None]], bits: int) -> flint.arb_mat:
    """softmax of the rows in balls; None is masked (exactly 0)."""
    with at_precision(bits):
        rows = []
        for row in logits:
            top = max(x for x in row if x is not None)
            rows.append(_shares(None if x is None else to_ball(x - top) for x in row))
        return flint.arb_mat(rows)


def _shares(row: Iterable[flint.arb | None]) -> list[flint.arb]:
    """The softmax of a row in balls, where no weight underflows; None is masked."""
    weights = [flint.arb(0) if x is None else x.exp() for x in row]
    total = sum(weights, flint.arb(0))
    return [weight / total for weight in weights]


def stationary_balls(A: flint.arb_mat, closed: Sequence[Sequence[int]]) -> list[flint.arb]:
    """pi with pi^T A = pi^T, pi^T 1 = 1 in balls; the mean over the given closed classes.

    By state reduction without a subtraction (Grassmann, Taksar, Heyman 1985): each entry keeps the
    relative accuracy of those of A.
    """
    pi = [flint.arb(0)] * A.nrows()
    for members in closed:
        P = [[A[i, j] for j in members] for i in members]
        for k in range(len(P) - 1, 0, -1):
            total = sum(P[k][:k], flint.arb(0))
            for i in range(k):
                P[i][k] /= total
                for j in range(k):
                    P[i][j] += P[i][k] * P[k][j]
        weights = [flint.arb(1)]
        for k in range(1, len(P)):
            weights.append(sum((w * P[i][k] for i, w in enumerate(weights)), flint.arb(0)))
        total = sum(weights, flint.arb(0)) * len(closed)
        for i, weight in zip(members, weights, strict=True):
            pi[i] = weight / total
    return pi


EXP_ERROR = 64 * UNIT
_LOG2_HIGH = float.fromhex("0x1.62e42feep-1")
_LOG2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LOWEST = -800.0


def bounded_exp(t: Array) -> Array:
    """exp(t) for -800 <= t <= 0, off by at most EXP_ERROR exp(t) + 2^-1074; exp(0) = 1 exactly."""
    k = np.rint(t * np.log2(np.e))
    r = (t - k * _LOG2_HIGH) - k * _LOG2_LOW
    value = np.full_like(t, 1 / factorial(13))
    for degree in range(12, -1, -1):
        value = value * r + 1 / factorial(degree)
    result: Array = np.ldexp(value, k.astype(np.int32))
    return result


def softmax_within(logits: Array, relative: float = 0.0) -> tuple[Array, Array]:
    """(A, error) [..., n, n]: every softmax of logits within `relative` of these, -inf masked
    (exactly 0), is within error of A. Each row needs a finite logit.

    A weight is off by its exponential, by the shift, rounded once (exp(t (1 + u)) / exp(t) - 1 <
    1.01 u |t|, with |t| <= 800), and by e^y - 1 <= y / (1 - y) for the y that its logit and the
    largest one may move by; by e <= 1/8 in all its share then changes as in `of_others`, with
    e (1 + 4 e) >= e / (1 - e)^2, and the division and the sum round. What underflows adds the
    smallest number, by `inflated`. Infinite where the logits are too large for that.
    """
    masked = np.isneginf(logits)
    with np.errstate(over="ignore"):
        shifted = logits - logits.max(axis=-1, keepdims=True)
    # What lies below exp(-800) < 2^-1074 is below it still after rounding.
    weights = np.where(masked, 0.0, bounded_exp(np.maximum(shifted, _LOWEST)))
    A = weights / weights.sum(axis=-1, keepdims=True)
    size = np.where(masked, 0.0, np.abs(logits)).max(axis=-1, keepdims=True)
    y = inflated(2 * relative * size, 4)
    rounding = gamma(logits.shape[-1] + 4)
    with np.errstate(over="ignore", invalid="ignore"):
        e = EXP_ERROR + 1.01 * UNIT * np.minimum(2 * size, -_LOWEST) + y / (1 - np.minimum(y, 0.5))
        e = np.where(y < 0.0625, inflated(e * (1 + 4 * e), 12), np.inf)
        wide = (2 * e * of_others(inflated(A, 4)) + rounding) * (1 + 2 * rounding)
        error = np.where(masked, 0.0, inflated(wide * A, 12))
    return A, np.where(np.isnan(error), np.inf, error)
