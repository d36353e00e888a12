"""The roots of a monic square-free integer polynomial, each alone in a disc of proved radius.

A disc of radius n |p/p'| around any point holds a root of a p of degree n (Laguerre); n of them
that are pairwise disjoint hold one each. Approximations come from the iteration of Aberth and
need no proof.
"""

from __future__ import annotations

import cmath
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

from .balls import Ball

Point = tuple[int, int]


@dataclass(frozen=True)
class Root:
    """Root number `index` of an irreducible polynomial."""

    polynomial: tuple[int, ...]
    index: int

    @property
    def degree(self) -> int:
        return len(self.polynomial) - 1

    @property
    def is_zero(self) -> bool:
        return self.polynomial == (0, 1)

    def ball(self, bits: int) -> Ball:
        """Within an error of about 2^-bits."""
        if self.degree == 1:
            return Ball(-self.polynomial[0] << bits, 0, 0, bits)
        if self.degree == 2:
            return _of_quadratic(self.polynomial, bits)[self.index]
        return _isolated(self.polynomial).ball(self.index, bits)

    @property
    def conjugate(self) -> Root:
        if self.degree == 1:
            return self
        if self.degree == 2:
            c, b, _ = self.polynomial
            return self if b * b > 4 * c else Root(self.polynomial, 1 - self.index)
        return Root(self.polynomial, _isolated(self.polynomial).conjugates[self.index])

    @property
    def is_real(self) -> bool:
        return self.conjugate == self


def roots(polynomial: tuple[int, ...]) -> list[Root]:
    return [Root(polynomial, k) for k in range(len(polynomial) - 1)]


@lru_cache(maxsize=4096)
def _of_quadratic(polynomial: tuple[int, ...], bits: int) -> tuple[Ball, Ball]:
    c, b, _ = polynomial
    inside = b * b - 4 * c
    half = isqrt(abs(inside) << (2 * bits)) >> 1
    middle = (-b << bits) >> 1
    if inside > 0:
        return Ball(middle - half, 0, 3, bits), Ball(middle + half, 0, 3, bits)
    return Ball(middle, -half, 3, bits), Ball(middle, half, 3, bits)


@lru_cache(maxsize=4096)
def _isolated(polynomial: tuple[int, ...]) -> _Isolated:
    return _Isolated(polynomial)


class _Isolated:
    """Roots of p divided by 2^scale, so that all lie within 1/2; refined when asked."""

    def __init__(self, polynomial: tuple[int, ...]) -> None:
        self._p = polynomial
        self._degree = degree = len(polynomial) - 1
        # Fujiwara: no root exceeds 2 max |c_(n-k)|^(1/k).
        sizes = [abs(polynomial[degree - k]).bit_length() / k for k in range(1, degree + 1)]
        self._scale = int(max(sizes)) + 3
        width = 96
        points = [(int(z.real * 2**60) << 36, int(z.imag * 2**60) << 36) for z in self._started()]
        while True:
            points = self._improved(points, width)
            found = self._certified(points, width)
            if found is not None:
                break
            # Conjugate roots are not found from points on the real axis.
            points = [
                (x + ((7 + 3 * k) << (width // 3)), y + ((5 - 2 * k) << (width // 3)))
                for k, (x, y) in enumerate(points)
            ]
            points = [(x << width, y << width) for x, y in points]
            width *= 2
        self._points, self._radii, self.conjugates = found
        self._width = width
        self._best = [(point, self._width) for point in self._points]
        self._balls: dict[tuple[int, int], Ball] = {}

    def ball(self, k: int, bits: int) -> Ball:
        if (k, bits) not in self._balls:
            width = max(bits + self._scale + 16, self._width)
            while True:
                (x, y), r = self._refined(k, width)
                down = width - self._scale - bits
                if r <= 1 << down:
                    break
                width *= 2
            self._balls[k, bits] = Ball(
                _moved(x, -down), _moved(y, -down), _moved(r, -down) + 2, bits
            )
        return self._balls[k, bits]

    def _coefficients(self, width: int) -> list[int]:
        """Of p(2^scale y) / 2^(scale n), times 2^width."""
        n = self._degree
        return [_moved(c, width - self._scale * (n - k)) for k, c in enumerate(self._p)]

    def _started(self) -> list[complex]:
        n = self._degree
        c = [float(x) / 2.0**60 for x in self._coefficients(60)]
        z = [0.3 * cmath.exp(2j * cmath.pi * (k + 0.3) / n) for k in range(n)]
        for _ in range(80):
            moved = 0.0
            for i in range(n):
                value, slope = 0j, 0j
                for x in reversed(c):
                    slope = slope * z[i] + value
                    value = value * z[i] + x
                others = sum(1 / (z[i] - z[j]) for j in range(n) if j != i and z[i] != z[j])
                below = slope - value * others
                if below:
                    step = value / below
                    if abs(step) > 0.25:
                        step *= 0.25 / abs(step)
                    z[i] -= step
                    moved = max(moved, abs(step))
            if moved < 1e-15:
                break
        return z

    def _improved(self, points: list[Point], width: int) -> list[Point]:
        """Aberth's iteration in fixed point until it stands still."""
        one = 1 << width
        z = list(points)
        for i in range(len(z)):
            while z[i] in z[:i]:
                z[i] = (z[i][0] + (one >> 40) + i, z[i][1] + (one >> 41) + 1)
        c = self._coefficients(width)
        before, idle = one, 0
        for _ in range(2 * width):
            moved = 0
            for i in range(len(z)):
                value, slope = _evaluated(c, z[i], width)
                if value == (0, 0):
                    continue
                others = (0, 0)
                for j in range(len(z)):
                    if j != i:
                        gap = (z[i][0] - z[j][0], z[i][1] - z[j][1])
                        if gap != (0, 0):
                            u = _quotient((one, 0), gap, width)
                            others = (others[0] + u[0], others[1] + u[1])
                v = _product(value, others, width)
                below = (slope[0] - v[0], slope[1] - v[1])
                if below == (0, 0):
                    continue
                step = _quotient(value, below, width)
                size = abs(step[0]) + abs(step[1])
                if size > one >> 2:
                    step = (step[0] * (one >> 2) // size, step[1] * (one >> 2) // size)
                z[i] = (z[i][0] - step[0], z[i][1] - step[1])
                moved = max(moved, size)
            # Where roots are close the last digits never come to rest.
            idle = idle + 1 if moved >= before and moved < one >> 16 else 0
            if moved <= 8 or idle == 4:
                break
            before = moved
        return z

    def _certified(
        self, points: list[Point], width: int
    ) -> tuple[list[Point], list[int], list[int]] | None:
        """Points in conjugate pairs, radii and indices of conjugates, or None."""
        radii = self._radii_at(points, width)
        if radii is None:
            return None
        real = [(x, 0) for (x, y), r in zip(points, radii, strict=True) if abs(y) <= r]
        upper = [(x, y) for (x, y), r in zip(points, radii, strict=True) if y > r]
        if len(real) + 2 * len(upper) != self._degree:
            return None
        real.sort()
        upper.sort()
        points = real + [p for x, y in upper for p in ((x, y), (x, -y))]
        radii = self._radii_at(points, width)
        if radii is None or not _disjoint(points, radii):
            return None
        first = len(real)
        if any(y and abs(y) <= r for (_, y), r in zip(points, radii, strict=True)):
            return None
        pairs = [first + ((k - first) ^ 1) for k in range(first, self._degree)]
        return points, radii, [*range(first), *pairs]

    def _radii_at(self, points: list[Point], width: int) -> list[int] | None:
        """Radii of discs that hold a root each; None where p' cannot be told from 0."""
        c, n = self._coefficients(width), self._degree
        # |y| <= 1 keeps the rounding errors of Horner's scheme from growing.
        lost = 8 * (n + 1) ** 2
        result = []
        for x, y in points:
            if x * x + y * y > 1 << (2 * width):
                return None
            value, slope = _evaluated(c, (x, y), width)
            above = isqrt(value[0] ** 2 + value[1] ** 2) + 1 + lost
            below = isqrt(slope[0] ** 2 + slope[1] ** 2) - lost
            if below <= 0:
                return None
            result.append(n * (above << width) // below + 1)
        return result

    def _refined(self, k: int, width: int) -> tuple[Point, int]:
        """Newton from the isolated point; the new disc meets that old disc alone."""
        if width == self._width:
            return self._points[k], self._radii[k]
        (x, y), w = self._best[k]
        if w > width:
            (x, y), w = self._points[k], self._width
        real = self.conjugates[k] == k
        while w < width:
            up = min(2 * w, width) - w
            w += up
            c = self._coefficients(w)
            x, y = x << up, y << up
            for _ in range(2 if w == width else 1):
                step = _quotient(*_evaluated(c, (x, y), w), w)
                x, y = x - step[0], 0 if real else y - step[1]
        self._best[k] = (x, y), width
        radii = self._radii_at([(x, y)], width)
        assert radii is not None
        up = width - self._width
        for j, (q, s) in enumerate(zip(self._points, self._radii, strict=True)):
            gap = (x - (q[0] << up)) ** 2 + (y - (q[1] << up)) ** 2
            assert (gap <= (radii[0] + (s << up)) ** 2) == (j == k)
        return (x, y), radii[0]


def _moved(x: int, by: int) -> int:
    return x << by if by >= 0 else x >> -by


def _product(a: Point, b: Point, width: int) -> Point:
    return (a[0] * b[0] - a[1] * b[1]) >> width, (a[0] * b[1] + a[1] * b[0]) >> width


def _quotient(a: Point, b: Point, width: int) -> Point:
    size = b[0] ** 2 + b[1] ** 2
    re, im = a[0] * b[0] + a[1] * b[1], a[1] * b[0] - a[0] * b[1]
    return (re << width) // size, (im << width) // size


def _evaluated(c: list[int], z: Point, width: int) -> tuple[Point, Point]:
    """(p(z), p'(z))."""
    x, y = z
    a, b, s, t = 0, 0, 0, 0
    for k in reversed(c):
        s, t = ((s * x - t * y) >> width) + a, ((s * y + t * x) >> width) + b
        a, b = ((a * x - b * y) >> width) + k, (a * y + b * x) >> width
    return (a, b), (s, t)


def _disjoint(points: list[Point], radii: list[int]) -> bool:
    return all(
        (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 > (r + s) ** 2
        for k, (p, r) in enumerate(zip(points, radii, strict=True))
        for q, s in zip(points[:k], radii[:k], strict=True)
    )
