"""Eigenpairs refined beyond LAPACK, multipliers mu = 1 + h a and their powers (T1a, T4, T9).

LAPACK's eigenvalues carry an error of some eps kappa, and a depth of 1e9 makes a phase error of
1e9 times as much of it. For the pairs within reach of the dominant one the residual is formed in
more digits, and one Newton step leaves an error of the order of eps^2 kappa / gap.

Powers are taken through logarithms, so that depth 1e9 costs what depth 1 costs and nothing
overflows. The phase L arg(mu) of the modes within reach of the largest is reduced mod 2 pi in
balls: in float64 alone it would be off by L eps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.layer_discs import log_multiplier
from oversmoothing.theory.support.sizes import Array, Complex

Indices = NDArray[np.intp]

EPS = float(np.finfo(np.float64).eps)
# What `accurate_product` leaves of a residual, relative to the matrix.
_RESIDUAL_EPS = 2.0**-58
# Differences of eigenvalues below this many residuals are not divided by.
_RESOLVED = 1e4
# Up to this change of the vectors their inverse is changed to first order, then formed anew.
_FIRST_ORDER = 1e-9
_POWER_STEPS = 4
# A condition from which repeated eigenvalues are looked for.
_SUSPICIOUS = 1e2

# What takes an eigendecomposition, in the form of `by_lapack`.
Solver = Callable[[Array], tuple[Array, Array, Array, Array]]
Residual = Callable[[Array, Complex], Array]


class Eigenbasis:
    """M = V diag(values) V^-1 for a real M [m, m], in real arithmetic where that is cheaper.

    values [m]: complex, conjugate pairs adjacent. packed [m, m]: Re v and Im v of a pair stand in
    its two columns, the vector of a real eigenvalue in one; inverse: of packed. condition: of V, to
    some 20 %, inf where LAPACK finds no basis. representatives: indices of the real eigenvalues and
    of one of each pair (weight 1, 2).

    residual([Re v, Im v], values) forms M v - lambda v of the exact matrix of which M is the
    rounding in more digits, in two such halves. steps: how often pairs were refined.
    """

    def __init__(self, M: Array, residual: Residual, solver: Solver | None = None) -> None:
        self.size = float(np.abs(M).sum(axis=1).max(initial=0.0))
        self._residual, self.steps = residual, 0
        m = len(M)
        if m == 0:
            real = imag = np.zeros(0)
            self.packed = self.inverse = np.zeros((0, 0))
        else:
            real, imag, self.packed, self.inverse = (solver or by_lapack)(M)
        self.values: Complex = real + 1j * imag
        self.condition = _condition(self.packed, self.inverse)
        if self.condition > _SUSPICIOUS and self._untangle(M):
            self.condition = _condition(self.packed, self.inverse)
        imag = self.values.imag
        self.representatives: Indices = np.flatnonzero(imag >= 0)
        self.weight = np.where(imag[self.representatives] > 0, 2.0, 1.0)
        self.shift: Complex = np.zeros(m, dtype=np.complex128)
        self.refined: NDArray[np.bool_] = np.zeros(m, dtype=np.bool_)
        # |error| of each eigenvalue: eps |M| times its own condition number |w| |v|.
        self.error = np.zeros(m)
        if m and np.isfinite(self.condition):
            with np.errstate(over="ignore"):
                rows = np.linalg.norm(self.inverse, axis=1)
            pair = np.flatnonzero(imag > 0)
            rows[pair] = rows[pair + 1] = np.hypot(rows[pair], rows[pair + 1])
            self.error = 4 * EPS * self.size * np.maximum(rows, 1.0)

    def __len__(self) -> int:
        return len(self.values)

    def _untangle(self, M: Array) -> bool:
        """Orthonormal vectors for repeated eigenvalues, where M has enough of them.

        Of a multiple eigenvalue LAPACK returns copies that differ by rounding and vectors that
        rounding chose: (1 - t) I + t 11^T/n comes back with condition 1e8 instead of 1.
        """
        m, changed = len(M), False
        tolerance = 16 * m * EPS * self.size
        # Repeated values are neighbours in any projection.
        line = np.sort(self.values.real + 0.6180339887 * self.values.imag)
        if (np.diff(line) > 2 * tolerance).all():
            return False
        upper = self.values.imag > tolerance
        values = np.where(np.abs(self.values.imag) <= tolerance, self.values.real, self.values)
        left = np.ones(m, dtype=np.bool_)
        for k in range(m):
            if not left[k] or not (upper[k] or values[k].imag == 0):
                continue
            group = np.flatnonzero(left & (np.abs(values - values[k]) <= tolerance))
            left[group] = False
            if len(group) == 1:
                continue
            mean = values[group].mean()
            mean = mean if upper[k] else mean.real
            _, sigma, right = np.linalg.svd(M - mean * np.eye(m))
            if sigma[-len(group)] > tolerance:
                continue  # defective: it has no further vectors
            null = right[-len(group) :].conj().T
            if upper[k]:
                self.packed[:, group], self.packed[:, group + 1] = null.real, null.imag
                self.values[group + 1] = mean.conjugate()
            else:
                self.packed[:, group] = null
            self.values[group] = mean
            changed = True
        if changed:
            self.inverse = _inverse(self.packed)
        return changed

    def vectors(self, index: Indices) -> Complex:
        """V[:, index], complex [m, len(index)]."""
        imag = self.values[index].imag
        # Of a pair the first column is the real part, the second the imaginary one.
        first = np.where(imag < 0, index - 1, index)
        second = np.minimum(first + 1, len(self) - 1)
        return self.packed[:, first] + 1j * np.sign(imag) * self.packed[:, second]

    def coordinates(self, Y: Array) -> Complex:
        """(V^-1 Y)[representatives] for real Y [m, k]."""
        return self._unpacked(self.inverse @ Y)[self.representatives]

    def combine(self, C: Complex) -> Array:
        """Re (V C') for C given at the representatives, C' completed by its conjugates."""
        chosen, pair = self.representatives, self.weight == 2
        rows = np.zeros((len(self), C.shape[1]))
        rows[chosen] = C.real * self.weight[:, None]
        rows[chosen[pair] + 1] = -2.0 * C[pair].imag
        return self.packed @ rows

    def known(self, index: Indices) -> tuple[Complex, Complex, Array]:
        """(values, shift, error) of these."""
        return self.values[index], self.shift[index], self.error[index]

    def full_vectors(self) -> Complex:
        """V [m, m]."""
        return self.vectors(np.arange(len(self)))

    def full_inverse(self) -> Complex:
        """V^-1 [m, m]."""
        return self._unpacked(self.inverse)

    def refine(self, index: Indices) -> float:
        """One Newton step for the pairs `index` (and their conjugates), in more digits.

        Afterwards values + shift is good to about eps^2, and the vectors to eps. The result
        is the largest relative change of a vector, in the basis of all: the coordinates change so.
        """
        index = np.where(self.values[index].imag < 0, index - 1, index)
        index = np.unique(index[~self.refined[index]])
        if not len(index):
            return 0.0
        values, vectors = self.values[index], self.vectors(index)
        parts = self._residual(np.concatenate((vectors.real, vectors.imag), axis=1), values)
        rows = self.inverse @ parts
        E = self._unpacked(rows[:, : len(index)] + 1j * rows[:, len(index) :])
        column, real = np.arange(len(index)), values.imag == 0
        shift = np.where(real, E[index, column].real, E[index, column])
        gap = values[None, :] - self.values[:, None]
        gap[index, column] = np.inf
        E[index, column] = 0.0
        size, rounding = np.abs(E), 16 * len(self) * EPS * self.size
        close = np.abs(gap) <= np.maximum(_RESOLVED * size.max(axis=0, initial=0.0), rounding)
        F = np.where(close, 0.0, E / np.where(close, 1.0, gap))
        correction = self._packed_times(F)
        rows = np.linalg.norm(self.inverse, axis=1)
        left = size * np.where(close, 1.0, np.abs(F)) * np.maximum(rows[:, None], 1.0)
        error = left.max(axis=0, initial=0.0) + _RESIDUAL_EPS * self.error[index] / EPS
        # An eigenvalue among others closer than the residual is not known better than it was; one
        # that repeats exactly (see `_untangle`) is.
        tangled = (close & (gap != 0)).any(axis=0)
        error[tangled] = np.maximum(error, self.error[index] + np.abs(shift))[tangled]
        shift[tangled] = 0.0
        pair = index[~real]
        change = np.concatenate((correction.real, correction[:, ~real].imag), axis=1)
        columns = np.concatenate((index, pair + 1))
        self.packed[:, columns] += change
        change = self.inverse @ change
        moved = float(np.abs(change).max(initial=0.0))
        if moved < _FIRST_ORDER:
            self.inverse -= change @ self.inverse[columns]
        else:
            self.inverse = _inverse(self.packed)
        self.shift[index], self.shift[pair + 1] = shift, shift[~real].conj()
        self.error[index], self.error[pair + 1] = error, error[~real]
        self.refined[index] = self.refined[pair + 1] = True
        self.steps += 1
        return moved

    def _unpacked(self, rows: Array | Complex) -> Complex:
        """Coordinates in V of what has these in `packed`."""
        result = rows.astype(np.complex128)
        pair = np.flatnonzero(self.values.imag > 0)
        p, q = rows[pair], rows[pair + 1]
        result[pair], result[pair + 1] = (p - 1j * q) / 2, (p + 1j * q) / 2
        return result

    def _packed_times(self, F: Complex) -> Complex:
        rows = F.copy()
        pair = np.flatnonzero(self.values.imag > 0)
        rows[pair], rows[pair + 1] = F[pair] + F[pair + 1], 1j * (F[pair] - F[pair + 1])
        return self.packed @ rows.real + 1j * (self.packed @ rows.imag)


def by_lapack(M: Array) -> tuple[Array, Array, Array, Array]:
    """(Re, Im of the eigenvalues, packed vectors, inverse of packed) by scipy's LAPACK."""
    real, imag, _, packed, info = lapack.dgeev(M, compute_vl=0, lwork=100 * len(M))
    if info:
        raise np.linalg.LinAlgError(f"the eigenvalues did not converge (dgeev: {info})")
    return real, imag, packed, _inverse(packed)


def _inverse(M: Array) -> Array:
    """M^-1 through LAPACK itself, half the time of `np.linalg.inv`; inf throughout if singular."""
    factors, pivots, info = lapack.dgetrf(M)
    if info == 0:
        inverse, info = lapack.dgetri(factors, pivots, lwork=64 * len(M))
    return np.full(M.shape, np.inf) if info else np.asarray(inverse)


def _condition(packed: Array, inverse: Array) -> float:
    """||V||_2 ||V^-1||_2 to some 20 %, by the power method: a tenth of the cost of a decomposition.

    V is packed times a block-diagonal matrix that is unitary but for factors sqrt 2.
    """
    if not len(packed):
        return 1.0
    if not np.isfinite(inverse).all():
        return float("inf")
    condition = _norm(packed) * _norm(inverse)
    return float(max(1.0, condition if np.isfinite(condition) else np.inf))


def _norm(M: Array) -> float:
    """||M||_2, from below; within a few per cent unless many singular values tie."""
    size = float(np.abs(M).max())
    if size == 0.0 or not np.isfinite(size):
        return size
    M = M / size
    # The longest row is a start that the first singular vectors are no strangers to.
    x = M[int((M * M).sum(axis=1).argmax())].copy()
    for _ in range(_POWER_STEPS):
        x = (M @ x) @ M
        x /= np.linalg.norm(x)
    return size * float(np.linalg.norm(M @ x))


# A mode e^-45 times smaller than the largest is beyond the digits of float64.
REACH = 45.0
# The depth from which L eps is more than what the eigenvectors cost anyway.
DEEP = 10_000
# At most this many modes get their phase in balls, the largest first; each costs microseconds.
_IN_BALLS = 256
_BITS = 192
LOG2 = float(np.log(2.0))


@dataclass(frozen=True)
class Multipliers:
    """mu_ij = 1 + a_i h_j, or a_i h_j where residual is False; a [m], h [k] complex.

    a_shift, h_shift: what a and h lack to more digits (0 where unknown). a_error, h_error: bounds
    on what is still wrong with them.
    """

    residual: bool
    a: Complex
    a_shift: Complex
    a_error: Array
    h: Complex
    h_shift: Complex
    h_error: Array

    @cached_property
    def log(self) -> Complex:
        """log mu [m, k] to float64, shifts included to first order."""
        a, a_shift = self.a[:, None], self.a_shift[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            log = log_multiplier(a * self.h) if self.residual else np.log(a * self.h)
            mu = a * self.h + self.residual
            change = a_shift * (self.h + self.h_shift) + a * self.h_shift
            # Of subnormal numbers a complex quotient is not a number.
            up = np.where(np.abs(mu) < 1e-200, 2.0**200, 1.0)
            small = np.abs(change) < 0.5 * np.abs(mu)
            return log + np.where(small, change * up / (mu * up), 0.0)

    def log_powers(self, depth: int, log_weight: Array) -> tuple[Array, Array, Array, Array]:
        """(k, r, p, e), each [m, k]: mu^L = 2^k exp(r + i p) for L = depth, e the rounding of r, p.

        The power of two is taken out before a logarithm of 1e9 is rounded: r has its digits.
        log_weight [m, k]: log of the coefficient that the power will multiply; it says which modes
        are within reach.
        """
        log = self.log
        if depth == 0:
            return (*np.zeros((4, *log.shape)),)
        with np.errstate(invalid="ignore"):
            modulus = np.where(np.isneginf(log.real), -np.inf, depth * log.real)
            phase = np.remainder(depth * log.imag, 2 * np.pi)
        twos = np.where(np.isneginf(modulus), 0.0, np.rint(modulus / LOG2))
        rest = modulus - twos * LOG2
        rounding = np.where(np.isneginf(modulus), 0.0, 2 * EPS * depth * np.abs(log))
        if depth >= DEEP:
            size = modulus + log_weight
            rows, columns = np.nonzero(within_reach(size))
            order = np.argsort(-size[rows, columns], kind="stable")[:_IN_BALLS]
            for at in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
                twos[at], rest[at], phase[at] = self._in_balls(*at, depth)
                rounding[at] = 0.0
        return twos, rest, phase, rounding

    def uncertainty(self, depth: int, log_weight: Array, top: float) -> float:
        """What errors of a and h may do to the largest mode, e^top, at this depth; relative to it.

        A multiplier that may vanish, or may not, shows here: its power is bounded by that of
        |mu| + |d mu|. inf where every known mode is 0 and another may not be.
        """
        if depth == 0:
            return 0.0
        mu = np.abs(self.a[:, None] * self.h + self.residual)
        wrong = self.a_error[:, None] * np.abs(self.h) + np.abs(self.a)[:, None] * self.h_error
        near = self.log.real * depth + log_weight > top - REACH
        i, j = np.nonzero((near | (wrong > 1e-3 * mu)) & (wrong > 0) & np.isfinite(log_weight))
        mu, wrong = mu[i, j], wrong[i, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            most = depth * np.log(mu + wrong) + log_weight[i, j]
            least = np.where(mu > wrong, depth * np.log1p(-wrong / mu), -np.inf)
            gain = np.where(mu > 0, -np.expm1(least - depth * np.log1p(wrong / mu)), 1.0)
        if top == -np.inf:
            return float("inf") if np.isfinite(most).any() else 0.0
        return float((gain * np.exp(np.minimum(most - top, 50.0))).max(initial=0.0))

    def _in_balls(self, i: int, j: int, depth: int) -> tuple[float, float, float]:
        with at_precision(_BITS):
            mu = _acb(self.a[i], self.a_shift[i]) * _acb(self.h[j], self.h_shift[j])
            mu = mu + self.residual
            if mu.contains(0):
                return 0.0, -np.inf, 0.0
            log, two = mu.log() * depth, flint.arb.const_log2()
            twos = (log.real / two).mid().floor()
            turns = log.imag / (2 * flint.arb.pi())
            turns = turns - turns.mid().floor()
            rest = log.real - twos * two
            return float(twos), float(rest.mid()), float((turns * 2 * flint.arb.pi()).mid())


def within_reach(size: Array) -> NDArray[np.bool_]:
    """Which modes of log-size [m, k] are not lost beside the largest."""
    top = size.max(initial=-np.inf)
    result: NDArray[np.bool_] = size > top - REACH
    return result & np.isfinite(size)


def _acb(value: complex, shift: complex) -> flint.acb:
    return flint.acb(value.real, value.imag) + flint.acb(shift.real, shift.imag)
