"""The terms of one X_0 for `onset`, from eigenvectors in float64: sum of c_ij mu_ij^L v_i u_j^T.

An estimate, and said as one ("about"): no verdict and no limit rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.perron import class_families
from oversmoothing.theory.spectra.radii import multipliers
from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.support.arrays import Array, Complex
from oversmoothing.theory.verdict.by_discs import CellDiscs
from oversmoothing.theory.verdict.onset import EACH, Onset, Sides, onset
from oversmoothing.theory.verdict.onset_series import GAP, Series

# Multiplications spent on looking at layers one by one, and so many layers at least.
_WORK, _FEWEST = 4e8, 16
# Eigenvectors of a larger condition are those of a matrix that is nearly defective.
TRUSTED = 1e6
# Coefficients, and parts of eigenvectors, below so many roundings a token are taken for 0.
DOUBT = 64


@dataclass(frozen=True)
class Expansion:
    """X_0 = V C U^T: attention [n] and value [d], the eigenvalues, those of a = 1 of the `classes`
    closed classes last; V [n, n], U [d, d]; coefficients [n, d]; present: those that are there."""

    attention: Complex
    value: Complex
    V: Complex
    U: Complex
    coefficients: Complex
    present: NDArray[np.bool_]
    classes: int
    balanced: bool


def onset_of_cell(cell: CellDiscs, tends_to: str | None) -> Onset | None:
    """The onset of the X_0 of a case in floats; None where eigenvectors do not give it."""
    expansion = _expanded(cell)
    return None if expansion is None else onset_of_expansion(expansion, tends_to)


def _expanded(cell: CellDiscs) -> Expansion | None:
    X0, H = cell.case.X0, cell.case.H
    assert X0 is not None
    X0 = np.ldexp(X0, -int(np.frexp(np.abs(X0).max())[1]))
    with np.errstate(all="ignore"):
        try:
            V, a, classes = _tokens(cell.case.A)
            h, U = np.linalg.eigh(H) if _symmetric(H) else np.linalg.eig(H)
            U = U.astype(np.complex128)
            left = np.linalg.solve(V, X0.astype(np.complex128))
            C = np.asarray(np.linalg.solve(U, left.T).T, dtype=np.complex128)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(C).all() or not np.linalg.cond(V) * np.linalg.cond(U) < TRUSTED:
            return None
    there = np.abs(C) > DOUBT * EPS * len(X0) * np.abs(C).max()
    values = h.astype(np.complex128)
    sums = cell.case.A.sum(axis=0)
    balanced = cell.case.may_balance and bool((np.abs(sums - 1) <= len(X0) * EPS).all())
    return Expansion(a, values, V, U, C, there, classes, balanced)


def _symmetric(M: Array) -> bool:
    return bool((M == M.T).all())


def _tokens(A: Array) -> tuple[Complex, Complex, int]:
    """(V [n, n], a [n], closed classes): eigenvectors of A, those of a = 1 last."""
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
    return V, a, m


def onset_of_expansion(expansion: Expansion, tends_to: str | None) -> Onset | None:
    """The onset of an X_0, of the modes that are there; None where none is."""
    mu = multipliers(expansion.attention, expansion.value)
    moduli, sure = np.abs(mu), expansion.present
    rho = float(moduli[sure].max(initial=0.0))
    if rho <= 0:
        return None
    leading = np.abs(expansion.coefficients[sure & (moduli >= rho * (1 - GAP))])
    if leading.max() < np.finfo(np.float64).tiny:
        return None
    n, d = expansion.coefficients.shape
    images = (expansion.V, *_images(expansion))
    (whole, _), (hfc, up), (mean, down) = (_series(expansion, image, sure) for image in images)
    assert whole is not None
    each = int(np.clip(_WORK / (n * d * (n + d)), _FEWEST, EACH))
    return onset(Sides(whole, hfc, mean, up - down, each=each), tends_to)


def _images(expansion: Expansion) -> tuple[Complex, Complex]:
    """P V and 1^T V / n, exactly 0 where the structure of A or rounding says so."""
    mean = expansion.V.mean(axis=0, keepdims=True)
    hfc = expansion.V - mean
    split = len(expansion.V) - expansion.classes
    if expansion.classes == 1:
        hfc[:, split:] = 0.0
    if expansion.balanced:
        mean[:, :split] = 0.0
    for image in (hfc, mean):
        image[:, np.abs(image).max(axis=0) <= DOUBT * EPS * len(expansion.V)] = 0.0
    return hfc, mean


def _series(
    expansion: Expansion, image: Complex, kept: NDArray[np.bool_]
) -> tuple[Series | None, float]:
    """A part of X_L and the logarithm of its leading modulus; None where nothing of it is left."""
    lengths = np.multiply.outer(np.linalg.norm(image, axis=0), np.linalg.norm(expansion.U, axis=0))
    with np.errstate(divide="ignore"):
        logs = _log_moduli(expansion)
        size = np.log(np.abs(expansion.coefficients)) + np.log(lengths)
    there = kept & (lengths > 0)
    top = logs[there].max(initial=-np.inf)
    if np.isneginf(top):
        return None, 0.0
    leads = there & (logs >= top + np.log1p(-GAP))
    mu = multipliers(expansion.attention, expansion.value)
    turned = np.angle(mu * mu[leads][0].conj())
    rate = np.where(leads, 0.0, logs - top) + 1j * turned
    phases = np.exp(1j * np.angle(expansion.coefficients))
    units = np.divide(phases, lengths, out=np.zeros_like(phases), where=lengths > 0)
    found = Series(
        rate[there],
        np.zeros(int(there.sum())),
        size[there],
        leads[there],
        partial(_combined, image, expansion.U, units, there),
    )
    return found, float(top)


def _log_moduli(expansion: Expansion) -> Array:
    """log |1 + h a|, with all its digits where h a is small."""
    z = np.multiply.outer(expansion.attention, expansion.value)
    near = np.abs(z) < 0.5
    small = np.where(near, z, 0.0)
    logs = 0.5 * np.log1p(2 * small.real + np.abs(small) ** 2)
    return np.asarray(np.where(near, logs, np.log(np.abs(1 + z))))


def _combined(
    image: Complex, U: Complex, units: Complex, there: NDArray[np.bool_], weights: Complex
) -> Complex:
    full = np.zeros(there.shape, dtype=np.complex128)
    full[there] = weights
    return np.asarray(image @ (full * units) @ U.T)
