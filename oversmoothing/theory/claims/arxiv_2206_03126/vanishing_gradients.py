"""At collapse W_Q and W_K have no gradient; near it the gradient falls like the spread squared."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.t7 import squared_diameter
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact


def _derivative() -> sp.Expr:
    """[2; fixed size] d/dt of sum_j a_j x_j, a = softmax(l + t c), at t = 0 is sum_j a_j (x_j - y)
    c_j, y = sum_j a_j x_j: three tokens, one feature of them."""
    x, logit, c = (sp.symbols(f"{name}:3", real=True) for name in "xlc")
    t = sp.Symbol("t")
    weights = [sp.exp(p + t * q) for p, q in zip(logit, c, strict=True)]
    mean = sum(w * z for w, z in zip(weights, x, strict=True)) / sum(weights)
    a = [w.subs(t, 0) / sum(weights).subs(t, 0) for w in weights]
    y = mean.subs(t, 0)
    return mean.diff(t).subs(t, 0) - sum(p * (z - y) * q for p, z, q in zip(a, x, c, strict=True))


def _covariance(a: list[Fraction], X: Matrix) -> Matrix:
    y = exact.weighted_mean(a, X)
    R = [[x - m for x, m in zip(row, y, strict=True)] for row in X]
    return exact.product(exact.transposed(R), exact.diagonal(a), R)


def _law(A: Matrix, X: Matrix, v: list[Fraction]) -> None:
    """v^T Cov v <= |v|^2 D^2/4 for each row of A; and equal tokens do not feel A."""
    v = v[: len(X[0])]
    for row in A:
        moved = exact.dot(v, exact.applied(_covariance(row, X), v))
        assert 4 * moved <= exact.dot(v, v) * squared_diameter(X)
    same = [X[0]] * len(X)
    equal(exact.product(A, same), same)


@st.composite
def _states(pick: st.DrawFn) -> tuple[Matrix, Matrix, list[Fraction]]:
    A = pick(draw.attention(1, 4, zeros=True))
    return (
        A,
        pick(draw.states(len(A), pick(st.integers(1, 2)))),
        pick(draw.lists(draw.fractions(-3, 3, 4), 2)),
    )


CLAIM = Claim(
    name="N-2206.03126-gradients",
    clauses=(
        "Y = A X W_V, A the softmax of logits that depend on X, W_Q and W_K in any smooth way "
        "(with positions and masks too): at equal tokens, X = 1 x^T, Y = 1 x^T W_V whatever W_Q "
        "and W_K are, so every derivative by W_Q and W_K of any order is exactly 0; and so are "
        "those of any loss by the W_Q, W_K of all layers of a network whose input is 1 x^T and "
        "whose other blocks keep equal tokens (T1b, T8c). (Vanishing gradients there: "
        "introduction; this form is our reading.)",
        "Elsewhere, with logits x_i^T M x_j + b_ij, M = W_Q W_K^T/sqrt k: d y_i = C_i dM^T x_i, "
        "y_i = sum_j A_ij x_j and C_i the covariance of the tokens under the weights A_ij.",
        "||C_i||_2 <= D^2/4, D the diameter of the tokens: ||d y_i|| <= ||x_i|| ||dM|| D^2/4. So "
        "near collapse these gradients fall at least like D^2.",
        "W_V has a gradient there: dY = 1 x^T dW_V.",
    ),
    latex=r"\mathrm dy_i=\operatorname{Cov}_{A_i}(X)\,\mathrm dM^\top x_i,\qquad "
    r"\|\operatorname{Cov}_{A_i}(X)\|_2\le\tfrac14\operatorname{diam}(X)^2",
    source="arXiv 2206.03126, gradients at rank collapse (introduction), our reading; 2, 3: ours",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "the derivative of a softmax mean",
            "[1] A 1 = 1 for every W_Q, W_K, so A 1 x^T W_V = 1 x^T W_V: constant in them. By T1b "
            "and T8c all later states of such a network are equal tokens too, layer by layer, so "
            "the output does not depend on any W_Q, W_K.",
            _derivative,
            "[2] With c_j = x_i^T dM x_j: sum_j A_ij (x_j - y_i) x_j^T dM^T x_i, and sum_j A_ij "
            "(x_j - y_i) y_i^T = 0.",
            "[3] v^T C_i v is the variance of the numbers v^T x_j, which lie in an interval of "
            "length |v| D: at most |v|^2 D^2/4 (Popoviciu).",
            "[4] Y is linear in W_V.",
        ),
        by.searched("covariances under rows of attention, in fractions", _law, _states()),
    ),
    further="Gradients vanish elsewhere too, where a row is saturated: N-2505.24333-two-ends.",
)
