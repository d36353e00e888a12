"""Lines around curved functions on intervals, proved in balls: two ways, one a route.

tangent: the tangent at the middle, and the range of the second derivative over the interval.
chord: the slope between the ends, and the range of what is left, piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import flint
import numpy as np

from oversmoothing.experiments.enclosures.ball_arrays import Ball
from oversmoothing.experiments.enclosures.zonotope import Zonotope, curved
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.support.sizes import Array

BITS = 96
PIECES = 8


class LeftDomainError(ArithmeticError):
    """A box on which a root, logarithm or quotient is not defined: it is too large."""


@dataclass(frozen=True)
class Curve:
    """f, f' and f'' of a ball; most: an upper bound on |f''| everywhere, where there is one."""

    value: Callable[[Ball], Ball]
    first: Callable[[Ball], Ball]
    second: Callable[[Ball], Ball]
    most: float = float("inf")


def _normal(x: Ball) -> Ball:
    return (-x * x / 2).exp() / (2 * flint.arb.pi()).sqrt()


def _below(x: Ball) -> Ball:
    """The share of the standard normal distribution below x."""
    return (-x / flint.arb(2).sqrt()).erfc() / 2


# |GELU''| = phi(x) |2 - x^2| is largest at 0: 2 / sqrt(2 pi).
GELU = Curve(
    lambda x: x * _below(x),
    lambda x: _below(x) + x * _normal(x),
    lambda x: _normal(x) * (2 - x * x),
    0.7979,
)
ROOT_INVERSE = Curve(
    lambda x: x.rsqrt(), lambda x: -x.rsqrt() / x / 2, lambda x: 3 * x.rsqrt() / (x * x) / 4
)
LOG = Curve(lambda x: x.log(), lambda x: 1 / x, lambda x: -1 / (x * x))
EXP = Curve(lambda x: x.exp(), lambda x: x.exp(), lambda x: x.exp())
INVERSE = Curve(lambda x: 1 / x, lambda x: -1 / (x * x), lambda x: 2 / (x * x * x))

Line = tuple[float, float, float]


def tangent(z: Zonotope, f: Curve) -> Zonotope:
    """f of every entry by its tangent at the centre: f'' bounds what is left.

    Raises `LeftDomainError` where f is not defined on all of z.
    """
    return _applied(z, lambda c, r: _tangent(f, c, r))


def chord(z: Zonotope, f: Curve) -> Zonotope:
    """f of every entry by the slope between the ends of its interval. Raises as `tangent` does."""
    return _applied(z, lambda c, r: _chord(f, c, r))


def _applied(z: Zonotope, line: Callable[[float, float], Line]) -> Zonotope:
    centres, radii = z.centre.ravel().tolist(), z.radius.ravel().tolist()
    with at_precision(BITS):
        found = np.array([line(c, r) for c, r in zip(centres, radii, strict=True)])
    slope, middle, error = found.T.reshape(3, *z.centre.shape)
    if not np.isfinite(found).all():
        raise LeftDomainError
    return curved(z, slope, middle, error)


def upward(x: Ball) -> float:
    """A binary64 number at least every number of a ball."""
    return float(np.nextafter(float(x.upper()), np.inf))


def _tangent(f: Curve, c: float, r: float) -> Line:
    at = flint.arb(c)
    value, slope = f.value(at), f.first(at)
    middle, s = float(value.mid()), float(slope.mid())
    second = f.second(flint.arb(c, r))
    if not second.is_finite():
        second = flint.arb(0, f.most)
    if not second.is_finite():
        return np.nan, np.nan, np.nan
    # x (x - c)^2 / 2 for x between the least and the most that f'' can be, 0 among them.
    low, high = max(min(-upward(-second), 0.0), -f.most), min(max(upward(second), 0.0), f.most)
    least, most = (flint.arb(x) * r * r / 2 for x in (low, high))
    offset = float((middle + (least + most) / 2).mid())
    left = (value - offset + least).union(value - offset + most)
    return s, offset, upward(abs(left) + abs(slope - s) * r)


def _chord(f: Curve, c: float, r: float) -> Line:
    """What is left of f(x) - s (x - c), on each piece by its mean value form."""
    low, high = flint.arb(c) - r, flint.arb(c) + r
    chord = (f.value(high) - f.value(low)) / (high - low)
    # Any slope is sound; between ends that are as good as one, the tangent's.
    s = float((chord if chord.is_finite() else f.first(flint.arb(c))).mid())
    found: Ball | None = None
    for k in range(PIECES):
        middle = flint.arb(c) + flint.arb(r) * ((2 * k + 1) - PIECES) / PIECES
        reach = (flint.arb(r) / PIECES).upper()
        piece = middle + flint.arb(0, 1) * reach
        left = f.value(middle) - s * (middle - c) + (f.first(piece) - s) * (flint.arb(0, 1) * reach)
        found = left if found is None else found.union(left)
    if found is None or not found.is_finite():
        return np.nan, np.nan, np.nan
    offset = float(found.mid())
    return s, offset, upward(abs(found - offset))


def ball_softmax(row: Array) -> list[Ball]:
    """softmax of exact numbers, in balls."""
    powers = [(flint.arb(x) - float(row.max())).exp() for x in row.tolist()]
    return [x / sum(powers, flint.arb(0)) for x in powers]
