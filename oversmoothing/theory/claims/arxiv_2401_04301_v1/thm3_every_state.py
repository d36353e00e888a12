"""Thm 3 for every X_0: a state with a mean, and a dominating consensus, that never smooths."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, ratio_is
from oversmoothing.theory.proofs.kit import by, equal, exact, given, spectra

# Denominators 2 and 4; with a symmetric A only X_0 with LFC = 0 can do this.
_A, _H, _X0 = exact.matrix("1/2 1/2; 1/4 3/4"), exact.matrix("1"), exact.column("2 -1")


def _dominance() -> None:
    """A has eigenvalues 1 and 1/4: the multipliers are 2 (consensus, dominating) and 5/4."""
    equal(spectra.values(_A), [Fraction(1, 4), Fraction(1)])
    equal([1 + a for a in spectra.values(_A)], [Fraction(5, 4), Fraction(2)])


def _forever() -> None:
    """A X_0 = X_0 / 4, so X_L = (5/4)^L (2, -1): mean 1/2, deviations +- 3/2, ratio 3 for every L.
    What X_0 lacks is pi^T X_0 = (1/3) 2 - (2/3) 1 = 0, not LFC."""
    equal(exact.product(_A, _X0), exact.scaled(Fraction(1, 4), _X0))
    state = sp.Rational(5, 4) ** L * sp.Matrix([2, -1])
    induction(_A, _H, _X0, state)
    ratio_is(state, 9)


CLAIM = by.refuted(
    name="P-2401.04301v1-thm3-every-state",
    statement="Thm 3 for every X_0 with HFC and LFC not 0 (our reading; the definition of a "
    "low-pass filter quantifies over inputs): HFC/LFC tends to 0 whenever 1 + lambda_j^H "
    "lambda_n^A dominates.",
    latex=r"\rho_C > \rho_Q \implies \mathrm{HFC}/\mathrm{LFC} \to 0 \quad \forall X_0",
    source="arXiv 2401.04301 v1, Thm 3 and the definition of low-pass, our reading",
    wording="our reading of Theorem 3 by the definition of low-pass (poster); which X_0 the "
    "theorem leaves out was not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H, given.BOTH_PARTS),
    title="X_0 without its stationary mean",
    at=((_A, _H, _X0),),
    steps=(_dominance, _forever),
    repaired_by="T4e",
    formal=by.Formal("Refutations.v1_thm3_every_state", (1,)),
)
