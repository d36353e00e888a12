"""What HFC/LFC tends to and the asymptotic rank, from the dominant pair of discs (T1f, T3f, T4).

Everything here holds for generic X_0 and every layer of the cell, but for one thing: an A whose
columns sum to 1 within rounding is taken for the doubly stochastic one that is meant, of which the
mean over the tokens is consensus alone.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.attention import complement_basis, stationary_distribution
from oversmoothing.theory.numbers.rounding import UNIT, Bounded, gamma, inflated, mean_of
from oversmoothing.theory.spectra.discs import Discs, Failure, Vectors, by_vectors
from oversmoothing.theory.spectra.layer_discs import minimum_by, pair_moduli, quotient_within
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.by_discs import CellDiscs, value_within
from oversmoothing.theory.verdict.formulas import Outcome


@dataclass(frozen=True)
class Limits:
    """What HFC/LFC does as L grows, and the asymptotic rank of X_L (T4c).

    tends_to: "zero", "constant", "infinity", "oscillates" or None. limit: of HFC/LFC (inf where it
    diverges), None where there is none. reached: from which depth on HFC/LFC is what it tends to,
    "every" or "some"; empty where it only tends to it, or that is not known.
    """

    tends_to: str | None
    limit: float | None
    limit_rank: int | None
    reached: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing is left open."""
        missing = self.tends_to == "constant" and self.limit is None
        return not missing and None not in (self.tends_to, self.limit_rank)


UNKNOWN, ZERO = Limits(None, None, None), Limits("zero", 0.0, 1)


def infinite(rank: int | None, reached: str = "") -> Limits:
    """HFC/LFC grows without bound, or is infinite."""
    return Limits("infinity", math.inf, rank, reached)


@dataclass(frozen=True)
class Decided:
    """The outcome that all cases of a cell share, or UNDECIDED, and what is known of the limits."""

    outcome: Outcome
    limits: Limits


def agreed(first: Limits, second: Limits) -> Limits:
    """What two draws of X_0 have in common: None where they differ."""
    a, b = first.limit, second.limit
    same = a is not None and b is not None and (a == b or abs(a - b) <= 1e-8 * min(a, b))
    return Limits(
        first.tends_to if first.tends_to == second.tends_to else None,
        a if same else None,
        first.limit_rank if first.limit_rank == second.limit_rank else None,
    )


# A limit is a number where its bounds leave less than this of it open (relative).
_KNOWN = 1e-7


@dataclass(frozen=True)
class Tokens:
    """The tokens of the eigenvector of one a: `spread` = P v [n], and its mean over the tokens."""

    spread: Bounded
    mean: Bounded

    def ratio(self) -> Limits:
        """HFC/LFC -> ||P v|| / (sqrt n |mean v|), rank 1 (T1f)."""
        if not self.mean.nonzero:
            return Limits(None, None, 1)
        return Limits("constant", ratio_of(self.spread, self.mean, len(self.spread.value)), 1)

    def turning(self) -> Bounded | None:
        """(s.s) / |s|^2 - m^2 / |m|^2 for the spread s and the mean m: where it is not 0, ||HFC||^2
        and ||LFC||^2 turn differently with e^(2 i L phase) (T3f). None where m may be 0."""
        mean, off = complex(self.mean.value), float(self.mean.error)
        low, high = self.spread.norm()
        if not (abs(mean) > 2 * off and low > 0):
            return None
        square = self.spread @ self.spread
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
    """Q y [n] for y [n-1], Q as in `layer.attention.complement_basis`: eight roundings an entry."""
    return Bounded.near(complement_basis(len(y.value) + 1), 10 * UNIT) @ y


def eigenvector(of: Vectors, i: int, left: bool = False) -> Bounded | None:
    """The right or left eigenvector of the disc i, which is alone; None where none is proved."""
    known = of.find(i)
    if known is None:
        return None
    basis, place = known
    vector = basis.left(place) if left else basis.right(place)
    return None if vector is None else Bounded(*vector)


class DominantPair:
    """Vectors of the discs of a cell, taken where they are asked for."""

    def __init__(self, cell: CellDiscs) -> None:
        self.cell = cell
        self.n = len(cell.A)

    @cached_property
    def causal(self) -> bool:
        """Whether tokens are counted from the first, y_i = x_i - x_1, and not through Q."""
        return not np.triu(self.cell.A + self.cell.error, 1).any()

    @cached_property
    def attention(self) -> Vectors:
        """Those of A: of B, or of A without its first token."""

        def again() -> Discs | Failure:
            A, error = self.cell.A, self.cell.error
            if self.causal:
                B, off = A[1:, 1:], error[1:, 1:]
            else:
                B, off = (x[0] for x in quotient_within(A[None], error[None]))
            return by_vectors(np.ascontiguousarray(B), np.ascontiguousarray(off))

        return Vectors(self.cell.attention, again)

    @cached_property
    def value(self) -> Vectors:
        """Those of W = H^T, or of the core of a head."""
        cell = self.cell
        return Vectors(cell.value, lambda: by_vectors(*value_within(cell.case, cell.relative)))

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

    def without_mean(self, outcome: Outcome, X0: Array) -> bool:
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

    def tokens(self, i: int) -> Tokens | None:
        """The tokens of the eigenvector of a_i, whose disc is alone."""
        n, known, y = self.n, self.attention.find(i), eigenvector(self.attention, i)
        if known is None or y is None:
            return None
        basis, place = known
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
        gap, radius = complex(basis.re[place] - 1, basis.im[place]), float(basis.radii[place])
        least = abs(gap) * (1 - 8 * UNIT) - radius
        if not least > 0:
            return None
        middle = t.value / gap
        wrong = (t.error + np.abs(middle) * radius + 16 * UNIT * np.abs(t.value)) / least
        return Tokens(spread, Bounded(middle / n, inflated(np.asarray(wrong / n), 16)))

    def leads(self, i: int, j: int) -> bool:
        """Whether the pair (a_i, h_j), both alone, and its conjugate outgrow all other modes."""
        a, h = self.cell.attention, self.cell.value
        if not (a.alone[i] and h.alone[j]):
            return False
        high = self.cell.quotient.high.copy()
        turning = a.centres[i].imag != 0 or h.centres[j].imag != 0
        low = self.cell.quotient.low[i, j]
        high[i, j] = -np.inf
        if turning:
            high[conjugate(a, i), conjugate(h, j)] = -np.inf
        return bool(low > high.max() and low > self.cell.consensus.high.max())

    def limits(self, i: int, j: int) -> Limits:
        """Limits where the pair (a_i, h_j) leads and X_0 contains it."""
        a, h = self.cell.attention.centres[i], self.cell.value.centres[j]
        both = a.imag != 0 and h.imag != 0
        rank = 2 if both else 1
        if self.balanced:
            return infinite(rank)
        tokens = self.tokens(i)
        if tokens is None:
            return Limits(None, None, rank)
        if a.imag == 0:
            return tokens.ratio()
        return Limits("oscillates" if self._oscillates(tokens, i, j) else None, None, rank)

    def _oscillates(self, tokens: Tokens, i: int, j: int) -> bool:
        gap = tokens.turning()
        a, h = self.cell.attention, self.cell.value
        mu = 1 + a.centres[i] * h.centres[j]
        size = np.abs(a.centres[i]) * h.radii[j] + np.abs(h.centres[j]) * a.radii[i]
        reach = 2 * size + 2 * a.radii[i] * h.radii[j] + 32 * UNIT * (1 + abs(mu))
        # A quarter turn makes e^(2 i L phase) real; with a real mu nothing turns.
        if gap is None or min(abs(mu.real), abs(mu.imag)) <= reach or not gap.nonzero:
            return False
        if h.centres[j].imag == 0:
            return True
        # u of H is the left eigenvector of the matrix whose discs these are, W or a core of it.
        u = eigenvector(self.value, j, left=True)
        if u is None:
            return False
        factors = self.cell.case.factors
        if factors is not None and factors[0].shape[1] < self.cell.case.d:
            u = Bounded.near(factors[1].T, self.cell.relative) @ u
        return bool((u @ u).nonzero)

    def generic(self, outcome: Outcome) -> Limits:
        """For generic X_0, which contains everything."""
        if outcome is Outcome.TIE:
            limits = self._of_classes()
            return self.still() if limits.tends_to is None else limits
        if outcome is not Outcome.NON_SMOOTHING:
            return UNKNOWN
        limits = self._of_leading()
        if min(self.n, self.cell.case.d) == 1:
            # A state of one feature has no other rank.
            limits = Limits(limits.tends_to, limits.limit, 1)
        return limits

    def _of_leading(self) -> Limits:
        # LFC = c (I + W)^L of a doubly stochastic A, and HFC grows like rho_Q.
        tends = infinite(None) if self.balanced else UNKNOWN
        moduli = self.cell.quotient
        i, j = divmod(int(np.argmax(moduli.centre)), moduli.centre.shape[1])
        if self.leads(i, j):
            return self.limits(i, j)
        a, h = self.cell.attention, self.cell.value
        if a.alone[i] and a.centres[i].imag == 0 and self._outgrows(i, axis=0):
            # One direction of tokens, whatever H does beside it.
            tokens = None if self.balanced else self.tokens(i)
            known = Limits(tends.tends_to, tends.limit, 1)
            return known if tokens is None else tokens.ratio()
        if h.alone[j] and h.centres[j].imag == 0 and self._outgrows(j, axis=1):
            return Limits(tends.tends_to, tends.limit, 1)
        return tends

    def _outgrows(self, index: int, axis: int) -> bool:
        """Whether the modes of a_i (axis 0), or of h_j, outgrow all others, consensus too."""
        moduli, value = self.cell.quotient, self.cell.value
        low = moduli.low[index] if axis == 0 else moduli.low[:, index]
        group = value.component if axis == 0 else self.cell.attention.component
        others = np.delete(moduli.high, index, axis=axis).max(initial=-np.inf)
        least = minimum_by(low, group).max()
        return bool(least > others and least > self.cell.consensus.high.max())

    def _of_classes(self) -> Limits:
        """Where several classes of tokens lead alone, with one real h: what is left of X_0 is a
        state of rank 1 that depends on X_0."""
        cell, value = self.cell, self.cell.value
        low, others = cell.consensus.low[0], cell.consensus.high[0].copy()
        j = int(np.argmax(low))
        real = value.alone[j] and value.centres[j].imag == 0
        if not (cell.repeated and real) or cell.others is None:
            return UNKNOWN
        others[j] = 0.0
        rest = pair_moduli(cell.others, value)[1].high.max(initial=0.0)
        return Limits("constant", None, 1) if low[j] > max(others.max(), rest) else UNKNOWN

    def still(self) -> Limits:
        """Where exact zeros of H lead alone: X_L tends to a part of X_0."""
        cell, value = self.cell, self.cell.value
        zero = (value.centres == 0) & (value.radii == 0)
        if not zero.any() or not (zero.sum() == 1 or self._simple_zeros(zero)):
            return UNKNOWN
        highs = [cell.consensus.high[:, ~zero], cell.quotient.high[:, ~zero]]
        if all(x.max(initial=0.0) < 1 for x in highs):
            return Limits("constant", None, min(self.n, int(zero.sum())))
        return UNKNOWN

    def _simple_zeros(self, zero: NDArray[np.bool_]) -> bool:
        """Whether the exact zeros of H have as many eigenvectors: of a diagonal H, or of a head
        with a core that is not singular."""
        if self.cell.case.factors is None:
            H = self.cell.case.H
            return bool(np.count_nonzero(H) == np.count_nonzero(np.diag(H)))
        return bool(Bounded(self.cell.value.centres, self.cell.value.radii).nonzero[~zero].all())


def conjugate(discs: Discs, i: int) -> int:
    """The disc of the conjugate of one that is alone."""
    if discs.centres[i].imag == 0:
        return i
    return int(np.argmin(np.abs(discs.centres - discs.centres[i].conjugate())))
