"""De-escalation where attention is computed from content: the mean is forgotten at once."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact


def _differences(X: Matrix, M: Matrix) -> Matrix:
    """l_ij - l_in: what a softmax sees of logits x_i^T M x_j."""
    logits = exact.product(X, M, exact.transposed(X))
    return [[x - row[-1] for x in row] for row in logits]


def _law(X: Matrix, entries: list[Fraction], mean: list[Fraction]) -> None:
    """Logits with the mean and without differ by (M^T mean)^T (y_j - y_n) alone."""
    d = len(X[0])
    M = [entries[k * d : (k + 1) * d] for k in range(d)]
    Y = exact.centred(X)
    moved = [[y + m for y, m in zip(row, mean, strict=False)] for row in Y]
    row = exact.product([mean[:d]], M)
    column = [exact.dot(row[0], y) for y in Y]
    wanted = [
        [x + c - column[-1] for x, c in zip(part, column, strict=True)]
        for part in _differences(Y, M)
    ]
    equal(_differences(moved, M), wanted)


def _cubic() -> list[sp.Expr]:
    """[3; fixed size] Three tokens y = e (1, 2, -3) of one feature, logits y_i y_j, W = w: the
    terms of A Y w in e and e^2 are 0."""
    e, w = sp.symbols("e w")
    y = e * sp.Matrix([1, 2, -3])
    weights = (y * y.T).applyfunc(sp.exp)
    moved = [w * (weights[i, :] * y)[0] / sum(weights[i, :]) for i in range(3)]
    return [sp.diff(x, e, k).subs(e, 0) for x in moved for k in (0, 1, 2)]


CLAIM = Claim(
    name="N-2312.06182-remedy-content",
    clauses=(
        "Softmax attention with logits x_i^T M x_j, X = 1 m^T + Y, Y = HFC(X): A depends on Y and "
        "on M^T m alone, through (M^T m)^T y_j in column j.",
        "De-escalation with tau = 1 before each layer, X' = Y + A(Y) Y W: HFC evolves by itself, "
        "Y' = Y + P A(Y) Y W, and what mean a layer makes is taken away before the next.",
        "Near consensus A(Y) = 11^T/n + O(|Y|^2), so Y' = Y + O(|Y|^3) and the mean of X' is "
        "O(|Y|^3): to first order differences neither fall nor grow, whatever W is, and HFC/LFC of "
        "X' is at least of the order |Y|^-2.",
    ),
    latex=r"Y'=Y+P\,A(Y)\,Y\,W=Y+O(|Y|^3),\qquad \overline{X'}=O(|Y|^3)",
    source="ours, for the remedy of arXiv 2312.06182 v2 (a summary) with content logits",
    on_record=by.WRITTEN,
    setting="softmax of content logits, no positions, no norm",
    evidence=(
        by.written(
            "what a softmax does not see",
            "[1] x_i^T M x_j = y_i^T M y_j + m^T M y_j + (y_i + m)^T M m, and the last term is the "
            "same in the whole row i.",
            "[2] The layer acts on Y: its mean is 0, its HFC Y.",
            "[3] y_i^T M y_j = O(|Y|^2), so A = J + O(|Y|^2), J = 11^T/n, and J Y = 0: A Y W = (A -"
            " J) Y W = O(|Y|^3), with its mean and its HFC.",
            _cubic,
        ),
        by.searched(
            "logits with and without the mean, in fractions",
            _law,
            st.tuples(st.integers(2, 4), st.integers(1, 2)).flatmap(
                lambda size: draw.states(*size)
            ),
            draw.lists(draw.fractions(-2, 2, 4), 4),
            draw.lists(draw.fractions(-3, 3, 4), 2),
        ),
    ),
    further="Without the remedy consensus at m has the modes of T8a; with content logits a_i = 0, "
    "so Y' = Y + O(|Y|^3) there too, while the mean grows by I + H.",
)
