"""T9c: without a residual connection 1 - |cos| falls like (sigma_2/sigma_1)^2."""

import math
from itertools import combinations

import sympy as sp

from oversmoothing.theory.claims.lemmas import ANGLE
from oversmoothing.theory.claims.t9 import systems
from oversmoothing.theory.claims.t9.b_rank import compound
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.layer.symbolic import symbolic_matrix
from oversmoothing.theory.proofs.kit import C3, Claim, Matrix, by, draw, exact, given


def _law(X: Matrix) -> None:
    """max over pairs of |x_i ^ x_k|^2 against the sum over pairs, exactly; each by Lagrange."""
    squares = [
        exact.dot(x, x) * exact.dot(y, y) - exact.dot(x, y) ** 2 for x, y in combinations(X, 2)
    ]
    total = sum(m * m for m in compound(sp.Matrix(X)))
    assert sum(squares) == total
    assert max(squares) <= total <= len(squares) * max(squares)


def _measure(effort: by.Effort) -> by.Measurements:
    for name, (A, H, second, ratio, block) in systems.SYSTEMS.items():
        # Twice the slope of T9b, with the same polynomial and bounded factors.
        predicted = 2 * (math.log(second * ratio) - 2 * (block - 1) * math.log(2) / systems.DEPTH)
        tolerance = 2 * systems.JORDAN if block > 1 else systems.ROUNDING
        if A is C3:
            # The pair that attains the maximum turns: it is between 1/3 of the sum and the sum.
            tolerance = math.log(3) / systems.DEPTH
        yield by.Measurement(
            name, predicted, systems.slope(measured.worst_angle_gap, A, H), tolerance
        )


def _parallel() -> list[sp.Expr]:
    """[fixed size] Why the square: what x_k has along x_i leaves the minors, hence the angle, as
    they are; the sine has the rate of sigma_2/sigma_1, and 1 - cos is sine^2/2."""
    X = symbolic_matrix(2, 2, "x")
    s = sp.Symbol("s")
    moved = sp.Matrix.vstack(X.row(0), X.row(1) + s * X.row(0))
    return [sp.expand(compound(moved)[0] - compound(X)[0])]


CLAIM = Claim(
    name="T9c",
    clauses=(
        "X' = A X W as in T9b: for generic X_0 the maximum over pairs of tokens of 1 - |cos| has"
        " the rate (|lambda_2| |h_2/h_1|)^2, the square of that of sigma_2/sigma_1, and every "
        "cosine tends to +1. No gap and no diagonalisability is assumed; if |h_1| = |h_2| the "
        "rate is |lambda_2|^2.",
        "For d = 1 every |cos| is 1.",
    ),
    latex=r"\lim_{L\to\infty}\Bigl(\max_{i\ne k}\,1-|\cos(x_i,x_k)|\Bigr)^{1/L} = "
    r"\Bigl(|\lambda_2(A)|\,\frac{|h_2|}{|h_1|}\Bigr)^2",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_NILPOTENT, systems.TWO_FEATURES),
    evidence=(
        by.written(
            "minors of two rows",
            ANGLE.covering(1),
            "[1, 2] t -> 0 (T9a), so each row is x_i = c_L + o(||c_L||) with c_L != 0: all norms "
            "are ||c_L|| (1 + o(1)), all cosines tend to 1, and 1 - cos = (1 - cos^2)/(1 + cos) = "
            "(1 - cos^2)(1/2 + o(1)). (d = 1: there is one direction.)",
            "[1] So max (1 - |cos|) is, up to constant factors, ||C_2(X_L)||^2/||c_L||^4: a "
            "maximum over n(n-1)/2 pairs is at least the mean. By T9b ||C_2(X_L)|| has the rate "
            "|lambda_2 h_1 h_2| for generic X_0 and ||c_L|| has |h_1|.",
            _parallel,
        ),
        by.for_all(
            "(1 - k^2)/2 <= 1 - k <= 1 - k^2 for k = |cos|",
            given="0 <= k; k <= 1",
            then="(1 - k**2)/2 <= 1 - k and 1 - k <= 1 - k**2",
            at="k=1/2",
            covers=(1,),
        ).unless("1 - k <= (1 - k^2)/2", then="1 - k <= (1 - k**2)/2", at="k=1/2"),
        by.searched(
            "rows and minors in fractions: the maximum over pairs against C_2",
            _law,
            draw.states(4, 2),
        ),
        by.Simulated(f"slope of log max (1 - |cos|) {systems.WINDOW}", _measure),
    ),
)
