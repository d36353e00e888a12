"""A lower bound on the rate of escalation with residual, as its summary describes it."""

from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.proofs.kit import Claim, by, draw, exact, given


def _law(attention: draw.Known, w: Fraction, x: list[int]) -> None:
    """W = w or -w with equal chances: E W = 0, E W^2 = s = w^2. Exactly, one feature."""
    A, values = attention
    X = exact.from_integers([[k] for k in x[: len(A)]])
    hfc, lfc = exact.squared_norms(X)
    assume(lfc != 0)
    s, gap = w * w, 1 - max(a * a for a in values)
    moved = [exact.squared_norms(exact.layer(A, [[h]], X)) for h in (w, -w)]
    after_hfc, after_lfc = (sum(pair, Fraction(0)) / 2 for pair in zip(*moved, strict=True))
    assert after_lfc == (1 + s) * lfc
    before = lfc / (lfc + hfc)
    rate = after_lfc / (after_lfc + after_hfc) / before
    assert rate * (1 + s - s * gap * (1 - before)) >= 1 + s


_NOT_DOUBLY = given.case("1/2 1/2; 1/4 3/4")
SYMMETRIC = given.Hypothesis(
    "A is symmetric and row-stochastic",
    lambda case: given.is_stochastic(case.A) and exact.transposed(case.A) == case.A,
    (_NOT_DOUBLY, given.case("1 1; 1 0")),
)

CLAIM = Claim(
    name="N-2312.06182-bound",
    clauses=(
        "Y = X + A X W, A symmetric and row-stochastic with largest |a_i|, i < n, equal to "
        "|lambda_2|; W random with E W = 0 and E W W^T = s I. With J = 11^T/n, t_sim(X) = "
        "||J X||^2/||X||^2: E ||J Y||^2 = (1 + s) ||J X||^2 and E ||HFC(Y)||^2 <= (1 + s "
        "lambda_2^2) ||HFC(X)||^2.",
        "So r(X, Y) = (E ||J Y||^2/E ||Y||^2)/t_sim(X) >= (1 + s)/(1 + s - s (1 - lambda_2^2)(1 - "
        "t_sim(X))), which is at least 1: similarity escalates, the faster the larger the gap. "
        "(The paper bounds E r(X, Y) from below by t_sim(X) and |lambda_2|, a summary; this "
        "form, a quotient of expectations, is our reading.)",
        "It is above 1 iff s > 0, |lambda_2| < 1 and t_sim(X) < 1.",
    ),
    latex=r"r(X,Y)\ \ge\ \frac{1+s}{1+s-s\,(1-\lambda_2^2)(1-t_{\mathrm{sim}}(X))}\ \ge\ 1",
    source="arXiv 2312.06182 v2, lower bound on the escalation rate (a summary), our reading",
    on_record=by.WRITTEN,
    hypotheses=(SYMMETRIC, given.TWO_TOKENS),
    setting="s > 0 or s = 0; t_sim(X) > 0",
    evidence=(
        by.written(
            "second moments",
            "[1] E Y Y^T = X X^T + E (A X W)(A X W)^T = X X^T + s A X X^T A^T, the mixed terms "
            "being 0. Symmetric A: J A = A J = J, so E ||J Y||^2 = (1 + s) ||J X||^2, and with P = "
            "I - J, P A = A P: E ||P Y||^2 = ||P X||^2 + s ||A P X||^2, where ||A P|| = "
            "|lambda_2|.",
            "[2, 3] Divide: with t = t_sim(X) and e = E ||P Y||^2/||X||^2 <= (1 + s lambda_2^2)(1 "
            "- t) the rate is (1 + s)/((1 + s) t + e); the queries below.",
        ),
        by.for_all(
            "the rate is at least the bound, and that at least 1",
            given="s >= 0; 0 <= v; v <= 1; 0 < t; t <= 1; 0 <= e; e <= (1 + s*v)*(1 - t)",
            then="(1+s)*t + e <= 1 + s - s*(1-v)*(1-t) and 1 + s - s*(1-v)*(1-t) <= 1 + s",
            at="s=1, v=1/2, t=1/2, e=1/4",
            covers=(2,),
        ).unless("without a gap", without="v <= 1", given="v <= 2"),
        by.for_all(
            "the bound is above 1 iff s > 0, v < 1 and t < 1",
            given="s >= 0; 0 <= v; v <= 1; 0 < t; t <= 1",
            then="Iff(1 + s - s*(1-v)*(1-t) < 1 + s, s > 0 and v < 1 and t < 1)",
            at="s=1, v=1/2, t=1/2",
            covers=(3,),
        ).unless("for v = 1 too", then="Iff(1 + s - s*(1-v)*(1-t) < 1 + s, s > 0 and t < 1)"),
        by.searched(
            "two signs of one weight, exactly",
            _law,
            draw.walsh_attention(),
            draw.fractions(0, 3),
            draw.lists(st.integers(-9, 9), 8),
            at=lambda attention, *_: given.of_attention(attention[0]),
        ),
    ),
    further="E r itself is not this quotient. A that is not symmetric: "
    "N-2312.06182-bound-any-attention.",
)
