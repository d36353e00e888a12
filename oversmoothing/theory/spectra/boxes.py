"""Spectra in balls: discs of a preconditioned similarity, refined until they are as small as bits.

With V close to eigenvectors of M, R = V^-1 M V (solved in balls, which proves V invertible) is
nearly diagonal, and Gershgorin's discs contain the spectrum as in theory.spectra.discs.
V (I + F), F_ij = R_ij / (R_jj - R_ii), is closer by Newton's square; the discs are proved anew for
whatever V comes out (T10).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import flint
import numpy as np

from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.blocks import clusters
from oversmoothing.theory.support.sizes import Complex

# Bits that the entries of a matrix are enclosed with, and bits worked with step by step: each step
# squares the error of V, from 1e-14 over 1e-28 to 1e-56.
BITS = 320
_SCHEDULE = (128, 128, 256, 256)


@dataclass(frozen=True)
class BallSpectrum:
    """Every eigenvalue of M has a box of its own that contains it: k boxes.

    alone: whether the box holds that eigenvalue only (else it is the hull of a cluster). basis V,
    similar V^-1 M V, and the bits that all this was computed with.
    """

    boxes: list[flint.acb]
    alone: list[bool]
    basis: flint.acb_mat
    similar: flint.acb_mat
    bits: int

    def left_vector(self, i: int) -> list[flint.acb]:
        """w [k] with w^T M = lambda_i w^T, for a box that is alone.

        w^T = y^T V^-1 and y^T R = lambda_i y^T. The largest entry of y is y_i, taken as 1: were it
        y_m, lambda_i would lie in the column disc of m. Then |y_m| <= c_m / (|R_mm - R_ii| - c_i)
        with the column sums c of the moduli off the diagonal.
        """
        with at_precision(self.bits):
            k = len(self.boxes)
            table = self.similar.tolist()
            column = [_sum(abs(table[j][m]) for j in range(k) if j != m) for m in range(k)]
            reach = [
                (column[m] / (abs(table[m][m] - table[i][i]) - column[i])).upper() if m != i else 0
                for m in range(k)
            ]
            y = [flint.acb(flint.arb(int(m == i), r), flint.arb(0, r)) for m, r in enumerate(reach)]
            w: list[flint.acb] = self.basis.transpose().solve(flint.acb_mat(k, 1, y)).entries()
            return w


def enclose_in_balls(M: flint.acb_mat) -> Iterator[BallSpectrum]:
    """Finer and finer spectra of every real matrix in the balls M [k, k].

    None at all where no V is proved invertible.
    """
    middle = np.array([[float(x.real.mid()) for x in row] for row in M.tolist()])
    try:
        V = _matrix(np.linalg.eig(middle)[1])
        for bits in _SCHEDULE:
            with at_precision(bits):
                found = _discs(V, M, bits)
                V = _refined(found)
            yield found
    except (np.linalg.LinAlgError, ZeroDivisionError):
        return


def _matrix(values: Complex) -> flint.acb_mat:
    return flint.acb_mat([[complex(x) for x in row] for row in values])


def _refined(found: BallSpectrum) -> flint.acb_mat:
    R = np.array([[complex(x.mid()) for x in row] for row in found.similar.tolist()])
    # What overflows is not refined.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = np.diag(R)[None, :] - np.diag(R)[:, None]
        # Within a cluster the step would not be small: its members stay together.
        F = np.where(np.abs(R) < np.abs(gap) / 4, R / gap, 0.0)
    return (found.basis + found.basis * _matrix(F)).mid()


def _discs(V: flint.acb_mat, M: flint.acb_mat, bits: int) -> BallSpectrum:
    """Raises ZeroDivisionError where V is not proved invertible."""
    similar = V.solve(M * V)
    moduli = [[abs(x) for x in row] for row in similar.tolist()]
    k = len(moduli)
    boxes = []
    for i in range(k):
        row = _sum(moduli[i][j] for j in range(k) if j != i)
        column = _sum(moduli[j][i] for j in range(k) if j != i)
        radius = row.max(column).upper()
        boxes.append(similar[i, i] + flint.acb(flint.arb(0, radius), flint.arb(0, radius)))
    alone, hulls = [False] * k, list(boxes)
    for group in clusters(k, lambda i, j: bool(boxes[i].overlaps(boxes[j]))):
        whole = reduce(flint.acb.union, (boxes[j] for j in group))
        for j in group:
            alone[j], hulls[j] = len(group) == 1, whole
    return BallSpectrum(hulls, alone, V, similar, bits)


def _sum(values: Iterable[flint.arb]) -> flint.arb:
    return sum(values, flint.arb(0))
