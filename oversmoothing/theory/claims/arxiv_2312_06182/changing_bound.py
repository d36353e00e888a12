"""What bounds the escalation under changing attention: Dobrushin's coefficient, not lambda_2."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.t7 import dobrushin, oscillation
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


def _law(layers: list[Matrix], X: Matrix) -> None:
    bound = oscillation(exact.transposed(X)[0])
    for A in layers:
        X = exact.product(A, X)
        bound *= dobrushin(A)
        assert oscillation(exact.transposed(X)[0]) <= bound
        assert exact.squared_norms(X)[0] <= len(X) * bound**2 / 4


@st.composite
def _drawn(draw_: st.DrawFn) -> tuple[list[Matrix], Matrix]:
    n = draw_(st.integers(1, 4))
    layers = draw_(draw.lists(draw.attention(n, n, zeros=True), 1, 4))
    return layers, draw_(draw.states(n, 1))


CLAIM = Claim(
    name="N-2312.06182-changing-bound",
    clauses=(
        "Without a residual and with one feature, X_L = A_L ... A_1 X_0 h^L, A_l row-stochastic "
        "and changing at will (computed from X_l too): osc(X_L) <= |h|^L tau(A_1) ... tau(A_L) "
        "osc(X_0) and ||HFC_L|| <= sqrt(n)/2 of that, tau(A) = max over i, k of (1/2) sum_j "
        "|A_ij - A_kj|.",
        "It is attained, by two matrices whose second eigenvalues are 0.",
    ),
    latex=r"\operatorname{osc}(X_L) \le |h|^L \prod_l \tau(A_l)\,\operatorname{osc}(X_0)",
    source="ours, repairing the reading of arXiv 2312.06182 for layers that differ; the "
    "coefficient is Dobrushin's",
    on_record=by.MACHINE,
    hypotheses=(
        given.TWO_TOKENS,
        given.ROW_STOCHASTIC.said("A of each layer is row-stochastic: A >= 0 and A 1 = 1"),
        given.ONE_FEATURE,
    ),
    evidence=(
        by.Formal("Edges.changing_bound", (1,)),
        by.Formal("Edges.attained", (2,)),
        by.written(
            "one layer, by the positive part",
            "[1] For rows p, q of A, (A x)_i - (A x)_k = sum_j (p_j - q_j) x_j. The differences "
            "sum to 0, so their positive part and their negative part both sum to t = (1/2) sum_j "
            "|p_j - q_j|.",
            "[1] The positive part weighs values of at most max x, the negative part values of at "
            "least min x: the difference is at most t (max x - min x) <= tau(A) osc(x). The factor"
            " h scales osc by |h|.",
            "[1] By induction over the layers osc(X_L) <= |h|^L prod tau(A_l) osc(X_0).",
            "[1] ||HFC||_F^2 is the sum of squared distances to the mean, at most n osc^2/4 "
            "(Popoviciu).",
            "[2] Attained: A_1 with the rows (1, 2, 1)/4 twice and (2, 1, 1)/4, and A_2 with (1, "
            "1, 2)/4 and (1, 2, 1)/4 twice have the second eigenvalue 0 and tau = 1/4, and osc(A_2 "
            "A_1 v) = osc(v)/16 for v = (-2, 1, 1).",
        ),
        by.searched(
            "products of up to four layers in fractions",
            _law,
            _drawn(),
            at=lambda layers, X: (layers[0], [[Fraction(1)]], X),
        ),
    ),
    further="With several features the same bound holds for the diameter of the tokens, with ||W|| "
    "in the place of |h|.",
)
