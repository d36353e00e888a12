"""Rates per layer, the effective rank they lead to, Jordan structure (T4c, T5, T6a).

Spectra come in as plain arrays: `a` [n-1] the eigenvalues of attention without one copy of 1
(T1c), `h` [d] those of H = W^T. Depth bounds are in theory.depth.bounds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.spectra.algebraic import Factor, eigenvalues, factors
from oversmoothing.theory.spectra.layer_discs import multipliers
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Complex

# -------------------------------------------------------------------------------------- rates


def _values(values: ArrayLike, name: str) -> Complex:
    array = np.asarray(values, dtype=np.complex128)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{name} must be a list of finite eigenvalues, not shape {array.shape}")
    return array


def all_multipliers(a: ArrayLike, h: ArrayLike) -> Complex:
    """mu_ij = 1 + h_j a_i, complex [n, d]; the last row is consensus, a_n = 1 (T1a).

    a: [n-1], without one copy of 1; h: [d], d >= 1. Raises `InputError` on other shapes.
    """
    attention, value = _values(a, "a"), _values(h, "h")
    if len(value) == 0:
        raise InputError("h is empty: H has at least one eigenvalue")
    return multipliers(np.append(attention, 1.0), value)


def ratio_rate(a: ArrayLike, h: ArrayLike) -> float:
    """r = rho_Q / rho_C: what ||HFC||/||c|| is multiplied by per layer (T5a, T6b).

    Below 1 it is the rate of HFC/LFC -> 0 too. inf where rho_C = 0, 0.0 where n = 1.
    """
    modulus = np.abs(all_multipliers(a, h))
    rho_c, rho_q = float(modulus[-1].max()), float(modulus[:-1].max(initial=0.0))
    if rho_c == 0:
        return float("inf") if rho_q > 0 else 0.0
    return rho_q / rho_c


def rank_rate_over_pairs(a: ArrayLike, h: ArrayLike) -> float:
    """r_sigma = max |mu_ij mu_kl| / rho^2 over i != k and j != l, indices with multiplicity (T4c).

    The definition, over all (n d)^2 pairs of pairs. 0.0 where n = 1 or d = 1.
    """
    modulus = np.abs(all_multipliers(a, h))
    n, d = modulus.shape
    product = modulus[:, :, None, None] * modulus[None, None, :, :]
    same_row = np.eye(n, dtype=bool)[:, None, :, None]
    same_column = np.eye(d, dtype=bool)[None, :, None, :]
    allowed = np.where(same_row | same_column, 0.0, product)
    top = float(modulus.max())
    return 0.0 if top == 0 else float(allowed.max()) / top**2


def rank_rate(a: ArrayLike, h: ArrayLike) -> float:
    """r_sigma in O(n d), the rate of sigma_2/sigma_1 of X_L for generic X_0 (T5b).

    With (I, J) any pair of largest modulus, unique or not,
    r_sigma = max{ max_{i!=I, j!=J} |mu_ij| / rho,  max_{j!=J} |mu_Ij| max_{i!=I} |mu_iJ| / rho^2 }.
    """
    modulus = np.abs(all_multipliers(a, h))
    rho = float(modulus.max())
    if rho == 0:
        return 0.0
    row, column = np.unravel_index(int(np.argmax(modulus)), modulus.shape)
    rest = np.delete(np.delete(modulus, row, axis=0), column, axis=1)
    along = float(np.delete(modulus[row], column).max(initial=0.0))
    across = float(np.delete(modulus[:, column], row).max(initial=0.0))
    return max(float(rest.max(initial=0.0)) / rho, along * across / rho**2)


def angle_rate(a: ArrayLike, h: ArrayLike) -> float:
    """r_sigma^2: the rate of the largest 1 - |cos| over pairs of tokens (T5b).

    Holds in SMOOTHING, and wherever all dominant pairs share one simple real a whose eigenvector
    has no zero entry.
    """
    return rank_rate(a, h) ** 2


# ------------------------------------------------------------------------------ effective rank


def effective_rank_excess(ratios: ArrayLike) -> float:
    """erank - 1 from s_i = sigma_i / sigma_1, i >= 2, exactly: (1 + S) e^(E/(1+S)) - 1 (T5c).

    S = sum s_i, E = sum s_i log(1/s_i); ratios: [m] in [0, 1]. No cancellation for small s.
    """
    S, E = _sum_and_entropy(ratios)
    return float(S + (1 + S) * np.expm1(E / (1 + S)))


def effective_rank_excess_expanded(ratios: ArrayLike, order: int) -> float:
    """S + E + sum over 2 <= k <= order of E^k / k!: erank - 1 up to O(E^(order+1)) for order <= 2.

    order 1: sum s_i (1 + log 1/s_i). order 2: the term (1/2) E^2 too, (1/2) eps^2 log^2 eps for
    one eps (T5c). Raises `InputError` for other orders.
    """
    if order not in (1, 2):
        raise InputError(f"order {order} must be 1 or 2")
    S, E = _sum_and_entropy(ratios)
    return S + sum(E**k / factorial(k) for k in range(1, order + 1))


def _sum_and_entropy(ratios: ArrayLike) -> tuple[float, float]:
    s = np.asarray(ratios, dtype=np.float64).ravel()
    if not ((s >= 0) & (s <= 1)).all():
        raise InputError("ratios must be sigma_i / sigma_1 for i >= 2, between 0 and 1")
    s = s[s > 0]
    return float(s.sum()), float(-(s * np.log(s)).sum())


# ------------------------------------------------------------------------------------ Jordan


def kronecker_jordan_sizes(p: int, h_is_zero: bool, q: int, a_is_zero: bool) -> list[int]:
    """Sizes of the Jordan blocks of J_p(h) (x) J_q(a), largest first (T6a).

    J_p(h) (x) J_q(a) - h a is the nilpotent part of I + H (x) A there. Raises `InputError` unless
    p, q >= 1.
    """
    if p < 1 or q < 1:
        raise InputError(f"block sizes {p}, {q} must be at least 1")
    small, large = min(p, q), max(p, q)
    if h_is_zero and a_is_zero:
        repeated = [k for k in range(small - 1, 0, -1) for _ in range(2)]
        return [small] * (large - small + 1) + repeated
    if a_is_zero:
        return [q] * p
    if h_is_zero:
        return [p] * q
    return [p + q - 1 - 2 * k for k in range(small)]


@dataclass(frozen=True, eq=False)
class JordanClass:
    """The eigenvalue pairs (h, a) with h a root of `value` and a of `attention`.

    sizes: of the Jordan blocks of I + H (x) A that each such pair contributes at 1 + h a, largest
    first. count: how many pairs there are. Pairs with the same 1 + h a join their blocks.
    """

    value: Factor
    attention: Factor
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        return self.value.degree * self.attention.degree


def jordan_type(A: Matrix, H: Matrix) -> list[JordanClass]:
    """The Jordan structure of I + H (x) A on rational input, exactly, class by class (T6a).

    A [n, n] (all of it, consensus included) and H [d, d] in fractions.
    """
    classes = []
    for value in factors(H):
        for attention in factors(A):
            h_is_zero = eigenvalues([value])[0].is_zero
            a_is_zero = eigenvalues([attention])[0].is_zero
            sizes: list[int] = []
            for p in value.jordan:
                for q in attention.jordan:
                    sizes += kronecker_jordan_sizes(p, h_is_zero, q, a_is_zero)
            classes.append(JordanClass(value, attention, tuple(sorted(sizes, reverse=True))))
    return classes


def block_sizes(classes: Iterable[JordanClass]) -> dict[int, int]:
    """How many Jordan blocks of each size I + H (x) A has altogether."""
    total: dict[int, int] = {}
    for one in classes:
        for size in one.sizes:
            total[size] = total.get(size, 0) + one.count
    return dict(sorted(total.items()))
