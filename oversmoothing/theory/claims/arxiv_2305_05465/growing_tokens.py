"""Tokens that grow under V = I: their hull shrinks, and two ends of a line stay apart."""

from fractions import Fraction

import flint
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.binary_softmax import binary_softmax, logits
from oversmoothing.theory.numbers.balls import at_precision, largest, to_ball
from oversmoothing.theory.proofs.kit import Claim, by, draw, exact


def _law(x: list[int], m: int, h: Fraction) -> None:
    """One layer, logits times ln 2: u 2^-u <= 1/2 for integers u stands for u e^-u <= 1/e."""
    X = exact.from_integers([[k] for k in x])
    top, bottom = max(x), min(x)
    assume(top > 0)
    A = binary_softmax(logits(X, [[Fraction(m)]]))
    (moved,) = exact.transposed(exact.plus(X, exact.product(A, X), h))
    assert bottom * (1 + h) <= min(moved) and max(moved) <= top * (1 + h)
    assert max(moved) >= (1 + h) * top - h * (len(x) - 1) * Fraction(1, 2 * m * top)


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


def _runs(effort: by.Effort) -> by.Settled:
    """Whole runs of 10 layers from inside the region, both ends against their bound."""
    for start, m, h in (("2 1/2 -3/2", "1", "1"), ("3 1 -1 -2", "2", "1/2"), ("1 -1", "1", "1/4")):
        x = [Fraction(entry) for entry in start.split()]
        n, slope, step = len(x), Fraction(m), Fraction(h)
        with at_precision(400):
            K = 2 * (n - 1) * to_ball((1 + step) / (2 + step)) / flint.arb(1).exp()
            for end, found in zip((max(x), -min(x)), _ends(x, slope, step, 10), strict=True):
                bound = to_ball(end**2) - K / to_ball(slope)
                assert bound > 0
                if found > 0 and found**2 < bound:
                    yield f"x = {start}, m = {m}, h = {h}: {found} below the bound"
                yield bool(found > 0 and found**2 >= bound)


CLAIM = Claim(
    name="N-2305.05465-line",
    clauses=(
        "X' = X + h A X, V = I, h > 0, z_L = X_L/(1+h)^L: for every row-stochastic A, also "
        "computed from X, the convex hull of the rows of z_L shrinks, each within the one before. "
        "(Tokens that tend to the vertices of a shrinking polytope: a summary, our reading; its "
        "layers are continuous in depth.)",
        "One feature, A the softmax of m x_i x_j, m > 0, K = 2 (n-1)(1+h)/(e (2+h)): if max x > 0 "
        "and m max(x)^2 > K at the start, max z_L falls to a limit b with b^2 >= max(x)^2 - K/m > "
        "0; the same for -x and -min.",
        "So from a start with m max(x)^2 > K, m min(x)^2 > K, min x < 0 < max x, the two ends "
        "never join: HFC/LFC >= (b + b')/(sqrt(2n) max |x|) > 0 in every layer, while every fixed "
        "A > 0 with h > 0 smooths.",
    ),
    latex=r"b^2\ge\max_ix_i^2-\frac{2(n-1)(1+h)}{e\,m\,(2+h)},\qquad b=\lim_L\frac{\max_ix_i(L)}"
    r"{(1+h)^L}",
    source="arXiv 2305.05465, clusters of tokens (abstract, a summary), our reading; 2, 3 are ours",
    on_record=by.WRITTEN,
    setting="attention alone with residual; the region is sufficient, not necessary",
    evidence=(
        by.written(
            "what the largest token loses",
            "[1] z' = (z + h A z)/(1 + h): every new row is a mean of old rows.",
            "[2] Let x_i be largest, g = (1+h)^L, z = max z_L > 0. The weight of token j is at "
            "most e^(-m x_i (x_i - x_j)), so with u = m g^2 z (z - z_j) the loss A_ij (z - z_j) "
            "is at most u e^-u/(m g^2 z) <= 1/(e m g^2 z). Hence max z' >= z - k/(g^2 z), k = h "
            "(n-1)/((1+h) e m), and max z'^2 >= z^2 - 2 k/g^2 where z^2 >= k/g^2.",
            "[2] The sum of 2 k/(1+h)^(2L) over all L is K/m: by induction max z_L^2 is at least "
            "max(x)^2 minus the first L terms, and more than the terms to come, so the condition "
            "stays. By clause 1 max z_L falls. x -> -x leaves A as it is.",
            "[3] max z - min z >= b + b', ||HFC||^2 >= (max - min)^2/2, and LFC^2 <= n max |z|^2, "
            "which does not grow. A fixed A > 0: T14d.",
        ),
        by.Certified("ten layers in balls, both ends above their bound", _runs),
        by.searched(
            "one layer, integer logits times ln 2, in fractions",
            _law,
            draw.lists(st.integers(-4, 6), 1, 4),
            st.integers(1, 2),
            draw.inside(0, 3),
        ),
    ),
    further="That tokens between the ends join one of them or 0 (three values, recalled) is not "
    "proved here.",
)
