"""Brute force: the layer of all streams as one integer matrix, raised to a power by squaring.

Nothing of the theory is used but pi, which is solved for here: growth of what is left of a state
without its mean over tokens, of its pi-mean, and of differences between streams, each over two
spans of layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm, log

import flint

from .drawing import Drawn, Rationals


@dataclass(frozen=True)
class Growth:
    """Natural logarithms per layer between depth L and 2 L; -inf where the part is 0."""

    quotient: float
    consensus: float
    apart: float
    whole: float


def kronecker(X: Rationals, Y: Rationals) -> Rationals:
    return [[x * y for x in p for y in q] for p in X for q in Y]


def product(X: Rationals, Y: Rationals) -> Rationals:
    columns = list(zip(*Y, strict=True))
    return [[sum((a * b for a, b in zip(r, c, strict=True)), Fraction(0)) for c in columns]
            for r in X]  # fmt: skip


def identity(k: int) -> Rationals:
    return [[Fraction(int(i == j)) for j in range(k)] for i in range(k)]


def operator(case: Drawn) -> Rationals:
    """R (x) I + (p q^T) (x) H (x) A on states listed stream by stream, feature by feature."""
    n, d = len(case.A), len(case.H)
    outer = [[x * y for y in case.q] for x in case.p]
    kept = kronecker(case.R, identity(n * d))
    added = kronecker(outer, kronecker(case.H, case.A))
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(kept, added, strict=True)]


def stationary(A: Rationals) -> list[Fraction]:
    """A row vector pi with pi A = pi and sum 1, by elimination."""
    n = len(A)
    rows = [[A[j][i] - int(i == j) for j in range(n)] + [Fraction(0)] for i in range(n)]
    rows.append([Fraction(1)] * n + [Fraction(1)])
    pivots: list[int] = []
    for column in range(n):
        k = next((i for i in range(len(pivots), n + 1) if rows[i][column]), None)
        if k is None:
            continue
        here = len(pivots)
        rows[here], rows[k] = rows[k], rows[here]
        rows[here] = [x / rows[here][column] for x in rows[here]]
        for i in range(n + 1):
            if i != here and rows[i][column]:
                factor = rows[i][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[here], strict=True)]
        pivots.append(column)
    pi = [Fraction(0)] * n
    for i, column in enumerate(pivots):
        pi[column] = rows[i][n]
    return pi


def reached(case: Drawn) -> Rationals:
    """Vectors of streams that copies of one state reach, under R and under p q^T alike."""
    outer = [[x * y for y in case.q] for x in case.p]
    basis: Rationals = []
    waiting = [[Fraction(1)] * len(case.R)]
    while waiting:
        v = waiting.pop(0)
        if _rank([*basis, v]) > len(basis):
            basis.append(v)
            for M in (case.R, outer):
                waiting.append([row[0] for row in product(M, [[x] for x in v])])
    return basis


def growth(case: Drawn, squarings: int) -> Growth:
    """Over L to 2 L layers, L = 2^squarings, of all starts at once."""
    s, n, d = len(case.R), len(case.A), len(case.H)
    layer, scale = _integers(operator(case))
    starts = (
        identity(s)
        if case.start == "generic"
        else [list(c) for c in zip(*reached(case), strict=True)]
    )
    S, _ = _integers(kronecker(starts, identity(n * d)))
    mean = [[Fraction(1, n)] * n for _ in range(n)]
    P = [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(identity(n), mean, strict=True)]
    parts = {
        "quotient": kronecker(identity(s * d), P),
        "consensus": kronecker(identity(s * d), [stationary(case.A)]),
        "apart": kronecker(
            [[Fraction(int(k == j) - int(j == s - 1)) for j in range(s)] for k in range(s - 1)]
            or [[Fraction(0)] * s],
            identity(n * d),
        ),
        "whole": identity(s * n * d),
    }
    for _ in range(squarings):
        layer = layer * layer
    first, second = layer * S, layer * (layer * S)
    found = {}
    for name, part in parts.items():
        M, _ = _integers(part)
        before, after = _log_norm(M * first), _log_norm(M * second)
        gain = after - before if before > -inf and after > -inf else -inf
        found[name] = gain / 2**squarings - log(scale)
    return Growth(**found)


def mixture(case: Drawn, squarings: int) -> list[float]:
    """What each stream has of the largest entry of the state after 2^squarings layers."""
    s, n, d = len(case.R), len(case.A), len(case.H)
    layer, _ = _integers(operator(case))
    for _ in range(squarings):
        layer = layer * layer
    entries = layer.tolist()
    i, j = max(
        ((i, j) for i in range(s * n * d) for j in range(s * n * d)),
        key=lambda place: abs(int(entries[place[0]][place[1]])),
    )
    top = int(entries[i][j])
    return [float(Fraction(int(entries[k * n * d + i % (n * d)][j]), top)) for k in range(s)]


def _rank(rows: Rationals) -> int:
    return int(flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in r]
                               for r in rows]).rank())  # fmt: skip


def _integers(M: Rationals) -> tuple[flint.fmpz_mat, int]:
    scale = lcm(*(x.denominator for row in M for x in row))
    return flint.fmpz_mat([[int(x * scale) for x in row] for row in M]), scale


def _log_norm(M: flint.fmpz_mat) -> float:
    total = sum(int(x) ** 2 for x in M.entries())
    if not total:
        return -inf
    shift = max(0, total.bit_length() - 64)
    return (log(total >> shift) + shift * log(2.0)) / 2
