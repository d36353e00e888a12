"""X_L at any depth from the eigenbases of B and H: no iteration at all (T1a, T4, T9).

With B = V a V^-1 and H = U h U^-1, Y_L = V ((1 + a_i h_j)^L o C) U^T and likewise for the pi-mean.
A head W = P Q of rank r needs the basis of its r x r core G = Q P alone, whose spectrum is all of
W's but d - r zeros:
    X_L = X_0 + A (sum_l Z_l) Q,   Z_0 = X_0 P,   a sum_{l<L} (1 + a g)^l = ((1 + a g)^L - 1) / g.

Residuals of eigenvalues that a great depth needs are formed by `accurate_product`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.depth.eigenbasis import (
    DEEP,
    EPS,
    LOG2,
    Eigenbasis,
    Multipliers,
    Solver,
    within_reach,
)
from oversmoothing.theory.layer.attention import both_sides, row_deficits, stationary_distribution
from oversmoothing.theory.layer.layer import check_attention, check_square, check_states
from oversmoothing.theory.numbers import rounding
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex


class TokenModes:
    """pi and the eigenbasis of B = Q^T A Q for a row-stochastic A [n, n] (T1c-d).

    The exact matrix meant is A + (1 - A 1) pi^T: what rounding took from a row sum is given back
    in proportion to pi, which moves no eigenvalue but 1 (to first order: pi^T v = 0). The means of
    the columns, which the quotient does not see, go first: where all rows are nearly equal, what is
    left is far smaller than A.
    offset [n]: 1/n - pi, so that mean = c + offset^T HFC.
    """

    def __init__(self, A: Array, pi: Array | None = None, solver: Solver | None = None) -> None:
        self.A = A
        self.pi = stationary_distribution(A) if pi is None else pi
        self.offset: Array = 1.0 / len(A) - self.pi
        lacking = row_deficits(A)
        self._high, low = rounding.two_sum(A, np.broadcast_to(-A.mean(axis=0), A.shape))
        self._low: Array = low + np.outer(lacking - lacking.mean(), self.pi)
        centred = self._high + self._low
        centred -= centred.mean(axis=0)
        self.basis = Eigenbasis(both_sides(centred, -1.0), self._residual, solver)

    def _residual(self, y: Array, values: Complex) -> Array:
        x = from_quotient(y)
        high, low = rounding.accurate_product(self._high, x)
        high, low = _subtract_multiple(high, low + self._low @ x, x, values)
        # Modulo consensus: the part along 1 must go before the rounding.
        high, left = rounding.two_sum(high, np.broadcast_to(-high.mean(axis=0), high.shape))
        residual = high + (left + low)
        return rounding.to_quotient(residual - residual.mean(axis=0))


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
            self.name, self._matrix = "H", H
        else:
            assert P is not None and Q is not None
            self.name, self._matrix = "the core W_proj W_V of the head", (Q @ P).T
        self.basis = Eigenbasis(self._matrix, self._residual, solver)
        if H is not None and len(H) == 1:
            self.basis.error[:] = 0.0  # the eigenvalue of a number is that number

    def _residual(self, x: Array, values: Complex) -> Array:
        if self.P is None or self.Q is None:
            high, low = rounding.accurate_product(self._matrix, x)
        else:
            # G^T x = P^T (Q^T x), with what the rounding of G left out.
            middle, rest = rounding.accurate_product(self.Q.T, x)
            high, low = rounding.accurate_product(self.P.T, middle)
            low = low + self.P.T @ rest
        high, low = _subtract_multiple(high, low, x, values)
        return high + low


def _subtract_multiple(high: Array, low: Array, x: Array, values: Complex) -> tuple[Array, Array]:
    """high + low - lambda x for x = [Re x, Im x], lambda complex, in two parts."""
    k = len(values)
    re, im = x[:, :k], x[:, k:]
    swapped = np.concatenate((im, re), axis=1)
    for factor, y in (
        (np.concatenate((values.real, values.real)), x),
        (np.concatenate((-values.imag, values.imag)), swapped),
    ):
        p, e = rounding.two_product(np.broadcast_to(factor, y.shape), y)
        high, left = rounding.two_sum(high, -p)
        low = low + (left - e)
    return high, low


def from_quotient(y: Array) -> Array:
    """Q y [..., n, k], centred, for y [..., n-1, k]; O(n k)."""
    root = np.sqrt(y.shape[-2] + 1.0)
    s = y.sum(axis=-2, keepdims=True) / root
    return np.concatenate((-s, y - s / (root + 1.0)), axis=-2)


Indices = NDArray[np.intp]
# C, and to which eigenvalues of B (None: the eigenvalue 1) and of H its rows and columns belong.
_Coefficients = tuple[Complex, Indices | None, Indices]

# Condition number of an eigenbasis beyond which its expansion has lost half of the digits.
CONDITION_LIMIT = 1e8

_GONE = 100.0
_MOVED = 64 * EPS


@dataclass(frozen=True)
class Parts:
    """HFC = 2^hfc_exponent hfc [n, d] and c = pi^T X = 2^c_exponent c [d].

    hfc_error, c_error: first-order estimates of their relative errors.
    """

    hfc: Array
    hfc_exponent: int
    c: Array
    c_exponent: int
    hfc_error: float
    c_error: float


class ClosedForm:
    """The powers of X -> X + A X W (X -> A X W without the residual), from two eigenbases.

    Raises `InputError` where the quotient of A, H or the core of a head has no eigenbasis of
    condition below CONDITION_LIMIT.
    """

    def __init__(
        self, tokens: TokenModes, features: FeatureModes, *, residual: bool = True
    ) -> None:
        for name, condition in (
            ("the quotient of A", tokens.basis.condition),
            (features.name, features.basis.condition),
        ):
            if not condition < CONDITION_LIMIT:
                raise InputError(
                    f"{name} is defective or nearly so (its eigenvectors have condition "
                    f"{condition:.1e}), and the closed form would lose its digits: iterate instead"
                )
        self.tokens, self.features, self.residual = tokens, features, residual
        self.condition = tokens.basis.condition * features.basis.condition
        self._known: dict[bool, tuple[tuple[int, int], Multipliers]] = {}

    def states(
        self, hfc: Array, c: Array, depths: Sequence[int], out: Array | None = None
    ) -> list[Parts]:
        """HFC and pi-mean at each depth, from those of X_0: hfc [n, d] centred, c [d].

        out [depths, n, d]: where the HFC of the result are to stand; new arrays if None.
        """
        tokens, features = self.tokens.basis, self.features.basis
        P, Q = self.features.P, self.features.Q
        z, k = (hfc, c) if P is None else (hfc @ P, c @ P)
        z = rounding.to_quotient(z)
        coefficients = self._coefficients(z, k)
        states = []
        # Memory fresh from the system costs more than what is computed in it.
        if out is None:
            out = np.empty((len(depths), *hfc.shape))
        for depth, place in zip(depths, out, strict=True):
            if depth == 0:
                place[:] = hfc
                states.append(Parts(place, 0, c, 0, 0.0, 0.0))
                continue
            if depth >= DEEP and self._refine(coefficients, depth):
                coefficients = self._coefficients(z, k)
            F, y_exponent, y_error = self._powers(*coefficients[0], depth)
            f, c_exponent, c_error = self._powers(*coefficients[1], depth)
            new_hfc = from_quotient(tokens.combine(F @ features.full_vectors().T))
            new_c = features.combine(f.T)[:, 0]
            if Q is None:
                place[:] = new_hfc
            else:
                np.matmul(new_hfc, Q, out=place)
                new_c = new_c @ Q
                if self.residual:
                    size = float(np.linalg.norm(Q))
                    y_error = _add_start(place, y_exponent, y_error * size, hfc)
                    c_error = _add_start(new_c, c_exponent, c_error * size, c)
            states.append(Parts(place, y_exponent, new_c, c_exponent, y_error, c_error))
        return states

    def _coefficients(self, z: Array, k: Array) -> tuple[_Coefficients, _Coefficients]:
        """Of the quotient and of consensus, at the representatives of the conjugate pairs."""
        tokens, features = self.tokens.basis, self.features.basis
        C = tokens.coordinates(z) @ features.full_inverse().T
        return (
            (C, tokens.representatives, np.arange(len(features))),
            (features.coordinates(k[:, None]).T, None, features.representatives),
        )

    def _refine(self, coefficients: tuple[_Coefficients, _Coefficients], depth: int) -> bool:
        """Refine the eigenpairs of the modes within reach at this depth.

        True where the coefficients change by more than the rounding that they carry.
        """
        tokens: list[Indices] = []
        features: list[Indices] = []
        for C, rows, columns in coefficients:
            if not C.any():
                continue
            near = within_reach(
                depth * _finite(self._multipliers(rows, columns).log).real + _log_size(C)
            )
            features.append(columns[near.any(axis=0)])
            if rows is not None:
                tokens.append(rows[near.any(axis=1)])
        moved = [
            basis.refine(np.concatenate(wanted))
            for basis, wanted in ((self.tokens.basis, tokens), (self.features.basis, features))
            if wanted
        ]
        return max(moved, default=0.0) > _MOVED

    def _powers(
        self, C: Complex, rows: Indices | None, columns: Indices, depth: int
    ) -> tuple[Complex, int, float]:
        """C o (what the depth makes of each mode), divided by 2^exponent; exponent; its error,
        relative to the largest entry, for a head with residual relative to 2^exponent.

        rows: indices of the modes of the quotient, None for consensus (a = 1, exactly).
        """
        if not C.any():
            return np.zeros_like(C), 0, 0.0
        weight = _log_size(C)
        multipliers = self._multipliers(rows, columns)
        head = self.features.P is not None
        steps = depth - 1 if head and not self.residual else depth
        bound, turned = weight, np.zeros(C.shape)
        if head and not self.residual:
            # X_L = A Z_{L-1} Q.
            a = (multipliers.a + multipliers.a_shift)[:, None]
            with np.errstate(divide="ignore"):
                log_a = np.log(a)
                bound = weight + np.log(np.abs(a) + multipliers.a_error[:, None])
            weight, turned = weight + log_a.real, turned + log_a.imag
        twos, rest, phase, rounded = multipliers.log_powers(steps, weight)
        modulus, phase = twos * LOG2 + rest, phase + turned
        size = modulus + weight
        top = float(size.max())
        grows = head and self.residual
        if top == -np.inf and not grows:
            return np.zeros_like(C), 0, multipliers.uncertainty(steps, bound, top)
        exponent = int(np.ceil(max(top, 0.0) / LOG2 if grows else top / LOG2))
        # What is e^-100 of the largest is 0: subnormal numbers would slow each product down.
        left = size > top - _GONE
        powers = np.zeros_like(C)
        beyond = (twos[left] - exponent) * LOG2
        powers[left] = np.exp(beyond + rest[left] + weight[left] + 1j * phase[left])
        powers[left] *= C[left] / np.abs(C[left])
        lost = float((np.exp(size[left] - top) * rounded[left]).max(initial=0.0))
        here = np.isfinite(weight)
        largest = float(weight.max())
        if grows:
            # A mode that is added counts with its sum, which may be far below the power itself.
            powers = self._sums(multipliers, C, powers, depth, exponent)
            top = exponent * LOG2
            modulus = _log_size(powers) + top - np.where(here, weight, 0.0)
            g = np.abs(multipliers.h + multipliers.h_shift)
            bound = weight - np.log(np.maximum(g, 1 / depth))
        noise = float(modulus[here].max(initial=-np.inf) + largest - top)
        error = 4 * EPS * self.condition * float(np.exp(min(noise, 50.0)))
        error += lost + multipliers.uncertainty(steps, bound, top)
        return powers, exponent, error

    def _sums(
        self, multipliers: Multipliers, C: Complex, powers: Complex, depth: int, exponent: int
    ) -> Complex:
        """C o ((1 + a g)^L - 1) / g over 2^exponent, from powers = C o (1 + a g)^L / 2^exponent."""
        a = (multipliers.a + multipliers.a_shift)[:, None]
        g = (multipliers.h + multipliers.h_shift)[None, :]
        scaled = C * (2.0**-exponent if exponent < 1000 else 0.0)
        t = depth * _finite(multipliers.log)
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = (powers - scaled) / g
        i, j = np.nonzero((np.abs(t) < 0.5) & (g != 0))
        sums[i, j] = scaled[i, j] * np.expm1(t[i, j]) / g[0, j]
        return np.where(g == 0, scaled * (a * depth), sums)

    def _multipliers(self, rows: Indices | None, columns: Indices) -> Multipliers:
        basis, h = self.tokens.basis, self.features.basis
        one = np.ones(1, dtype=np.complex128), np.zeros(1, dtype=np.complex128), np.zeros(1)
        a = one if rows is None else basis.known(rows)
        # Their logarithms are formed anew only where pairs were refined.
        state = basis.steps, h.steps
        if self._known.get(rows is None, (None,))[0] != state:
            multipliers = Multipliers(self.residual, *a, *h.known(columns))
            self._known[rows is None] = state, multipliers
        return self._known[rows is None][1]


def closed_form(*, A: Any, H: Any, X0: Any, depths: Iterable[int]) -> list[rounding.ScaledState]:
    """States at each of the depths for A [n, n], H [d, d], X0 [n, d] (float64).

    Raises `InputError` where H or the quotient B has no well-conditioned eigenbasis.
    """
    attention, value = check_attention(A), check_square(H)
    start = check_states(X0, len(attention), len(value))
    tokens = TokenModes(attention)
    form = ClosedForm(tokens, FeatureModes(H=value))
    mean = start.mean(axis=0)
    hfc = start - mean
    left = hfc.mean(axis=0)
    hfc -= left
    asked, c = [int(depth) for depth in depths], mean + left - tokens.offset @ hfc
    states = []
    for depth, state in zip(asked, form.states(hfc, c, asked), strict=True):
        # m = c + (1/n - pi)^T HFC, on the larger of the two scales.
        part = tokens.offset @ state.hfc
        mean, scale = rounding.add(state.c, state.c_exponent, part, state.hfc_exponent)
        states.append(
            rounding.ScaledState(depth, state.hfc, mean, float(state.hfc_exponent), float(scale))
        )
    return states


def _finite(log: Complex) -> Complex:
    """log with -inf replaced by a number whose multiples are still far below any other."""
    return np.where(np.isfinite(log.real), log, -1e6)


def _log_size(C: Complex) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(np.abs(C))


def _add_start(moved: Array, exponent: int, error: float, start: Array) -> float:
    """Add start / 2^exponent to `moved` with its error, in place; the relative error of the sum."""
    scale = 2.0**-exponent if exponent < 1000 else 0.0
    if scale:
        error += EPS * scale * float(np.linalg.norm(start))
        moved += scale * start
    top = float(np.linalg.norm(moved))
    return error / top if top else (float("inf") if error else 0.0)
