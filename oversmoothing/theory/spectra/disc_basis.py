"""Eigenvectors that belong to discs, with a bound entry by entry (T10).

In the similarity that proves discs of a matrix (theory.spectra.discs) an eigenvector of a disc that
touches no other is near a unit vector: what rounding, and the matrices within the error, can turn
it by is read off the radii.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers.rounding import TINY, UNIT, gamma, inflated
from oversmoothing.theory.support.arrays import Array, Complex


@dataclass(frozen=True)
class Basis:
    """The similarity that proves some discs, for every M' with |M' - M| <= error.

    component, re, im, radii [k]: of the discs. M, error, P, Y, R, F [k, k]: R and F as computed.
    rows [k]: bounds of the row sums of |F|.
    """

    component: NDArray[np.intp]
    M: Array
    error: Array
    P: Array
    Y: Array
    R: Array
    F: Array
    re: Array
    im: Array
    radii: Array
    rows: Array

    @cached_property
    def partner(self) -> NDArray[np.intp]:
        """[k], the other column of a pair; itself for a real eigenvalue."""
        return np.arange(len(self.im)) + np.sign(self.im).astype(np.intp)

    def right(self, i: int) -> tuple[Complex, Array] | None:
        """(v, e) [k]: an eigenvector for disc i, which is alone, lies within e of v.

        Of the eigenvector y of the complex form D + E the largest entry is y_i, taken as 1: were it
        y_m, the eigenvalue would lie in disc m. So |y_m| <= r_m / (|D_i - D_m| - r_i), and the
        vector is P y. None where other discs are too near to say so.
        """
        y = self._others(i, self.radii)
        if y is None:
            return None
        # |p +- iq| <= |p| + |q| for both members of a pair.
        y = np.where(self.im != 0, y + y[self.partner], y)
        return self._complex(self.P.T, i, 1j), inflated(np.abs(self.P) @ y, len(y) + 4)

    def left(self, i: int) -> tuple[Complex, Array] | None:
        """The same for w^T M = lambda w^T: z^T (D + E) = lambda z^T and w^T = z^T P^-1.

        The column sums of |E| are in the place of r, and P^-1 = Y + F P^-1. None also where the
        disc of a column could hold the eigenvalue.
        """
        z = self._others(i, self.columns)
        if z is None:
            return None
        pair = self.im != 0
        z = np.where(pair, (z + z[self.partner]) / 2, z)
        weights, size = z.copy(), np.abs(self.Y)
        weights[[i, self.partner[i]]] += 0.5 if pair[i] else 1.0
        lost = float(weights @ self.rows) / (1 - float(self.rows.max()))
        error = inflated(z @ size + lost * size.max(axis=0), 2 * len(z) + 8)
        row = self._complex(self.Y, i, -1j)
        return (row / 2 if pair[i] else row), error

    def _complex(self, rows: Array, i: int, unit: complex) -> Complex:
        """Row i, or first + unit second of its pair, for the second with the other sign."""
        other = int(self.partner[i])
        if other == i:
            return np.asarray(rows[i], dtype=np.complex128)
        found: Complex = rows[min(i, other)] + (unit if i < other else -unit) * rows[max(i, other)]
        return found

    @cached_property
    def columns(self) -> Array:
        """Bounds of the column sums of |E| in complex form: at most those of |Y| |R| over
        1 - (the largest column sum of |F|), as |E| <= |Y| |R| + |F| |E|. Infinite without any."""
        k, P, M = len(self.im), np.abs(self.P), np.abs(self.M)
        sums = inflated(np.abs(self.Y).sum(axis=0), k)
        through = inflated(
            np.stack([sums, gamma(k + 2) * (sums @ M) + sums @ self.error]) @ P, 2 * k
        )
        values = through[0] * np.abs(self.re) + (through[0] * np.abs(self.im))[self.partner]
        top = sums @ np.abs(self.R) + through[1] + gamma(3) * values + 2 * k * k * TINY * sums.sum()
        defect = np.abs(self.F).sum(axis=0) + gamma(k + 1) * through[0] + 2 * k * k * TINY
        largest = float(inflated(defect, 2 * k).max())
        if not largest < 1:
            return np.full(k, np.inf)
        found = inflated(top, 4 * k) / (1 - largest)
        found = np.where(self.im != 0, found + found[self.partner], found)
        return inflated(found, 4)

    def _others(self, i: int, sums: Array) -> Array | None:
        """|y_m| <= sums_m / (|D_i - D_m| - r_i), [k], 0 at i; None where it may be 1."""
        if np.count_nonzero(self.component == self.component[i]) > 1:
            return None
        D = self.re + 1j * self.im
        gap = np.abs(D - D[i]) * (1 - 8 * UNIT) - self.radii[i]
        gap[i] = np.inf
        found = sums / gap
        if not ((gap > 0) & (found < 1)).all():
            return None
        result: Array = inflated(found, 4) * (sums > 0) * (gap < np.inf)
        return result
