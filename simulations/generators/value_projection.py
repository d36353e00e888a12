"""Matrices H = W^T = (W_V W_proj)^T to simulate with, drawn from an explicit generator.

Every generator returns float64 [d, d] and takes (d, *, rng) and what else it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.support.errors import InputError

Array = NDArray[np.float64]

BASES = ("orthogonal", "general")


def random_orthogonal(d: int, *, rng: np.random.Generator) -> Array:
    """A Haar-distributed orthogonal matrix [d, d]."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    result: Array = Q * np.where(np.diag(R) < 0, -1.0, 1.0)
    return result


def random_basis(d: int, *, rng: np.random.Generator, condition: float = 4.0) -> Array:
    """A matrix [d, d] with that condition number and random singular vectors."""
    if not (condition >= 1 and math.isfinite(condition)):
        raise InputError(f"condition must be a number >= 1, not {condition}")
    stretch = np.geomspace(condition**-0.5, condition**0.5, d)
    result: Array = (random_orthogonal(d, rng=rng) * stretch) @ random_orthogonal(d, rng=rng)
    return result


def chosen_spectrum(
    d: int,
    *,
    rng: np.random.Generator,
    eigenvalues: Sequence[complex],
    basis: str = "orthogonal",
) -> Array:
    """H [d, d] with these d eigenvalues, real or in complex conjugate pairs, in a random basis.

    basis 'orthogonal' makes H normal, 'general' has condition number 4. Raises `InputError` for a
    list of another length or without its conjugates.
    """
    if len(eigenvalues) != d:
        raise InputError(f"{len(eigenvalues)} eigenvalues do not fit d = {d}: give exactly d")
    return _conjugate(real_form(eigenvalues), basis, rng)


def real_form(eigenvalues: Sequence[complex]) -> Array:
    """A block-diagonal real matrix with these eigenvalues: [[x, y], [-y, x]] for a pair x +- iy.

    Raises `InputError` unless the non-real ones come in conjugate pairs and all are finite.
    """
    values = [complex(h) for h in eigenvalues]
    if not np.isfinite(values).all():
        raise InputError("eigenvalues must be finite")
    lower = [h for h in values if h.imag < 0]
    D = np.zeros((len(values), len(values)))
    place = 0
    for h in values:
        if h.imag == 0:
            D[place, place] = h.real
            place += 1
        elif h.imag > 0:
            if h.conjugate() not in lower:
                raise InputError(f"the eigenvalue {h} of a real H needs its conjugate in the list")
            lower.remove(h.conjugate())
            D[place : place + 2, place : place + 2] = [[h.real, h.imag], [-h.imag, h.real]]
            place += 2
    if lower:
        raise InputError(f"the eigenvalue {lower[0]} of a real H needs its conjugate in the list")
    return D


def goe(d: int, *, rng: np.random.Generator, scale: float = 1.0) -> Array:
    """Symmetric Gaussian H [d, d]; for large d the spectrum fills [-2 scale, 2 scale]."""
    G = rng.standard_normal((d, d))
    result: Array = scale * (G + G.T) / math.sqrt(2 * d)
    return result


def ginibre(d: int, *, rng: np.random.Generator, scale: float = 1.0) -> Array:
    """H [d, d] with entries N(0, scale^2 / d); for large d the spectrum fills |h| <= scale."""
    result: Array = scale * rng.standard_normal((d, d)) / math.sqrt(d)
    return result


def low_rank_factors(
    d: int, *, rng: np.random.Generator, rank: int, scale: float = 1.0
) -> tuple[Array, Array]:
    """(W_V [d, rank], W_proj [rank, d]) with H = (W_V W_proj)^T; entries N(0, scale / d).

    For large d the non-zero spectrum fills |h| <= scale sqrt(rank / d). Raises `InputError` unless
    1 <= rank <= d.
    """
    if not 1 <= rank <= d:
        raise InputError(f"rank must lie between 1 and d = {d}, not {rank}")
    if scale < 0:
        raise InputError(f"scale must be >= 0, not {scale}")
    W_V = rng.standard_normal((d, rank)) * math.sqrt(scale / d)
    W_proj = rng.standard_normal((rank, d)) * math.sqrt(scale / d)
    return W_V, W_proj


def low_rank(d: int, *, rng: np.random.Generator, rank: int = 1, scale: float = 1.0) -> Array:
    """H = (W_V W_proj)^T [d, d] of one head; see `low_rank_factors`."""
    W_V, W_proj = low_rank_factors(d, rng=rng, rank=rank, scale=scale)
    result: Array = (W_V @ W_proj).T
    return result


def defective(
    d: int,
    *,
    rng: np.random.Generator,
    eigenvalue: float = -0.5,
    size: int | None = None,
    basis: str = "orthogonal",
) -> Array:
    """H [d, d] with the one eigenvalue and one Jordan block of that size (d unless given), T6.

    The other d - size blocks are 1 x 1. Raises `InputError` unless 2 <= size <= d.
    """
    size = d if size is None else size
    if not 2 <= size <= d:
        raise InputError(f"the Jordan block must have a size between 2 and d = {d}, not {size}")
    J: Array = np.diag(np.full(d, float(eigenvalue)))
    J[np.arange(size - 1), np.arange(1, size)] = 1.0
    return _conjugate(J, basis, rng)


def _conjugate(D: Array, basis: str, rng: np.random.Generator) -> Array:
    if basis not in BASES:
        raise InputError(f"basis must be one of {', '.join(BASES)}, not '{basis}'")
    d = len(D)
    if basis == "orthogonal":
        U = random_orthogonal(d, rng=rng)
        orthogonal: Array = U @ D @ U.T
        return orthogonal
    V = random_basis(d, rng=rng)
    return np.asarray(np.linalg.solve(V.T, (V @ D).T).T, dtype=np.float64)


VALUE_PROJECTION: dict[str, Callable[..., Array]] = {
    "spectrum": chosen_spectrum,
    "goe": goe,
    "ginibre": ginibre,
    "low_rank": low_rank,
    "defective": defective,
}
