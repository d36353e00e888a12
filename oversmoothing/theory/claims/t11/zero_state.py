"""T11.7: zeros in the state: X = 0 is UNDEFINED, LFC = 0 is +infinity, a zero row has no angle."""

import math

from hypothesis import strategies as st

from oversmoothing.theory.depth.ratios import ratio_of_squares
from oversmoothing.theory.proofs.kit import AA, Claim, Matrix, by, draw, exact, given, verdict


def _zero() -> None:
    """[1; instance] The layer is linear, so 0 -> 0; HFC = LFC = 0 has no ratio."""
    for A in (AA, exact.matrix("1")):
        found = verdict(A=A, H=exact.matrix("1"), X0=exact.zeros(len(A), 1), depth=[0, 3, 100])
        assert found.verdict == found.verdict_x0 == "UNDEFINED"
        assert found.tends_to is None
        assert all(ratio.value is None for ratio in found.hfc_lfc.values())


def _infinite() -> None:
    """[2; instance] ||X||^2 = ||HFC||^2 + ||LFC||^2, so LFC = 0 != X leaves HFC != 0. With a
    symmetric A such states stay free of LFC."""
    found = verdict(A=AA, H=exact.matrix("1/2"), X0=exact.matrix("1; -1"), depth=[0, 1, 100])
    assert found.verdict == "SMOOTHING" and found.verdict_x0 == "NON_SMOOTHING"
    assert all(ratio.value == math.inf for ratio in found.hfc_lfc.values())


def _rows() -> None:
    """[3, 4; instance] cos(0, y) = 0/(0 |y|). With A > 0 row i moves by h (A X)_i, which is not 0
    in general: (0, 4) -> (1, 7), (1, -7) -> (0, -12) for h = 1."""
    # A zero row does not stay zero, and a row may pass through zero.
    assert exact.layer(AA, exact.matrix("1"), exact.matrix("0; 4")) == exact.matrix("1; 7")
    assert exact.layer(AA, exact.matrix("1"), exact.matrix("1; -7")) == exact.matrix("0; -12")


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    """Small states, zero and zero-mean ones among them."""
    A = pick(draw.attention(1, 3))
    n = len(A)
    X = pick(draw.lists(draw.lists(st.integers(-1, 1), 1), n))
    return A, [[pick(draw.fractions(-2, 2, 3))]], exact.from_integers(X)


def _law(A: Matrix, H: Matrix, X: Matrix) -> None:
    found = verdict(A=A, H=H, X0=X, depth=[0, 2])
    assert (found.verdict == "UNDEFINED") == (not any(map(any, X)))
    for depth in (0, 2):
        hfc, lfc = exact.squared_norms(exact.layer(A, H, X, depth))
        value = found.hfc_lfc[depth].value
        assert value == ratio_of_squares(hfc, lfc).value
        assert (value is None) == (hfc == lfc == 0)
        assert (value == math.inf) == (lfc == 0 < hfc)


def _has_zero(X: Matrix) -> bool:
    return any(not any(row) for row in X) or not given.has_low(X)


CLAIM = Claim(
    name="T11.7",
    clauses=(
        "X_0 = 0 stays 0: every metric is 0/0 and the verdict UNDEFINED, which is checked first,"
        " before n = 1.",
        "If 1^T X = 0 and X != 0, then LFC = 0 < HFC and HFC/LFC = +infinity, a value.",
        "A zero row has no direction, so its cosines are undefined and must be masked;",
        "rows can become zero, and zero rows become non-zero, from one layer to the next.",
    ),
    latex=r"X=0:\ \tfrac00\ \text{undefined};\qquad \mathbf 1^\top X = 0\ne X:\ "
    r"\frac{\|\mathrm{HFC}\|}{\|\mathrm{LFC}\|}=+\infty",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(
        given.ROW_STOCHASTIC,
        given.Hypothesis(
            "X_0 is zero, has a zero row, or has mean zero",
            lambda case: case.X0 is not None and _has_zero(case.X0),
            (given.case(), given.case(X0="1; 2")),
        ),
    ),
    evidence=(
        by.Formal("Edges.mean_zero", (2,)),
        by.written("what vanishes", _zero, _infinite, _rows),
        by.searched(
            "value, infinity or nothing, as the exact norms say",
            _law,
            _cases(),
            at=lambda *case: case,
        ),
    ),
)
