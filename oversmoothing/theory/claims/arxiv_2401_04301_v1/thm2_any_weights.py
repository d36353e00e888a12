"""Thm 2 without a basis of eigenvectors: a single dominating eigenvalue, and no limit."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction
from oversmoothing.theory.proofs.kit import J2, by, equal, exact, given, spectra

# The smallest possible: d = 2 for a Jordan block, integers in H and X_0.
_H = exact.matrix("1 1; 0 1")
_X0 = exact.matrix("0 1; 0 1")
_STATE = 2**L * sp.Matrix([[L / 2, 1], [L / 2, 1]])


def _single() -> None:
    """The eigenvalues of A are 0, 1 and H has 1 only: 1 + h a is 1 or 2, and 2 dominates alone."""
    equal({1 + h * a for h in spectra.values(_H) for a in spectra.values(J2)}, {1, 2})


def _diverges() -> None:
    """A row (x, 1) 2^L becomes 2^L (2x + 1, 2): X_L = 2^L (L/2, 1) in each row, by induction; X_L /
    2^L grows without bound."""
    induction(J2, _H, _X0, _STATE)
    equal(sp.limit((_STATE / 2**L)[0, 0], L, sp.oo), sp.oo)
    assert (_STATE / 2**L)[0, 1] == 1, "the second feature"


CLAIM = by.refuted(
    name="P-2401.04301v1-thm2-any-weights",
    statement="Thm 2 for every H (our reading: diagonalisability is stated of A only, in what we "
    "have seen): a single dominating eigenvalue mu gives a limit of X_L / mu^L.",
    latex=r"|\mu| > |\mu'|\ \forall \mu'\ne\mu \implies X_L/\mu^L \to s\,v_i^A (v_j^H)^\top",
    source="arXiv 2401.04301 v1, Thm 2, our reading of its scope",
    wording="our reading, without the basis of eigenvectors of I + H (x) A, whose inverse Thm 2 "
    "takes (public reviews, in part recalled) and which the counterexample has not: the theorem is "
    "not touched",
    hypotheses=(given.POSITIVE, given.REAL_A, given.REAL_H, given.EIGENBASIS_A),
    title="a Jordan block of H",
    at=((J2, _H, _X0),),
    steps=(_single, _diverges),
    repaired_by="T6b",
    formal=by.Formal("Refutations.v1_thm2_any_weights", (1,)),
)
