"""HFC/LFC and cosines of X_L to 200 digits: M^L x for the Kronecker matrix M, in balls.

It shares no code and no coordinates with the project: X itself is iterated by repeated squaring,
with as many bits as its cancellations need. What is exactly 0 is so because all numbers are
multiples of a power of two that the balls go below.
"""

from dataclasses import dataclass
from fractions import Fraction

import flint

DIGITS_BITS = 700
_MOST_BITS = 400_000


@dataclass(frozen=True)
class Truth:
    """log HFC/LFC (nan, -inf, inf as `evolve` has them), the least and the mean cosine."""

    log_ratio: float
    cos_min: float
    cos_mean: float


def _rational(rows: list[list[Fraction]]) -> flint.fmpq_mat:
    return flint.fmpq_mat([[flint.fmpq(x.numerator, x.denominator) for x in row] for row in rows])


def truth(
    A: list[list[Fraction]],
    W: list[list[Fraction]],
    X0: list[list[Fraction]],
    depth: int,
    balanced: bool = False,
) -> Truth | None:
    """For A whose rows sum to 1; None where _MOST_BITS cannot tell a number from 0.

    balanced: A counts as doubly stochastic, as `evolve` says of one that is within rounding; then
    the mean is iterated by itself.
    """
    n, d = len(X0), len(X0[0])
    M = [
        [int(i == k and j == m) + A[i][k] * W[m][j] for k in range(n) for m in range(d)]
        for i in range(n)
        for j in range(d)
    ]
    dyadic = all(x.denominator & (x.denominator - 1) == 0 for row in (*M, *X0) for x in row)
    bits_in = sum(max(x.denominator.bit_length() for row in rows for x in row) for rows in (M, X0))
    enough = bits_in * (depth + 2) if dyadic else _MOST_BITS + 1
    exact = _rational(M), _rational([[x] for row in X0 for x in row])
    consensus = None
    if balanced:
        mean = [sum(row[j] for row in X0) / n for j in range(d)]
        step = [[int(j == m) + W[m][j] for m in range(d)] for j in range(d)]
        consensus = _rational(step), _rational([[x] for x in mean])
    bits = 1024
    while True:
        found = _measure(exact, consensus, n, d, depth, bits, last=bits > enough)
        if found is not None or bits >= _MOST_BITS:
            return found
        bits *= 3


def _measure(
    system: tuple[flint.fmpq_mat, flint.fmpq_mat],
    consensus: tuple[flint.fmpq_mat, flint.fmpq_mat] | None,
    n: int,
    d: int,
    depth: int,
    bits: int,
    last: bool,
) -> Truth | None:
    with flint.ctx.workprec(bits):
        entries = _power(*system, depth)
        rows = [entries[i * d : (i + 1) * d] for i in range(n)]
        mean = [sum((row[j] for row in rows), flint.arb(0)) / n for j in range(d)]
        hfc = _square([x - m for row in rows for x, m in zip(row, mean, strict=True)], last)
        if consensus is not None:
            # The rows as they would be: HFC around that mean.
            own = _power(*consensus, depth)
            rows = [[x - m + c for x, m, c in zip(row, mean, own, strict=True)] for row in rows]
            mean = own
        lfc = _square(mean, last)
        sizes = [_square(row, last) for row in rows]
        if hfc is None or lfc is None or None in sizes:
            return None
        if hfc == 0 and lfc == 0:
            return Truth(float("nan"), float("nan"), float("nan"))
        if hfc == 0 or lfc == 0:
            log = float("-inf") if hfc == 0 else float("inf")
        else:
            log = float(((hfc / (n * lfc)).log() / 2).mid())
        alive = [(row, size) for row, size in zip(rows, sizes, strict=True) if size != 0]
        cosines = [
            sum((a * b for a, b in zip(p, q, strict=True)), flint.arb(0)) / (s * t).sqrt()
            for k, (p, s) in enumerate(alive)
            for q, t in alive[k + 1 :]
        ]
        if not cosines:
            return Truth(log, float("nan"), float("nan"))
        average = sum(cosines, flint.arb(0)) / len(cosines)
        return Truth(log, min(float(c.mid()) for c in cosines), float(average.mid()))


def _power(M: flint.fmpq_mat, x: flint.fmpq_mat, depth: int) -> list[flint.arb]:
    """M^depth x by repeated squaring, at the precision of the context."""
    square, vector = flint.arb_mat(M), flint.arb_mat(x)
    while depth:
        if depth & 1:
            vector = square * vector
        depth >>= 1
        if depth:
            square = square * square
    entries: list[flint.arb] = vector.entries()
    return entries


def _square(values: list[flint.arb], last: bool) -> flint.arb | int | None:
    """The square of a norm to 200 digits; 0 where it can be nothing else; None where it is open."""
    if all(v.contains(0) for v in values):
        return 0 if last or all(v == 0 for v in values) else None
    total = sum((v * v for v in values), flint.arb(0))
    return total if total.rel_accuracy_bits() > DIGITS_BITS else None
