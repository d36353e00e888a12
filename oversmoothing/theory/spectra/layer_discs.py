"""Discs of the spectra of a layer: of A without one eigenvalue 1, of H and of a head (T1, T10).

A acts on differences between tokens through B = Q^T A Q (T1c), formed as in `spectra.residuals`:
with m the means of the columns, C = A - 1 m^T and rho = sqrt(n) + 1,

    B_ij = C_ij - C_i0 / rho - C_0j / rho + C_00 / rho^2,  i, j >= 1.

Each term passes at most eleven roundings: one for C, four for each 1 / rho and two for the sums. A
change of A, and what rounding does to m, go through the same four terms. A causal A shows its
spectrum on the diagonal.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.quotient import quotient
from oversmoothing.theory.layer.softmax_in_floats import of_others
from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    gamma,
    inflated,
    upper_product,
    upper_sum,
)
from oversmoothing.theory.spectra.discs import (
    Discs,
    Failure,
    enclose,
    enclose_all,
    interval_discs,
    with_zeros,
)
from oversmoothing.theory.spectra.spectrum import eigenvalues
from oversmoothing.theory.support.arrays import Array


def attention_discs(A: Array, error: Array | None = None, keep: bool = False) -> Discs | Failure:
    """spec(A) without one copy of 1, A [n, n] float64 >= 0.

    Without error for exactly A_ij / sum_k A_ik; with it for every row-stochastic A' with
    |A' - A| <= error entrywise. keep: with the basis of B, unless A is causal.
    """
    return attention_discs_all(A[None], None if error is None else error[None], keep)[0]


def attention_discs_all(
    A: Array, error: Array | None = None, keep: bool = False
) -> list[Discs | Failure]:
    """`attention_discs` for each of a stack [m, n, n]."""
    if error is None:
        A, error = normalised(A)
    causal = np.asarray(~np.triu(A + error, 1).any(axis=(-2, -1)))
    dense = iter(enclose_all(*quotient_within(A[~causal], error[~causal]), keep))
    return [
        # T1h: the spectrum of a lower triangular A is its diagonal, and A_11 = 1.
        interval_discs(np.diag(each)[1:], np.diag(slack)[1:]) if triangular else next(dense)
        for each, slack, triangular in zip(A, error, causal.tolist(), strict=True)
    ]


def normalised(A: Array, relative: float = 0.0) -> tuple[Array, Array]:
    """(A / its row sums, error) for every A' >= 0 with |A' - A| <= relative A, over its row sums.

    The sum of n terms and one division round n times on numbers >= 0; what a change of the entries
    does to the shares is that of `of_others`. A 0 stays one.
    """
    zero = A == 0
    A = A / A.sum(axis=-1, keepdims=True)
    wide = np.asarray(gamma(A.shape[-1] + 2))
    if relative:
        spread = 2 * relative / (1 - relative) * of_others(inflated(A, A.shape[-1] + 4))
        wide = inflated(wide * (1 + spread) + spread, 4)
    return A, np.where(zero, 0.0, inflated(wide * A, 6))


def quotient_within(A: Array, error: Array) -> tuple[Array, Array]:
    """(B, bound): |Q^T A' Q - B| <= bound for every row-stochastic A' with |A' - A| <= error.

    A, error [m, n, n], B [m, n-1, n-1].
    """
    n = A.shape[-1]
    root = np.sqrt(n) + 1.0
    means = A.mean(axis=-2, keepdims=True)
    C = A - means
    # A change minus its mean over the column is at most (1 - 2 / n) |change| + mean |change|.
    change = inflated(error.mean(axis=-2, keepdims=True) + gamma(n + 1) * means, n + 2)
    change = change + error * max(0.0, 1 - 2 / n)
    bound = _differences(np.stack([np.abs(C), change]), root, 1.0)
    bound = inflated(gamma(11) * bound[0] + bound[1], 16)
    return _differences(C, root, -1.0), bound


def _differences(C: Array, root: float, sign: float) -> Array:
    half = C[..., :, 1:] + sign / root * C[..., :, :1]
    result: Array = half[..., 1:, :] + sign / root * half[..., :1, :]
    return result


def value_discs(H: Array) -> Discs | Failure:
    """spec(H) for H [d, d], taken as the exact binary64 numbers."""
    return enclose(np.ascontiguousarray(H))


def head_discs(
    W_V: Array, W_proj: Array, relative: float = 0.0, keep: bool = False
) -> Discs | Failure:
    """spec of W_V W_proj, W_V [d, r], W_proj [r, d]: the r x r core in discs, and d - r zeros.

    For all factors whose entries are within `relative` of these; the basis is that of the core.
    """
    d, r = W_V.shape
    core = enclose(*core_within(W_V, W_proj, relative), keep)
    return core if r >= d or isinstance(core, Failure) else with_zeros(core, d - r)


def core_within(W_V: Array, W_proj: Array, relative: float = 0.0) -> tuple[Array, Array]:
    """(core, error): W_proj W_V [r, r], or W_V W_proj [d, d] where r >= d, within the rounding of
    the product and what the factors may be off by."""
    d, r = W_V.shape
    first, second = (W_V, W_proj) if r >= d else (W_proj, W_V)
    k = first.shape[1]
    wide = (gamma(k + 2) + 2 * relative + relative**2) * (1 + 8 * UNIT)
    # Products of zeros are zeros; others lose what is below all numbers.
    some = (first != 0).astype(float) @ (second != 0) > 0
    error = upper_product(np.abs(first), np.abs(second)) * wide + k * TINY
    return first @ second, np.where(some, error, 0.0)


def within_unit(A: Array) -> Discs:
    """spec(A) without one copy of 1 where nothing but |a| <= 1 is known of it."""
    return _within(np.linalg.eigvals(quotient(A)), 1.0)


def within_norm(H: Array, relative: float = 0.0) -> Discs:
    """spec(H) where nothing but |h| <= the largest row sum of |H| is known of it."""
    # What overflows is infinite, and bounds nothing.
    with np.errstate(over="ignore"):
        size = float(upper_sum(np.abs(H) * (1 + 2 * relative)).max())
        return _within(eigenvalues(H, rounded=True).values, size)


def _within(centres: NDArray[Any], size: float) -> Discs:
    values = centres.astype(np.complex128)
    radii = inflated(np.abs(values) + size, 4)
    return Discs(values, radii, np.zeros(len(values), dtype=np.intp))
