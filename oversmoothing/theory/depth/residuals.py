"""The two eigenproblems behind X' = X + A X W, with residuals in more digits than float64 (T1).

Tokens: B = Q^T A Q on the differences between tokens. Features: H = W^T, or for a head W = P Q of
rank r its r x r core G = Q P, whose spectrum is all of W's but d - r zeros.

A product for a residual has some 20 digits at the speed of BLAS: each factor is split in two so
that the product of the leading parts, which have few bits, is free of rounding (after Ozaki, Ogita,
Oishi, Rump 2012); the other three are small beside it. Where a depth of 1e9 multiplies the error of
an eigenvalue by 1e9, its residual is formed in this way.
"""

import numpy as np

from oversmoothing.theory.depth.eigenbasis import Eigenbasis, Solver
from oversmoothing.theory.layer.attention import stationary_distribution
from oversmoothing.theory.support.sizes import Array, Complex


class TokenModes:
    """pi and the eigenbasis of B = Q^T A Q for a row-stochastic A [n, n] (T1c-d).

    The exact matrix meant is A + (1 - A 1) pi^T: what rounding took from a row sum is given back
    in proportion to pi, which moves no eigenvalue but 1 (to first order: pi^T v = 0).
    offset [n]: 1/n - pi, so that mean = c + offset^T HFC.
    """

    def __init__(self, A: Array, pi: Array | None = None, solver: Solver | None = None) -> None:
        self.A = A
        self.pi = stationary_distribution(A) if pi is None else pi
        n = len(A)
        self.offset: Array = 1.0 / n - self.pi
        self.basis = Eigenbasis(fast_quotient(A), self._residual, solver)

    def _residual(self, vectors: Complex, values: Complex) -> Complex:
        n, k = len(self.A), len(values)
        x = from_quotient(np.concatenate((vectors.real, vectors.imag), axis=1))
        high, low = accurate_product(self.A, np.concatenate((x, np.ones((n, 1))), axis=1))
        deficit = (1.0 - high[:, 2 * k :]) - low[:, 2 * k :]
        high, low = high[:, : 2 * k], low[:, : 2 * k] + deficit * (self.pi @ x)
        high, low = _subtract_multiple(high, low, x, values)
        # Modulo consensus: the part along 1 is of order 1 and must go before the rounding.
        high, left = two_sum(high, np.broadcast_to(-high.mean(axis=0), high.shape))
        found = high + (left + low)
        found = to_quotient(found - found.mean(axis=0))
        return found[:, :k] + 1j * found[:, k:]


class FeatureModes:
    """The eigenbasis of H [d, d], or of the core G = Q P of a head W = P Q.

    P [d, r], Q [r, d]; both None for a dense H.
    """

    def __init__(
        self,
        *,
        H: Array | None = None,
        P: Array | None = None,
        Q: Array | None = None,
        solver: Solver | None = None,
    ) -> None:
        self.P, self.Q = P, Q
        if H is not None:
            self.name, matrix = "H", H
        else:
            assert P is not None and Q is not None
            self.name, matrix = "the core W_proj W_V of the head", (Q @ P).T
        self._matrix = matrix
        self.basis = Eigenbasis(matrix, self._residual, solver)
        if H is not None and len(H) == 1:
            self.basis.error[:] = 0.0  # the eigenvalue of a number is that number

    def _residual(self, vectors: Complex, values: Complex) -> Complex:
        k = len(values)
        x = np.concatenate((vectors.real, vectors.imag), axis=1)
        if self.P is None or self.Q is None:
            high, low = accurate_product(self._matrix, x)
        else:
            # G^T x = P^T (Q^T x), with what the rounding of G left out.
            middle, rest = accurate_product(self.Q.T, x)
            high, low = accurate_product(self.P.T, middle)
            low = low + self.P.T @ rest
        high, low = _subtract_multiple(high, low, x, values)
        found = high + low
        return found[:, :k] + 1j * found[:, k:]


def _subtract_multiple(high: Array, low: Array, x: Array, values: Complex) -> tuple[Array, Array]:
    """high + low - lambda x for x = [Re x, Im x], lambda complex, in two parts."""
    k = len(values)
    re, im = x[:, :k], x[:, k:]
    swapped = np.concatenate((im, re), axis=1)
    for factor, y in (
        (np.concatenate((values.real, values.real)), x),
        (np.concatenate((-values.imag, values.imag)), swapped),
    ):
        p, e = two_product(np.broadcast_to(factor, y.shape), y)
        high, left = two_sum(high, -p)
        low = low + (left - e)
    return high, low


def to_quotient(hfc: Array) -> Array:
    """Q^T hfc [n-1, k] for centred hfc [n, k], Q as in `complement_basis`; O(n k)."""
    return np.asarray(hfc[1:] - hfc[:1] / (np.sqrt(len(hfc)) + 1.0))


def from_quotient(y: Array) -> Array:
    """Q y [n, k], centred, for y [n-1, k]; O(n k)."""
    root = np.sqrt(len(y) + 1.0)
    s = y.sum(axis=0, keepdims=True) / root
    return np.concatenate((-s, y - s / (root + 1.0)))


def fast_quotient(A: Array) -> Array:
    """B = Q^T A Q [n-1, n-1] in O(n^2), A centred first (T1c)."""
    root = np.sqrt(len(A)) + 1.0
    centred = A - A.mean(axis=0)
    half = centred[:, 1:] - centred[:, :1] / root
    return np.asarray(half[1:] - half[:1] / root)


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
