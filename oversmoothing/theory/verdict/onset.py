"""From which layer on one X_0 shows what decides: the number `shows_from` of a verdict (T4e).

X_L is a sum of terms C(L, k) mu^L G. The leading ones decide what HFC/LFC tends to; the rest may
hide them for long. The number is a layer:

- 0 where the leading terms of X_L are at least as large as the rest of it at every layer
  (Frobenius norms; of leading terms that turn the root of the mean square over their phases);
- else, where HFC/LFC tends to 0 (to infinity), the first layer from which it falls (rises) in every
  layer, if there is one;
- else the first layer from which the leading terms are at least as large as the rest.

A bound of the rest gives a layer past which nothing changes any more. Up to `EACH` layers before it
are looked at one by one; of more, `_PER_OCTAVE` between a depth and twice that depth, and the
change is then found by bisection: what returns between two of those is not seen.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from oversmoothing.theory.verdict.onset_series import SEEN, LostError, Series

FALLS, RISES, OUTWEIGHS = "falls", "rises", "outweighs"
# Layers that are looked at one by one.
EACH = 512
_PER_OCTAVE = 8
_FARTHEST = 2.0**1020
# Changes of HFC/LFC above this, relative to what they are summed from, are beyond doubt.
_CLEAR = 1e-8


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

    def direction(self, layer: int) -> int:
        """Whether HFC/LFC rises (1), falls (-1) or does neither (0) over this layer."""
        exact = self.exact if layer < EACH else None
        if self.hfc is None or self.mean is None:
            return exact(layer) if exact else 0
        try:
            (up, parts), (down, others) = self.hfc.change(layer), self.mean.change(layer)
        except LostError:
            if exact is None:
                raise
            return exact(layer)
        total = self.drift + up - down
        scale = abs(self.drift) + parts + others
        if exact and not abs(total) > _CLEAR * scale:
            return exact(layer)
        return 0 if abs(total) <= SEEN * scale else 1 if total > 0 else -1


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
        outweighs = _outweighs_from(sides)
        if outweighs and tends_to in ("zero", "infinity"):
            falls = tends_to == "zero"
            layer = _moves_from(sides, -1 if falls else 1)
            if layer is not None:
                return Onset(float(layer), FALLS if falls else RISES)
    except LostError:
        return None
    return None if outweighs is None else Onset(float(outweighs), OUTWEIGHS)


def _outweighs_from(sides: Sides) -> int | None:
    whole = sides.whole
    end = _settled(whole.peak if _has_powers(whole) else 0.0, lambda L: whole.rest(L)[0] <= 1)
    return None if end is None else _first_of_all(whole.outweighs, end, sides.each)


def _has_powers(series: Series) -> bool:
    return bool(series.power.any())


def _moves_from(sides: Sides, sign: int) -> int | None:
    """The first layer from which HFC/LFC moves this way in every layer, None without one."""
    hfc, mean = sides.hfc, sides.mean
    if hfc is None or mean is None:
        if sides.exact is None:
            return 0
        # One of the two is 0 after some layers: fewer than are looked at one by one.
        return _first_of_all(lambda L: sides.direction(L) in (sign, 0), EACH - 1, EACH)
    turning = hfc.turns() - mean.turns()
    steps = np.diff(turning) * sign
    lowest = min(float(hfc.turns().min()), float(mean.turns().min()))
    power = hfc.lead_power, mean.lead_power

    def margin(layer: float) -> float:
        """By how much the leading terms alone move HFC/LFC the right way, at least."""
        growth = [math.log1p(k / (layer + 1 - k)) for k in power]
        return sign * (sides.drift + growth[0] - growth[1]) + float(steps.min())

    if steps.any() and margin(_FARTHEST) <= 0:
        return None

    def settled(layer: float) -> bool:
        rests = [part.rest(layer) for part in (hfc, mean)]
        small = max(rest for rest, _ in rests) <= math.exp(lowest) / 4
        return small and sum(move for _, move in rests) <= math.exp(lowest) * margin(layer) / 4

    end = _settled(max(hfc.peak, mean.peak), settled)
    if end is None:
        return None
    return _first_of_all(lambda L: sides.direction(L) == sign, end, sides.each)


def _settled(first: float, holds: Callable[[float], bool]) -> int | None:
    """A layer from `first` on for which this holds, among doublings; None up to the farthest."""
    layer = math.ceil(first)
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
