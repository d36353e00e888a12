"""Bounds on the spectra of a batch of attention matrices, from powers of C = A - 1 w^T (T3).

C has the spectrum of A but for the eigenvalue 1, which becomes 1 - w^T 1 (Brauer): with w the
column means, as computed, it is about 0, and rounding in w is harmless. Every eigenvalue of C is at
most ||C^m||_F^(1/m) in modulus (Gelfand). Powers are formed by repeated squaring, each scaled to
norm 1, with a bound on what rounding did to them.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import NDArray

from oversmoothing.theory.support.sizes import Array

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
