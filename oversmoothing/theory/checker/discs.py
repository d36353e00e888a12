"""Gershgorin's discs of U M U^-1 in balls, U approximate left eigenvectors, refined by Newton."""

from dataclasses import dataclass
from typing import Any

import flint
import numpy as np

# Side of the largest matrix: half a minute.
DISC_SIZE = 320


@dataclass(frozen=True)
class Discs:
    """One box for each eigenvalue; discs that meet share the box around their union.

    single: whether no other eigenvalue is in the box. U [k, k], and similar = U M U^-1 as rows.
    """

    boxes: list[Any]
    single: list[bool]
    U: Any
    similar: list[list[Any]]


def discs(M: Any, bits: int) -> Discs | None:
    """Discs of a real ball matrix M [k, k]; None where U is not proved invertible, or k too large.

    With R = U M U^-1, (I + G) U for G_ij = R_ij / (R_ii - R_jj) squares the error.
    """
    if M.nrows() > DISC_SIZE:
        return None
    try:
        with flint.ctx.workprec(bits):
            middle = np.array([[float(x.real.mid()) for x in row] for row in M.tolist()])
            U = _matrix(np.linalg.eig(middle.T)[1].T)
            similar = _similar(U, M)
            for _ in range(bits // 96):
                R = np.array([[complex(x.mid()) for x in row] for row in similar])
                step = np.zeros_like(R)
                # What overflows is not refined.
                with np.errstate(all="ignore"):
                    gap = np.diag(R)[:, None] - np.diag(R)[None, :]
                    np.divide(R, gap, out=step, where=np.abs(gap) / 4 > np.abs(R))
                U = (U + _matrix(step) * U).mid()
                similar = _similar(U, M)
            return merged(U, similar)
    except (np.linalg.LinAlgError, ZeroDivisionError):
        return None


def _matrix(values: Any) -> Any:
    return flint.acb_mat([[complex(x) for x in row] for row in values])


def _similar(U: Any, M: Any) -> list[list[Any]]:
    """U M U^-1, from the transposed system U^T X = (U M)^T."""
    table: list[list[Any]] = U.transpose().solve((U * M).transpose()).transpose().tolist()
    return table


def _off_diagonal(moduli: list[list[Any]], i: int) -> tuple[Any, Any]:
    """Sums over row i and over column i without the diagonal."""
    others = [j for j in range(len(moduli)) if j != i]
    row = sum((moduli[i][j] for j in others), flint.arb(0))
    return row, sum((moduli[j][i] for j in others), flint.arb(0))


def merged(U: Any, similar: list[list[Any]]) -> Discs:
    """The discs of similar = U M U^-1; those that meet share a box."""
    moduli = [[abs(x) for x in row] for row in similar]
    boxes = []
    for i in range(len(similar)):
        row, column = _off_diagonal(moduli, i)
        spread = flint.arb(0, row.max(column))
        boxes.append(similar[i][i] + flint.acb(spread, spread))
    group = np.arange(len(boxes))
    for i, box in enumerate(boxes):
        for k, before in enumerate(boxes[:i]):
            if box.overlaps(before):
                group[group == group[k]] = group[i]
    hulls = []
    for i in range(len(boxes)):
        hull = boxes[i]
        for j in np.flatnonzero(group == group[i]):
            other = boxes[int(j)]
            hull = flint.acb(hull.real.union(other.real), hull.imag.union(other.imag))
        hulls.append(hull)
    return Discs(hulls, [int((group == g).sum()) == 1 for g in group], U, similar)


def left_eigenvector(found: Discs, i: int) -> Any:
    """w^T [1, k] with w^T M = lambda w^T for a single box i: y^T U with y^T R = lambda y^T.

    The largest y_m is y_i = 1, for lambda lies in no other column disc; the others are at most
    their column sum over their distance to lambda.
    """
    k = len(found.boxes)
    moduli = [[abs(x) for x in row] for row in found.similar]
    own = _off_diagonal(moduli, i)[1]
    y = []
    for m in range(k):
        if m == i:
            y.append(flint.acb(1))
            continue
        distance = abs(found.similar[m][m] - found.similar[i][i]) - own
        size = flint.arb(0, _off_diagonal(moduli, m)[1] / distance)
        y.append(flint.acb(size, size))
    return flint.acb_mat(1, k, y) * found.U
