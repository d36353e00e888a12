"""HFC/LFC and the cosines of X_L at given depths, from X_L in integers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
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


def norms(Z: Integers) -> tuple[int, int]:
    """n ||HFC||^2 and n ||LFC||^2."""
    total = len(Z) * sum(x * x for row in Z for x in row)
    sums = sum(sum(column) ** 2 for column in zip(*Z, strict=True))
    return total - sums, sums


def squared_ratio(Z: Integers) -> Fraction | float | None:
    """(HFC/LFC)^2: inf where only LFC is 0, None where both are."""
    hfc, lfc = norms(Z)
    if not lfc:
        return math.inf if hfc else None
    return Fraction(hfc, lfc)


def log_ratio(hfc: int, lfc: int) -> float:
    """log of HFC/LFC from their squares, whatever their size; NaN where both are 0."""
    if not lfc:
        return math.inf if hfc else math.nan
    if not hfc:
        return -math.inf
    up, down = (max(0, x.bit_length() - 200) for x in (hfc, lfc))
    return (math.log(hfc >> up) - math.log(lfc >> down) + (up - down) * math.log(2)) / 2


def cosines(Z: Integers) -> dict[str, float]:
    """cos_mean and cos_min over the pairs of tokens that are not 0; NaN without a pair."""
    found = []
    for i, k in combinations([row for row in Z if any(row)], 2):
        inner = sum(x * y for x, y in zip(i, k, strict=True))
        sizes = sum(x * x for x in i) * sum(x * x for x in k)
        # Only the leading bits of each are needed.
        top, bottom = inner**2, sizes
        shift = max(0, bottom.bit_length() - 400)
        value = isqrt(((top >> shift) << 500) // (bottom >> shift))
        found.append(float(Fraction(value if inner > 0 else -value, 1 << 250)))
    if not found:
        return {"cos_mean": math.nan, "cos_min": math.nan}
    return {"cos_mean": math.fsum(found) / len(found), "cos_min": min(found)}
