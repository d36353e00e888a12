"""Products of float64 matrices with some 20 digits, at the speed of BLAS.

Each factor is split in two so that the product of the leading parts, which have few bits, is free
of rounding (after Ozaki, Ogita, Oishi, Rump 2012); the other three are small beside it. Where a
depth of 1e9 multiplies the error of an eigenvalue by 1e9, its residual is formed in this way.
"""

import numpy as np

from oversmoothing.theory.support.arrays import Array


def accurate_product(A: Array, X: Array) -> tuple[Array, Array]:
    """(high, low): A X = high + low to about n 2^-72 (max |A_i|) (max |X_j|), entry by entry.

    A [m, n], X [n, k], float64 and finite. Four products of matrices; portable: no extended
    precision of the processor is used.
    """
    n, k = A.shape[1], X.shape[1]
    bits = (53 - max(1, (n - 1).bit_length())) // 2
    A_top, A_rest, A_scale = _split(A, 1, bits)
    X_top, X_rest, X_scale = _split(X, 0, bits)
    both = np.concatenate((X_top, X_rest), axis=1)
    top, rest = A_top @ both, A_rest @ both
    high, low = two_sum(top[:, :k], top[:, k:] + (rest[:, :k] + rest[:, k:]))
    for factor in (A_scale, X_scale):
        if factor is not None:
            high, low = high * factor, low * factor
    return high, low


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """(s, e) with s = fl(a + b) and s + e = a + b exactly (Knuth)."""
    s = a + b
    back = s - a
    return s, (a - (s - back)) + (b - back)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """(p, e) with p = fl(a b) and p + e = a b exactly (Dekker), barring over- and underflow."""
    p = a * b
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Array) -> tuple[Array, Array]:
    shifted = a * 134217729.0  # 2^27 + 1
    top = shifted - (shifted - a)
    return top, a - top


def _split(M: Array, axis: int, bits: int) -> tuple[Array, Array, Array | None]:
    """M = scale (top + rest), each row (or column) of top multiples of a unit with `bits` bits.

    scale: powers of two, None where M needs none.
    """
    largest = np.maximum(M.max(axis=axis, keepdims=True), -M.min(axis=axis, keepdims=True))
    exponent = np.frexp(largest)[1].astype(np.int64)
    factor = None
    if np.abs(exponent).max(initial=0) > 500:
        inside = np.clip(exponent, -1000, 1000)
        factor = np.ldexp(1.0, inside)
        M, exponent = M / factor, exponent - inside
    # Adding 1.5 2^52 units rounds to a multiple of the unit.
    shift = np.ldexp(1.5, 52 - bits + exponent)
    top = M + shift
    top -= shift
    return top, M - top, factor
