"""Ritz values of the dominant subspace of C, and what they leave possible (T3).

With Q [n, k] orthonormal, C^m = Q Z + N, Z = Q^T C^m and nu = ||N||: if C x = lambda x, ||x|| = 1,
then lambda^m (I - Q Q^T) x = (I - Q Q^T) N x, so that the distance of x from the range of Q is at
most nu / |lambda|^m. So every eigenvalue with |lambda| >= (nu / delta)^(1/m) has its eigenvector
within delta of the range of Q and, with x = Q s + e, ||T s - lambda s|| <= delta ||Q^T C|| for
T = Q^T C Q: it lies within about delta ||Q^T C|| kappa of an eigenvalue of T of condition kappa.
All others lie in the disc of that radius. This bounds rho_Q from above, for each delta.

From below, a Ritz value theta with residual ||C x - theta x|| = res has an eigenvalue within about
res times its condition number; the left vector for that comes for nothing: t^H Z / theta^m is the
left eigenvector of C for t^H T = theta t^H but for terms of order (rest / theta)^m.

Condition numbers are first order: a decision needs `SAFETY` times the error that they give.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float64

from oversmoothing.simulations.spectra.head_values import SAFETY
from oversmoothing.simulations.spectra.powers import Powers, norms
from oversmoothing.theory.spectra.layer_discs import multipliers
from oversmoothing.theory.support.sizes import Array, Complex

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
    found: Complex = np.full_like(S, np.inf)
    try:
        found[:] = np.linalg.inv(S)
    except np.linalg.LinAlgError:
        for place, each in enumerate(S):
            try:
                found[place] = np.linalg.inv(each)
            except np.linalg.LinAlgError:
                continue
    return found


def quotient_bounds(
    found: Ritz, corners: Complex128[Complex, "b p v"], largest: Pairs
) -> tuple[Pairs, Pairs]:
    """(low, high) of max over pairs |1 + h a| over the corners [b, p, v], largest [b, p]: [b, p].

    Error estimates enter `SAFETY` times.
    """
    moduli = np.abs(multipliers(found.values[:, None], corners))
    size = np.abs(corners)[:, :, None, :]
    low = (moduli - SAFETY * size * found.lower_errors[:, None, :, None]).max(axis=(2, 3))
    high = np.full(largest.shape, np.inf)
    reach = np.abs(found.values)
    for k in range(found.rest.shape[1]):
        errors = SAFETY * found.upper_errors[:, k]
        counts = reach + errors >= found.rest[:, k, None]
        tops = (moduli + size * errors[:, None, :, None]).max(axis=3)
        near = np.where(counts[:, None, :], tops, 0.0).max(axis=2)
        high = np.minimum(high, np.maximum(near, 1 + largest * found.rest[:, k, None]))
    return low, high
