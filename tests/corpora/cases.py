"""Drawn cases of verdicts and certificates: fractions and floats, every kind of attention and H.

Only the standard library decides what is drawn, so that the cases stay what they are.
"""

import random
from fractions import Fraction

Rows = list[list[Fraction]]
ATTENTION = ["dense", "dense", "sparse", "causal", "block", "symmetric"]
VALUE = ["dense", "diagonal", "triangular", "jordan"]


def attention(r: random.Random, n: int, kind: str) -> Rows:
    """A row-stochastic A in fractions with small denominators."""
    rows = []
    for i in range(n):
        weights = [r.randint(0 if kind == "sparse" else 1, 6) for _ in range(n)]
        if kind == "causal":
            weights = [w if j <= i else 0 for j, w in enumerate(weights)]
        if kind == "block":
            weights = [w if (j < n // 2) == (i < n // 2) else 0 for j, w in enumerate(weights)]
        if sum(weights) == 0:
            weights[i] = 1
        rows.append([Fraction(w, sum(weights)) for w in weights])
    if kind != "symmetric":
        return rows
    even = [[(rows[i][j] + rows[j][i]) / 2 for j in range(n)] for i in range(n)]
    for i in range(n):
        even[i][i] += 1 - sum(even[i])
    return even if min(map(min, even)) >= 0 else [[Fraction(1, n)] * n for _ in range(n)]


def value(r: random.Random, d: int, kind: str) -> Rows:
    """An H in fractions: any, diagonal, triangular, or one Jordan block."""

    def entry() -> Fraction:
        return Fraction(r.randint(-8, 6), r.choice([1, 2, 3, 4, 5]))

    zero = Fraction(0)
    if kind == "diagonal":
        return [[entry() if i == j else zero for j in range(d)] for i in range(d)]
    if kind == "triangular":
        return [[entry() if i <= j else zero for j in range(d)] for i in range(d)]
    if kind == "jordan":
        h = entry()
        return [[h if i == j else Fraction(int(j == i + 1)) for j in range(d)] for i in range(d)]
    return [[entry() / d for _ in range(d)] for _ in range(d)]


def case(seed: int) -> dict[str, list[list[str | float]]]:
    """One CASE, as CASE.json holds it: strings for fractions, or binary64 numbers."""
    r = random.Random(f"case {seed}")
    n, d = r.choice([1, 2, 2, 3, 3, 4, 5]), r.choice([1, 1, 2, 2, 3, 4])
    found = {"A": attention(r, n, r.choice(ATTENTION)), "H": value(r, d, r.choice(VALUE))}
    if r.random() < 0.7:
        found["X0"] = [[Fraction(r.randint(-4, 4)) for _ in range(d)] for _ in range(n)]
    written = float if r.random() < 0.5 else str
    return {name: [[written(x) for x in row] for row in rows] for name, rows in found.items()}
