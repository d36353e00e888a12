"""The control statement on the closed interval [-1, 0]: all eigenvalues 0, and X oversmooths."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, ratio_is
from oversmoothing.theory.proofs.kit import J2, by, equal, exact, given, spectra

# Smallest possible: with d = 1 the closed interval is safe; integers in H and X_0.
_H, _X0 = exact.matrix("0 1; 0 0"), exact.matrix("0 0; 0 2")
_STATE = sp.Matrix([[L, 0], [L, 2]])


def _linear() -> None:
    """X W moves the second column into the first, and A averages it: X_L = [[L, 0], [L, 2]], by
    induction. HFC^2 = 2, LFC^2 = 2 (L^2 + 1): the ratio tends to 0 like 1/L, and so it does for
    every X_0 whose second column has a mean."""
    induction(J2, _H, _X0, _STATE)
    ratio_is(_STATE, 1 / (L**2 + 1))
    equal(sp.limit(1 / (L**2 + 1), L, sp.oo), 0)


CLAIM = by.refuted(
    name="P-2401.04301v1-control",
    statement="lambda_j^H in [-1, 0] for all j guarantees that lambda_1^A dominates and that there "
    "is no oversmoothing (v1: the poster prints the closed interval, a review the half-open one; "
    "that H need not be diagonalisable is our reading).",
    latex=r"\lambda_j^H \in [-1,0]\ \forall j \implies \mathrm{HFC}/\mathrm{LFC} \not\to 0",
    source="arXiv 2401.04301 v1, control of the spectrum (poster)",
    wording="our reading of the poster, which prints [-1, 0] where a review prints [-1, 0); "
    "whether the paper asks for a diagonalisable H, which the counterexample has not, was not at "
    "hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.CLOSED),
    title="a Jordan block at 0",
    at=((J2, _H, _X0),),
    steps=(
        by.Step(
            "Both eigenvalues of H are 0: in [-1, 0].", lambda: equal(spectra.values(_H), [0, 0])
        ),
        _linear,
    ),
    repaired_by="T2e",
    further="What is true: [-1, 0) for every H (P-2401.04301v3-control-negative), and [-1, 0] for "
    "diagonalisable H, without dominance of lambda_1^A (P-2401.04301v3-clip-tied).",
    formal=by.Formal("Refutations.v1_control", (1,)),
)
