"""max |1 + h_j a_i|, the one formula that everything is decided by (T1a): rho_C and rho_Q.

In float64, in float64 with the error that each eigenvalue carries, and in balls. A consensus radius
is the same maximum with a = 1 alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import flint
import numpy as np

from oversmoothing.theory.numbers.balls import largest
from oversmoothing.theory.spectra.spectrum import EPS, Spectrum, exact_spectrum
from oversmoothing.theory.support.arrays import Array, Complex

_ONE = exact_spectrum(np.ones(1))


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
    """low <= rho <= high, and the index (i, j) of the pair of largest midpoint (i = -1: a = 1)."""

    low: float
    high: float
    index: tuple[int, int] | None = None

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)


def consensus_interval(value: Spectrum) -> Interval:
    """rho_C = max |1 + h_j|."""
    found = quotient_interval(_ONE, value)
    return Interval(found.low, found.high, found.index and (-1, found.index[1]))


def quotient_interval(attention: Spectrum, value: Spectrum) -> Interval:
    """rho_Q = max |1 + h_j a_i| over i < n; (0, 0) where there is no quotient (n = 1)."""
    if len(attention) == 0:
        return Interval(0.0, 0.0)
    a, h = attention.values[:, None], value.values[None, :]
    ea, eh = attention.errors[:, None], value.errors[None, :]
    moduli = np.abs(multipliers(attention.values, value.values))
    # 1 + 0 a is free of rounding: what structure knows to be 0 gives exactly 1.
    rounding = np.where(h == 0, 0.0, 4 * EPS * (1 + np.abs(a * h)))
    error = np.abs(h) * ea + np.abs(a) * eh + ea * eh + rounding
    i, j = divmod(int(np.argmax(moduli)), moduli.shape[1])
    return Interval(float((moduli - error).max()), float((moduli + error).max()), (i, j))


def radius_in_balls(a: Sequence[flint.acb], h: Iterable[flint.acb]) -> flint.arb:
    """A ball around max |1 + h_j a_i|, 0 where there is no pair."""
    return largest(abs(1 + y * x) for y in h for x in a)
