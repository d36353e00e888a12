"""X_L, or a part of it, as the sum of its terms C(L, k) mu^L G in binary64, at any depth (T4e).

Whatever the depth, a change over a layer keeps its digits: of multipliers near one another, or
near 1, their differences are given, not the numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.support.arrays import Array, Complex

# Moduli within this of the largest (relative) lead with it.
GAP = 1e-7
# Layers at which leading terms that turn are looked at, and how many of them at most.
_TURNS, _MOST_TURNING = 1024, 32
# Changes below this, relative to what they are summed from, are none; sums that cancel further than
# the second are lost.
SEEN, _LOST = 1e-12, 1e10


class LostError(ArithmeticError):
    """The terms cancel further than binary64 shows."""


@dataclass(frozen=True)
class Series:
    """A part of X_L over the L-th power of a leading mu: sum of C(L, k) exp(rate L + size) G.

    rate: complex [m], log of mu over that leading one: real part 0 for the leading modulus, -inf
    for mu = 0 (a term that is there at L = k alone). power: k, float [m]. size: float
    [m], the logarithm of a norm. leads: bool [m]. combine: weights [m] -> their sum of the G, which
    have norm 1.
    """

    rate: Complex
    power: Array
    size: Array
    leads: NDArray[np.bool_]
    combine: Callable[[Complex], Complex]

    @property
    def lead_power(self) -> float:
        return float(self.power[self.leads][0])

    @cached_property
    def _phases(self) -> list[tuple[float, Complex]]:
        """(phase of mu, its G) over exp(largest size) for each phase that leads: in floats terms of
        one mu are taken together, which are the same in every basis of repeated eigenvalues."""
        turned, left, found = self.rate.imag, self.leads.copy(), []
        weights = np.exp(np.where(self.leads, self.size - self.size[self.leads].max(), -math.inf))
        while left.any():
            first = float(turned[left][0])
            same = left & (np.abs(np.exp(1j * turned) - np.exp(1j * first)) <= GAP)
            found.append((first, self.combine(np.where(same, weights, 0.0) + 0j).ravel()))
            left &= ~same
        return found

    @cached_property
    def lead_size(self) -> float:
        """The logarithm of the root of the mean square of the leading terms, without C(L, k)."""
        size = math.hypot(*(float(np.linalg.norm(G)) for _, G in self._phases))
        if size == 0:
            raise LostError
        return math.log(size) + float(self.size[self.leads].max())

    def weights(self, layer: float) -> tuple[Complex, float]:
        """Weights of the G and the logarithm of what they were divided by."""
        real = self.rate.real * layer if layer else np.zeros(len(self.size))
        real = np.where(np.isneginf(self.rate.real), self._alone(layer), real)
        real = real + self.size + _log_binomial(layer, self.power)
        shift = float(real.max(initial=-math.inf))
        if math.isinf(shift):
            return np.zeros(len(self.size), dtype=np.complex128), 0.0
        return np.exp(real - shift + 1j * np.fmod(self.rate.imag * layer, 2 * math.pi)), shift

    def _alone(self, layer: float) -> Array:
        return np.where(self.power == layer, 0.0, -math.inf)

    def step(self, layer: float) -> Complex:
        """log of what a layer multiplies each term with; of those that are there before it."""
        return self.rate + np.log1p(self.power / np.maximum(layer + 1 - self.power, 1))

    def rest(self, layer: float) -> tuple[float, float]:
        """(bound of the rest over the leading terms, bound of what it adds to a layer's change)."""
        lead = self.lead_size + float(_log_binomial(layer, np.array([self.lead_power]))[0])
        if math.isinf(lead):
            return math.inf, math.inf
        weights, shift = self.weights(layer)
        relative = np.abs(weights[~self.leads]) * math.exp(min(shift - lead, 700.0))
        lead_step = math.log1p(self.lead_power / (layer + 1 - self.lead_power))
        with np.errstate(all="ignore"):
            changed = np.abs(np.expm1(self.step(layer)[~self.leads] - lead_step))
        # Terms that turn against one another change by twice their size at most.
        if len(self._phases) > 1:
            changed = np.full_like(changed, 2.0)
        return float(relative.sum()), float((relative * np.nan_to_num(changed, nan=1.0)).sum())

    @property
    def peak(self) -> float:
        """A layer from which each term of the rest only loses against the leading ones."""
        loses = ~self.leads & (self.rate.real < 0) & np.isfinite(self.rate.real)
        layers = self.power[loses] / -self.rate.real[loses]
        return float(max(self.power.max(initial=0) + 1, layers.max(initial=0)))

    def outweighs(self, layer: int) -> bool:
        """Whether the leading terms are at least as large as the rest."""
        weights, shift = self.weights(layer)
        rest = float(np.linalg.norm(self.combine(np.where(self.leads, 0.0, weights))))
        lead = self.lead_size + float(_log_binomial(layer, np.array([self.lead_power]))[0])
        return rest == 0 or math.log(rest) + shift <= lead + SEEN

    def change(self, layer: int) -> tuple[float, float]:
        """(log of the norm at the next layer less that at this one, what it is summed from)."""
        before, shift = self.weights(layer)
        after, other = self.weights(layer + 1)
        with np.errstate(all="ignore"):
            grown = before * np.expm1(self.step(layer))
            jumps = after * math.exp(min(other - shift, 700.0)) - before
        sudden = (self.power >= layer) | np.isneginf(self.rate.real)
        delta = np.where(sudden, jumps, grown)
        y, dy = self.combine(before).ravel(), self.combine(delta).ravel()
        size, moved = float(np.linalg.norm(y)), float(np.abs(delta).sum())
        if not size * _LOST > np.abs(before).sum():
            raise LostError
        q = float(np.vdot(y, dy).real * 2 + np.vdot(dy, dy).real) / size**2
        return (0.5 * math.log1p(q) if q > -1 else -math.inf), moved / size

    def turns(self) -> Array:
        """log of the norm of the leading terms alone over the root of their mean square, at
        `_TURNS` layers, without their power of L; zeros where they do not turn."""
        still = np.zeros(_TURNS)
        if len(self._phases) == 1:
            return still
        if len(self._phases) > _MOST_TURNING:
            raise LostError
        phases, units = zip(*self._phases, strict=True)
        gram = np.array([[np.vdot(x, y) for y in units] for x in units])
        w = np.exp(1j * np.multiply.outer(np.arange(_TURNS), phases))
        squares = np.einsum("li,ij,lj->l", w.conj(), gram, w).real / np.trace(gram).real
        logs = 0.5 * np.log(np.maximum(squares, 1e-300))
        return still if np.ptp(logs) < SEEN else np.asarray(logs)


def _log_binomial(layer: float, power: Array) -> Array:
    """log C(L, k), -inf for L < k."""
    total = np.zeros(len(power))
    for i in range(int(power.max(initial=0))):
        here = power > i
        factor = (layer - i) / (i + 1)
        total[here] += math.log(factor) if factor > 0 else -math.inf
    return total
