"""Discs that contain the spectrum of a real matrix, proved from float64 matrix products.

With approximate eigenvectors V, eigenvalues D and Y ~ V^-1: V^-1 M V = D + V^-1 R, R = M V - V D,
and |V^-1 R| <= (I - |I - Y V|)^-1 |Y| |R| when ||I - Y V|| < 1 (which also proves V invertible).
Gershgorin's theorem then gives a disc around each D_i, and each connected component of discs
contains exactly as many eigenvalues as it has discs. Only row sums of the errors are needed, so the
bounds cost matrix-vector products; the matrix products are those of R and Y V.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from theory.certificates.rounding import (
    TINY,
    UNIT,
    gamma,
    inflated,
    upper_modulus,
    upper_product,
    upper_sum,
)

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


@dataclass(frozen=True)
class Discs:
    """Spectrum enclosed: centres complex [k], radii float [k], component int [k] (0, 1, ...).

    Every eigenvalue lies in the union; component c contains exactly as many eigenvalues (with
    multiplicity) as it has discs.
    """

    centres: Complex
    radii: Array
    component: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.centres)


@dataclass(frozen=True)
class Failure:
    """Why no enclosure was found."""

    reason: str


def exact_discs(values: Array) -> Discs:
    """Eigenvalues known exactly: points. Equal ones share a component."""
    centres = np.asarray(values, dtype=np.complex128)
    _, component = np.unique(centres, return_inverse=True)
    return Discs(centres, np.zeros(len(centres)), component.astype(np.intp))


def with_zeros(discs: Discs, count: int) -> Discs:
    """The spectrum with `count` >= 1 exact zeros added; components are found for one of them."""
    centres, radii = np.append(discs.centres, 0.0), np.append(discs.radii, 0.0)
    component = _components(centres, radii)
    again = np.zeros(count - 1)
    return Discs(
        np.append(centres, again),
        np.append(radii, again),
        np.append(component, np.full(count - 1, component[-1])),
    )


def enclose(M: Array, error: Array | None = None) -> Discs | Failure:
    """Discs for every real matrix M' with |M' - M| <= error entrywise.

    M [k, k] float64; error [k, k] >= 0, none by default. Returns a `Failure` where M is too close
    to defective for this method.
    """
    k = len(M)
    if k == 0:
        return exact_discs(np.zeros(0))
    if not np.isfinite(M).all():
        return Failure("the matrix has entries that are not finite")
    try:
        values, vectors = np.linalg.eig(M)
        inverse = np.linalg.inv(vectors)
    except np.linalg.LinAlgError as problem:
        return Failure(f"LAPACK found no eigenvectors ({problem})")
    if not (np.isfinite(values).all() and np.isfinite(inverse).all()):
        return Failure("the eigenvectors are numerically dependent: M is defective or nearly so")
    residual = _residual_row_sums(M, values, vectors, error)
    defect = _defect_row_sums(inverse, vectors)
    # The norm bound may be overflowed or NaN: then the comparison fails, as it should.
    norm = float(defect.max())
    if not norm < 0.5:
        return Failure(
            f"||I - V^-1 V|| <= {norm:.1e} is not small: the eigenvectors are too ill-conditioned "
            "to prove anything in float64"
        )
    first = upper_product(_modulus(inverse), residual[:, None])[:, 0]
    # (I - |E|)^-1 u <= u + rowsum(E) max(u) / (1 - ||E||).
    radii = inflated(first + defect * float(first.max()) / (1 - norm) * (1 + 8 * UNIT), 4)
    if not np.isfinite(radii).all():
        return Failure("the error bounds overflow: scale the matrix")
    centres = values.astype(np.complex128)
    return Discs(centres, radii, _components(centres, radii))


def _modulus(Z: NDArray[np.complexfloating] | Array) -> Array:
    if np.iscomplexobj(Z):
        return upper_modulus(np.real(Z), np.imag(Z))
    return np.abs(np.asarray(Z, dtype=np.float64))


def _residual_row_sums(
    M: Array,
    values: NDArray[np.complexfloating] | Array,
    V: NDArray[np.complexfloating] | Array,
    error: Array | None,
) -> Array:
    """An upper bound on |R| 1, R = M V - V D, with everything that rounding and M may be off by."""
    k = len(M)
    modulus = _modulus(V)
    if np.iscomplexobj(V) or np.iscomplexobj(values):
        Vr, Vi = np.ascontiguousarray(np.real(V)), np.ascontiguousarray(np.imag(V))
        dr, di = np.real(values), np.imag(values)
        Rr = M @ Vr - (Vr * dr - Vi * di)
        Ri = M @ Vi - (Vr * di + Vi * dr)
        computed = upper_sum(upper_modulus(Rr, Ri))
    else:
        Vr = np.asarray(V, dtype=np.float64)
        computed = upper_sum(np.abs(M @ Vr - Vr * values))
    sums = upper_sum(modulus)
    size = upper_product(np.abs(M), sums[:, None])[:, 0]
    scaled = upper_product(modulus, _modulus(np.asarray(values))[:, None])[:, 0]
    # Real and imaginary part each: a product of length k, V D by three roundings, one subtraction;
    # the two together at most double the bound (sqrt 2 would do).
    rounding = 2 * (gamma(k + 4) * size + gamma(8) * scaled) + 8 * k * k * TINY
    total = computed * (1 + 4 * UNIT) + rounding
    if error is not None:
        total = total + upper_product(error, sums[:, None])[:, 0]
    return inflated(total, 8)


def _defect_row_sums(
    Y: NDArray[np.complexfloating] | Array, V: NDArray[np.complexfloating] | Array
) -> Array:
    """An upper bound on |I - Y V| 1."""
    k = len(Y)
    identity = np.eye(k)
    if np.iscomplexobj(V) or np.iscomplexobj(Y):
        Yr, Yi = np.real(Y), np.imag(Y)
        Vr, Vi = np.ascontiguousarray(np.real(V)), np.ascontiguousarray(np.imag(V))
        left = np.hstack([Yr, Yi])
        Er = identity - left @ np.vstack([Vr, -Vi])
        Ei = left @ np.vstack([Vi, Vr])
        computed = upper_sum(upper_modulus(Er, Ei))
    else:
        computed = upper_sum(np.abs(identity - Y @ V))
    size = upper_product(_modulus(Y), upper_sum(_modulus(V))[:, None])[:, 0]
    # Two parts, each an inner product of length 2 k of reals bounded by the moduli, twice over.
    rounding = 4 * gamma(2 * k + 2) * size + 4 * UNIT + 8 * k * k * TINY
    return inflated(computed * (1 + 4 * UNIT) + rounding, 6)


def _components(centres: Complex, radii: Array) -> NDArray[np.intp]:
    """Connected components of the union of discs (touching within rounding counts as joined)."""
    distance = np.abs(centres[:, None] - centres[None, :])
    reach = (radii[:, None] + radii[None, :]) * (1 + 8 * UNIT) + 8 * UNIT * np.abs(centres)[:, None]
    _, component = connected_components(csr_matrix(distance <= reach), directed=False)
    result: NDArray[np.intp] = component.astype(np.intp)
    return result
