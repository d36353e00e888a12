"""From which layer on one X_0 shows what decides: the number `shows_from` of a verdict (T4e).

X_L is a sum of terms C(L, k) mu^L G. The leading ones decide what HFC/LFC tends to; the rest may
hide them for long. The number is a layer:

- 0 where the leading terms of X_L are at least as large as the rest of it at every layer
  (Frobenius norms; of leading terms that turn the root of the mean square over their phases);
- else, where HFC/LFC tends to 0 (to infinity), the first layer from which it falls (rises) in every
  layer, if there is one;
- else the first layer from which the leading terms are at least as large as the rest.

Sizes that agree to twelve digits count as equal here, and leading multipliers within 1e-7 of one
another as one: where these are known to differ, no layer is named from which HFC/LFC falls.

A bound of the rest gives a layer past which nothing changes any more. Up to `EACH` layers before it
are looked at one by one; of more, `_PER_OCTAVE` between a depth and twice that depth, and the
change is then found by bisection: what returns between two of those is not seen.

Whatever the depth, a change over a layer keeps its digits: of multipliers near one another, or near
1, their differences are given, not the numbers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.support.sizes import Array, Complex

# Moduli within this of the largest (relative) lead with it.
GAP = 1e-7
# Leading terms that turn, so many of them at most, are looked at in the first layers and, for slow
# turns, in scattered ones. How far rounding moves what those show, of the largest step.
_TURNS, _MOST_TURNING, _BLUR = 1024, 32, 1e-8
_LOOKS = np.append(np.arange(_TURNS), np.floor(np.arange(_TURNS) * 0.6180339887 % 1 * 2.0**24))
# Changes below this, relative to what they are summed from, are none; sums that cancel further than
# the second are lost. A turn is known where rounding hides no larger share of the layers before it
# than the third.
SEEN, _LOST, _AROUND = 1e-12, 1e10, 1e-3


class LostError(ArithmeticError):
    """The terms cancel further than binary64 shows."""


@dataclass(frozen=True)
class Series:
    """A part of X_L over the L-th power of a leading mu: sum of C(L, k) exp(rate L + size) G.

    rate: complex [m], log of mu over that leading one: real part 0 for the leading modulus, -inf
    for mu = 0 (a term that is there at L = k alone). power: k, float [m]. size: the logarithm of a
    norm, float [m]. leads: bool [m]. combine: weights [m] -> their sum of the G, of norm 1. exact:
    whether different mu are different numbers, not one that rounding parts.
    """

    rate: Complex
    power: Array
    size: Array
    leads: NDArray[np.bool_]
    combine: Callable[[Complex], Complex]
    exact: bool = False

    @property
    def lead_power(self) -> float:
        return float(self.power[self.leads][0])

    @cached_property
    def _phases(self) -> list[tuple[float, Complex]]:
        """(phase of mu, its G) over exp(largest size) for each phase that leads: in floats terms of
        one mu are taken together, which are the same in every basis of repeated eigenvalues."""
        turned, left, phases = self.rate.imag, self.leads.copy(), []
        weights = np.exp(np.where(self.leads, self.size - self.size[self.leads].max(), -math.inf))
        while left.any():
            first = float(turned[left][0])
            same = left & (np.abs(np.exp(1j * turned) - np.exp(1j * first)) <= GAP)
            phases.append((first, self.combine(np.where(same, weights, 0.0) + 0j).ravel()))
            left &= ~same
        return phases

    @cached_property
    def lead_size(self) -> float:
        """The logarithm of the root of the mean square of the leading terms, without C(L, k)."""
        size = math.hypot(*(float(np.linalg.norm(G)) for _, G in self._phases))
        if size == 0:
            raise LostError
        return math.log(size) + float(self.size[self.leads].max())

    def weights(self, layer: float) -> tuple[Complex, float]:
        """Weights of the G and the logarithm of what they were divided by."""
        with np.errstate(over="ignore"):
            real = self.rate.real * layer if layer else np.zeros(len(self.size))
        # mu = 0 is there at L = k alone.
        alone = np.where(self.power == layer, 0.0, -math.inf)
        real = np.where(np.isneginf(self.rate.real), alone, real)
        real = real + self.size + _log_binomial(layer, self.power)
        shift = float(real.max(initial=-math.inf))
        if math.isinf(shift):
            return np.zeros(len(self.size), dtype=np.complex128), 0.0
        return np.exp(real - shift + 1j * np.fmod(self.rate.imag * layer, 2 * math.pi)), shift

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
        with np.errstate(over="ignore"):
            layers = self.power[loses] / -self.rate.real[loses]
        return float(max(self.power.max(initial=0) + 1, layers.max(initial=0)))

    def outweighs(self, layer: int) -> bool:
        """Whether the leading terms are at least as large as the rest, to within `SEEN`."""
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
        """log of the norm of the leading terms alone over the root of their mean square, without
        their power of L, before and after the layers `_LOOKS`; zeros where they do not turn."""
        still = np.zeros((2, len(_LOOKS)))
        slow = self.exact and len(np.unique(self.rate.imag[self.leads])) > len(self._phases)
        if slow or len(self._phases) > _MOST_TURNING:
            raise LostError
        if len(self._phases) == 1:
            return still
        phases, units = zip(*self._phases, strict=True)
        gram = np.array([[np.vdot(x, y) for y in units] for x in units])
        w = np.exp(1j * np.multiply.outer(_LOOKS, phases))
        w = np.stack([w, w * np.exp(1j * np.array(phases))])
        squares = np.einsum("sli,ij,slj->sl", w.conj(), gram, w).real / np.trace(gram).real
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


FALLS, RISES, OUTWEIGHS = "falls", "rises", "outweighs"
# Layers that are looked at one by one.
EACH, _PER_OCTAVE, _FARTHEST = 512, 8, 2.0**1020


@dataclass(frozen=True)
class Sides:
    """X_L, n HFC and n times the mean as series, None where a part dies out.

    drift: log of the leading modulus of HFC less that of the mean. exact: the sign of the change of
    HFC/LFC over a layer where it is known exactly. each: how many layers are looked at one by one.
    """

    whole: Series
    hfc: Series | None
    mean: Series | None
    drift: float
    exact: Callable[[int], int] | None = None
    each: int = EACH

    def direction(self, layer: int) -> int | None:
        """Whether HFC/LFC rises (1), falls (-1) or does neither (0) over this layer; None where
        rounding hides which, as of a fall by 1e-20."""
        if self.exact and layer < EACH:
            return self.exact(layer)
        assert self.hfc is not None and self.mean is not None
        (up, parts), (down, others) = self.hfc.change(layer), self.mean.change(layer)
        total, seen = self.drift + up - down, SEEN * (abs(self.drift) + parts + others)
        if total and abs(total) <= seen:
            return None
        return (total > 0) - (total < 0)


@dataclass(frozen=True)
class Onset:
    """layer: the number `shows_from`. how: what begins there, `FALLS`, `RISES` or `OUTWEIGHS`."""

    layer: float
    how: str


def onset(sides: Sides, tends_to: str | None) -> Onset | None:
    """From which layer on X_0 shows what decides, None where binary64 cannot tell.

    tends_to: what HFC/LFC tends to, None where that is not decided.
    """
    try:
        whole = sides.whole
        end = _settled(whole.peak if whole.power.any() else 0.0, lambda L: whole.rest(L)[0] <= 1)
        outweighs = None if end is None else _first_of_all(whole.outweighs, end, sides.each)
        if outweighs != 0 and tends_to in ("zero", "infinity"):
            sign, how = (-1, FALLS) if tends_to == "zero" else (1, RISES)
            if (layer := _moves_from(sides, sign)) is not None:
                return Onset(float(layer), how)
    except LostError:
        return None
    return None if outweighs is None else Onset(float(outweighs), OUTWEIGHS)


def _moves_from(sides: Sides, sign: int) -> int | None:
    """The first layer from which HFC/LFC moves this way in every layer, None without one."""
    hfc, mean = sides.hfc, sides.mean
    if hfc is None or mean is None:
        if sides.exact is None:
            return 0
        # One of the two is 0 after some layers: fewer than are looked at one by one.
        return _first_of_all(lambda L: sides.direction(L) in (sign, 0), EACH - 1, EACH)
    turns = hfc.turns(), mean.turns()
    steps = np.diff(turns[0] - turns[1], axis=0)[0] * sign
    lowest = min(float(each.min()) for each in turns)
    power = hfc.lead_power, mean.lead_power

    def margin(layer: float) -> float:
        """By how much the leading terms alone move HFC/LFC the right way, at least."""
        growth = [math.log1p(k / (layer + 1 - k)) for k in power]
        return sign * (sides.drift + growth[0] - growth[1]) + float(steps.min())

    if steps.any() and (least := margin(_FARTHEST)) <= (blur := _BLUR * np.abs(steps).max()):
        if least >= -blur:
            # Leading terms keep HFC/LFC as it is for a layer: others move it.
            raise LostError
        return None

    def settled(layer: float) -> bool:
        rests = [part.rest(layer) for part in (hfc, mean)]
        small = max(rest for rest, _ in rests) <= math.exp(lowest) / 4
        return small and sum(move for _, move in rests) <= math.exp(lowest) * margin(layer) / 4

    end = _settled(max(hfc.peak, mean.peak), settled)
    if end is None:
        return None
    direction = cache(sides.direction)
    first = _first_of_all(lambda L: direction(L) == sign, end, sides.each)
    at_least = _first_of_all(lambda L: direction(L) in (sign, None), first, sides.each)
    # Where it turns, a few layers are lost in rounding.
    if first - at_least > _AROUND * first:
        raise LostError
    return first


def _settled(first: float, holds: Callable[[float], bool]) -> int | None:
    """A layer from `first` on for which this holds, among doublings; None up to the farthest."""
    layer = math.ceil(min(first, _FARTHEST))
    while layer < _FARTHEST:
        if holds(float(layer)):
            return layer
        layer = max(1, 2 * layer)
    return None


def _first_of_all(right: Callable[[int], bool], end: int, each: int) -> int:
    """The first layer from which all that are looked at are right; from `end` on all are."""
    wrong, after = -1, None
    for layer in _looked_at(end, each):
        if not right(layer):
            wrong, after = layer, None
        elif after is None:
            after = layer
    first = end if after is None else after
    while first - wrong > 1:
        middle = (wrong + first) // 2
        if right(middle):
            first = middle
        else:
            wrong = middle
    return first


def _looked_at(end: int, each: int) -> Iterator[int]:
    yield from range(min(end, each))
    layer = each
    while layer < end:
        yield layer
        layer += max(1, layer // _PER_OCTAVE)
