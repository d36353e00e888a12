"""The modes of a cell by discs in float64, and the vectors of those that lead (T1f, T3f, T4).

Everything here holds for generic X_0 and every layer of the cell, but for one thing: an A whose
columns sum to 1 within rounding is taken for the doubly stochastic one that is meant, of which the
mean over the tokens is consensus alone.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.attention import complement_basis, stationary_distribution
from oversmoothing.theory.numbers.rounding import UNIT, Bounded, gamma, inflated, mean_of
from oversmoothing.theory.spectra.discs import Discs, eigenvector
from oversmoothing.theory.spectra.layer_discs import minimum_by, quotient_within
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.by_discs import CellDiscs, at_one, value_within
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.limits import Group, Tokens

# So many of the largest modes are asked for before balls are.
TRIED = 4


def from_quotient(y: Bounded) -> Bounded:
    """Q y [n] for y [n-1], Q as in `layer.attention.complement_basis`: eight roundings an entry."""
    return Bounded.near(complement_basis(len(y.value) + 1), 10 * UNIT) @ y


@dataclass(frozen=True)
class DiscMode:
    """A pair of components of discs."""

    modes: "DiscModes"
    attention: Group
    value: Group

    @cached_property
    def sure(self) -> bool:
        one = len(self.value) == 1 and (len(self.attention) == 1 or self.attention.consensus)
        return self.modes.generic or (one and self.modes.contains(self))

    @property
    def quarter(self) -> bool:
        """Of a pair of eigenvalues, not real both."""
        i, j = self.attention.columns[:1], self.value.columns
        a, h = self.modes.cell.attention, self.modes.cell.value
        x = Bounded(a.centres[[*i]], a.radii[[*i]])
        x = Bounded(np.ones(1), np.zeros(1)) if self.attention.consensus else x
        part = x @ Bounded(h.centres[[*j]], h.radii[[*j]])
        mu = 1 + part.value
        reach = float(part.error) + 8 * UNIT * (1 + abs(mu))
        return len(j) > 1 or bool(min(abs(mu.real), abs(mu.imag)) <= reach)


class DiscModes:
    """The modes of a cell for generic X_0, and vectors, taken where they are asked for."""

    generic = True

    def __init__(self, cell: CellDiscs) -> None:
        self.cell = cell
        self.n = len(cell.A)
        self.shape, self.classes = (self.n, cell.case.d), len(cell.case.classes)

    @cached_property
    def causal(self) -> bool:
        """Whether tokens are counted from the first, y_i = x_i - x_1, and not through Q."""
        return not np.triu(self.cell.A + self.cell.error, 1).any()

    @cached_property
    def attention(self) -> Bounded:
        """B, or A without its first token."""
        A, error = self.cell.A, self.cell.error
        if self.causal:
            return Bounded(A[1:, 1:], error[1:, 1:])
        return Bounded(*(x[0] for x in quotient_within(A[None], error[None])))

    @cached_property
    def value(self) -> Bounded:
        """W = H^T, or the core of a head."""
        return Bounded(*value_within(self.cell.case, self.cell.relative))

    @cached_property
    def balanced(self) -> bool:
        """Whether A is taken for a doubly stochastic one."""
        case = self.cell.case
        if not case.may_balance:
            return False
        off = np.abs(self.cell.A.sum(axis=0) - 1)
        if (off > inflated(self.cell.error.sum(axis=0) + gamma(self.n + 2), self.n + 4)).any():
            return False
        return bool((stationary_distribution(case.A) == 1 / self.n).all())

    def means_fall(self, outcome: Outcome, X0: Array) -> bool:
        """Whether the mean over the tokens grows more slowly than X_L from this X_0.

        That of a doubly stochastic A is consensus alone. In a tie it is 0 for ever where the
        columns of X_0 that lead sum to 0 (taken as they are meant, like those of A).
        """
        value = self.cell.value
        if outcome is not Outcome.TIE:
            return outcome is Outcome.NON_SMOOTHING and self.balanced
        centred = np.array([math.fsum(column) == 0 for column in X0.T])
        still = (value.centres == 0) & (value.radii == 0)
        if centred.all() and (self.balanced or still.all()):
            return True
        H, high = self.cell.case.H, self.cell.consensus.high[0].copy()
        j = int(np.argmax(high))
        if np.count_nonzero(H - np.diag(np.diag(H))) or not centred[j]:
            return False
        high[j] = np.delete(self.cell.quotient.high, j, axis=1).max(initial=0.0)
        if not self.cell.consensus.low[0, j] > high.max():
            return False
        sums = [abs(math.fsum(X0[members, j])) for members in self.cell.case.classes]
        apart = max(sums) > 4 * self.n * UNIT * np.abs(X0[:, j]).sum()
        return bool(X0[:, j].any() and (still[j] or (self.balanced and apart)))

    def tokens(self, top: list[DiscMode]) -> Tokens | None:
        side = top[0].attention
        return self.direction(side.columns[0]) if len(side) == 1 else None

    def direction(self, i: int) -> Tokens | None:
        """The tokens of the eigenvector of a_i, whose disc is alone."""
        n, discs = self.n, self.cell.attention
        y = eigenvector(self.attention, discs, i)
        if y is None:
            return None
        if self.causal:
            value, error = (np.concatenate([[0.0], x]) for x in (y.value, y.error))
            whole = Bounded(value, error)
            mean = mean_of(whole)
            return Tokens(whole - mean, mean)
        spread = from_quotient(y)
        # A v = a v + t 1 beside consensus: the mean of the eigenvector is t / (a - 1), and
        # t = sum_j (s_j - 1) v_j / n with the sums s of the columns, as sum_j v_j = 0.
        sums = self.cell.A.sum(axis=0)
        wide = self.cell.error.sum(axis=0) + gamma(n + 2) * (sums + 1)
        t = Bounded(sums - 1, inflated(wide, n + 4)) @ spread
        gap, radius = complex(discs.centres[i] - 1), float(discs.radii[i])
        least = abs(gap) * (1 - 8 * UNIT) - radius
        if not least > 0:
            return None
        middle = t.value / gap
        wrong = (t.error + np.abs(middle) * radius + 16 * UNIT * np.abs(t.value)) / least
        return Tokens(spread, Bounded(middle / n, inflated(np.asarray(wrong / n), 16)))

    def feature(self, value: Any) -> Bounded | None:
        # u of H is the left eigenvector of the matrix whose discs these are, W or a core of it.
        u, factors = (
            eigenvector(self.value.T, self.cell.value, value.columns[0]),
            self.cell.case.factors,
        )
        if u is None or factors is None or factors[0].shape[1] >= self.cell.case.d:
            return u
        return Bounded.near(factors[1].T, self.cell.relative) @ u

    def lasts(self) -> bool:
        return bool((self.cell.consensus.low > 0).any() or (self.cell.quotient.low > 0).any())

    def without_mean(self, side: Group) -> bool:
        return self.balanced and not side.consensus

    def summed(self, top: list[DiscMode]) -> None:
        """Nothing is known of it."""

    def contains(self, mode: DiscMode) -> bool:
        """Whether X_0 is shown to contain a pair of eigenvalues."""
        raise NotImplementedError

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        """[n], the groups of the eigenvalues of A, consensus first: 0, and further ones with it."""
        a, cell = self.cell.attention, self.cell
        ones = at_one(a) if cell.repeated and cell.others is not None else np.zeros(len(a)) > 0
        labels = np.append(0, np.where(ones, 0, a.component + 1))
        return np.unique(labels, return_inverse=True)[1]

    def leading(self) -> list[list[DiscMode]]:
        fixed, moving, columns = self.cell.consensus, self.cell.quotient, self.cell.value.component

        def least(table: Array) -> Array:
            return minimum_by(minimum_by(table, self._rows).T, columns).T

        best = np.fmax.reduce(least(np.concatenate([fixed.low, moving.low])), axis=None)
        # What is no number is not below anything.
        places = np.argwhere(~(-least(-np.concatenate([fixed.high, moving.high])) < best)).tolist()
        if len(places) > sum(self.shape):
            return [[]]
        sides = {i: self._side(i) for i, _ in places}
        values = {j: self._value(j) for _, j in places}
        top = [DiscMode(self, sides[i], values[j]) for i, j in places]
        return [top] if best > 0 and any(mode.sure for mode in top[:TRIED]) else [top, []]

    def _side(self, label: int) -> Group:
        members = tuple((np.flatnonzero(self._rows == label) - 1).tolist())
        if label == 0:
            return Group(members, True, consensus=True)
        return _group(self.cell.attention, members)

    def _value(self, label: int) -> Group:
        value, members = self.cell.value, np.flatnonzero(self.cell.value.component == label)
        zero = (value.centres == 0) & (value.radii == 0)
        if zero[members].all() and (len(members) == 1 or self._simple_zeros(zero)):
            return Group(tuple(members.tolist()), True, zero=True)
        return _group(value, tuple(members.tolist()))

    def _simple_zeros(self, zero: NDArray[np.bool_]) -> bool:
        """Whether the exact zeros of H have as many eigenvectors: of a diagonal H, or of a head
        with a core that is not singular."""
        if self.cell.case.factors is None:
            H = self.cell.case.H
            return bool(np.count_nonzero(H) == np.count_nonzero(np.diag(H)))
        return bool(Bounded(self.cell.value.centres, self.cell.value.radii).nonzero[~zero].all())


def _group(discs: Discs, members: tuple[int, ...]) -> Group:
    i = members[0]
    if len(members) > 1 or discs.centres[i].imag == 0:
        return Group(members, len(members) == 1)
    return Group(members, False, (conjugate(discs, i),))


def conjugate(discs: Discs, i: int) -> int:
    """The disc of the conjugate of one that is alone."""
    if discs.centres[i].imag == 0:
        return i
    return int(np.argmin(np.abs(discs.centres - discs.centres[i].conjugate())))
