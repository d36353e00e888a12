"""What one X_0 leads to, in float64: whether it contains the mode that decides (T4e).

The coefficient of a pair (a_i, h_j) is w^T X_0 z with left eigenvectors w of A and z of H, and of
consensus pi^T X_0 z. Where its bounds leave out 0, every X_0 that rounds to the given one contains
the pair. A pair on the winning side that outgrows all of the other side then decides.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oversmoothing.theory.layer.perron import stationary_distribution
from oversmoothing.theory.numbers.bounded import Bounded, times
from oversmoothing.theory.numbers.rounding import TINY, UNIT, gamma, inflated
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.verdict.disc_limits import DominantPair
from oversmoothing.theory.verdict.head_ties import (
    left_alone,
    rank_at_least,
    ratio_of_state,
    tokens_differ,
)
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits
from oversmoothing.theory.verdict.outcome import Outcome

# So many of the largest pairs are asked for before balls are.
_TRIED = 4
_ZERO = Limits("zero", 0.0, 1)


@dataclass(frozen=True)
class Contained:
    """The verdict over what X_0 contains, and its limits."""

    outcome: Outcome
    limits: Limits


NOTHING = Contained(Outcome.UNDECIDED, UNKNOWN)


class DiscStart:
    """X_0 [n, d] over the discs of a cell."""

    def __init__(self, pair: DominantPair) -> None:
        self.pair = pair
        self.cell = pair.cell
        X0 = self.cell.case.X0
        assert X0 is not None
        # HFC/LFC does not see the scale: a power of two loses what is below all numbers, no more.
        power = int(np.frexp(np.abs(X0).max())[1])
        self.X0 = np.ldexp(X0, -power)
        self._lost = np.where(np.ldexp(self.X0, power) == X0, 0.0, TINY)

    def contained(self, generic: Outcome) -> Contained:
        """What follows where `generic` is the verdict for generic X_0; perhaps nothing."""
        if generic is Outcome.SMOOTHING:
            low, rest = self.cell.consensus.low[0], self.cell.quotient.high.max(initial=0.0)
            for j in np.argsort(-low, kind="stable")[:_TRIED].tolist():
                if not low[j] > rest:
                    break
                if self._in_consensus(j):
                    return Contained(generic, _ZERO)
        if generic is Outcome.NON_SMOOTHING:
            moduli, rest = self.cell.quotient, self.cell.consensus.high.max()
            order = np.argsort(-moduli.low, axis=None, kind="stable")[:_TRIED]
            for i, j in (divmod(k, moduli.low.shape[1]) for k in order.tolist()):
                if not moduli.low[i, j] > rest:
                    break
                if self._present(i, j):
                    leads = self.pair.leads(i, j)
                    limits = self.pair.limits(i, j) if leads else UNKNOWN
                    if self.pair.balanced:
                        limits = Limits("infinity", float("inf"), limits.limit_rank)
                    return Contained(generic, limits)
        if generic is Outcome.TIE and self.cell.case.factors is not None:
            return self._tie_of_a_head()
        return NOTHING

    def _tie_of_a_head(self) -> Contained:
        """Where the exact zeros of a head lead alone, the part of X_0 on which W is 0 stays: a tie
        where its tokens differ and pi^T of it is not 0."""
        generic, factors = self.pair.still(), self.cell.case.factors
        if factors is None or generic.limit_rank is None:
            return NOTHING
        part = left_alone(self._X, *factors)
        if part is None or not tokens_differ(part):
            return NOTHING
        column = np.zeros(part.value.shape[1])
        column[np.argmax(np.abs(part.value.mean(axis=0)))] = 1.0
        if not self._has_mean(part, Bounded(column, np.zeros(len(column)))):
            return NOTHING
        rank = generic.limit_rank if rank_at_least(part, generic.limit_rank) else None
        limits = Limits("constant", ratio_of_state(part), rank)
        return Contained(Outcome.TIE, limits)

    @cached_property
    def _X(self) -> Bounded:
        """X_0 within its rounding."""
        error = np.where(self.X0 == 0, 0.0, UNIT * np.abs(self.X0) + TINY)
        return Bounded(self.X0, error + self._lost)

    @cached_property
    def _differences(self) -> Bounded:
        """Those of X_0 between tokens."""
        return self._between(self._X)

    def _between(self, given: Bounded) -> Bounded:
        """Q^T X [n-1, d]; X without its first token, less that, for a causal A."""
        X, off = given.value.real, given.error
        away = X[1:] - X[0]
        error = off[1:] + off[0] + UNIT * np.abs(away)
        if not self.pair.causal:
            n = len(X)
            scale = n + np.sqrt(n)
            total = away.sum(axis=0) / scale
            more = (error.sum(axis=0) + gamma(n + 6) * np.abs(away).sum(axis=0)) / scale
            error = error + more + 2 * UNIT * (np.abs(away) + np.abs(total))
            away = away - total
        return Bounded(away, inflated(error, len(X) + 8))

    def _value_vector(self, j: int) -> Bounded | None:
        """The left eigenvector z of H for h_j [d]: W z = h z, or W_V g for a core."""
        case, known = self.cell.case, self.pair.value.find(j)
        found = None if known is None else known[0].right(known[1])
        if found is None or case.factors is None or case.factors[0].shape[1] >= case.d:
            return None if found is None else Bounded(*found)
        return times(case.factors[0], Bounded(*found))

    def _present(self, i: int, j: int) -> bool:
        known, z = self.pair.attention.find(i), self._value_vector(j)
        w = None if known is None else known[0].left(known[1])
        return w is not None and z is not None and _not_zero(Bounded(*w), self._differences, z)

    def _in_consensus(self, j: int) -> bool:
        """Whether pi^T X_0 z is not 0."""
        z = self._value_vector(j)
        return z is not None and self._has_mean(self._X, z)

    def _has_mean(self, X: Bounded, z: Bounded) -> bool:
        """Whether pi^T X z is not 0."""
        if self.pair.causal:
            first = Bounded(np.ones(1), np.zeros(1))
            return _not_zero(first, Bounded(X.value[:1], X.error[:1]), z)
        found = self._stationary
        if found is None:
            return False
        pi, off = found
        total, size = _product(pi, X, z)
        more, bound = _product(Bounded(np.zeros(len(off)), off), self._between(X), z)
        return bool(abs(total) > (size + abs(more) + bound) * (1 + 8 * UNIT))

    @cached_property
    def _stationary(self) -> tuple[Bounded, Array] | None:
        """(pi, d): the stationary distribution is within pi but for a d^T Q^T with |d| bounded.

        For p near it and r = p A - p, pi = p + d^T Q^T with d^T (I - B) = r^T Q. Over the discs of
        B that is t^T (I - D - E) = r^T Q V: the sum of |t| is at most that of |r^T Q V| over
        min |1 - D| - max radius, and d^T = t^T V^-1.
        """
        discs = self.pair.attention.discs
        if discs is None or discs.basis is None or self.cell.repeated:
            return None
        basis, n = discs.basis, self.pair.n
        p = stationary_distribution(self.cell.A)
        A, error = self.cell.A, self.cell.error
        r = p @ A - p
        wrong = p @ error + gamma(n + 4) * (p @ A + p)
        # |r^T Q| <= |r| + (the sum of |r|) / n + |r_0| / sqrt n, entry by entry.
        size = inflated(np.abs(r) + wrong, n + 6)
        x = size[1:] + size.sum() / n + size[0] / np.sqrt(n)
        x = inflated(x, n + 8) @ np.abs(basis.P)
        total = float(inflated(np.where(basis.im != 0, 2 * x, x), n + 4).sum())
        gap = float(np.abs(1 - discs.centres).min()) * (1 - 8 * UNIT) - float(discs.radii.max())
        if not gap > 0:
            return None
        lost = np.abs(basis.Y).max(axis=0) / (1 - float(basis.rows.max()))
        d = inflated(total / gap * lost, n + 16)
        # p itself sums to 1 within its rounding.
        return Bounded(p, 2 * gamma(n + 2) * p), d


def _not_zero(w: Bounded, X: Bounded, z: Bounded) -> bool:
    total, size = _product(w, X, z)
    return bool(abs(total) > size * (1 + 8 * UNIT))


def _product(w: Bounded, X: Bounded, z: Bounded) -> tuple[complex, float]:
    """w^T X z and a bound on how far it may be off."""
    n, d = X.value.shape
    size, moduli, far = np.abs(w.value), np.abs(X.value), np.abs(z.value) + z.error
    error = size @ (moduli @ z.error) + w.error @ (moduli @ far)
    error += (size + w.error) @ (X.error @ far)
    error += 4 * gamma(2 * (n + d) + 4) * (size @ (moduli @ np.abs(z.value))) + 4 * n * d * TINY
    value = complex(w.value @ (X.value @ z.value))
    return value, float(inflated(np.asarray(error), 2 * (n + d) + 16))
