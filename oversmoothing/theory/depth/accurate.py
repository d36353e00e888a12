"""Sums, products and states in float64 with what rounding leaves of them, and their words."""

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from oversmoothing.theory.support.sizes import Array

# An array, or a tensor.
Floats = TypeVar("Floats", bound=Any)


def accurate_product(A: Array, X: Array) -> tuple[Array, Array]:
    """(high, low): A X = high + low to about n 2^-72 (max |A_i|) (max |X_j|), entry by entry.

    A [m, n], X [n, k], float64 and finite. Four products of matrices at the speed of BLAS; no
    extended precision of the processor is used. Each factor is split in two so that the product of
    the leading parts, which have few bits, is free of rounding (after Ozaki, Ogita, Oishi, Rump
    2012); the other three are small beside it.
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


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """(p, e) with p = fl(a b) and p + e = a b exactly (Dekker), barring over- and underflow.

    For float64 arrays of numpy and tensors alike.
    """
    p = a * b
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def to_quotient(hfc: Floats) -> Floats:
    """Q^T hfc [..., n-1, d] for centred hfc [..., n, d], Q as in `complement_basis`; O(n d).

    Q is the last n - 1 columns of I - u u^T / u_1, u = 1/sqrt(n) + e_1.
    """
    y: Floats = hfc[..., 1:, :] - hfc[..., :1, :] / (math.sqrt(hfc.shape[-2]) + 1.0)
    return y


def _halves(a: Floats) -> tuple[Floats, Floats]:
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


@dataclass(frozen=True)
class ScaledState:
    """X_L = 2^log2_hfc_scale hfc + 1 (2^log2_mean_scale mean): hfc [n, d], mean [d].

    The two scales are separate, so that neither part swamps the other at great depth.
    """

    depth: int
    hfc: Array
    mean: Array
    log2_hfc_scale: float
    log2_mean_scale: float

    @property
    def log_hfc_lfc(self) -> float:
        """log(||HFC||_F / ||LFC||_F); nan where both vanish."""
        hfc = float(np.linalg.norm(self.hfc))
        lfc = float(np.linalg.norm(self.mean)) * np.sqrt(len(self.hfc))
        if hfc == 0 or lfc == 0:
            return float("nan") if hfc == lfc else (-np.inf if hfc == 0 else np.inf)
        scale = (self.log2_hfc_scale - self.log2_mean_scale) * np.log(2.0)
        return float(np.log(hfc) - np.log(lfc) + scale)


def ratio_text(value: float | None, log: float | None = None, digits: int = 3) -> str:
    """A ratio to so many digits, '-' for none; from its natural logarithm where binary64 cannot
    hold it, as 3.4e-301031."""
    if log is None or not math.isfinite(log):
        return "-" if value is None or math.isnan(value) else f"{value:.{digits}g}"
    if value is not None and 1e-300 < value < math.inf:
        return f"{value:.{digits}g}"
    # The logarithm has 15 digits: those in front of its point are none of the mantissa.
    digits = min(digits, max(1, 14 - len(str(int(abs(log))))))
    power = log / math.log(10)
    exponent = math.floor(power)
    mantissa = f"{10 ** (power - exponent):.{digits}g}"
    if float(mantissa) >= 10:
        mantissa, exponent = "1", exponent + 1
    return f"{mantissa}e{exponent:+03d}"
