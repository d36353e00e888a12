"""T8a: the linearisation at consensus is the layer with the attention frozen there."""

import sympy as sp

from oversmoothing.theory.claims.t8.linearised import attention, derivative
from oversmoothing.theory.proofs.kit import Claim, by, given


def _residual() -> sp.Matrix:
    """DF[D] - (D + A_b D W) for softmax attention with a position bias, two tokens, d = 2."""
    c, W = sp.Matrix(1, 2, sp.symbols("c:2")), sp.Matrix([[1, -2], [3, sp.Rational(1, 2)]])
    M, D = sp.Matrix([[1, 2], [-1, 3]]), sp.Matrix(2, 2, sp.symbols("d:4"))
    bias = sp.Matrix([[0, sp.log(3)], [sp.log(2), 0]])
    X = sp.ones(2, 1) * c
    frozen = attention(X, M, bias).applyfunc(sp.simplify)
    return derivative(lambda Z: Z + attention(Z, M, bias) * Z * W, X, D) - D - frozen * D * W


CLAIM = Claim(
    name="T8a",
    clauses=(
        "F(X) = X + A(X) X W with differentiable A(X), A(X) 1 = 1: at X = 1 c^T the derivative "
        "is DF[D] = D + A_b D W, A_b = A(1 c^T).",
        "So T1-T6 with A = A_b are exactly the linearisation at consensus: transverse I + a_i "
        "W^T, longitudinal I + W^T.",
        "Logits from content alone give A_b = 11^T/n: transverse multiplier 1, so to linear "
        "order the relative size of HFC falls exponentially iff ||(I+H)^L c|| grows so.",
        "Under a causal mask the a_i are 1, 1/2, ..., 1/n; position biases b give A_b = "
        "softmax(b).",
    ),
    latex=r"DF_{\mathbf 1c^\top}[D]=D+A_b\,D\,W,\qquad A_b=A(\mathbf 1c^\top)",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written(
            "the derivative of attention is blind at consensus",
            "[1] A(X) 1 = 1 for every X: differentiate, DA[D] 1 = 0.",
            "[1] DF[D] = D + DA[D] 1 c^T W + A_b D W, and the middle term is (DA[D] 1) c^T W = 0.",
            "[2, 3, 4] On D = 1 d^T this is 1 ((I + H) d)^T; on the quotient it is T1c with A = "
            "A_b. Logits <x_i, M x_j> at x_i = c are all equal: A_b = 11^T/n, whose eigenvalues "
            "other than 1 are 0. A bias b_ij is all that is left in the logits otherwise.",
            "[4] A causal mask without bias: row i of A_b is uniform over i tokens, so a_i = 1/i, "
            "i = 1, ..., n (T1h).",
        ),
        by.Symbolic("two tokens, d = 2: softmax with content and position, in symbols", _residual),
    ),
    further="Content alone: the transverse multiplier is 1, and the cubic term decides (T8b).",
)
