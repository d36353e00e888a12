"""Zonotopes in binary64 with every rounding accounted for: what a box of inputs becomes.

A value z [...] stands for every point centre + sum_s e_s generators[s] + t rest with e_s and the
entries of t in [-1, 1]. Symbols e_s are shared by all values of one pass: what two values have in
common cancels. Roundings, and what a curved function adds to its linear part, go into `rest`, which
`own` turns into symbols of their own. Rounding bounds are those of `theory.numbers.rounding`.

Curved functions are replaced by lines, proved in balls on the interval of each entry, one way for
each route. tangent: the tangent at the middle, and the range of the second derivative. chord: the
slope between the ends, and the range of what is left, piece by piece. softmax, to first order at
the centre, for the first route: with delta' = delta - sum_k a_k delta_k, |delta'_k| <= r_k and a at
the centre, a(xi)_k <= a_k exp(r_k) on the box (Jensen), and the second derivative a(xi)_j
((delta'_j - m)^2 - Var), m and Var under a(xi), lies between -a_j exp(r_j) V and
a_j exp(r_j) (r_j + M)^2, where V = sum_k a_k exp(r_k) r_k^2 and M = sum_k a_k exp(r_k) r_k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import flint
import numpy as np
from numpy.typing import NDArray

from oversmoothing.experiments.enclosures.balls import Ball, Curve, exact, middles, softmax
from oversmoothing.theory.numbers.rounding import TINY, UNIT, at_precision, gamma, inflated
from oversmoothing.theory.support.sizes import Array

# A bilinear map of arrays with leading dimensions that broadcast: products, row by row or whole.
Product = Callable[[Array, Array], Array]
# Symbols at once, where their moduli are added: what fits a cache.
_BLOCK = 128
BITS = 96
PIECES = 8


class Symbols:
    """How many symbols a pass has used."""

    def __init__(self, first: int = 0) -> None:
        self.number = first

    def box(self, centre: Array, radius: Array | float) -> Zonotope:
        """Every point within radius [...] of the centre, a symbol for each entry."""
        point = np.zeros((0, *centre.shape))
        return Zonotope(centre, point, np.broadcast_to(radius, centre.shape), self).own()


@dataclass(frozen=True)
class Zonotope:
    """centre [...], generators [symbols, ...], rest [...] >= 0, and the symbols of its pass."""

    centre: Array
    generators: Array
    rest: Array
    of: Symbols

    @cached_property
    def radius(self) -> Array:
        """An upper bound, entry by entry, on how far a point is from the centre."""
        spread = np.zeros_like(self.centre)
        for start in range(0, self.symbols, _BLOCK):
            spread += np.abs(self.generators[start : start + _BLOCK]).sum(0)
        return inflated(spread + self.rest, self.symbols + 2)

    @property
    def symbols(self) -> int:
        return len(self.generators)

    @property
    def size(self) -> Array:
        """An upper bound on the moduli of its points, and of what they are computed from."""
        return np.abs(self.centre) + self.radius

    def interval(self) -> tuple[Array, Array]:
        """(lowest, highest) of every entry."""
        radius = inflated(self.radius + 2 * UNIT * self.size, 4)
        return self.centre - radius, self.centre + radius

    def padded(self, symbols: int) -> Array:
        """The generators of so many symbols."""
        more = np.zeros((symbols - self.symbols, *self.centre.shape))
        return np.concatenate([self.generators, more]) if len(more) else self.generators

    def swapped(self) -> Zonotope:
        """The transpose of the last two dimensions."""
        return self._each(lambda x: x.swapaxes(-1, -2))

    def __add__(self, other: Zonotope) -> Zonotope:
        return _sum(self, other, self.centre + other.centre, np.add)

    def __sub__(self, other: Zonotope) -> Zonotope:
        return _sum(self, other, self.centre - other.centre, np.subtract)

    def times(self, factor: Array | float, shift: Array | float = 0.0) -> Zonotope:
        """factor z + shift, entry by entry; factors may be one rounding off what is meant."""
        error = _error(self.size * np.abs(factor) + np.abs(shift), 3, self.symbols)
        rest = inflated(self.rest * np.abs(factor) + error, 4)
        return Zonotope(self.centre * factor + shift, self.generators * factor, rest, self.of)

    def mapped(self, W: Array, b: Array | None = None) -> Zonotope:
        """z W + b over the last dimension; entries of W may be one rounding off."""
        shift = np.zeros(W.shape[1]) if b is None else b
        size = self.size @ np.abs(W) + np.abs(shift)
        rest = self.rest @ np.abs(W) + _error(size, len(W) + 2, self.symbols)
        rest = inflated(rest, len(W) + 4)
        return Zonotope(self.centre @ W + shift, self.generators @ W, rest, self.of)

    def own(self) -> Zonotope:
        """The same value, what was its `rest` under symbols of its own."""
        places, of = np.flatnonzero(self.rest), self.of
        generators = np.zeros((of.number + len(places), *self.centre.shape))
        generators[: self.symbols] = self.generators
        flat = generators.reshape(len(generators), self.centre.size)
        flat[of.number + np.arange(len(places)), places] = self.rest.ravel()[places]
        of.number += len(places)
        return Zonotope(self.centre, generators, np.zeros_like(self.rest), of)

    def _each(self, f: Callable[[Array], Array]) -> Zonotope:
        """f, which moves entries alone, of the centre, of every generator and of the rest."""
        return Zonotope(f(self.centre), f(self.generators), f(self.rest), self.of)

    def matmul(self, other: Zonotope) -> Zonotope:
        """The product of matrices."""
        return bilinear(self, other, np.matmul, other.centre.shape[-2])

    def multiplied(self, other: Zonotope) -> Zonotope:
        """The product, entry by entry."""
        return bilinear(self, other, np.multiply, 1)

    def squares(self) -> Zonotope:
        """The mean of squares of each row, [m, 1]."""
        return squares(self, (-1,), 1.0 / self.centre.shape[-1])

    def mean(self) -> Zonotope:
        """The mean of each row, [m, 1]."""
        n = self.centre.shape[-1]
        return self.mapped(np.full((n, 1), 1.0 / n))

    def centred(self) -> Zonotope:
        """X (I - 1 1^T / n)."""
        n = self.centre.shape[-1]
        return self.mapped(np.eye(n) - np.full((n, n), 1.0 / n))

    def sums(self) -> Zonotope:
        """The sum of each row, [m, 1]."""
        return self.mapped(np.ones((self.centre.shape[-1], 1)))

    def picked(self, columns: NDArray[np.intp]) -> Zonotope:
        """The entry of each row in its column, [m, 1]."""
        rows = np.arange(len(columns))
        return self._each(lambda x: x[..., rows, columns, None])

    def below(self, first: Array) -> Zonotope:
        """These rows below exact ones [k, n]."""
        k = len(first)
        whole = self._each(lambda x: np.pad(x, [(0, 0)] * (x.ndim - 2) + [(k, 0), (0, 0)]))
        return replace(whole, centre=np.concatenate([first, self.centre]))

    def tangent(self, f: Curve) -> Zonotope:
        """f of every entry by its tangent at the centre: f'' bounds what is left.

        Raises `LeftDomainError` where f is not defined on all of it.
        """
        return _applied(self, partial(_tangent, f))

    def chord(self, f: Curve) -> Zonotope:
        """f of every entry by the slope between the ends of its interval. Raises as `tangent`."""
        return _applied(self, partial(_chord, f))

    def softmax(self, causal: bool) -> Zonotope:
        """softmax of every row; see the head of the file. None is causal."""
        assert not causal
        n = self.centre.shape[-1]
        with at_precision(BITS):
            balls = [softmax(row) for row in exact(self.centre)]
            A = np.array([middles(row) for row in balls])
            rounding = np.array([[upward(abs(x - float(x.mid()))) for x in row] for row in balls])
        # What a row has in common changes nothing: delta', as an affine form.
        point = Zonotope(A, np.zeros((0, *A.shape)), np.zeros_like(A), self.of)
        L = self - bilinear(point, self, lambda p, q: (p * q).sum(-1, keepdims=True), n)
        # sum_k a_k delta'_k = sum_k (a_k - A_k) delta_k, which is 0 but for the rounding of A.
        left_over = inflated((rounding * self.radius).sum(-1, keepdims=True), n + 2)
        reach = inflated(L.radius + left_over, 2)
        with at_precision(BITS):
            bends = [_bends(*row) for row in zip(balls, reach.tolist(), strict=True)]
            offset = np.array(
                [[float(((low + high) / 2).mid()) for low, high in row] for row in bends]
            )
            left = np.array([
                [upward(abs(low - c).max(abs(high - c)))
                 for (low, high), c in zip(*row, strict=True)]
                for row in zip(bends, offset.tolist(), strict=True)
            ])  # fmt: skip
        linear = L.times(A)
        unsaid = rounding * (1 + reach) + A * left_over
        rest = linear.rest + left + unsaid + 2 * UNIT * (A + np.abs(offset))
        return Zonotope(A + offset, linear.generators, inflated(rest, 16), self.of)


def _sum(P: Zonotope, Q: Zonotope, centre: Array, by: Callable[..., Array]) -> Zonotope:
    """P + Q or P - Q, entry by entry, of shapes that broadcast."""
    fewer, many = sorted((P.symbols, Q.symbols))
    generators = np.zeros((many, *centre.shape))
    by(P.generators[:fewer], Q.generators[:fewer], out=generators[:fewer])
    if P.symbols > fewer:
        generators[fewer:] = P.generators[fewer:]
    elif Q.symbols > fewer:
        by(0.0, Q.generators[fewer:], out=generators[fewer:])
    error = _error(P.size + Q.size, 1, many)
    return Zonotope(centre, generators, inflated(P.rest + Q.rest + error, 4), P.of)


def _error(size: Array, terms: int, symbols: int) -> Array:
    """What sums of so many products of moduli `size` may be off by, all symbols together."""
    return inflated(gamma(terms + 4) * size + (terms + 4) * (symbols + 1) * TINY, terms + 8)


def bilinear(P: Zonotope, Q: Zonotope, product: Product, terms: int) -> Zonotope:
    """product(P, Q), each entry a sum of `terms` products of entries: around the centres linear but
    for the product of both departures, at most that of the radii."""
    many = max(P.symbols, Q.symbols)
    p, q = P.radius, Q.radius
    generators = product(P.padded(many), Q.centre) + product(P.centre, Q.padded(many))
    rest = product(P.rest, np.abs(Q.centre)) + product(np.abs(P.centre), Q.rest) + product(p, q)
    size = product(P.size, Q.size)
    rest = rest + _error(2 * size, terms + 1, many)
    return Zonotope(product(P.centre, Q.centre), generators, inflated(rest, 2 * terms + 8), P.of)


def squares(P: Zonotope, axes: tuple[int, ...], scale: float) -> Zonotope:
    """scale times the sum of z^2 over these axes, counted from the last as -1 (kept, of size 1).

    The square of the departure lies between 0 and that of the radius: half of it moves the centre.
    """
    terms = int(np.prod([P.centre.shape[axis] for axis in axes]))
    p = P.radius
    half = 0.5 * scale * (p * p).sum(axes, keepdims=True)
    centre = scale * (P.centre * P.centre).sum(axes, keepdims=True) + half
    generators = 2 * scale * (P.generators * P.centre).sum(axes, keepdims=True)
    rest = half + 2 * scale * (P.rest * np.abs(P.centre)).sum(axes, keepdims=True)
    size = scale * (P.size**2).sum(axes, keepdims=True)
    rest = rest + _error(2 * size, terms + 4, P.symbols)
    return Zonotope(centre, generators, inflated(rest, 2 * terms + 8), P.of)


class LeftDomainError(ArithmeticError):
    """A box on which a root, logarithm or quotient is not defined: it is too large."""


def normal(x: Ball) -> Ball:
    """The density of the standard normal distribution."""
    return (-x * x / 2).exp() / (2 * flint.arb.pi()).sqrt()


def _below(x: Ball) -> Ball:
    """The share of the standard normal distribution below x."""
    return (-x / flint.arb(2).sqrt()).erfc() / 2


# |GELU''| = phi(x) |2 - x^2| is largest at 0: 2 / sqrt(2 pi).
GELU = Curve(
    lambda x: x * _below(x),
    lambda x: _below(x) + x * normal(x),
    lambda x: normal(x) * (2 - x * x),
    0.7979,
)
ROOT_INVERSE = Curve(
    lambda x: x.rsqrt(), lambda x: -x.rsqrt() / x / 2, lambda x: 3 * x.rsqrt() / (x * x) / 4
)
LOG = Curve(lambda x: x.log(), lambda x: 1 / x, lambda x: -1 / (x * x))
EXP = Curve(lambda x: x.exp(), lambda x: x.exp(), lambda x: x.exp())
INVERSE = Curve(lambda x: 1 / x, lambda x: -1 / (x * x), lambda x: 2 / (x * x * x))

Line = tuple[float, float, float]


def _applied(z: Zonotope, line: Callable[[float, float], Line]) -> Zonotope:
    """f(z), entry by entry, for f(x) = middle + slope (x - centre) +- error on the whole of z."""
    centres, radii = z.centre.ravel().tolist(), z.radius.ravel().tolist()
    with at_precision(BITS):
        lines = np.array([line(c, r) for c, r in zip(centres, radii, strict=True)])
    slope, middle, error = lines.T.reshape(3, *z.centre.shape)
    if not np.isfinite(lines).all():
        raise LeftDomainError
    rounding = _error(z.radius * np.abs(slope), 2, z.symbols)
    rest = inflated(z.rest * np.abs(slope) + error + rounding, 4)
    return Zonotope(middle, z.generators * slope, rest, z.of)


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
    rest: Ball | None = None
    for k in range(PIECES):
        middle = flint.arb(c) + flint.arb(r) * ((2 * k + 1) - PIECES) / PIECES
        reach = (flint.arb(r) / PIECES).upper()
        piece = middle + flint.arb(0, 1) * reach
        left = f.value(middle) - s * (middle - c) + (f.first(piece) - s) * (flint.arb(0, 1) * reach)
        rest = left if rest is None else rest.union(left)
    if rest is None or not rest.is_finite():
        return np.nan, np.nan, np.nan
    offset = float(rest.mid())
    return s, offset, upward(abs(rest - offset))


def _bends(a: list[Ball], reach: list[float]) -> list[tuple[Ball, Ball]]:
    """The least and the most that half the second derivative of each entry of softmax can be."""
    grown = [x * flint.arb(r).exp() for x, r in zip(a, reach, strict=True)]
    M = sum(x * r for x, r in zip(grown, reach, strict=True))
    V = sum(x * r * r for x, r in zip(grown, reach, strict=True))
    return [(-x * V / 2, x * (M + r) * (M + r) / 2) for x, r in zip(grown, reach, strict=True)]
