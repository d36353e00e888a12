"""Multipliers mu = 1 + h a (or h a without the residual), and their powers at any depth (T1a, T9).

Powers are taken through logarithms, so that depth 1e9 costs what depth 1 costs and nothing
overflows. The phase L arg(mu) of the modes within reach of the largest is reduced mod 2 pi in
balls: in float64 alone it would be off by L eps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import flint
import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.support.arrays import Array, Complex

# A mode e^-45 times smaller than the largest is beyond the digits of float64.
REACH = 45.0
# The depth from which L eps is more than what the eigenvectors cost anyway.
DEEP = 10_000
# At most this many modes get their phase in balls, the largest first; each costs microseconds.
_IN_BALLS = 256
_BITS = 192


def log_multiplier(x: Complex) -> Complex:
    """log(1 + x), accurate for small x and for |1 + x| near 1 (-inf at x = -1)."""
    with np.errstate(divide="ignore"):
        modulus = np.log1p(2 * x.real + np.abs(x) ** 2) / 2
    # Near |x + 1| = 0 the sum under log1p cancels: there the modulus itself is exact enough.
    small = np.abs(1 + x) < 0.25
    if small.any():
        with np.errstate(divide="ignore"):
            modulus = np.where(small, np.log(np.abs(1 + x)), modulus)
    return np.asarray(modulus + 1j * np.arctan2(x.imag, 1 + x.real), dtype=np.complex128)


@dataclass(frozen=True)
class Multipliers:
    """mu_ij = 1 + a_i h_j, or a_i h_j where residual is False; a [m], h [k] complex.

    a_shift, h_shift: what a and h lack to more digits (0 where unknown). a_error, h_error: bounds
    on what is still wrong with them.
    """

    a: Complex
    h: Complex
    residual: bool
    a_shift: Complex
    h_shift: Complex
    a_error: Array
    h_error: Array

    @cached_property
    def plain_log(self) -> Complex:
        """log mu [m, k] without the shifts."""
        x = self.a[:, None] * self.h[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            return log_multiplier(x) if self.residual else np.log(x)

    @cached_property
    def log(self) -> Complex:
        """log mu [m, k] to float64, shifts included to first order."""
        if not (self.a_shift.any() or self.h_shift.any()):
            return self.plain_log
        log = self.plain_log.copy()
        rows = np.flatnonzero(self.a_shift)
        columns = np.flatnonzero(self.h_shift)
        for i, j in (
            (rows[:, None], np.arange(len(self.h))),
            (np.arange(len(self.a))[:, None], columns),
        ):
            mu = self.a[i] * self.h[j] + (1.0 if self.residual else 0.0)
            change = self.a_shift[i] * (self.h[j] + self.h_shift[j]) + self.a[i] * self.h_shift[j]
            with np.errstate(divide="ignore", invalid="ignore"):
                change = np.where(np.abs(change) < 0.5 * np.abs(mu), change / mu, 0.0)
            log[i, j] = self.plain_log[i, j] + change
        return log

    def shifted(
        self, a_shift: Complex, h_shift: Complex, a_error: Array, h_error: Array
    ) -> Multipliers:
        """The same with other shifts; the logarithms are not formed again."""
        result = replace(self, a_shift=a_shift, h_shift=h_shift, a_error=a_error, h_error=h_error)
        result.__dict__["plain_log"] = self.plain_log
        return result

    def log_powers(self, depth: int, log_weight: Array) -> tuple[Array, Array]:
        """(log |mu^L|, arg mu^L mod 2 pi), each [m, k], for L = depth.

        log_weight [m, k]: log of the coefficient that the power will multiply; it says which modes
        are within reach.
        """
        log = self.log
        if depth == 0:
            return np.zeros(log.shape), np.zeros(log.shape)
        with np.errstate(invalid="ignore"):
            modulus = np.where(np.isneginf(log.real), -np.inf, depth * log.real)
            phase = np.remainder(depth * log.imag, 2 * np.pi)
        if depth >= DEEP:
            size = modulus + log_weight
            for i, j in _largest(size):
                modulus[i, j], phase[i, j] = self._in_balls(i, j, depth)
        return modulus, phase

    def uncertainty(self, depth: int, log_weight: Array, top: float) -> float:
        """What errors of a and h may do to the largest mode, e^top, at this depth; relative to it.

        A multiplier that may vanish, or may not, shows here: its power is bounded by that of
        |mu| + |d mu|. inf where every known mode is 0 and another may not be.
        """
        if depth == 0:
            return 0.0
        mu = np.abs(self.a[:, None] * self.h[None, :] + (1.0 if self.residual else 0.0))
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

    def _in_balls(self, i: int, j: int, depth: int) -> tuple[float, float]:
        with at_precision(_BITS):
            mu = _acb(self.a[i], self.a_shift[i]) * _acb(self.h[j], self.h_shift[j])
            if self.residual:
                mu = mu + 1
            if mu.contains(0):
                return -np.inf, 0.0
            log = mu.log() * depth
            turns = log.imag / (2 * flint.arb.pi())
            turns = turns - turns.mid().floor()
            return float(log.real.mid()), float((turns * 2 * flint.arb.pi()).mid())


def within_reach(size: Array) -> NDArray[np.bool_]:
    """Which modes of log-size [m, k] are not lost beside the largest."""
    top = size.max(initial=-np.inf)
    result: NDArray[np.bool_] = size > top - REACH
    return result & np.isfinite(size)


def _largest(size: Array) -> list[tuple[int, int]]:
    i, j = np.nonzero(within_reach(size))
    order = np.argsort(-size[i, j], kind="stable")[:_IN_BALLS]
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


def _acb(value: complex, shift: complex) -> flint.acb:
    return flint.acb(value.real, value.imag) + flint.acb(shift.real, shift.imag)
