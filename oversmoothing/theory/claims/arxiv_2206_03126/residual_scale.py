"""The residual branch at the scale 1/sqrt(L): differences of tokens keep their share."""

from fractions import Fraction
from itertools import product

from hypothesis import assume, strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given

DOUBLY = given.Hypothesis(
    "A of each layer is doubly stochastic",
    lambda case: given.is_stochastic(case.A) and given.is_stochastic(exact.transposed(case.A)),
    (given.case("1/2 1/2; 1/4 3/4"), given.case("1 1; 0 1")),
)


def _law(pair: tuple[draw.Known, draw.Known], w: Fraction, scale: Fraction, x: list[int]) -> None:
    """W = w or -w with equal chances, all 2^L of them; A is chosen by the state."""
    (A, values), (B, others) = pair
    sigma = max(a * a for a in [*values, *others])
    X, depth = exact.from_integers([[k] for k in x[: len(A)]]), 3
    before = exact.squared_norms(X)
    assume(min(before) > 0)
    total = [Fraction(0), Fraction(0)]
    for signs in product((1, -1), repeat=depth):
        Z: Matrix = X
        for sign in signs:
            Z = exact.layer(A if Z[0][0] > 0 else B, [[sign * scale * w]], Z)
        total = [t + part / 2**depth for t, part in zip(total, exact.squared_norms(Z), strict=True)]
    grown = scale**2 * w**2
    equal(total[1], (1 + grown) ** depth * before[1])
    assert before[0] <= total[0] <= (1 + grown * sigma) ** depth * before[0]


@st.composite
def _pairs(pick: st.DrawFn) -> tuple[draw.Known, draw.Known]:
    size = pick(st.sampled_from([2, 4]))
    weights = draw.lists(st.integers(1, 9), size)
    drawn = [pick(weights) for _ in range(2)]
    first, second = (draw.walsh([Fraction(k, sum(row)) for k in row]) for row in drawn)
    return first, second


CLAIM = Claim(
    name="N-2206.03126-scale",
    clauses=(
        "X_l = X_(l-1) + alpha A_l X_(l-1) W_l, A_l doubly stochastic (also computed from "
        "X_(l-1)), W_l random, independent of the layers before it, E W_l = 0, E W_l W_l^T = s I: "
        "E ||LFC_L||^2 = (1 + alpha^2 s)^L ||LFC_0||^2, and E ||HFC_L||^2 >= ||HFC_0||^2, with "
        "equality for A = 11^T/n.",
        "So q_L = E ||LFC_L||^2/E ||HFC_L||^2 is at most (1 + alpha^2 s)^L q_0: with alpha^2 = "
        "c/L at most e^(c s) q_0 at every depth. (That alpha of order 1/sqrt(L) keeps tokens "
        "apart at initialisation is recalled, our reading.)",
        "The order is needed: if ||P A_l P||_2 <= sigma < 1 in all layers, q_L >= ((1 + alpha^2 "
        "s)/(1 + alpha^2 s sigma^2))^L q_0, which tends to infinity where alpha^2 L does, s > 0, "
        "q_0 > 0; at fixed alpha geometrically.",
    ),
    latex=r"\frac{\mathbb E\|\mathrm{LFC}_L\|^2}{\mathbb E\|\mathrm{HFC}_L\|^2}\le"
    r"(1+\alpha^2s)^L\,\frac{\|\mathrm{LFC}_0\|^2}{\|\mathrm{HFC}_0\|^2}\le e^{cs}\,"
    r"\frac{\|\mathrm{LFC}_0\|^2}{\|\mathrm{HFC}_0\|^2},\qquad \alpha^2=\tfrac cL",
    source="ours, for the scale 1/sqrt(L) of arXiv 2206.03126 (recalled)",
    on_record=by.WRITTEN,
    hypotheses=(DOUBLY,),
    setting="||HFC_0|| > 0; a quotient of expectations, not the expectation of a quotient",
    evidence=(
        by.written(
            "second moments",
            "[1] Given X, E of X' X'^T is X X^T + alpha^2 s A X X^T A^T, as E W = 0. J A = J: E "
            "||J X'||^2 = (1 + alpha^2 s) ||J X||^2. And E ||P X'||^2 = ||P X||^2 + alpha^2 s ||P "
            "A X||^2, where P A = P A P is 0 for A = 11^T/n. Then expectations over the layers "
            "before.",
            "[2] Divide; (1 + c s/L)^L <= e^(c s), as 1 + z <= e^z.",
            "[3] ||P A X||^2 <= sigma^2 ||P X||^2 in clause 1's second identity. With u = alpha^2 "
            "s, v = sigma^2 the quotient (1+u)/(1+u v) is at least 1 + u (1-v)/(1+u) by the query, "
            "and L u/(1+u) tends to infinity where L u does.",
        ),
        by.for_all(
            "the growth of q in a layer",
            given="u >= 0; 0 <= v; v < 1",
            then="(1+u)*(1+u) >= (1+u*v)*(1 + u + u*(1-v))",
            at="u=1, v=1/2",
            covers=(3,),
        ).unless("twice that", then="(1+u)*(1+u) >= (1+u*v)*(1 + u + 2*u*(1-v))"),
        by.searched(
            "all signs of three layers, attention chosen by the state, in fractions",
            _law,
            _pairs(),
            draw.fractions(-2, 2, 4),
            draw.fractions(0, 2, 4),
            draw.lists(st.integers(-9, 9), 4),
            at=lambda pair, *_: given.of_attention(pair[0][0]),
        ),
    ),
    further="Attention that is not doubly stochastic can lower LFC on average "
    "(N-2312.06182-bound-any-attention).",
)
