"""v3's verdicts on its three notions, each with a witness in small numbers."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, around, induction, symbolic
from oversmoothing.theory.proofs.kit import AA, Claim, by, equal, exact


def _no_input_convergence() -> None:
    """[1, 2; general] A = [[3/4, 1/4], [1/4, 3/4]], h = 1, X_0 = (1, 2): mean (3/2) 2^L, difference
    (3/2)^L. Differences diverge, so no input convergence; their ratio (3/4)^L -> 0, so angles
    converge."""
    difference = sp.Rational(3, 2) ** L
    induction(
        AA, exact.matrix("1"), exact.column("1 2"), around(3 * 2**L / sp.Integer(2), difference / 2)
    )
    equal(sp.limit(difference, L, sp.oo), sp.oo)
    equal(sp.limit(difference / 2**L, L, sp.oo), 0)


def _rank_kept() -> None:
    """[3; general] A = [[1/4, 1/4, 1/2], [1/2, 1/4, 1/4], [1/4, 1/2, 1/4]], H = [[0, -1], [1, -1]],
    X_0 = [[1, 0], [0, 1], [-1, -1]]: X_L = (5/4)^L X_0, of rank 2."""
    A = exact.matrix("1/4 1/4 1/2; 1/2 1/4 1/4; 1/4 1/2 1/4")
    X0 = exact.matrix("1 0; 0 1; -1 -1")
    induction(A, exact.matrix("0 -1; 1 -1"), X0, sp.Rational(5, 4) ** L * symbolic(X0))
    assert symbolic(X0).rank() == 2, "rank 1"


CLAIM = Claim(
    name="P-2401.04301v3-not-inevitable",
    clauses=(
        "Input convergence is not inevitable;",
        "angle convergence is possible and not guaranteed;",
        "rank collapse is not required (v3, in substance, of trained models; here of the linear "
        "layer with A > 0, where each has a witness).",
    ),
    latex=r"\exists (A,H,X_0):\ \|x_i-x_k\|\to\infty;\quad \cos\to 1;\quad \cos\to -1;\quad "
    r"\mathrm{rank}\, X_L = 2\ \forall L",
    source="arXiv 2401.04301 v3, findings on the three notions (public summary)",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "witnesses",
            _no_input_convergence,
            "[2] For h = -1/2 the same tokens end with cos = -1 (P-2401.04301v3-notions).",
            _rank_kept,
        ),
    ),
    further="'Rank collapse is likely': true of real simple spectra "
    "(P-2401.04301v1-rank-real), false on an open set of complex ones (P-2401.04301v1-rank).",
)
