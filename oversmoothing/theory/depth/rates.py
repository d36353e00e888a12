"""Rates per layer, and the effective rank they lead to (T4c, T5).

Spectra come in as plain arrays: `a` [n-1] the eigenvalues of attention without one copy of 1
(T1c), `h` [d] those of H = W^T. Depth bounds are in theory.depth.bounds.
"""

import numpy as np
from numpy.typing import ArrayLike

from oversmoothing.theory.spectra.layer_discs import multipliers
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Complex

# -------------------------------------------------------------------------------------- rates


def _values(values: ArrayLike, name: str) -> Complex:
    array = np.asarray(values, dtype=np.complex128)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{name} must be a list of finite eigenvalues, not shape {array.shape}")
    return array


def rank_rate(a: ArrayLike, h: ArrayLike) -> float:
    """r_sigma = max |mu_ij mu_kl| / rho^2 over i != k and j != l, indices with multiplicity: the
    rate of sigma_2/sigma_1 of X_L for generic X_0 (T4c, T5b). 0.0 where n = 1 or d = 1. Its square
    is that of the largest 1 - |cos| over pairs of tokens: in SMOOTHING, and wherever all dominant
    pairs share one simple real a whose eigenvector has no zero entry.

    In O(n d): with (I, J) any pair of largest modulus, unique or not,
    r_sigma = max{ max_{i!=I, j!=J} |mu_ij| / rho,  max_{j!=J} |mu_Ij| max_{i!=I} |mu_iJ| / rho^2 }.
    Raises `InputError` on other shapes.
    """
    attention, value = _values(a, "a"), _values(h, "h")
    if len(value) == 0:
        raise InputError("h is empty: H has at least one eigenvalue")
    modulus = np.abs(multipliers(np.append(attention, 1.0), value))
    rho = float(modulus.max())
    if rho == 0:
        return 0.0
    row, column = np.unravel_index(int(np.argmax(modulus)), modulus.shape)
    rest = np.delete(np.delete(modulus, row, axis=0), column, axis=1)
    along = float(np.delete(modulus[row], column).max(initial=0.0))
    across = float(np.delete(modulus[:, column], row).max(initial=0.0))
    return max(float(rest.max(initial=0.0)) / rho, along * across / rho**2)


# ------------------------------------------------------------------------------ effective rank


def effective_rank_excess(ratios: ArrayLike) -> float:
    """erank - 1 from s_i = sigma_i / sigma_1, i >= 2, exactly: (1 + S) e^(E/(1+S)) - 1 (T5c).

    S = sum s_i, E = sum s_i log(1/s_i); ratios: [m] in [0, 1]. No cancellation for small s.
    """
    s = np.asarray(ratios, dtype=np.float64).ravel()
    if not ((s >= 0) & (s <= 1)).all():
        raise InputError("ratios must be sigma_i / sigma_1 for i >= 2, between 0 and 1")
    s = s[s > 0]
    S, E = s.sum(), -(s * np.log(s)).sum()
    return float(S + (1 + S) * np.expm1(E / (1 + S)))
