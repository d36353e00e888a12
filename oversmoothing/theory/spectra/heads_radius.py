"""The radii of a layer of many heads (T7): of a matrix by discs, of an operator never formed by
Arnoldi's method, as far as a comparison asks for. A radius that is not known is None."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import UNIT, inflated
from oversmoothing.theory.spectra.discs import Discs, Failure, enclose
from oversmoothing.theory.spectra.heads import quotient_products, stacked
from oversmoothing.theory.spectra.layer_discs import EPS, Interval, minimum_by
from oversmoothing.theory.support.sizes import Array, Complex

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

# Up to this size of (n - 1) d LAPACK is quicker than what could go wrong without it.
DENSE_SIZE = 400
# Of ARPACK. Fewer vectors have been seen not to converge on weak heads; two wanted, for a pair.
_ARNOLDI_VECTORS, _WANTED = 80, 2
_RESTARTS = 30
# Of the residual, relative to what the heads add: what is left over is in the error.
_TOLERANCE = 1e-9
# The edge of a bulk of eigenvalues takes thousands of products to that tolerance. A comparison
# looks after so many vectors, and ends where the radii are as far apart, relative to the larger.
_VECTORS, _FAR = (40, 60, 80, 120, 160), 1e-3
# t of `_quick_radius`, the e-folds by which |M^k x| seldom falls short of 1 / t, the powers that
# may be needed, and what the bound leaves to the roundings of float32.
_DIXON, _FOLDS, _POWERS, _SINGLE = 3e-4, 14.0, 50, 1e-3


@dataclass(frozen=True)
class Radius:
    """A spectral radius.

    value: None where it is not known, for the `reason`. error: how far rounding or the residual may
    have moved it, of Arnoldi's method a first-order estimate from the condition of the eigenvalue.
    method: 'dense', 'arnoldi', or 'powers': then value + error is a bound and value an estimate.
    """

    value: float | None
    error: float
    method: str
    reason: str = ""

    @property
    def interval(self) -> Interval:
        value = self.value or 0.0
        return Interval(value - self.error, value + self.error, None, value)


def quotient_operator(layer: Layer, residual: bool = True) -> LinearOperator:
    """`quotient_products` on vectors, flattened row by row."""
    # Loaded for who asks for it: a verdict on one head starts without scipy.
    from scipy.sparse.linalg import LinearOperator

    shape = layer.n - 1, layer.d
    forward, turned = (
        lambda y, f=f: f(y.reshape(shape)).ravel() for f in quotient_products(layer, residual)
    )
    return LinearOperator((math.prod(shape),) * 2, forward, turned, dtype=np.float64)


def quotient_radius(
    layer: Layer, residual: bool = True, dense_size: int = DENSE_SIZE, beside: Radius | None = None
) -> Radius:
    """rho_Q, the spectral radius of `quotient_operator`; 0 for one token.

    Dense up to (n - 1) d = dense_size. Beyond, as far as tells it from the radius `beside`, where
    that is easy; else by ARPACK, to a residual of 1e-9 of what the heads add to the identity. The
    error does not see an eigenvalue that Arnoldi's method has not met.
    """
    size = (layer.n - 1) * layer.d
    if size == 0:
        return Radius(0.0, 0.0, "dense")
    if size <= max(dense_size, _WANTED + 2):
        B, H = quotient(stacked(layer.A)), stacked(layer.H)
        whole = np.asarray(sum(map(np.kron, H, B)))
        # Q^T A Q and the sum over the heads each round by about n eps of their size.
        rounding = 4 * layer.n * EPS * float(np.linalg.norm(whole) + np.linalg.norm(H))
        return _enclosed(whole, rounding, float(residual), "dense")
    operator, quick = quotient_operator(layer, residual), None
    if beside is not None and beside.value is not None:
        # Float32 has a smaller range: what leaves it is not quick.
        with np.errstate(all="ignore"):
            quick = _quick_radius(layer, residual, operator, beside.value, beside.error)
    return quick or _arnoldi_radius(operator, residual)


def dense_radius(M: Array, method: str) -> Radius:
    # The entries of M are rounded, each by a few eps of what it is the sum of.
    return _enclosed(M, 4 * EPS * len(M) ** 0.5 * float(np.linalg.norm(M)), 0.0, method)


def _enclosed(M: Array, rounding: float, shift: float, method: str) -> Radius:
    """max |shift + m| over spec(M) by discs, M rounded by about `rounding` (Frobenius): what that
    is rests on an estimate, the discs do not. Zeros of M are taken for zeros."""
    spectrum = enclose(M, np.where(M == 0, 0.0, rounding / len(M)))
    if isinstance(spectrum, Failure):
        moduli = np.abs(np.linalg.eigvals(M) + shift)
        return Radius(float(moduli.max()), float("inf"), method, spectrum.reason)
    bounds = modulus_interval(spectrum, shift)
    value = bounds.shown
    return Radius(value, max(bounds.high - value, value - bounds.low), method)


def modulus_interval(discs: Discs, shift: float) -> Interval:
    """max |shift + m| over the discs; exact where m = 0 is."""
    moduli = np.abs(discs.centres + shift)
    rounding = np.where((discs.centres == 0) & (discs.radii == 0), 0.0, 4 * UNIT * moduli)
    some, slack = rounding + discs.radii > 0, inflated(discs.radii + rounding, 4)
    low = np.where(some, np.nextafter(moduli - slack, -np.inf), moduli)
    high = np.where(some, np.nextafter(moduli + slack, np.inf), moduli)
    least = float(minimum_by(low, discs.component).max())
    return Interval(max(0.0, least), float(high.max()), None, float(moduli.max()))


def _quick_radius(
    layer: Layer, residual: bool, operator: LinearOperator, other: float, error: float
) -> Radius | None:
    """rho_Q as far as tells it from the other radius; None where that takes more.

    Arnoldi's method in float32 on both sides, its residual in float64. Where rho_Q seems well below
    the other radius, a bound that waits for no eigenvalue: of four Gaussian x_i,
    |M^k| <= max |M^k x_i| / t but with a probability of at most (t sqrt(2 / pi))^4 (Dixon 1983),
    4e-13 for all powers that are tried, and rho_Q <= |M^k|^(1/k).
    """
    right, left = (
        _Krylov(f, (layer.n - 1, layer.d), float(residual))
        for f in quotient_products(layer, False, np.float32)
    )
    for count in _VECTORS:
        if not (count < operator.shape[0] and right.grow(count)):
            break
        value, v, modulus = right.pair()
        if 0 < modulus < other and _POWERS * math.log(other / modulus) > _FOLDS:
            high = _power_bound(layer, residual, (other - error) * (1 - _SINGLE))
            if high is not None:
                return Radius(modulus, high - modulus, "powers")
        if not left.grow(count):
            break
        _, w, largest = left.pair(value.conjugate())
        rough = _judged(operator, value, v, w, largest)
        # Weak heads leave every eigenvalue near 1: far is relative to what they add.
        near = _FAR * min(other, abs(value - residual))
        gap = abs(other - modulus)
        if rough.value is not None and gap > near + 10 * rough.error:
            return rough
        if gap + 10 * rough.error < 2 * near:
            break
    return None


class _Krylov:
    """Arnoldi's basis V for sum_h B_h Y W_h or its transpose, in float32, that grows.

    product on [n-1, d]; shift is added to the eigenvalues.
    """

    def __init__(
        self, product: Callable[[Array], Array], shape: tuple[int, int], shift: float
    ) -> None:
        self._product, self._shape, self._shift = product, shape, shift
        start, most, self._count = _start(math.prod(shape), np.float32), _VECTORS[-1], 0
        self._V, self._H = np.empty((most + 1, len(start)), np.float32), np.zeros((most + 1, most))
        self._V[0] = start / np.linalg.norm(start)

    def grow(self, count: int) -> bool:
        """To so many vectors; whether none of them vanishes, or leaves the range of float32."""
        for j in range(self._count, count):
            V, w = self._V[: j + 1], self._product(self._V[j].reshape(self._shape)).ravel()
            before, left = math.inf, float(np.linalg.norm(w))
            # Again where most of it was in the span.
            while left < 0.7 * before:
                c = V @ w
                w -= c @ V
                self._H[: j + 1, j] += c
                before, left = left, float(np.linalg.norm(w))
            if not 0 < left < math.inf:
                return False
            self._H[j + 1, j], self._V[j + 1], self._count = left, w / np.float32(left), j + 1
        return True

    def pair(self, near: complex | None = None) -> tuple[complex, Complex, float]:
        """(value, vector) of the Ritz value of largest modulus, or nearest to one, and the largest
        modulus."""
        k = self._count
        values, Z = np.linalg.eig(self._H[:k, :k])
        values = values + self._shift
        i = int(np.argmax(abs(values)) if near is None else np.argmin(abs(values - near)))
        re, im = (x.astype(np.float32) @ self._V[:k] for x in (Z[:, i].real, Z[:, i].imag))
        return complex(values[i]), re + 1j * im.astype(np.float64), float(abs(values).max())


def _power_bound(layer: Layer, residual: bool, below: float) -> float | None:
    """A bound of rho_Q below that; None where it takes too many powers."""
    product = quotient_products(layer, residual, np.float32)[0]
    Y = _start((4, layer.n - 1, layer.d), np.float32)
    log = -math.log(_DIXON)
    for k in range(1, 2 * _POWERS):
        Y = product(Y)
        size = np.linalg.norm(Y.reshape(4, -1), axis=1).max()
        Y /= size
        log += float(np.log(size))
        if log < k * math.log(below):
            return math.exp(log / k)
    return None


def _start(size: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
    return np.random.default_rng(2401_04301).standard_normal(size).astype(dtype)


def _arnoldi_radius(operator: LinearOperator, with_identity: bool) -> Radius:
    from scipy.sparse.linalg import ArpackError, eigs

    size = operator.shape[0]
    start = _start(size)
    moved = operator.matvec(start) - (start if with_identity else 0.0)
    # Weak heads leave every eigenvalue near 1: relative to 1, any vector would be converged.
    added = min(1.0, float(np.linalg.norm(moved) / np.linalg.norm(start)))
    largest = partial(
        eigs, k=min(_WANTED, size - 2), ncv=min(_ARNOLDI_VECTORS, size - 1), which="LM", v0=start,
        maxiter=_RESTARTS, tol=max(EPS, _TOLERANCE * added),
    )  # fmt: skip
    try:
        (values, right), (left_values, left) = largest(operator), largest(operator.H)
    except ArpackError as failure:
        return Radius(None, math.inf, "arnoldi", f"Arnoldi's method did not converge ({failure})")
    place = int(np.argmax(np.abs(values)))
    # The eigenvalue nearest to it that the transpose has; the conjugate one is as large.
    w = left[:, int(np.argmin(np.abs(left_values.conj() - values[place])))]
    return _judged(operator, values[place], right[:, place], w, float(abs(left_values).max()))


def _judged(
    operator: LinearOperator, value: complex, v: Complex, w: Complex, largest: float
) -> Radius:
    """The modulus of an eigenvalue with its right vector v and its left one w, and how far it may
    be off; largest: the largest modulus that the transpose has."""
    moved = operator.matvec(v.real) + (1j * operator.matvec(v.imag) if v.imag.any() else 0.0)
    residual = float(np.linalg.norm(moved - value * v) / np.linalg.norm(v))
    sensitivity = abs(np.vdot(w, v)) / float(np.linalg.norm(w) * np.linalg.norm(v))
    rounding, size = EPS * len(v) ** 0.5 * abs(value), float(abs(value))
    error = np.inf if sensitivity == 0 else (residual + rounding) / sensitivity
    if abs(largest - size) > error + 1e-8 * size:
        reason = "Arnoldi's method found another largest eigenvalue for the transpose"
        return Radius(None, math.inf, "arnoldi", reason)
    return Radius(size, float(error), "arnoldi")
