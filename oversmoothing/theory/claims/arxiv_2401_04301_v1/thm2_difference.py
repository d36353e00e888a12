"""Thm 2 read as a limit of differences: the relative error vanishes, the absolute one need not."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction
from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given

_H, _X0 = exact.matrix("1"), exact.column("0 2")
_ERROR = sp.Rational(3, 2) ** L
_STATE = sp.Matrix([[2**L - _ERROR], [2**L + _ERROR]])


def _diverges() -> None:
    """The multipliers are 2 (consensus) and 3/2. By induction X_L = 2^L (1, 1) + (3/2)^L (-1, 1):
    the error (3/2)^L diverges, while relative to 2^L it vanishes."""
    induction(AA, _H, _X0, _STATE)
    equal(_STATE - sp.Matrix([2**L, 2**L]), sp.Matrix([-_ERROR, _ERROR]))
    equal(sp.limit(_ERROR, L, sp.oo), sp.oo)
    equal(sp.limit(_ERROR / 2**L, L, sp.oo), 0)


CLAIM = by.refuted(
    name="P-2401.04301v1-thm2-difference",
    statement="Thm 2 with -> read literally (our reading): X_L - mu^L s v_i^A (v_j^H)^T tends to "
    "0, so that the tokens become one vector.",
    latex=r"\|X_L - (1+\lambda_j^H\lambda_i^A)^L s\, v_i^A (v_j^H)^\top\| \to 0",
    source="arXiv 2401.04301 v1, Thm 2, our reading of the arrow",
    wording="our reading of the arrow in Thm 2 (public reviews); which limit the paper means was "
    "not at hand, and as a direction P-2401.04301v1-thm2 holds",
    hypotheses=(given.POSITIVE, given.REAL_A, given.REAL_H, given.EIGENBASIS_A, given.EIGENBASIS_H),
    title="the second eigenvalue exceeds 1 too",
    at=((AA, _H, _X0),),
    steps=(_diverges,),
    repaired_by="T4f",
    formal=by.Formal("Refutations.v1_thm2_difference", (1,)),
)
