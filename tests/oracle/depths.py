"""HFC/LFC and the cosines of X_L at given depths, from X_L in integers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from math import isqrt

from .matrices import Integers, Rationals, cleared, product, transpose
from .system import System

# More layers than this are taken by squaring.
_FAR = 2000


def states(system: System, X0: Rationals, depths: Iterable[int]) -> dict[int, Integers]:
    """A positive multiple of X_L for each depth."""
    Z, _ = cleared(X0)
    found, L = {}, 0
    for depth in sorted(set(depths)):
        if depth - L > _FAR:
            Z = _far(system, Z, depth - L)
        else:
            for _ in range(depth - L):
                Z = system.step(Z)
        found[depth], L = Z, depth
    return found


def _far(system: System, Z: Integers, layers: int) -> Integers:
    """So many steps at once, by squaring the matrix [n d, n d] of one."""
    n, d = system.n, system.d
    units = [[[int(i * d + j == k) for j in range(d)] for i in range(n)] for k in range(n * d)]
    M = transpose([[x for row in system.step(unit) for x in row] for unit in units])
    v = [[x] for row in Z for x in row]
    while layers:
        if layers & 1:
            v = product(M, v)
        layers >>= 1
        if layers:
            M = product(M, M)
    return [[v[i * d + j][0] for j in range(d)] for i in range(n)]


def squared_ratio(Z: Integers) -> Fraction | float | None:
    """(HFC/LFC)^2 = n ||X||^2 / ||1^T X||^2 - 1: inf where only LFC is 0, None where both are."""
    total = len(Z) * sum(x * x for row in Z for x in row)
    sums = sum(sum(column) ** 2 for column in zip(*Z, strict=True))
    if not sums:
        return float("inf") if total else None
    return Fraction(total, sums) - 1


def squared_cosines(Z: Integers) -> dict[tuple[int, int], Fraction]:
    """cos |cos| of each pair of tokens that are not 0, exactly."""
    sizes = [sum(x * x for x in row) for row in Z]
    found = {}
    for k in range(len(Z)):
        for i in range(k):
            if sizes[i] and sizes[k]:
                inner = sum(x * y for x, y in zip(Z[i], Z[k], strict=True))
                found[i, k] = Fraction(inner * abs(inner), sizes[i] * sizes[k])
    return found


def log_ratio(squared: Fraction | float) -> float:
    """The logarithm of HFC/LFC, whatever its size."""
    if not isinstance(squared, Fraction):
        return math.inf
    if not squared:
        return -math.inf
    top, bottom = squared.numerator, squared.denominator
    shift = top.bit_length() - bottom.bit_length()
    near = Fraction(top, bottom << shift) if shift >= 0 else Fraction(top << -shift, bottom)
    return (math.log(near) + shift * math.log(2)) / 2


def root(x: Fraction) -> float:
    """The square root of x in [-1, 1], with its sign."""
    value = isqrt((abs(x.numerator) << 512) // x.denominator)
    return math.copysign(float(Fraction(value, 1 << 256)), x)


def cosines(Z: Integers) -> dict[str, float]:
    """cos_mean and cos_min over the pairs of tokens that are not 0; NaN without a pair."""
    found = [root(x) for x in squared_cosines(Z).values()]
    if not found:
        return {"cos_mean": math.nan, "cos_min": math.nan}
    return {"cos_mean": math.fsum(found) / len(found), "cos_min": min(found)}
