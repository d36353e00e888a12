"""What the claims of arxiv_2305_05465.md execute."""

from fractions import Fraction

import flint
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.lemmas import binary_softmax, logits
from oversmoothing.theory.numbers.rounding import at_precision, largest, to_ball
from oversmoothing.theory.proofs.kit import by, draw, exact, search


def _ends(x: list[Fraction], m: Fraction, h: Fraction, depth: int) -> list[flint.arb]:
    """max z and max -z at that depth, z = x/(1+h)^depth, in balls."""
    X, step = [to_ball(entry) for entry in x], to_ball(h)
    for _ in range(depth):
        moved = []
        for p in X:
            weights = [(to_ball(m) * p * q).exp() for q in X]
            mean = sum((w * q for w, q in zip(weights, X, strict=True)), flint.arb(0))
            moved.append(p + step * mean / sum(weights, flint.arb(0)))
        X = moved
    grown = to_ball(1 + h) ** depth
    return [largest(X) / grown, largest(-p for p in X) / grown]


def runs(effort: by.Effort) -> by.Settled:
    for start, m, h in (("2 1/2 -3/2", "1", "1"), ("3 1 -1 -2", "2", "1/2"), ("1 -1", "1", "1/4")):
        x = [Fraction(entry) for entry in start.split()]
        n, slope, step = len(x), Fraction(m), Fraction(h)
        with at_precision(400):
            K = 2 * (n - 1) * to_ball((1 + step) / (2 + step)) / flint.arb(1).exp()
            for end, value in zip((max(x), -min(x)), _ends(x, slope, step, 10), strict=True):
                bound = to_ball(end**2) - K / to_ball(slope)
                assert bound > 0
                if value > 0 and value**2 < bound:
                    yield f"x = {start}, m = {m}, h = {h}: {value} below the bound"
                yield bool(value > 0 and value**2 >= bound)


@search(draw.lists(st.integers(-4, 6), 1, 4), st.integers(1, 2), draw.inside(0, 3))
def law_line(x: list[int], m: int, h: Fraction) -> None:
    """One layer, logits times ln 2: u 2^-u <= 1/2 for integers u stands for u e^-u <= 1/e."""
    X = exact.from_integers([[k] for k in x])
    top, bottom = max(x), min(x)
    assume(top > 0)
    A = binary_softmax(logits(X, [[Fraction(m)]]))
    (moved,) = exact.transposed(exact.plus(X, exact.product(A, X), h))
    assert bottom * (1 + h) <= min(moved) and max(moved) <= top * (1 + h)
    assert max(moved) >= (1 + h) * top - h * (len(x) - 1) * Fraction(1, 2 * m * top)
