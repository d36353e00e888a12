"""v1's reparameterisation diag(H) = -psi^2, which has no lower bound."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, ratio_is
from oversmoothing.theory.proofs.kit import J2, by, equal, exact, given, spectra

_NEGATIVE = given.Hypothesis(
    "H = V diag(-psi^2) V^T: symmetric with eigenvalues <= 0",
    lambda case: exact.transposed(case.H) == case.H and spectra.within(case.H, lambda h: h <= 0),
    (given.case(H="1"), given.case(H="0 1; 0 0")),
)

# The smallest integer psi that does it: psi = 1 is safe for every A (T2b).
_H, _X0 = exact.matrix("-4"), exact.column("0 2")
_STATE = sp.Matrix([(-3) ** L - 1, (-3) ** L + 1])


def _smooths() -> None:
    """The mean is multiplied by 1 - 4 = -3, the difference by 1 (A has eigenvalue 0): X_L = (-3)^L
    (1, 1) + (-1, 1), by induction, and (HFC/LFC)^2 = 9^-L."""
    induction(J2, _H, _X0, _STATE)
    ratio_is(_STATE, sp.Rational(1, 9) ** L)
    equal(sp.limit(sp.Rational(1, 9) ** L, L, sp.oo), 0)


CLAIM = by.refuted(
    name="P-2401.04301v1-psi",
    statement="H = V_H diag(-psi^2) V_H^T with learnable psi ensures that there is no "
    "oversmoothing (v1; 'ensures' in the submission's reviews; -psi^2 has no lower bound).",
    latex=r"H = V_H\,\mathrm{diag}(-\psi^2)\,V_H^\top \implies \mathrm{HFC}/\mathrm{LFC} \not\to 0",
    source="arXiv 2401.04301 v1, reparameterisation (poster, public reviews)",
    wording="in the paper's words: a parameterisation 'ensuring that oversmoothing does not occur' "
    "(abstract of v1), diag(-psi^2) with no lower bound (poster), in the paper's setting of one "
    "head and fixed A and H",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, _NEGATIVE),
    title="psi = 2",
    at=((J2, _H, _X0),),
    steps=(_smooths,),
    repaired_by="T2b",
    further="It holds exactly while psi^2 < 2/(1 + lambda_1^A) for a single feature (T2b); T2d "
    "decides several.",
    formal=by.Formal("Refutations.v1_psi", (1,)),
)
