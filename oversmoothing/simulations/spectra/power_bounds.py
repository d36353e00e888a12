"""Bounds on the spectra of a batch of attention matrices, from powers of C = A - 1 w^T (T3).

C has the spectrum of A but for the eigenvalue 1, which becomes 1 - w^T 1 (Brauer): with w the
column means, as computed, it is about 0, and rounding in w is harmless. Every eigenvalue of C is at
most ||C^m||_F^(1/m) in modulus (Gelfand). Powers are formed by repeated squaring, each scaled to
norm 1, with a bound on what rounding did to them.

Ritz values of the dominant subspace of C, and what they leave possible: with Q [n, k] orthonormal,
C^m = Q Z + N, Z = Q^T C^m and nu = ||N||: if C x = lambda x, ||x|| = 1, then
lambda^m (I - Q Q^T) x = (I - Q Q^T) N x, so that the distance of x from the range of Q is at most
nu / |lambda|^m. So every eigenvalue with |lambda| >= (nu / delta)^(1/m) has its eigenvector within
delta of the range of Q and, with x = Q s + e, ||T s - lambda s|| <= delta ||Q^T C|| for
T = Q^T C Q: it lies within about delta ||Q^T C|| kappa of an eigenvalue of T of condition kappa.
All others lie in the disc of that radius. This bounds rho_Q from above, for each delta.

From below, a Ritz value theta with residual ||C x - theta x|| = res has an eigenvalue within about
res times its condition number; the left vector for that comes for nothing: t^H Z / theta^m is the
left eigenvector of C for t^H T = theta t^H but for terms of order (rest / theta)^m.

Condition numbers are first order: a decision needs `SAFETY` times the error that they give.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float, Float64
from numpy.typing import NDArray

from oversmoothing.simulations.spectra.head_values import SAFETY
from oversmoothing.theory.spectra.layer_discs import multipliers
from oversmoothing.theory.support.sizes import Array, Complex

Floating = NDArray[np.floating]
Batch = Float[np.ndarray, "b n n"]
Each = Float64[Array, " b"]

# Roundings on the way from A to C: a pairwise sum over a row, a division, a subtraction.
_CENTRING = 32


@dataclass
class Powers:
    """C^m = exp(log_scale) power, with ||power||_F = 1, for a batch of b matrices.

    power [b, n, n]; log_scale [b]; error [b]: bound on the Frobenius norm of what rounding did to
    `power`; m: the exponent.
    """

    power: Floating
    log_scale: Array
    error: Array
    m: int

    def bound(self) -> Each:
        """||C^m||_F^(1/m) with its rounding error, [b]: an upper bound on the spectral radius."""
        with np.errstate(divide="ignore"):
            result: Array = np.exp((self.log_scale + np.log1p(self.error)) / self.m) * (1 + 1e-14)
        return result

    def keep(self, which: NDArray[np.bool_]) -> "Powers":
        return Powers(self.power[which], self.log_scale[which], self.error[which], self.m)


def centred(A: Batch, dtype: type) -> tuple[Batch, Each]:
    """C = A - 1 w^T [b, n, n] in that precision for A [b, n, n] with rows divided by their sums.

    Also a bound [b] on the Frobenius norm of its rounding error, w aside.
    """
    X: Floating = A.astype(dtype)
    X /= X.sum(axis=-1, keepdims=True)
    mean = X.mean(axis=-2, keepdims=True)
    X -= mean
    unit = float(np.finfo(dtype).eps) / 2
    n = A.shape[-1]
    size = norms(X) + np.sqrt(n) * np.sqrt(np.square(mean, dtype=np.float64).sum(axis=(-2, -1)))
    return X, _CENTRING * unit * size


def norms(X: Float[np.ndarray, "b _ _"]) -> Each:
    """Frobenius norms [b]."""
    flat = X.reshape(len(X), -1)
    return np.asarray(np.sqrt(np.vecdot(flat, flat).astype(np.float64)))


def first_power(C: Batch, error: Each) -> Powers:
    """C itself as a power, m = 1; error as `centred` gives it."""
    size = norms(C)
    scale = np.where(size > 0, size, 1.0)
    unit = float(np.finfo(C.dtype).eps) / 2
    with np.errstate(divide="ignore"):
        log_scale = np.where(size > 0, np.log(scale), -np.inf)
        # A C that is 0 to rounding has its bound in the error alone.
        log_scale = np.where(size > 0, log_scale, np.log(np.maximum(error, np.finfo(float).tiny)))
    relative = np.where(size > 0, error / scale, 1.0) + 4 * unit
    return Powers(C / scale.astype(C.dtype)[:, None, None], log_scale, relative, 1)


def squared(powers: Powers) -> Powers:
    """C^(2m): ||fl(X X) - X X||_F <= n u ||X||_F^2 for any order of summation."""
    X = powers.power
    unit = float(np.finfo(X.dtype).eps) / 2
    product = X @ X
    size = norms(product)
    rounding = 2 * powers.error + powers.error**2 + 1.02 * X.shape[-1] * unit
    # Where the square vanishes to rounding, all that is known is the rounding error itself.
    small = size <= rounding
    scale = np.where(small, rounding, size) * (1 + 4 * X.shape[-1] * unit)
    product *= (1 / scale).astype(X.dtype)[:, None, None]
    error = np.where(small, 1.0, rounding / scale) + 4 * unit
    return Powers(product, 2 * powers.log_scale + np.log(scale), error, 2 * powers.m)


Pairs = Float64[Array, "b p"]

# Distances delta that are tried; the best bound of them all is taken.
_DISTANCES = 10.0 ** -np.arange(2.0, 13.0, 0.5)


@dataclass(frozen=True)
class Ritz:
    """Ritz values of b matrices.

    values [b, k] complex. upper_errors [b, deltas, k]: how far an eigenvalue of C of modulus above
    rest [b, deltas] may lie from the nearest value. lower_errors [b, k]: how far the nearest
    eigenvalue of C may lie from each value.
    """

    values: Complex
    upper_errors: Array
    rest: Array
    lower_errors: Array


def ritz(C: Float64[Array, "b n n"], powers: Powers, width: int, rng: np.random.Generator) -> Ritz:
    """For C [b, n, n] float64 and its power (in float64 too), `width` < n Ritz values each."""
    n = C.shape[-1]
    X, m = powers.power, powers.m
    Q, _ = np.linalg.qr(X @ rng.standard_normal((n, width)))
    Qt = Q.swapaxes(1, 2)
    Z = Qt @ X
    unit = float(np.finfo(np.float64).eps) / 2
    nu = norms(X - Q @ Z) + powers.error + 4 * n * unit
    QtC, CQ = Qt @ C, C @ Q
    T = QtC @ Q
    eigen = np.linalg.eig(T)
    values: Complex = eigen.eigenvalues.astype(np.complex128)
    S: Complex = eigen.eigenvectors.astype(np.complex128)
    left = _inverse(S)
    # LAPACK gives unit columns of S, so that the rows of its inverse carry the condition numbers.
    kappa = np.linalg.norm(left, axis=2)
    rounding = 4 * n * unit * norms(C)
    distance = _DISTANCES[None, :] * norms(QtC)[:, None] + rounding[:, None]
    rest = np.exp((powers.log_scale[:, None] + np.log(nu[:, None] / _DISTANCES[None, :])) / m)

    # C Q S - Q S D = (C Q - Q T) S.
    residual = np.linalg.norm((CQ - Q @ T) @ S, axis=1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        growth = np.exp(powers.log_scale[:, None] - m * np.log(np.abs(values)))
        condition = np.maximum(kappa, np.linalg.norm(left @ Z, axis=2) * growth)
        lower = condition * (residual + rounding[:, None])
    lower = np.where(np.isfinite(lower), lower, np.inf)
    return Ritz(values, kappa[:, None, :] * distance[:, :, None], rest, lower)


def _inverse(S: Complex) -> Complex:
    """S^-1 [b, k, k]; infinite where a matrix is singular, so that nothing is decided from it."""
    inverse: Complex = np.full_like(S, np.inf)
    try:
        inverse[:] = np.linalg.inv(S)
    except np.linalg.LinAlgError:
        for place, each in enumerate(S):
            try:
                inverse[place] = np.linalg.inv(each)
            except np.linalg.LinAlgError:
                continue
    return inverse


def quotient_bounds(
    spectrum: Ritz, corners: Complex128[Complex, "b p v"], largest: Pairs
) -> tuple[Pairs, Pairs]:
    """(low, high) of max over pairs |1 + h a| over the corners [b, p, v], largest [b, p]: [b, p].

    Error estimates enter `SAFETY` times.
    """
    moduli = np.abs(multipliers(spectrum.values[:, None], corners))
    size = np.abs(corners)[:, :, None, :]
    low = (moduli - SAFETY * size * spectrum.lower_errors[:, None, :, None]).max(axis=(2, 3))
    high = np.full(largest.shape, np.inf)
    reach = np.abs(spectrum.values)
    for k in range(spectrum.rest.shape[1]):
        errors = SAFETY * spectrum.upper_errors[:, k]
        counts = reach + errors >= spectrum.rest[:, k, None]
        tops = (moduli + size * errors[:, None, :, None]).max(axis=3)
        near = np.where(counts[:, None, :], tops, 0.0).max(axis=2)
        high = np.minimum(high, np.maximum(near, 1 + largest * spectrum.rest[:, k, None]))
    return low, high
