"""The modes of a cell by discs in float64, and the vectors of those that lead (T1f, T3f, T4).

Everything here holds for generic X_0 and every layer of the cell, but for one thing: an A whose
columns sum to 1 within rounding is taken for the doubly stochastic one that is meant, of which the
mean over the tokens is consensus alone.

Zeros of a matrix give left eigenvectors, too (T1h, T4e). Where i leads to j by M_ij != 0, sets of
indices that lead to one another are the diagonal blocks of a block triangular matrix. An eigenvalue
that repeats in M may be simple among the indices that one set leads to: its left eigenvector there
is one of M, 0 at all others. The zeros of A are those of every layer of the cell.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.attention import (
    communicating,
    complement_basis,
    stationary_distribution,
)
from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    Bounded,
    at_precision,
    gamma,
    inflated,
    mean_of,
    normalise,
    solved,
)
from oversmoothing.theory.spectra.discs import Discs, Failure, eigenvector, enclose
from oversmoothing.theory.spectra.heads import ManyHeads
from oversmoothing.theory.spectra.heads_radius import modulus_interval
from oversmoothing.theory.spectra.layer_discs import by_parts, minimum_by, quotient_within
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict import by_discs, limits
from oversmoothing.theory.verdict.formulas import Outcome

# So many of the largest modes are asked for before balls are.
TRIED = 4


@dataclass(frozen=True)
class DiscMode:
    """A pair of components of discs."""

    modes: "DiscModes"
    attention: limits.Group
    value: limits.Group

    @cached_property
    def sure(self) -> bool:
        return self.modes.contains(self)

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
        return bool(min(abs(mu.real), abs(mu.imag)) <= reach)


class DiscModes:
    """The modes of a cell for generic X_0, and vectors, taken where they are asked for."""

    generic = True

    def __init__(self, cell: by_discs.CellDiscs) -> None:
        self.cell, self.n = cell, len(cell.A)
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
        return Bounded(*by_discs.value_within(self.cell.case, self.cell.relative))

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
        H, *others = self.cell.case.factors or [self.cell.case.H]
        if centred.all() and (self.balanced or not all(M.any() for M in (H, *others))):
            return True
        # Of a diagonal H disc j is that of column j.
        still = (value.centres == 0) & (value.radii == 0)
        high = self.cell.consensus.high[0].copy()
        j = int(np.argmax(high))
        if others or np.count_nonzero(H - np.diag(np.diag(H))) or not centred[j]:
            return False
        high[j] = np.delete(self.cell.quotient.high, j, axis=1).max(initial=0.0)
        if not self.cell.consensus.low[0, j] > high.max():
            return False
        sums = [abs(math.fsum(X0[members, j])) for members in self.cell.case.classes]
        apart = max(sums) > 4 * self.n * UNIT * np.abs(X0[:, j]).sum()
        return bool(X0[:, j].any() and (still[j] or (self.balanced and apart)))

    def tokens(self, top: list[DiscMode]) -> limits.Tokens | None:
        side = top[0].attention
        return self.direction(side.columns[0]) if len(side) == 1 else None

    def direction(self, i: int) -> limits.Tokens | None:
        """The tokens of the eigenvector of a_i, whose disc is alone."""
        n, discs = self.n, self.cell.attention
        y = eigenvector(self.attention, discs, i)
        if y is None:
            return None
        if self.causal:
            whole = Bounded(*(np.concatenate([[0.0], x]) for x in (y.value, y.error)))
            mean = mean_of(whole)
            return limits.Tokens(whole - mean, mean)
        # Q y, Q as in `layer.attention.complement_basis`: eight roundings an entry.
        spread = Bounded.near(complement_basis(n), 10 * UNIT) @ y
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
        return limits.Tokens(spread, Bounded(middle / n, inflated(np.asarray(wrong / n), 16)))

    def feature(self, value: Any) -> Bounded | None:
        return self.value_vector(value.columns[0], left=False)

    def value_vector(self, j: int, left: bool) -> Bounded | None:
        """The left eigenvector z of H for h_j [d], W z = h z, or the right one; of a core g it is
        W_V g, or W_proj^T g."""
        case, W = self.cell.case, self.value if left else self.value.T
        z = eigenvector(W, self.cell.value, j)
        if z is None or case.factors is None or case.factors[0].shape[1] >= case.d:
            return z
        return Bounded.near(case.factors[0] if left else case.factors[1].T, self.cell.relative) @ z

    def lasts(self) -> bool:
        return max(x.radius().low for x in (self.cell.consensus, self.cell.quotient)) > 0

    def without_mean(self, side: limits.Group) -> bool:
        return self.balanced and not side.consensus

    def summed(self, top: list[DiscMode]) -> None:
        """Nothing is known of it."""

    def contains(self, mode: DiscMode) -> bool:
        """Whether X_0 is shown to contain some of it."""
        return True

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        """[n], the groups of the eigenvalues of A, consensus first: 0, and further ones with it."""
        a, repeated = self.cell.attention, self.cell.repeated
        alone = repeated and by_discs.without_ones(a, repeated) is not None
        ones = by_discs.at_one(a) if alone else np.zeros(len(a)) > 0
        return np.unique(np.append(0, np.where(ones, 0, a.component + 1)), return_inverse=True)[1]

    def leading(self) -> list[list[DiscMode]]:
        fixed, moving, columns = self.cell.consensus, self.cell.quotient, self.cell.value.component

        def least(table: Array) -> Array:
            return minimum_by(minimum_by(table, self._rows).T, columns).T

        low = least(np.concatenate([fixed.low, moving.low]))
        high = -least(-np.concatenate([fixed.high, moving.high]))
        # What is no number is not below anything.
        below = high < np.fmax.reduce(low, axis=None)
        places = np.argwhere(~below).tolist()
        if len(places) > sum(self.shape):
            return [[]]
        sides = {i: self._side(i) for i, _ in places}
        values = {j: self._value(j) for _, j in places}
        top = [DiscMode(self, sides[i], values[j]) for i, j in places]
        # The largest may be missing: one that is there has to exceed what is left out.
        beyond = low[~below] > high[below].max(initial=0.0)
        ahead = [mode for mode, exceeds in zip(top, beyond, strict=True) if exceeds]
        return [top] if any(mode.sure for mode in ahead[:TRIED]) else [top, []]

    def _side(self, label: int) -> limits.Group:
        members = tuple((np.flatnonzero(self._rows == label) - 1).tolist())
        if label == 0:
            return limits.Group(members, True, consensus=True)
        return _group(self.cell.attention, members)

    def _value(self, label: int) -> limits.Group:
        value, members = self.cell.value, np.flatnonzero(self.cell.value.component == label)
        zero = (value.centres == 0) & (value.radii == 0)
        if zero[members].all() and (len(members) == 1 or self._simple_zeros()):
            return limits.Group(tuple(members.tolist()), True, zero=True)
        return _group(value, tuple(members.tolist()))

    def _simple_zeros(self) -> bool:
        """Whether the exact zeros of H have as many eigenvectors: H is diagonal, or the core of the
        head regular."""
        case, value = self.cell.case, self.cell.value
        if case.factors is None:
            return bool(np.count_nonzero(case.H) == np.count_nonzero(np.diag(case.H)))
        rank = np.count_nonzero(Bounded(value.centres, value.radii).nonzero)
        return bool(rank == case.factors[0].shape[1])


def _group(discs: Discs, members: tuple[int, ...]) -> limits.Group:
    i = members[0]
    if len(members) > 1 or discs.centres[i].imag == 0:
        return limits.Group(members, len(members) == 1)
    mirrored = int(np.argmin(np.abs(discs.centres - discs.centres[i].conjugate())))
    return limits.Group(members, False, (mirrored,))


# ------------------------------------------------------------ left eigenvectors of parts, and heads

Indices = NDArray[np.intp]


def left_vectors(M: Array, error: Array) -> Iterator[tuple[Discs, Callable[[], Bounded | None]]]:
    """Eigenvalues a of M, each simple among the indices S that lead to one another, and w [k] with
    w^T M = a w^T that is 0 but at S and at what S leads to, R: w_R^T = w_S^T M_SR (a - M_RR)^-1.
    The fewest indices come first.
    """
    for S, R in _parts(M, error):
        inside, off = M[np.ix_(S, S)], error[np.ix_(S, S)]
        discs = enclose(inside, off)
        if isinstance(discs, Failure):
            continue
        for i in np.flatnonzero(discs.alone).tolist():
            a = Discs(discs.centres[[i]], discs.radii[[i]], np.zeros(1, dtype=np.intp))
            yield a, partial(_extended, M, error, S, R, discs, i)


def _parts(M: Array, error: Array) -> Iterator[tuple[Indices, Indices]]:
    """(S, R) as above, the fewest indices first."""
    k, there = len(M), (M != 0) | (error > 0)
    reach = there | np.eye(k, dtype=bool)
    for _ in range(k.bit_length()):
        reach = (reach.astype(np.float32) @ reach) > 0
    for S in sorted(communicating(there), key=lambda S: (int(reach[S[0]].sum()), S[0])):
        yield S, np.setdiff1d(np.flatnonzero(reach[S[0]]), S)


def _extended(
    M: Array, error: Array, S: Indices, R: Indices, discs: Discs, i: int
) -> Bounded | None:
    w = eigenvector(Bounded(M[np.ix_(S, S)].T, error[np.ix_(S, S)].T), discs, i)
    if w is None:
        return None
    value, off = np.zeros(len(M), dtype=np.complex128), np.zeros(len(M))
    value[S], off[S] = w.value, w.error
    if len(R):
        between = Bounded(M[np.ix_(S, R)].T, error[np.ix_(S, R)].T)
        shifted = discs.centres[i] * np.eye(len(R)) - M[np.ix_(R, R)].T
        near = error[np.ix_(R, R)].T + np.diag(discs.radii[i] + UNIT * np.abs(np.diag(shifted)))
        x = solved(Bounded(shifted, inflated(near, 4)), between @ w)
        if x is None:
            return None
        value[R], off[R] = x.value, x.error
    return Bounded(value, off)


def mean_of_class(A: Array, error: Array, S: Sequence[int]) -> Bounded | None:
    """pi of a closed class, 0 at the other tokens: (A^T - I) pi = 0, with sum(pi) = 1 for its last
    equation."""
    value, around = np.zeros(len(A)), np.zeros(len(A))
    value[S] = 1.0
    if len(S) > 1:
        equations, wide = A[np.ix_(S, S)].T - np.eye(len(S)), error[np.ix_(S, S)].T
        wide = wide + UNIT * np.diag(np.abs(np.diag(equations)))
        equations[-1], wide[-1] = 1.0, 0.0
        last = Bounded.near(np.eye(len(S))[-1], 0.0)
        pi = solved(Bounded(equations, inflated(wide, 2)), last)
        if pi is None:
            return None
        value[S], around[S] = pi.value, pi.error
    return Bounded(value, around)


# Rows of the operator of all heads that are looked at, and of those that lead; in balls, where
# eigenvalues repeat, and with how many bits; how many eigenvectors and parts are tried.
_OPERATOR, _LEADING, _BALLS, _BITS, _TRIED = 1024, 256, 64, 128, 8


def _operator(case: ManyHeads, n: int) -> tuple[Array, Array]:
    """(M, error), M [n d, n d] = [I +] sum_h H_h (x) A_h of the first n tokens."""
    A, off = by_discs.shares_within(case.given["A"].floats, case.positive, UNIT)
    few = np.s_[None, :, :n, :n]
    operator, error = (
        x[0] for x in by_discs.operator_within(A[few], off[few], *by_discs.weights_within(case))
    )
    M = operator + case.residual * np.eye(len(operator))
    error = error + UNIT * np.diag(np.abs(np.diag(M)))
    return M, np.where(error > 0, inflated(error, 2), 0.0)


def start_within(X0: Array) -> Bounded:
    """X_0 within its rounding, up to a power of two: HFC/LFC does not see the scale, and what is
    lost is below all numbers."""
    x, power = normalise(X0)
    lost = np.where(np.ldexp(x, power) == X0, 0.0, TINY)
    # Half a unit of a subnormal entry is more than its share of the entry.
    least = TINY + np.ldexp(TINY, -power)
    return Bounded(x, np.where(x == 0, 0.0, UNIT * np.abs(x) + least) + lost)


def heads_contained(case: ManyHeads, X0: Array, rest: float) -> bool:
    """Whether X_0 [n, d] contains a mode that outgrows `rest`, for all X_0 and heads that round to
    these: w^T X_0 != 0 for a left eigenvector w of the layer, or of several for equal eigenvalues.
    """
    n, d = X0.shape
    if not np.triu(case.positive, 1).any():
        # Of causal heads the first tokens go by themselves: as many as there are rows for.
        n = min(n, max(1, _OPERATOR // d))
    if n * d > _OPERATOR:
        return False
    M, error = _operator(case, n)
    start = start_within(X0[:n].T.reshape(-1, 1))
    pairs = left_vectors(M, error)
    above = (vector for mu, vector in pairs if modulus_interval(mu, 0.0).low > rest)
    vectors = (vector() for vector in islice(above, _TRIED))
    by_one = any(w is not None and (w @ start).nonzero.any() for w in vectors)
    return by_one or _by_subspaces(M, error, start, rest)


def limits_of_heads(case: ManyHeads, X0: Array | None) -> limits.Limits:
    """What generic X_0 (None), or this one, leads to for all heads that round to these, where
    consensus does not dominate: by the eigenvector of the one mu that leads, if X_0 contains it."""
    n, d = case.n, case.d
    if n * d > _LEADING:
        return limits.UNKNOWN
    M, error = _operator(case, n)
    discs = by_parts(M, error)
    high = inflated(np.abs(discs.centres) + discs.radii, 4)
    low = np.abs(discs.centres) * (1 - 8 * UNIT) - discs.radii
    i = int(np.argmax(low))
    # Then it is real, and alone: another disc has the conjugate of one that is not.
    if not low[i] > np.delete(high, i).max(initial=0.0):
        return limits.UNKNOWN
    v, w = _simple(M.T, error.T, discs, i), _simple(M, error, discs, i)
    start = None if X0 is None else start_within(X0.T.reshape(-1, 1))
    there = start is None or (w is not None and bool((w @ start).nonzero.all()))
    if v is None or not there:
        return limits.UNKNOWN
    X = Bounded(v.value.reshape(d, n).T, v.error.reshape(d, n).T)
    rank = min(n, d) if rank_at_least(X, min(n, d)) else None
    if all(not np.ptp(stationary_distribution(head.A)) for head in case.singly):
        return limits.infinite(rank)
    return limits.limits_of_state(X, rank)


def _simple(M: Array, error: Array, discs: Discs, i: int) -> Bounded | None:
    """The left eigenvector of the one eigenvalue in the disc i."""
    for mu, vector in left_vectors(M, error):
        near = np.abs(discs.centres - mu.centres) <= 2 * (discs.radii + mu.radii)
        if np.flatnonzero(near).tolist() == [i]:
            return vector()
    return None


def rank_at_least(X: Bounded, rank: int) -> bool:
    """Whether every matrix within X [n, d] has that rank: the discs of its Gram matrix say."""
    X = Bounded(X.value.real, X.error)
    gram = X @ X.T if len(X.value) <= X.value.shape[1] else X.T @ X
    M, turned = gram.value, gram.value.T
    discs = enclose((M + turned) / 2, gram.error + np.abs(M - turned))
    if isinstance(discs, Failure):
        return False
    free = Bounded(discs.centres, discs.radii).nonzero
    # A component of which every disc is free of 0 holds as many eigenvalues that are not 0.
    bad = np.unique(discs.component[~free])
    return int(np.count_nonzero(~np.isin(discs.component, bad))) >= rank


def _by_subspaces(M: Array, error: Array, start: Bounded, rest: float) -> bool:
    """`heads_contained` where eigenvalues repeat within a part: by invariant subspaces in balls."""
    # Loaded for what eigenvectors leave open.
    import flint

    from oversmoothing.theory.spectra.blocks import in_balls, invariant_blocks

    parts = (
        np.sort(np.concatenate([S, R]))
        for S, R in _parts(M, error)
        if len(S) + len(R) <= _BALLS and np.abs(np.linalg.eigvals(M[np.ix_(S, S)])).max() > rest
    )
    for T in islice(parts, _TRIED):
        table = in_balls(M[np.ix_(T, T)], error[np.ix_(T, T)])
        columns = in_balls(start.value[T], start.error[T])
        with at_precision(_BITS):
            for subspaces in invariant_blocks(table):
                content = (flint.acb_mat(subspaces.inverse) * flint.acb_mat(columns)).entries()
                for block in subspaces.blocks:
                    there = any(not content[i].contains(0) for i in block.columns)
                    if there and abs(block.value).lower() > rest:
                        return True
    return False
