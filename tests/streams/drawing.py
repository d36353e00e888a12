"""Drawn cases of several streams: mixings of every kind, boundaries, defective and singular H."""

from dataclasses import dataclass
from fractions import Fraction
from random import Random

Rationals = list[list[Fraction]]

MIXINGS = ("doubly-stochastic", "row-stochastic", "identity", "orthogonal", "any")
NUMBERS = ("fractions", "dyadic", "rounded")


@dataclass(frozen=True)
class Drawn:
    """A [n, n], H [d, d], R [s, s], p, q [s] as they are meant; numbers: how they are handed over.

    fractions: as such. dyadic: as floats that are the same. rounded: as the nearest floats.
    """

    name: str
    mixing: str
    numbers: str
    start: str
    A: Rationals
    H: Rationals
    R: Rationals
    p: list[Fraction]
    q: list[Fraction]


def draw(seed: int, index: int) -> Drawn:
    rng = Random(f"streams/{seed}/{index}")
    numbers = rng.choices(NUMBERS, (16, 5, 1))[0]
    # Binary fractions have few denominators; rounded ones get long in the oracle.
    parts = 4 if numbers == "dyadic" else rng.choice((2, 3, 4, 6, 10))
    small = numbers == "rounded"
    s = rng.choice((1, 2, 2, 2, 3) if small else (1, 2, 2, 3, 3, 4))
    n = rng.choice((2, 2, 3) if small else (1, 2, 2, 2, 3, 3))
    d = rng.choice((1, 1, 2) if small else (1, 1, 2, 2, 3))
    while s * n * d > 24:
        s, d = max(2, s - 1), max(1, d - 1)
    A = _attention(rng, n, parts)
    H = _values(rng, A, d, parts)
    mixing = rng.choice(MIXINGS)
    R = _mixing(rng, mixing, s, parts, numbers)
    p, q = ([_entry(rng, parts) for _ in range(s)] for _ in range(2))
    if rng.random() < 0.5:
        p = [Fraction(1)] * s
    if rng.random() < 0.3:
        q = [Fraction(1)] * s
    if rng.random() < 0.1:
        # Idle altogether: q reads nothing of p.
        q[0] -= sum((x * y for x, y in zip(p, q, strict=True)), Fraction(0)) / (p[0] or 1)
        if numbers == "dyadic" and p[0] not in (1, -1, Fraction(1, 2), 2):
            q = [Fraction(0)] * s
    start = "equal" if rng.random() < 0.25 else "generic"
    return Drawn(f"{seed}/{index}", mixing, numbers, start, A, H, R, p, q)


def _entry(rng: Random, parts: int) -> Fraction:
    return Fraction(rng.randint(-2 * parts, 2 * parts), parts)


def _shares(rng: Random, n: int, parts: int, zeros: bool) -> list[Fraction]:
    """n shares of 1 in steps of 1/8 (dyadic whatever n), none 0 unless zeros."""
    total = 8 if parts == 4 else rng.choice((6, 8, 12))
    least = 0 if zeros else 1
    left = total - least * n
    counts = [least] * n
    for _ in range(left):
        counts[rng.randrange(n)] += 1
    return [Fraction(k, total) for k in counts]


def _attention(rng: Random, n: int, parts: int) -> Rationals:
    kind = rng.choice(("positive", "positive", "zeros", "causal", "flat", "circulant"))
    if kind == "flat":
        a = rng.choice((Fraction(1, 2), Fraction(1, 4), Fraction(0), Fraction(-1, 4)))
        if n == 2 or a >= 0:
            share = (1 - a) / n if n != 3 or parts != 4 else None
            if share is not None:
                return [[share + (a if i == j else 0) for j in range(n)] for i in range(n)]
    if kind == "circulant":
        row = _shares(rng, n, parts, False)
        return [row[-i:] + row[:-i] if i else row for i in range(n)]
    if kind == "causal":
        return [_shares(rng, i + 1, parts, False) + [Fraction(0)] * (n - 1 - i) for i in range(n)]
    return [_shares(rng, n, parts, kind == "zeros") for _ in range(n)]


def _values(rng: Random, A: Rationals, d: int, parts: int) -> Rationals:
    kind = rng.choice(("any", "any", "diagonal", "jordan", "zero", "boundary"))
    H = [[_entry(rng, parts) for _ in range(d)] for _ in range(d)]
    if kind == "zero":
        return [[Fraction(0)] * d for _ in range(d)]
    if kind in ("diagonal", "jordan", "boundary"):
        H = [[H[i][j] if i == j else Fraction(0) for j in range(d)] for i in range(d)]
    if kind == "jordan":
        for i in range(d):
            H[i][i] = H[0][0]
            if i:
                H[i - 1][i] = Fraction(1)
    if kind == "boundary" and len(A) == 2:
        a = A[0][0] - A[1][0]
        H[0][0] = Fraction(-2) / (1 + a) if a != -1 and parts != 4 else Fraction(-1)
    return H


def _mixing(rng: Random, kind: str, s: int, parts: int, numbers: str) -> Rationals:
    if kind == "identity":
        return [[Fraction(int(k == j)) for j in range(s)] for k in range(s)]
    if kind == "row-stochastic":
        return [_shares(rng, s, parts, True) for _ in range(s)]
    if kind == "doubly-stochastic":
        weights = _shares(rng, 3, parts, True)
        R = [[Fraction(0)] * s for _ in range(s)]
        for weight in weights:
            order = rng.sample(range(s), s)
            for k, j in enumerate(order):
                R[k][j] += weight
        return R
    if kind == "orthogonal":
        return _orthogonal(rng, s, numbers)
    return [[_entry(rng, parts) / 2 for _ in range(s)] for _ in range(s)]


def _orthogonal(rng: Random, s: int, numbers: str) -> Rationals:
    """Signed permutations, and rotations by Pythagorean angles of two streams."""
    order = rng.sample(range(s), s)
    R = [[Fraction((j == order[k]) * rng.choice((-1, 1))) for j in range(s)] for k in range(s)]
    if s > 1 and numbers != "dyadic":
        c, t = rng.choice(((3, 4), (4, 3), (5, 12), (0, 1)))
        r = Fraction(1, {(3, 4): 5, (4, 3): 5, (5, 12): 13, (0, 1): 1}[c, t])
        first, second = R[0], R[1]
        R[0] = [r * (c * x - t * y) for x, y in zip(first, second, strict=True)]
        R[1] = [r * (t * x + c * y) for x, y in zip(first, second, strict=True)]
    return R
