"""About the depth from which the mode that decides shows, from eigenvectors in float64 (T4e).

An estimate, and said as one ("about"): no verdict and no limit rests on it.
"""

import math

import numpy as np

from oversmoothing.theory.layer.perron import class_families
from oversmoothing.theory.spectra.radii import multipliers
from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.support.arrays import Array, Complex
from oversmoothing.theory.verdict.by_discs import CellDiscs

# Modes within this of the largest modulus (relative) lead with it.
_TOGETHER = 1e-7
# Coefficients below this share of the largest are taken for rounding.
_NOISE = 64 * EPS


def shows_from(cell: CellDiscs) -> float | None:
    """log(||X_0|| / size) / log(rho / rho') for the modes of the largest modulus rho of X_0.

    size: the norms of the parts of X_0 that grow like rho, summed over their phases; rho': the next
    modulus. None where eigenvectors in float64 do not give it.
    """
    X0 = cell.case.X0
    assert X0 is not None
    n = len(X0)
    top = int(np.frexp(np.abs(X0).max())[1])
    with np.errstate(all="ignore"):
        X0 = np.ldexp(X0, -top)
        try:
            V, a = _tokens(cell)
            h, U = (
                np.linalg.eigh(cell.case.H)
                if _symmetric(cell.case.H)
                else np.linalg.eig(cell.case.H)
            )
            left = np.linalg.solve(V, X0.astype(np.complex128))
            C = np.linalg.solve(U.astype(np.complex128), left.T).T
        except np.linalg.LinAlgError:
            return None
        mu = multipliers(a, h)
        there = np.abs(C) > _NOISE * n * np.abs(C).max()
        modulus = float(np.abs(mu)[there].max(initial=0.0))
        leading = there & (np.abs(mu) >= modulus * (1 - _TOGETHER))
        rest = float(np.abs(mu)[there & ~leading].max(initial=0.0))
        if not leading.any():
            return None
        if rest <= 0:
            return 0.0
        size, left_over = 0.0, leading.copy()
        while left_over.any():
            same = left_over & (np.abs(mu - mu[left_over][0]) <= _TOGETHER * modulus)
            size += float(np.linalg.norm(V @ np.where(same, C, 0.0) @ U.T))
            left_over &= ~same
        if not 0 < size < math.inf:
            return None
        share = math.log(float(np.linalg.norm(V @ np.where(there, C, 0.0) @ U.T))) - math.log(size)
        return max(0.0, share / math.log(modulus / rest)) if rest < modulus else None


def _symmetric(M: Array) -> bool:
    return bool((M == M.T).all())


def _tokens(cell: CellDiscs) -> tuple[Complex, Complex]:
    """(V [n, n], a [n]): eigenvectors of A, those of a = 1 last."""
    A = cell.case.A
    a, V = np.linalg.eigh(A) if _symmetric(A) else np.linalg.eig(A)
    order = np.argsort(-np.abs(a - 1), kind="stable")
    a, V = a[order].astype(np.complex128), V[:, order].astype(np.complex128)
    means, ends = class_families(A)
    m = len(means)
    a[len(A) - m :] = 1.0
    V = V - ends @ (means @ V)
    V[:, len(A) - m :] = ends
    lengths = np.linalg.norm(V[:, : len(A) - m], axis=0)
    V[:, : len(A) - m] /= np.where(lengths > 0, lengths, np.nan)
    return V, a
