"""Matrices of integers and of fractions, as lists of rows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

Integers = list[list[int]]
Rationals = Sequence[Sequence[Fraction]]


def cleared(M: Rationals) -> tuple[Integers, int]:
    """(q M, q) with the least q >= 1 for which q M is integer."""
    q = lcm(*(x.denominator for row in M for x in row))
    return [[x.numerator * (q // x.denominator) for x in row] for row in M], q


def identity(size: int) -> Integers:
    return [[int(i == j) for j in range(size)] for i in range(size)]


def product(A: Sequence[Sequence], B: Sequence[Sequence]) -> list[list]:
    columns = list(zip(*B, strict=True))
    return [[sum(x * y for x, y in zip(row, c, strict=True)) for c in columns] for row in A]


def transpose(M: Sequence[Sequence]) -> list[list]:
    return [list(column) for column in zip(*M, strict=True)]


def characteristic(M: Integers) -> list[int]:
    """det(x - M), coefficients from x^0 up (Faddeev and LeVerrier: every division is exact)."""
    size = len(M)
    result = [0] * size + [1]
    B = identity(size)
    for k in range(1, size + 1):
        B = product(M, B)
        trace = -sum(B[i][i] for i in range(size))
        assert trace % k == 0
        result[size - k] = trace // k
        for i in range(size):
            B[i][i] += trace // k
    return result


def rank(M: Sequence[Sequence[int | Fraction]]) -> int:
    """The rank over Q, by elimination without rounding."""
    rows = [[Fraction(x) for x in row] for row in M]
    found = 0
    for j in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(found, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for i in range(found + 1, len(rows)):
            factor = rows[i][j] / rows[found][j]
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found
