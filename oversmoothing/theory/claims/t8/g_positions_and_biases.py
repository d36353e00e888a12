"""T8g: rotary positions near consensus, and what a value bias does to the sign in Post-LN."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.claims.t8.linearised import derivative
from oversmoothing.theory.proofs.kit import Claim, by, exact

# The rotation by a right angle a position, a state of two tokens, weights.
_TURN = sp.Matrix([[0, -1], [1, 0]])
_C, _W = sp.Matrix([sp.log(2), sp.log(3)]), sp.Matrix([[1, 2], [-1, 1]])
_D = sp.Matrix([[1, 0], [3, -1]])


def _rotary(X: sp.Matrix) -> sp.Matrix:
    """softmax of (Q^i x_i)^T (Q^j x_j), i and j the positions."""
    turned = sp.Matrix.vstack(*((_TURN**i * X.row(i).T).T for i in range(X.rows)))
    weights = (turned * turned.T).applyfunc(sp.exp)
    return sp.Matrix(X.rows, X.rows, lambda i, j: weights[i, j] / sum(weights.row(i)))


def _linear() -> sp.Matrix:
    """DF at consensus is D + A_b D W with A_b = A(1 c^T)."""
    X = sp.ones(2, 1) * _C.T
    found = derivative(lambda Z: Z + _rotary(Z) * Z * _W, X, _D)
    return (found - _D - _rotary(X) * _D * _W).applyfunc(sp.simplify)


def _not_uniform() -> None:
    """[2; general] Two tokens, a right angle a position, c != 0: the logits are |c|^2 beside
    oneself and c^T Q c = 0 to the other, so A_b = (e, 1; 1, e)/(e + 1) with e = exp |c|^2 > 1, and
    a_1 = (e - 1)/(e + 1) is not 0: it tends to 1 with |c|."""
    c = sp.Matrix(sp.symbols("x y", real=True))
    assert sp.expand((c.T * _TURN * c)[0]) == 0
    assert sp.expand((c.T * c)[0] - ((_TURN * c).T * (_TURN * c))[0]) == 0


def _value_bias() -> None:
    """[5; general] F(X) = LN(X + 1 b^T), a layer with W = 0, the value bias b and eps = 0, d = 3,
    b = (1, -1, 0): of X = (2, -1, -1), (0, 1, -1) the rows before the norm are (3, -2, -1), (1, 0,
    -1), with the squared cosine 4/7; of -X they are (-1, 0, 1), (1, -2, 1), with cosine 0. LN gives
    rows of one length, so HFC/LFC = sqrt((1 - cos)/(1 + cos)) tells X from -X: in the second of two
    layers the sign of gamma in the first is seen."""
    b, X = [Fraction(x) for x in (1, -1, 0)], exact.matrix("2 -1 -1; 0 1 -1")
    seen = []
    for sign in (1, -1):
        u, v = ([sign * x + y for x, y in zip(row, b, strict=True)] for row in X)
        assert sum(u) == sum(v) == 0
        seen.append(exact.dot(u, v) ** 2 / (exact.dot(u, u) * exact.dot(v, v)))
    assert seen == [Fraction(4, 7), 0]


CLAIM = Claim(
    name="T8g",
    clauses=(
        "Rotary and other relative positions: logits (Q^i x_i)^T M (Q^j x_j), Q orthogonal. "
        "Consensus is invariant, and the linearisation there is D + A_b D W with A_b = A(1 c^T), "
        "as in T8a.",
        "But A_b depends on c and need not be 11^T/n: differences between tokens are multiplied by "
        "I + a_i(c) W^T, not by 1 as with attention from the content alone.",
        "Such logits are even in X without query and key biases, so T8d holds for them.",
        "Post-LN: (gamma, beta) -> (-gamma, -beta) of any norm turns its output into its negative, "
        "whatever biases attention has.",
        "With a value or output bias a Post-LN layer is not odd, even for beta = 0: the global sign"
        " of gamma then changes HFC/LFC.",
    ),
    latex=r"DF(\mathbf 1c^\top)[D]=D+A_b(c)\,DW,\qquad A_b(c)=\operatorname{softmax}_j\bigl("
    r"c^\top Q^{-i}MQ^{j}c\bigr)",
    source="ours",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "smooth row-stochastic attention, and signs",
            "[1] T8a asks of A(X) that it is differentiable and row-stochastic: DA[D] 1 = 0, so the"
            " change of attention at consensus does nothing; softmax of any smooth logits is such.",
            _not_uniform,
            "[3] The logits are quadratic in X: A(-X) = A(X), on which T8d rests.",
            "[4] T8d: diag(-gamma) z - beta = -(diag(gamma) z + beta), and z depends on neither.",
            _value_bias,
        ),
        by.Symbolic("rotary attention at consensus", _linear, scope=by.Scope.INSTANCE),
    ),
)
