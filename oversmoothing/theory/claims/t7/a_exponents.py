"""T7a: layers and heads that change: a product for the differences against one for the mean."""

from hypothesis import strategies as st

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given

# The heads (A, W) of one layer.
Heads = list[tuple[Matrix, Matrix]]


@st.composite
def _layers(pick: st.DrawFn) -> tuple[list[Heads], Matrix]:
    """One to four layers of one or two heads, and X_0."""
    n, d = pick(st.integers(2, 3)), pick(st.integers(1, 2))
    layers = draw.lists(draw.heads(draw.attention(n, n, zeros=True), d, 2), 1, 4)
    return pick(layers), pick(draw.states(n, d))


def _law(layers: list[Heads], X: Matrix) -> None:
    """The differences of X_L are T_L times those of X_0, T_L the product of I + sum W^T (x) B'."""
    n, d = len(X), len(X[0])
    y = [[x] for column in exact.transposed(exact.differences(X)) for x in column]
    for heads in layers:
        T, moved = exact.identity((n - 1) * d), X
        for A, W in heads:
            T = exact.plus(T, exact.kronecker(exact.transposed(W), rational_quotient(A)))
            moved = exact.plus(moved, exact.product(A, X, W))
        X, y = moved, exact.product(T, y)
    assert y == [[x] for column in exact.transposed(exact.differences(X)) for x in column]


CLAIM = Claim(
    name="T7a",
    clauses=(
        "X' = X + sum_h A_(l,h) X W_(l,h) with row-stochastic A_(l,h), which may differ by layer"
        " and follow X. In the basis [1/sqrt n, Q] the product of L layers is [[C_L, D_L], [0, "
        "T_L]], C_L = prod (I + sum_h W^T), T_L = prod (I + sum_h W^T (x) Q^T A Q), and HFC_L = "
        "T_L HFC_0.",
        "For matrices fixed independently of X_0 with entries iid N(0, 1): E ||HFC_L||^2 = "
        "||T_L||_F^2, E ||LFC_L||^2 = ||C_L||_F^2 + ||D_L||_F^2.",
        "For stationary ergodic layers with E log+ finite and finite top exponents gamma_C, "
        "gamma_Q of C_L, T_L, almost surely for X_0 outside a proper subspace: gamma_Q < gamma_C"
        " gives (1/L) log HFC/LFC -> gamma_Q - gamma_C;",
        "gamma_Q > gamma_C gives liminf (1/L) log HFC/LFC >= 0, so no exponential smoothing.",
    ),
    latex=r"\mathrm{HFC}_L=T_L\,\mathrm{HFC}_0,\qquad "
    r"\gamma_Q<\gamma_C\implies\tfrac1L\log\frac{\|\mathrm{HFC}_L\|}{\|\mathrm{LFC}_L\|}"
    r"\to\gamma_Q-\gamma_C",
    source="ours; the theorem of Oseledets (1968), with its form for block triangular products",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written(
            "block triangular products",
            "[1] A 1 = 1 for every head gives Q^T A = Q^T A Q Q^T (T1c), also where A is computed "
            "from X. With Y = Q^T X: Y' = Y + sum_h Q^T A Q Y W, so vec Y_L = T_L vec Y_0; and the"
            " mean receives W from itself and D from Y. Products of block triangular matrices are "
            "block triangular, with the products of the diagonal blocks.",
            "[2] E x x^T = I for x = vec X_0, so E ||M x||^2 = trace(M M^T) = ||M||_F^2 for every "
            "M that does not depend on X_0: E ||HFC_L||^2 = ||T_L||_F^2, and as LFC_0 and HFC_0 "
            "are independent, E ||LFC_L||^2 = ||C_L||_F^2 + ||D_L||_F^2.",
            "[3, 4] Oseledets: outside a proper subspace (1/L) log ||T_L y|| -> gamma_Q and (1/L) "
            "log ||X_L|| -> gamma, the top exponent of the whole product. The exponents of a block"
            " triangular product are those of its diagonal blocks, so gamma = max(gamma_C, "
            "gamma_Q).",
            "[3] gamma_Q < gamma_C: ||X_L||^2 = ||HFC_L||^2 + ||LFC_L||^2, whose left side has the"
            " exponent gamma_C and HFC the exponent gamma_Q; so LFC has the exponent gamma_C, and "
            "the logarithm of the quotient the difference.",
            "[4] gamma_Q > gamma_C: HFC has the exponent gamma_Q, and limsup (1/L) log ||LFC_L|| "
            "<= gamma = gamma_Q: liminf (1/L) log HFC/LFC >= 0.",
        ),
        by.searched(
            "the differences of changing layers with two heads, exactly",
            _law,
            _layers(),
            at=lambda layers, X: given.of_attention(layers[0][0][0]),
        ),
    ),
    further="Whether gamma_Q > gamma_C excludes smoothing slower than any exponential is open. "
    "For attention computed from X the exponents are of that trajectory, without an ergodic claim.",
)
