"""How each token grows, and the cosine of each pair of tokens in the limit (T14e, T14g, T14h).

A token without the dominant mode of the others turns by its own next one (T4b): each has its own
growth. Where the dominant roots of a pair have powers that are all real, each residue of L is
looked at by itself, in the layer taken N at a time; else the leading sums at some depths show two
limit points, or identities between numbers of the roots' field show that the cosine is constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from math import gcd, isqrt, lcm

from .balls import Ball, ball
from .leading import Form, evaluated, leading
from .matrices import Rationals
from .moduli import TooHard, vanishes
from .roots import Root
from .several import SeveralLayers
from .start import Growth, Start, token
from .system import System

# The interval around a cosine is no wider than 2^-_DIGITS.
_DIGITS = 80
_LONGEST_PERIOD = 96
_LARGEST_DEGREE = 6
# Depths of the leading sums that are compared, at so many bits.
_DEPTHS, _BITS = range(24, 44), 512

Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Angle:
    """How a pair of tokens ends: "limit", one for each residue of L (None where a token is 0 there
    from some depth on); "a token is 0" from some depth on; "no limit"; or "open"."""

    how: str
    bounds: tuple[Bounds | None, ...] = ()


class Tokens:
    """The tokens of one X_0 under one (A, H)."""

    def __init__(self, A: Rationals, H: Rationals, X0: Rationals) -> None:
        self._system, self._X0 = System(A, H), X0
        self.start = Start(self._system, X0)
        self._at = cache(self._residue_starts)
        self._part = cache(self._leading)

    @cached_property
    def growths(self) -> list[Growth | None]:
        return [self.start.growth(token(k)) for k in range(self._system.n)]

    def orders(self) -> list[tuple[Fraction, int]]:
        """(|mu|^2 nearly, power of L) of each token; (0, 0) for one that becomes 0."""
        found = []
        for growth in self.growths:
            if growth is None:
                found.append((Fraction(0), 0))
                continue
            x = growth.roots[0].ball(_BITS)
            size = Fraction(x.re**2 + x.im**2, 1 << (2 * _BITS)) / self._system.scale**2
            found.append((size, growth.multiplicity - 1))
        return found

    def angles(self) -> dict[tuple[int, int], Angle]:
        """(i, k), i < k -> how the pair ends."""
        pairs = combinations(range(self._system.n), 2)
        return {pair: self._angle(pair) for pair in pairs}

    def _angle(self, pair: tuple[int, int]) -> Angle:
        growths = [self.growths[k] for k in pair]
        if None in growths:
            return Angle("a token is 0")
        roots = list(dict.fromkeys(root for g in growths if g for root in g.roots))
        orders = [_order(root) for root in roots]
        if None not in orders:
            return self._by_residue(pair, lcm(*(k for k in orders if k)), roots)
        return self._turning(pair, roots)

    def _by_residue(self, pair: tuple[int, int], period: int, roots: Sequence[Root]) -> Angle:
        if any(_power(root.ball(_BITS), period).re <= 0 for root in roots):
            period *= 2
        if period > _LONGEST_PERIOD:
            raise TooHard(f"a period of {period}")
        if period == 1:
            return Angle("limit", (self._bounds(pair, self.start),))
        bounds: list[Bounds | None] = []
        for residue in range(period):
            start = self._at(period)[residue]
            growths = [start.growth(token(k)) for k in pair]
            if None in growths:
                bounds.append(None)
                continue
            tops = [g.roots for g in growths if g]
            if any(len(found) > 1 or found[0].ball(_BITS).re <= 0 for found in tops):
                return Angle("open")
            bounds.append(self._bounds(pair, start))
        return Angle("limit", tuple(bounds)) if any(bounds) else Angle("a token is 0")

    def _residue_starts(self, period: int) -> list[Start]:
        system, Z, found = SeveralLayers(self._system, period), self.start.powers[0], []
        for _ in range(period):
            found.append(Start(system, Z))  # type: ignore[arg-type]
            Z = self._system.step(Z)
        return found

    def _leading(self, start: Start, k: int) -> tuple[Growth, dict]:
        growth = start.growth(token(k))
        assert growth is not None
        parts = leading(start, growth)
        return growth, {q: part.entries(token(k)) for q, part in parts.items()}

    def _bounds(self, pair: tuple[int, int], start: Start) -> Bounds:
        """Of the cosine where one positive root leads each token."""
        sides = [self._part(start, k) for k in pair]
        at = list(dict.fromkeys(growth.roots[0] for growth, _ in sides))

        def vectors(values: Sequence[Ball]) -> list[list[Ball]]:
            known = dict(zip(at, values, strict=True))
            return [
                [evaluated(x, known[g.roots[0]]) for x in entries[g.roots[0].polynomial]]
                for g, entries in sides
            ]

        if vanishes(lambda values: _inner(*vectors(values)), at):
            return Fraction(0), Fraction(0)
        bits = 256
        while True:
            found = _cosine(*vectors([root.ball(bits) for root in at]))
            if found is not None and (found[1] - found[0]) * 2**_DIGITS <= 1:
                return found
            bits *= 2

    def _turning(self, pair: tuple[int, int], roots: Sequence[Root]) -> Angle:
        """Where no residues have limits."""
        values = {root: root.ball(_BITS) for root in roots}
        shown = []
        for L in _DEPTHS:
            sums = [self._sum(k, L, values) for k in pair]
            found = _cosine(*sums)
            if found is not None:
                shown.append(found)
        if not shown:
            return Angle("open")
        low, high = max(b[0] for b in shown), min(b[1] for b in shown)
        if low > high:
            return Angle("no limit")
        if (high - low) * 2**_DIGITS <= 1 and (self._are_parallel(pair) or self._is_steady(pair)):
            return Angle("limit", ((low, high),))
        return Angle("open")

    def _sum(self, k: int, L: int, values: dict[Root, Ball]) -> list[Ball]:
        growth, entries = self._part(self.start, k)
        total = [ball(0, _BITS)] * self._system.d
        for root in growth.roots:
            turn = _power(values[root], L - growth.multiplicity + 1)
            row = entries[root.polynomial]
            total = [t + turn * evaluated(x, values[root]) for t, x in zip(total, row, strict=True)]
        return total

    def _are_parallel(self, pair: tuple[int, int]) -> bool:
        """Multiples of each other at every depth, and led by one pair of conjugates no power of
        which is real: 0 at finitely many depths."""
        growth = self.growths[pair[0]]
        rows = [[Z[k] for Z in self.start.powers] for k in pair]
        x, y = ([c for Z in row for c in Z] for row in rows)
        place = next((p for p, c in enumerate(x) if c), 0)
        return (
            growth is not None
            and len(growth.roots) == 2
            and y[place] != 0
            and all(a * y[place] == b * x[place] for a, b in zip(x, y, strict=True))
        )

    def _is_steady(self, pair: tuple[int, int]) -> bool:
        """|y_i|^2, |y_k|^2 and their inner product have proportional coefficients, frequency by
        frequency, and |y| stays away from 0."""
        (first, one), (second, two) = (self._part(self.start, k) for k in pair)
        if set(first.roots) != set(second.roots) or first.multiplicity != second.multiplicity:
            return False
        forms = [Form(x, y, first.roots) for x, y in ((one, one), (two, two), (one, two))]
        groups = forms[0].classes()
        roots = forms[0].roots
        at = {root: root.ball(_BITS) for root in roots}
        for form in forms[:2]:
            constant, *others = (form.value(group, at) for group in groups)
            if constant.lower <= sum(other.upper for other in others):
                return False

        def mismatch(form: Form, group: list):
            def gap(values: Sequence[Ball]) -> Ball:
                known = dict(zip(roots, values, strict=True))
                x, y = forms[0].value(group, known), forms[0].value(groups[0], known)
                return form.value(group, known) * y - form.value(groups[0], known) * x

            return gap

        return all(
            vanishes(mismatch(form, group), roots) for form in forms[1:] for group in groups[1:]
        )


def limit_angles(A: Rationals, H: Rationals, X0: Rationals) -> dict[tuple[int, int], Angle]:
    """(i, k), i < k -> how the pair ends."""
    return Tokens(A, H, X0).angles()


def _order(root: Root) -> int | None:
    """The least k with root^k real, None where there is none: root / conj(root) has an order k with
    phi(k) at most D (D - 1), and phi(k) > k/6 for k below 10^4."""
    if root.is_real:
        return 1
    if root.degree > _LARGEST_DEGREE:
        raise TooHard(f"phases of degree {root.degree}")
    most = root.degree * (root.degree - 1)
    for k in range(2, 6 * most + 1):
        if sum(gcd(i, k) == 1 for i in range(1, k + 1)) > most:
            continue
        x = _power(root.ball(_BITS), k)
        if abs(x.im) > x.error:
            continue

        def gap(values: Sequence[Ball], k: int = k) -> Ball:
            return _power(values[0], k) - _power(values[1], k)

        if vanishes(gap, [root, root.conjugate]):
            return k
    return None


def _power(x: Ball, k: int) -> Ball:
    total = ball(1, x.bits)
    for _ in range(k):
        total = total * x
    return total


def _inner(x: Sequence[Ball], y: Sequence[Ball]) -> Ball:
    total = ball(0, x[0].bits)
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def _cosine(x: Sequence[Ball], y: Sequence[Ball]) -> Bounds | None:
    """Of two real vectors; None where one may be 0 or the sign is not known."""
    product, sizes = _inner(x, y), [_inner(x, x), _inner(y, y)]
    if any(size.re <= size.error for size in sizes):
        return None
    size = abs(product.re)
    ends = [
        _root(max(0, size + sign * product.error), [s.re - sign * s.error for s in sizes])
        for sign in (-1, 1)
    ]
    low, high = ends[0], min(ends[1] + Fraction(1, 1 << (2 * _DIGITS)), Fraction(1))
    if size <= product.error:
        return -high, high
    return (low, high) if product.re > 0 else (-high, -low)


def _root(product: int, sizes: Sequence[int]) -> Fraction:
    """product / sqrt(size size'), to 2^-(2 _DIGITS)."""
    shift = 2 * _DIGITS
    return Fraction(isqrt((product**2 << (2 * shift)) // (sizes[0] * sizes[1])), 1 << shift)
