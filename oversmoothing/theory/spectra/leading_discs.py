"""rho_Q from the largest eigenvalues of A and one bound of all others (T2, T10).

Let V [n, k] and U [k, n] be any matrices, and N = M - V U. Where mu is no eigenvalue of N,

    det(mu - M) = mu^-k det(mu - N) det(mu - U V - E(mu)),  E(mu) = U (mu - N)^-1 N V.

For |mu| >= t > rho(N) the eigenvalues of M are thus those of matrices near U V: |E_ij| is at most
|U_i| s |N V_j|, s a bound of the norm of (mu - N)^-1 by those of N, N^2, N^4, N^8. With V of Ritz
vectors, of eigenvalues of about t and more, U V is nearly diagonal and N V nearly 0. Nothing is
assumed of V, U and t: were they bad, no interval would come out. docs/theory/t10.md proves this,
with every rounding.
"""

from __future__ import annotations

import numpy as np

from oversmoothing.theory.numbers.rounding import TINY, UNIT, gamma, inflated
from oversmoothing.theory.spectra.discs import DiscStack
from oversmoothing.theory.spectra.layer_discs import Interval, multipliers, pair_moduli
from oversmoothing.theory.support.sizes import Array, Complex

# Ritz vectors; up to SMALL rows LAPACK has all eigenvectors as soon.
_COLUMNS, SMALL = 10, 30
# Ritz values below this part of t are left in N. How wide an interval is told, relatively: LAPACK's
# eigenvectors may prove more.
_CUT, _WIDTH = 0.7, 1e-9
# How much wider the discs of other eigenvalues are made, that the first may be narrow.
_WIDER = 16.0


@np.errstate(all="ignore")
def quotient_radii(M: Array, error: Array, value: DiscStack) -> list[Interval | None]:
    """rho_Q = max |1 + h_j a_i|, a the spectrum of any matrix within `error` of M, h in the discs
    of `value`, for each of a stack M [m, n, n], n > _COLUMNS; None where this leaves it open."""
    a, V, U = _ritz(M)
    moduli, each = np.abs(multipliers(a, value.centres)).max(axis=-1), np.arange(len(M))
    i = moduli.argmax(axis=-1)
    first, top = a[each, i, None], moduli[each, i]
    h = inflated(np.abs(value.centres) + value.radii, 4).max(axis=-1)
    t = (1 - 2.0**-7) * (top - 1) / h
    kept = np.abs(a) > _CUT * t[:, None]
    a = np.where(kept, a, 0.0)
    V, U = np.where(kept[:, None], V, 0.0), np.where(kept[..., None], U, 0.0)
    wider = np.where((a == first) | (a == first.conj()), 1.0, _WIDER)
    radii = leading_radii(M, error, a, V, U, t, wider)
    pairs = pair_moduli(DiscStack(a, radii, np.zeros(a.shape, dtype=np.intp)), value)[1]
    # A component of discs of H has an eigenvalue in some of them.
    joined = value.component[:, :, None] == value.component[:, None]
    low = np.where(joined, pairs.low[each, i, None], np.inf).min(axis=-1).max(axis=-1)
    high = np.maximum(pairs.high.max(axis=(1, 2)), inflated(1 + h * t, 4))
    # The disc of the first touches no other, nor that of radius t about 0.
    wide, size = radii[each, i, None], np.abs(first)
    near = (wide + radii) * (1 + 8 * UNIT) + 4 * UNIT * (np.abs(a) + size)
    apart = np.abs(first - a) > near
    apart[each, i] = (size * (1 - 16 * UNIT) > wide + t[:, None])[:, 0]
    good = apart.all(axis=-1) & (high - low < _WIDTH * high)
    bounds = zip(good.tolist(), low.tolist(), high.tolist(), top.tolist(), strict=True)
    return [Interval(least, most, None, at) if fine else None for fine, least, most, at in bounds]


def _ritz(M: Array) -> tuple[Complex, Array, Array]:
    """Ritz values a [m, k], V [m, n, k] (of a pair the real and the imaginary part of a vector) and
    U [m, k, n], U V ~ diag(a), by subspace iteration; zeros where LAPACK has no answer."""
    powers = [M]
    for _ in range(5):
        powers.append(powers[-1] @ powers[-1])
    # Higher powers lose more digits of what is small beside their norm: they come first.
    V = powers[5][..., np.linspace(0, M.shape[-1] - 1, _COLUMNS).astype(np.intp)]
    for k in (4, 4, 3):
        V = powers[k] @ np.linalg.qr(V)[0]
    V = np.linalg.qr(V)[0]
    U = V.swapaxes(1, 2) @ M
    try:
        a, vectors = np.linalg.eig(U @ V)
        P = np.where(a.imag[:, None] < 0, -vectors.imag, vectors.real)
        return a.astype(np.complex128), V @ P, np.linalg.inv(P) @ U
    except np.linalg.LinAlgError:
        if len(M) == 1:
            return np.zeros((1, _COLUMNS), dtype=np.complex128), 0 * V, 0 * U
        a, V, U = (np.concatenate(x) for x in zip(*map(_ritz, M[:, None]), strict=True))
        return a, V, U


def _size(x: Array) -> Array:
    """An upper bound of Euclidean norms along the last axis; squares may underflow."""
    return inflated(np.sqrt(np.vecdot(x, x)), x.shape[-1] + 2) + 2.0**-500


@np.errstate(all="ignore")
def leading_radii(
    M: Array, error: Array, a: Complex, V: Array, U: Array, t: Array, wider: Array
) -> Array:
    """Radii [m, k] of discs about a [m, k] whose union has all eigenvalues of modulus >= t [m] of
    each matrix within `error` of M [m, n, n]. A component of it beyond t has as many as discs.

    V [m, n, k], U [m, k, n]: of a pair the two columns stand side by side; a column that is 0, with
    its row of U and its a, stands for no disc. wider [m, k]: how discs are weighed, both of a pair
    alike. Infinite or NaN where nothing is proved.
    """
    (m, n, k), partner = V.shape, np.arange(V.shape[-1]) + np.sign(a.imag).astype(np.intp)
    N, v, u = M - V @ U, _size(V.swapaxes(1, 2)), _size(U)
    # N is off by that, its squares and theirs by `wide`.
    off = gamma(k + 2) * (_size(M.reshape(m, n * n)) + _size(v) * _size(u))
    off = inflated(off + _size(error.reshape(m, n * n)), 8) + n * k * TINY
    size, wide, power, s, X = _size(N.reshape(m, n * n)), off, t, 1 / t, N
    left = _size((N @ V).swapaxes(1, 2)) + (gamma(n) * size + off)[:, None] * v
    left = inflated(left, 8) + n * n * TINY
    for _ in range(3):
        s = s * (1 + (size + wide) / power)
        wide = inflated(gamma(n) * size**2 + 2 * size * wide + wide**2, 8) + n * n * TINY
        X, power = X @ X, power**2
        size = _size(X.reshape(m, n * n))
    ratio = inflated((size + wide) / power, 8)
    s = np.where((t > 0) & (ratio < 0.9), inflated(s / (1 - ratio), 64), np.inf)
    # One scale for both of a pair, 1 for what stands for no disc.
    some = V.any(axis=1)
    left = np.where(some, np.maximum(left, np.take_along_axis(left, partner, 1)), 1.0)
    near = U @ V
    near.reshape(m, k * k)[:, :: k + 1] -= a.real
    i, j = np.nonzero(a.imag)
    near[i, j, partner[i, j]] -= a.imag[i, j]
    weight = np.where(a.imag != 0, 2.0, 1.0) / wider
    over = weight / left
    radii = (np.abs(near) @ over[..., None])[..., 0] + n * TINY * over.sum(axis=-1, keepdims=True)
    both = s * (weight * some).sum(axis=-1) + gamma(n + 1) * (v * over).sum(axis=-1)
    radii = inflated(left * wider * (radii + u * both[:, None]), n + 4 * k + 64)
    return np.where(a.imag != 0, (radii + np.take_along_axis(radii, partner, 1)) / 2, radii)
