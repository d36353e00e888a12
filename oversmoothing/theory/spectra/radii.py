"""max |1 + h_j a_i|, the one formula that everything is decided by (T1a): rho_C and rho_Q.

In float64, over discs, and in balls. A consensus radius
is the same maximum with a = 1 alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import flint
import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers.balls import largest
from oversmoothing.theory.numbers.rounding import UNIT, inflated
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.support.arrays import Array, Complex


def multipliers(a: Complex | Array, h: Complex | Array) -> Complex:
    """mu_ij = 1 + h_j a_i, [..., m, k], for a [..., m] and h [..., k]."""
    return np.asarray(1 + np.asarray(a)[..., :, None] * np.asarray(h)[..., None, :])


def largest_modulus(a: Complex | Array, h: Complex | Array) -> tuple[float, int, int]:
    """(max |1 + h_j a_i|, i, j), the first place of it; (0.0, -1, -1) where there is no pair."""
    moduli = np.abs(multipliers(a, h))
    if moduli.size == 0:
        return 0.0, -1, -1
    i, j = divmod(int(np.argmax(moduli)), moduli.shape[1])
    return float(moduli[i, j]), i, j


def radii(a: Complex | Array, h: Complex | Array) -> tuple[float, float]:
    """(rho_C, rho_Q) for a [n-1], spec(A) without one copy of 1, and h [d]."""
    return largest_modulus(np.ones(1), h)[0], largest_modulus(a, h)[0]


@dataclass(frozen=True)
class Interval:
    """low <= rho <= high. index: the pair (i, j) of the largest modulus at the centres, i = -1 for
    a = 1, and centre that modulus, None where there is no pair."""

    low: float
    high: float
    index: tuple[int, int] | None = None
    centre: float | None = None

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def shown(self) -> float:
        """The value to say: that at the centres of the discs, which no radius of theirs blurs."""
        return self.middle if self.centre is None else self.centre


def consensus_radius(value: Discs) -> Interval:
    """rho_C = max |1 + h_j|."""
    return pair_moduli(None, value).radius()


def quotient_radius(attention: Discs, value: Discs) -> Interval:
    """rho_Q = max over pairs |1 + h_j a_i|; (0, 0) where there is no quotient (n = 1)."""
    if len(attention) == 0:
        return Interval(0.0, 0.0)
    return pair_moduli(attention, value).radius()


@dataclass(frozen=True)
class PairModuli:
    """|1 + h_j a_i| at the centres and bounds of it over the discs, each [m, d].

    rows [m], columns [d]: the components of the discs.
    """

    centre: Array
    low: Array
    high: Array
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    consensus: bool = False

    def radius(self) -> Interval:
        """Upper: over all discs. Lower: each component holds an eigenvalue in some of its discs."""
        i, j = divmod(int(np.argmax(self.centre)), self.centre.shape[1])
        smallest = minimum_by(minimum_by(self.low, self.rows).T, self.columns)
        return Interval(
            max(0.0, float(smallest.max())),
            float(self.high.max()),
            (-1 if self.consensus else i, j),
            float(self.centre[i, j]),
        )


def pair_moduli(attention: Discs | None, value: Discs) -> PairModuli:
    """The moduli of all pairs; those of a = 1 alone for None."""
    one = attention is None
    a = np.ones(1) if attention is None else attention.centres
    r_a = np.zeros((1, 1)) if attention is None else attention.radii[:, None]
    rows = np.zeros(1, dtype=np.intp) if attention is None else attention.component
    h, r_h = value.centres[None, :], value.radii[None, :]
    moduli = np.abs(multipliers(a, value.centres))
    size_a, size_h = np.abs(a)[:, None], np.abs(h)
    slack = size_h * r_a + size_a * r_h + r_a * r_h
    # Two complex multiplications and additions and a modulus: fewer than 16 roundings. An exact
    # h = 0 gives 1 + 0 a = 1 without any.
    rounding = np.where((h == 0) & (r_h == 0), 0.0, 16 * UNIT * (1 + size_a * size_h))
    some = slack + rounding > 0
    slack = inflated(slack * (1 + 16 * UNIT) + rounding, 8)
    low = np.where(some, np.nextafter(moduli - slack, -np.inf), moduli)
    high = np.where(some, np.nextafter(moduli + slack, np.inf), moduli)
    return PairModuli(moduli, low, high, rows, value.component, one)


def minimum_by(values: Array, group: NDArray[np.intp]) -> Array:
    """Minimum over the rows of each group 0, 1, ..., [groups, ...]."""
    count = int(group.max()) + 1
    if count == len(group):
        return values
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count))
    result: Array = np.minimum.reduceat(values[order], starts, axis=0)
    return result


def radius_in_balls(a: Sequence[flint.acb], h: Iterable[flint.acb]) -> flint.arb:
    """A ball around max |1 + h_j a_i|, 0 where there is no pair."""
    return largest(abs(1 + y * x) for y in h for x in a)
