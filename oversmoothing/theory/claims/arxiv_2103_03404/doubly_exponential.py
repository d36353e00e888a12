"""Tokens of attention alone come together at a doubly exponential rate, once they are near."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.claims.binary_softmax import (
    binary_softmax,
    heads_on_a_state,
    logits,
    spread,
    squared_frobenius,
)
from oversmoothing.theory.claims.t7 import squared_diameter
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, exact


def _law(X: Matrix, M: Matrix, W: Matrix) -> None:
    """tanh(s ln 2/4) = (r - 1)/(r + 1) with r = 2^(s/2): in fractions for even s."""
    L, A = logits(X, M), binary_softmax(logits(X, M))
    diameter, most = squared_diameter(X), Fraction(0)
    for i in range(len(X)):
        for k in range(i):
            s = spread(L[i], L[k])
            r = Fraction(2) ** int(s / 2)
            apart = sum((abs(p - q) for p, q in zip(A[i], A[k], strict=True)), Fraction(0)) / 2
            assert s**2 <= squared_frobenius(M) * diameter**2
            assert apart * (r + 1) <= r - 1
            most = max(most, apart)
    assert squared_diameter(exact.product(A, X, W)) <= squared_frobenius(W) * most**2 * diameter


def _attained() -> sp.Expr:
    """[3; general] Two tokens s and -s, one feature, M = m, W = w: the rows of A differ by
    tanh(m s^2) = tanh(m D^2/4), D = 2 s, and A X W = w tanh(m D^2/4) X."""
    m, s, w = sp.symbols("m s w", positive=True)
    X = sp.Matrix([s, -s])
    weights = (m * X * X.T).applyfunc(sp.exp)
    A = sp.Matrix(2, 2, lambda i, j: weights[i, j] / sum(weights.row(i)))
    z = m * s**2
    bound = (sp.exp(2 * z) - 1) / (sp.exp(2 * z) + 1)
    return A * X * w - w * bound * X


CLAIM = Claim(
    name="N-2103.03404-doubly-exponential",
    clauses=(
        "X' = A X W + 1 b^T, A the softmax of X M X^T + 1 f^T (M = W_Q W_K^T/sqrt k; any column "
        "term f), no skip, D = max ||x_i - x_k||_2: D' <= ||W|| D tanh(||M|| D^2/4) <= c D^3 with "
        "c = ||M|| ||W||/4, norms spectral.",
        "With H heads c = sum_h ||M_h|| ||W_h||/4, the largest of all layers: sqrt(c) D_L <= "
        "(sqrt(c) D_0)^(3^L). So D_L -> 0 doubly exponentially where c D_0^2 < 1. (The paper's "
        "bound has the same powers of 3, in other norms and with another constant; recalled, our "
        "reading.)",
        "The first bound of clause 1 is attained: by two tokens s and -s of one feature.",
    ),
    latex=r"D_L\le c^{(3^L-1)/2}D_0^{\,3^L},\qquad c=\tfrac14\sum_h\|M_h\|\,\|W_h\|",
    source="ours, for the doubly exponential rate of arXiv 2103.03404 (abstract; the bound is "
    "recalled)",
    on_record=by.WRITTEN,
    setting="logits of content alone; where c D_0^2 >= 1 clause 2 says nothing",
    evidence=(
        by.for_all(
            "odds that differ by a factor of r^2 at most: probabilities by (r - 1)/(r + 1) at most",
            given="0 <= u; u <= 1; 0 <= v; v <= 1; r >= 1; u*(1-v) <= r*r*v*(1-u)",
            then="(u - v)*(r + 1) <= r - 1",
            at="u=2/3, v=1/3, r=2",
            covers=(1,),
        ).unless(
            "a factor of r^3",
            without="u*(1-v) <= r*r*v*(1-u)",
            given="u*(1-v) <= r*r*r*v*(1-u)",
            at="u=8/9, v=1/2, r=2",
        ),
        by.written(
            "two rows of attention",
            "[1] Column j of the logits of rows i and k differs by (x_i - x_k)^T M x_j, up to a "
            "constant in j; f cancels. Over j it spreads by s <= ||M|| D^2. So of the rows p, q "
            "of A the largest p_j/q_j is at most e^s times the smallest.",
            "[1] For a set of columns with u = p(S), v = q(S): u/v is at most the largest p_j/q_j, "
            "(1-u)/(1-v) at least the smallest, so u (1-v) <= e^s v (1-u). By the query, r = "
            "e^(s/2): u - v <= tanh(s/4), and the total variation t of p and q is such a u - v.",
            "[1] The tokens of A X differ by sum_j (p_j - q_j) x_j, which is t times a difference "
            "of two means of tokens: at most t D. W scales by ||W|| at most, b cancels, and tanh "
            "z <= z.",
            "[2] Heads add up: D' <= c D^3, so y = sqrt(c) D has y' <= y^3. Induction over L.",
            _attained,
        ),
        by.searched("softmax of integer logits times ln 2, exactly", _law, heads_on_a_state()),
    ),
    further="Positions in the logits leave a factor below 1 in the place of D^2 (T8a). Outside of "
    "c D_0^2 < 1 tokens need not come together: N-2103.03404-any-weights.",
)
