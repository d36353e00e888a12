"""Numbers with bounds: float64 with what rounding does to it, FLINT's balls, scaled arrays; sums,
products and states of float64 in two parts, and their words.

Model of products (what makes BLAS a proof): IEEE 754 binary64, round to nearest, products summed
conventionally in any order, with or without fused multiply-add (every BLAS that numpy ships with;
not Strassen's algorithm). With u = 2^-53 and gamma_k = k u / (1 - k u), a computed inner product of
length k differs from the exact one by at most gamma_k |x|^T |y| + k 2^-1074 (Higham, Accuracy and
Stability, section 3.1, with gradual underflow). Bounds computed in floats are inflated so that they
stay bounds.

A scaled array has a power of two apart (T11.5): multiplying by one is exact, so that a state may
grow or shrink by any number of layers. simulations.state does the same to batches of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers import flint
from oversmoothing.theory.support.sizes import Array

UNIT = 2.0**-53
# Smallest positive subnormal: the most that one product can lose to underflow.
TINY = 2.0**-1074


@cache
def gamma(k: int) -> float:
    """k u / (1 - k u), rounded up. Raises `ValueError` for k u >= 1/2, where it means nothing."""
    if k * UNIT >= 0.5:
        raise ValueError(f"inner products of length {k} have no useful rounding bound")
    return k * UNIT / (1 - k * UNIT) * (1 + 8 * UNIT)


def inflated(x: Array, operations: int) -> Array:
    """x >= 0, computed by at most that many roundings on top of exact data, as an upper bound."""
    return x * (1 + 2 * gamma(operations + 2)) + operations * TINY


def upper_product(P: Array, Q: Array) -> Array:
    """An upper bound on P Q for P, Q >= 0 (each already an upper bound)."""
    return inflated(P @ Q, P.shape[-1])


def upper_sum(P: Array) -> Array:
    """An upper bound on the sum of P >= 0 along its last axis."""
    return inflated(P.sum(axis=-1), P.shape[-1])


def of_others(A: Array) -> Array:
    """An upper bound of 1 - A_ij [..., n, n] for rows that sum to 1: 1, and where an entry may be
    above 1/2 (the largest of its row) the sum of the others.

    Where weights change by factors 1 + d_ij, |d| <= e, the shares A_ij change by at most
    A_ij |d_ij - sum_k A_ik d_ik| / (1 - e) <= 2 e (1 - A_ij) A_ij / (1 - e).
    """
    rows = A.reshape(-1, A.shape[-1])
    places = np.arange(len(rows)), rows.argmax(axis=1)
    others = rows.copy()
    others[places] = 0.0
    result = np.ones_like(rows)
    result[places] = np.minimum(1.0, upper_sum(others))
    return result.reshape(A.shape)


@dataclass(frozen=True)
class Bounded:
    """A complex array within `error` of `value`, entry by entry.

    Differences and products hold for all arrays within those that they are taken of.
    """

    value: NDArray[Any]
    error: Array

    @staticmethod
    def near(M: NDArray[Any], relative: float = UNIT) -> Bounded:
        """All whose entries are within `relative` of those of M; 0 stands for 0 alone."""
        return Bounded(M, np.where(M == 0, 0.0, inflated(relative * np.abs(M), 2)))

    def __getitem__(self, part: Any) -> Bounded:
        return Bounded(self.value[part], self.error[part])

    @property
    def T(self) -> Bounded:
        return Bounded(self.value.T, self.error.T)

    def __sub__(self, other: Bounded) -> Bounded:
        value = self.value - other.value
        return Bounded(value, inflated(self.error + other.error + UNIT * np.abs(value), 4))

    def __matmul__(self, other: Bounded) -> Bounded:
        """The product, of vectors without conjugation."""
        size, more, k = np.abs(self.value), np.abs(other.value), self.value.shape[-1]
        error = size @ other.error + self.error @ (more + other.error)
        rounding = 2 * gamma(2 * k + 2) * (size @ more) + 2 * k * TINY
        return Bounded(
            np.asarray(self.value @ other.value), inflated(np.asarray(error + rounding), 2 * k + 8)
        )

    @property
    def nonzero(self) -> NDArray[np.bool_]:
        """Of each entry whether it is shown not to be 0."""
        shown: NDArray[np.bool_] = np.abs(self.value) > self.error * (1 + 8 * UNIT)
        return shown

    def norm(self) -> tuple[float, float]:
        """Bounds of ||x||, of a matrix that of Frobenius: each entry as small or large as it may
        be. Squares that underflow cost less than the last term."""
        size, wide = np.abs(self.value), gamma(2 * self.value.size + 16)
        least = np.maximum(size * (1 - 8 * UNIT) - self.error, 0.0)
        low, high = (float(np.linalg.norm(x)) for x in (least, size + self.error))
        return max(0.0, low * (1 - wide) - 2.0**-500), high * (1 + wide) + 2.0**-500


def mean_of(X: Bounded) -> Bounded:
    """The mean of the rows."""
    n = len(X.value)
    return Bounded.near(np.full(n, 1 / n)) @ X


def solved(M: Bounded, b: Bounded) -> Bounded | None:
    """x [k, ...] with M' x = b' for every M' within M [k, k] and every b' within b [k, ...].

    With S ~ M^-1 and |I - S M'| <= D, x - S b is at most e = |S| |b' - M' S b| and
    max e (row sums of D) / (1 - their largest). None where that is not below 1.
    """
    k = len(M.value)
    try:
        S = np.linalg.inv(M.value)
    except np.linalg.LinAlgError:
        return None
    with np.errstate(all="ignore"):
        x, size, wide = S @ b.value, np.abs(S), 2 * gamma(2 * k + 4)
        off = inflated(M.error + wide * np.abs(M.value), 4)
        rows = inflated(np.abs(np.eye(k) - S @ M.value), 4) + upper_product(size, off)
        sums = upper_sum(rows) if k else np.zeros(0)
        largest = float(sums.max(initial=0.0))
        if not largest < 0.5:
            return None
        left = np.abs(b.value - M.value @ x) + off @ np.abs(x) + b.error + wide * np.abs(b.value)
        e = inflated(size @ inflated(left, 2 * k + 8), k + 2)
        more = np.multiply.outer(sums, e.max(axis=0, initial=0.0))
        bound = inflated(e + more / (1 - largest), 8)
    return Bounded(x, bound) if np.isfinite(bound).all() else None


# From the smallest subnormal past the largest float: beyond it is 0 or inf in any case.
_REACH = 2200


def scale(x: Array, exponent: int) -> Array:
    """x 2^exponent, exact but for over- and underflow."""
    return np.ldexp(x, max(-_REACH, min(_REACH, exponent)))


def normalise(x: Array, exponent: int = 0) -> tuple[Array, int]:
    """(y, e) with 2^exponent x = 2^e y and the largest entry of y in [1/2, 1).

    Zero and non-finite x stay as they are.
    """
    top = float(np.abs(x).max(initial=0.0))
    if top == 0.0 or not math.isfinite(top):
        return x, exponent
    shift = math.frexp(top)[1]
    return scale(x, -shift), exponent + shift


def add(a: Array, a_exponent: int, b: Array, b_exponent: int) -> tuple[Array, int]:
    """2^a_exponent a + 2^b_exponent b as (value, exponent), the larger of the non-zero parts."""
    if not b.any():
        return a, a_exponent
    if not a.any():
        return b, b_exponent
    top = max(a_exponent, b_exponent)
    return scale(a, a_exponent - top) + scale(b, b_exponent - top), top


def at_precision(bits: int) -> AbstractContextManager[Any]:
    """A context in which ball arithmetic works with `bits` bits."""
    return flint.ctx.workprec(bits)


def doublings(first: int, most: int) -> Iterator[int]:
    """Working precisions to try one after the other: first, 2 first, 4 first ... up to most."""
    while first <= most:
        yield first
        first *= 2


def to_ball(x: Fraction) -> flint.arb:
    """A ball around a fraction, at the precision of the context."""
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def around(x: flint.acb, radius: Any) -> flint.acb:
    """The ball of that radius more around x."""
    return x + flint.acb(flint.arb(0, radius), flint.arb(0, radius))


def largest(values: Iterable[flint.arb]) -> flint.arb:
    """A ball around the largest of several real numbers, each known by a ball; 0 of none."""
    known = list(values)
    if not known:
        return flint.arb(0)
    low = reduce(lambda x, y: x.max(y), (value.lower() for value in known))
    return low.union(reduce(lambda x, y: x.max(y), (value.upper() for value in known)))


def norm(entries: Iterable[flint.acb]) -> flint.arb:
    """sqrt(sum |x|^2) of complex balls."""
    return sum((x.real * x.real + x.imag * x.imag for x in entries), flint.arb(0)).sqrt()


# An array, or a tensor.
Floats = TypeVar("Floats", bound=Any)


def accurate_product(A: Array, X: Array) -> tuple[Array, Array]:
    """(high, low): A X = high + low to about n 2^-72 (max |A_i|) (max |X_j|), entry by entry.

    A [m, n], X [n, k], float64 and finite. Four products of matrices: each factor is split in two
    so that the product of the leading parts, which have few bits, is free of rounding (after Ozaki,
    Ogita, Oishi, Rump 2012); the other three are small beside it.
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
    """X_L = 2^log2_hfc_scale hfc + 1 (2^log2_mean_scale mean): hfc [..., n, d], mean [..., d].

    The two scales [...] are separate, so that neither part swamps the other at great depth.
    """

    depth: int
    hfc: Array
    mean: Array
    log2_hfc_scale: Any
    log2_mean_scale: Any

    @property
    def log_hfc_lfc(self) -> Any:
        """log(||HFC||_F / ||LFC||_F) [...], a float of one state; nan where both vanish."""
        hfc = np.linalg.norm(self.hfc, axis=(-2, -1))
        lfc = np.linalg.norm(self.mean, axis=-1) * np.sqrt(self.hfc.shape[-2])
        scale = (self.log2_hfc_scale - self.log2_mean_scale) * np.log(2.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(hfc) - np.log(lfc) + scale


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
