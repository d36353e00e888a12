"""Attention given by logits: exp enclosed between fractions, and cases drawn so.

The rows of a softmax are transcendental unless all their logits are equal, so that ties are those
of structure alone: fractions within 2^-90 of A, equal where the rows are, have its answers. Each
answer is taken from below and from above, and counts where the two agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from random import Random

from .draw import Case, Matrix

Logits = list[list[Fraction | None]]

# Weights are known to a share of 2^-_DIGITS.
_DIGITS = 100
_SIZES = 0, 0, 1, 3, 20, 60, 900
_VALUES = ("-2", "-1", "-1/2", "-3/2", "-5/4", "1/2", "1", "-3", "0", "2", "-1/4", "-7/4")


@lru_cache(maxsize=4096)
def exp_bounds(x: Fraction, digits: int = _DIGITS) -> tuple[Fraction, Fraction]:
    """low <= exp(x) <= high, high / low - 1 < 2^-digits, by Taylor's series at x / 2^s."""
    if not x:
        return Fraction(1), Fraction(1)
    halvings = max(0, (abs(x.numerator) // x.denominator).bit_length() + 1)
    bits = digits + 2 * halvings + 40
    t = (x.numerator << bits) // (x.denominator << halvings)
    total = term = 1 << bits
    k = 0
    while term not in (0, -1):
        k += 1
        term = (term * t) // (k << bits)
        total += term
    # Each step rounds down by one unit, |t| <= 1/2, and t itself is off by one.
    low, high, exponent = total - 4 * k - 8, total + 4 * k + 8, -bits
    for _ in range(halvings):
        low, high, exponent = low * low, high * high, 2 * exponent
        shift = max(0, low.bit_length() - bits)
        low, high, exponent = low >> shift, (high >> shift) + 1, exponent + shift
    scale = Fraction(2) ** exponent
    return low * scale, high * scale


def softmax(logits: Sequence[Sequence[Fraction | None]], above: bool) -> Matrix:
    """Rows of fractions with the sum 1, from the upper or the lower bounds of the weights."""
    rows = []
    for row in logits:
        largest = max(x for x in row if x is not None)
        weights = [Fraction(0) if x is None else exp_bounds(x - largest)[int(above)] for x in row]
        rows.append([w / sum(weights) for w in weights])
    return rows


def draw_logits(seed: int, index: int) -> Case:
    """Case number `index` of a seed with logits in floats; small, for exp has many digits."""
    rng = Random(f"logits/{seed}/{index}")
    n, d = rng.choice((2, 2, 3, 3, 4)), rng.choice((1, 1, 2))
    causal = rng.random() < 0.4
    size = rng.choice(_SIZES)

    def one(i: int, j: int) -> Fraction | None:
        if causal and j > i:
            return None
        if rng.random() < 0.1 and not causal and j != i:
            return None
        return Fraction(float(Fraction(rng.randint(-99, 99) * size, 100)))

    logits = [[one(i, j) for j in range(n)] for i in range(n)]
    if rng.random() < 0.15:
        logits = [logits[-1]] * n
    H = [[Fraction(rng.choice(_VALUES)) if i == j or rng.random() < 0.3 else Fraction(0)
          for j in range(d)] for i in range(d)]  # fmt: skip
    X0 = [[Fraction(rng.randint(-9, 9)) for _ in range(d)] for _ in range(n)]
    kind = (f"logits of size {size}{', causal' * causal}", "few values", "generic")
    return Case(
        f"logits/{seed}/{index}", softmax(logits, False), H, X0, kind, "logits", logits=logits
    )
