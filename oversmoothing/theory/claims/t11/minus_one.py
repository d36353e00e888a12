"""T11.4: h = -1 empties the consensus block: HFC/LFC is infinite or above the floor at once."""

import math
from fractions import Fraction

from hypothesis import assume, strategies as st

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.instances import A3, AA
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, spectra, verdict


def _doubly_stochastic() -> None:
    """[1, 2; instance] So pi^T X_L = 0 for L >= 1: T1f applies at every layer. Doubly stochastic:
    delta = 0 and LFC = 0. Executed: X_0 = (3, 1) -> (1/2, -1/2)."""
    assert exact.layer(AA, exact.matrix("-1"), exact.matrix("3; 1")) == exact.matrix("1/2; -1/2")
    found = verdict(A=AA, H=exact.matrix("-1"), X0=exact.matrix("3; 1"), depth=[1, 2, 200])
    assert found.verdict == "NON_SMOOTHING" and found.rate == math.inf
    assert found.tends_to == "infinity"
    assert all(ratio.value == math.inf for ratio in found.hfc_lfc.values())


def _other() -> None:
    """[1; instance] A3 is not doubly stochastic: ratio^2 = 1819399/423200 at L = 3."""
    X = exact.layer(A3, exact.matrix("-1"), exact.matrix("1; 2; 4"), 3)
    assert exact.matrix("-51/250; -79/1000; 1203/1000") == X
    found = verdict(A=A3, H=exact.matrix("-1"), X0=exact.matrix("1; 2; 4"), depth=[3])
    assert found.hfc_lfc[3].squared == Fraction(1819399, 423200)
    hfc, lfc = exact.squared_norms(X)
    assert hfc / lfc >= 1 / (3 * spectra.squared_deviation(spectra.stationary(A3)))


def _consensus_dies() -> None:
    """[1, 3; instance] c_1 = c_0 (I + W) = 0. Y_L = (I - B)^L Y_0, and I - B is invertible as 1 is
    a simple eigenvalue of A > 0: HFC_L != 0 if HFC_0 != 0; otherwise X_1 = 0."""
    found = verdict(A=AA, H=exact.matrix("-1"), X0=exact.matrix("2; 2"), depth=[0, 1])
    assert found.verdict_x0 == "UNDEFINED" and found.hfc_lfc[1].value is None
    assert exact.determinant(exact.plus_identity(rational_quotient(A3), -1)) != 0


@st.composite
def _cases(pick: st.DrawFn) -> tuple[Matrix, Matrix, int]:
    A = pick(draw.attention(2, 4))
    if pick(st.booleans()):
        # Doubly stochastic: a symmetric circulant of the first row.
        n, row = len(A), A[0]
        even = [(row[k] + row[-k % n]) / 2 for k in range(n)]
        A = [[even[(j - i) % n] for j in range(n)] for i in range(n)]
    return A, pick(draw.states(len(A), 2)), pick(st.integers(1, 4))


def _law(A: Matrix, X: Matrix, depth: int) -> None:
    assume(not given.consensus(X))
    pi = spectra.stationary(A)
    moved = exact.layer(A, exact.diagonal("-1 -1"), X, depth)
    hfc, lfc = exact.squared_norms(moved)
    delta = spectra.squared_deviation(pi)
    assert exact.weighted_mean(pi, moved) == [0, 0] and hfc > 0
    assert lfc <= len(A) * delta * hfc
    if delta == 0:
        assert lfc == 0


CLAIM = Claim(
    name="T11.4",
    clauses=(
        "H = -I, A > 0, n >= 2, X_0 not at consensus: from layer 1 on c_L = 0 and HFC != 0, so "
        "HFC/LFC >= 1/(sqrt n delta) at EVERY layer,",
        "and it is +infinity at every layer if A is doubly stochastic: ||LFC|| = 0 is a value, "
        "not an error.",
        "A state at consensus becomes 0 in one layer: UNDEFINED.",
    ),
    latex=r"H=-I:\quad c_L = 0\ (L\ge 1),\qquad \frac{\|\mathrm{HFC}_L\|}{\|\mathrm{LFC}_L\|} \ge "
    r"\frac{1}{\sqrt n\,\delta}\in(0,\infty]",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(
        given.POSITIVE,
        given.TWO_TOKENS,
        given.NOT_FLAT,
        given.Hypothesis(
            "H = -I", lambda case: exact.identity(len(case.H), -1) == case.H, (given.case(),)
        ),
    ),
    evidence=(
        by.Formal("Farthest.minus_one", (1,)),
        by.Formal("Farthest.minus_one_doubly", (2,)),
        by.Formal("Farthest.minus_one_consensus", (3,)),
        by.written("c vanishes, Y does not", _consensus_dies, _doubly_stochastic, _other),
        by.searched(
            "the floor at every layer, in fractions",
            _law,
            _cases(),
            at=lambda A, X, depth: (A, exact.diagonal("-1 -1"), X),
        ),
    ),
)
