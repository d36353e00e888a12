"""Discs that contain the spectrum of a real matrix, proved from float64 matrix products.

With approximate eigenvectors V, eigenvalues D and Y ~ V^-1: V^-1 M V = D + V^-1 R, R = M V - V D,
and |V^-1 R| <= (I - |I - Y V|)^-1 |Y| |R| when ||I - Y V|| < 1 (which also proves V invertible).
Gershgorin's theorem then gives a disc around each D_i, and each connected component of discs
contains exactly as many eigenvalues as it has discs. Only row sums of the errors are needed, so the
bounds cost matrix-vector products; the matrix products are those of R and Y V.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from oversmoothing.theory.certificates.rounding import (
    TINY,
    UNIT,
    gamma,
    inflated,
    upper_modulus,
    upper_product,
    upper_sum,
)
from oversmoothing.theory.support.arrays import Array, Complex

# Entries of a stack that are worked on together: more than fits a cache is slower than one by one.
_BLOCK = 2**14


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


def interval_discs(middle: Array, radii: Array) -> Discs:
    """Real eigenvalues [k] known up to radii [k]."""
    centres = middle.astype(np.complex128)
    return Discs(centres, radii, _components(centres, radii))


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
    return enclose_all(M[None], None if error is None else error[None])[0]


def enclose_all(M: Array, error: Array | None = None) -> list[Discs | Failure]:
    """`enclose` for each of a stack, M [m, k, k] and error [m, k, k], in batched products."""
    if M.shape[-1] == 0:
        return [interval_discs(np.zeros(0), np.zeros(0)) for _ in M]
    if error is None:
        error = np.zeros_like(M)
    size = max(1, _BLOCK // M.shape[-1] ** 2)
    starts = range(0, len(M), size)
    return [found for i in starts for found in _enclose_block(M[i : i + size], error[i : i + size])]


def _enclose_block(M: Array, error: Array) -> list[Discs | Failure]:
    finite = np.asarray(np.isfinite(M).all(axis=(1, 2)))
    if not finite.all():
        rest = iter(enclose_all(M[finite], error[finite]))
        unusable = Failure("the matrix has entries that are not finite")
        return [next(rest) if usable else unusable for usable in finite.tolist()]
    found: dict[int, Discs | Failure] = {}
    try:
        values, vectors = np.linalg.eig(M)
        rotating = np.imag(values).any(axis=-1)
        # A real spectrum takes a quarter of the arithmetic: such matrices go together.
        for turns, part in ((False, np.real), (True, np.asarray)):
            chosen = np.flatnonzero(rotating == turns)
            D, V = (np.ascontiguousarray(part(x[chosen])) for x in (values, vectors))
            discs = _discs(M[chosen], error[chosen], D, V, np.linalg.inv(V))
            found |= zip(chosen.tolist(), discs, strict=True)
    except np.linalg.LinAlgError as problem:
        if len(M) == 1:
            return [Failure(f"LAPACK found no eigenvectors ({problem})")]
        return [_enclose_block(M[i : i + 1], error[i : i + 1])[0] for i in range(len(M))]
    return [found[i] for i in range(len(M))]


def _discs(M: Array, error: Array, values: Any, V: Any, Y: Any) -> list[Discs | Failure]:
    """The discs of a stack with approximate eigenvalues, eigenvectors V and Y ~ V^-1."""
    # Bounds that overflow or become NaN fail the comparisons below, as they should.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        defect = _defect_row_sums(Y, V)
        norm = defect.max(axis=-1, initial=0.0)
        first = _upper_apply(_modulus(Y), _residual_row_sums(M, values, V, error))
        # (I - |E|)^-1 u <= u + rowsum(E) max(u) / (1 - ||E||).
        spread = defect * (first.max(axis=-1, initial=0.0) / (1 - norm) * (1 + 8 * UNIT))[:, None]
        radii = inflated(first + spread, 4)
    found: list[Discs | Failure] = []
    for centre, radius, size in zip(values.astype(np.complex128), radii, norm, strict=True):
        if not size < 0.5:
            reason = (
                f"||I - V^-1 V|| <= {size:.1e} is not small: the eigenvectors are too "
                "ill-conditioned to prove anything in float64"
            )
            found.append(Failure(reason))
        elif not np.isfinite(radius).all():
            found.append(Failure("the error bounds overflow: scale the matrix"))
        else:
            found.append(Discs(centre, radius, _components(centre, radius)))
    return found


def _upper_apply(P: Array, x: Array) -> Array:
    """An upper bound on P x for a stack, P [m, k, l] and x [m, l] >= 0."""
    return upper_product(P, x[..., None])[..., 0]


def _modulus(Z: Any) -> Array:
    if np.iscomplexobj(Z):
        return upper_modulus(np.real(Z), np.imag(Z))
    return np.abs(np.asarray(Z, dtype=np.float64))


def _parts(Z: Any) -> tuple[Array, Array]:
    return np.ascontiguousarray(np.real(Z)), np.ascontiguousarray(np.imag(Z))


def _residual_row_sums(M: Array, values: Any, V: Any, error: Array) -> Array:
    """An upper bound on |R| 1, R = M V - V D, with everything that rounding and M may be off by."""
    k = M.shape[-1]
    modulus = _modulus(V)
    D = values[:, None, :]
    if np.iscomplexobj(V):
        (Vr, Vi), (dr, di) = _parts(V), _parts(D)
        Rr = M @ Vr - (Vr * dr - Vi * di)
        Ri = M @ Vi - (Vr * di + Vi * dr)
        computed = upper_sum(upper_modulus(Rr, Ri))
    else:
        computed = upper_sum(np.abs(M @ V - V * D))
    sums = upper_sum(modulus)
    size = _upper_apply(np.abs(M), sums)
    scaled = _upper_apply(modulus, _modulus(values))
    # Real and imaginary part each: a product of length k, V D by three roundings, one subtraction;
    # the two together at most double the bound (sqrt 2 would do).
    rounding = 2 * (gamma(k + 4) * size + gamma(8) * scaled) + 8 * k * k * TINY
    total = computed * (1 + 4 * UNIT) + rounding + _upper_apply(error, sums)
    return inflated(total, 8)


def _defect_row_sums(Y: Any, V: Any) -> Array:
    """An upper bound on |I - Y V| 1."""
    k = V.shape[-1]
    identity = np.eye(k)
    if np.iscomplexobj(V):
        (Yr, Yi), (Vr, Vi) = _parts(Y), _parts(V)
        left = np.concatenate([Yr, Yi], axis=-1)
        Er = identity - left @ np.concatenate([Vr, -Vi], axis=-2)
        Ei = left @ np.concatenate([Vi, Vr], axis=-2)
        computed = upper_sum(upper_modulus(Er, Ei))
    else:
        computed = upper_sum(np.abs(identity - Y @ V))
    size = _upper_apply(_modulus(Y), upper_sum(_modulus(V)))
    # Two parts, each an inner product of length 2 k of reals bounded by the moduli, twice over.
    rounding = 4 * gamma(2 * k + 2) * size + 4 * UNIT + 8 * k * k * TINY
    return inflated(computed * (1 + 4 * UNIT) + rounding, 6)


def _components(centres: Complex, radii: Array) -> NDArray[np.intp]:
    """Connected components of the union of discs (touching within rounding counts as joined)."""
    if len(centres) == 0:
        return np.zeros(0, dtype=np.intp)
    distance = np.abs(centres[:, None] - centres[None, :])
    reach = (radii[:, None] + radii[None, :]) * (1 + 8 * UNIT) + 8 * UNIT * np.abs(centres)[:, None]
    _, component = connected_components(csr_matrix(distance <= reach), directed=False)
    result: NDArray[np.intp] = component.astype(np.intp)
    return result
