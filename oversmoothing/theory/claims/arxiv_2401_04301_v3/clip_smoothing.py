"""v3's clip to [0, 1], meant to smooth: its closed end does nothing."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import induction, ratio_is
from oversmoothing.theory.proofs.kit import J2, by, exact, given, spectra

_CLIPPED = given.Hypothesis(
    "every eigenvalue of H lies in [0, 1]",
    lambda case: spectra.within(case.H, lambda h: h >= 0 and h <= 1),
    (given.case(H="-1/9"), given.case(H="10/9")),
)

_H, _X0 = exact.matrix("0"), exact.column("1 3")


def _constant() -> None:
    """H = 0 leaves X_L = X_0: mean 2, deviations +- 1, ratio 1/2."""
    state = sp.Matrix([1, 3])
    induction(J2, _H, _X0, state)
    ratio_is(state, sp.Rational(1, 4))


CLAIM = by.refuted(
    name="P-2401.04301v3-clip-smoothing",
    statement="H = V diag(clip(psi, [0, 1])) V^-1 makes X oversmooth (our reading of the smoothing "
    "reparameterisation of v3, whose text says 'influences').",
    latex=r"\lambda_j^H \in [0,1]\ \forall j \implies \mathrm{HFC}/\mathrm{LFC} \to 0",
    source="arXiv 2401.04301 v3, reparameterisation (public summary), our reading",
    wording="our reading of a public summary; the paper says 'influences', and a theorem of it on "
    "this clip was not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.EIGENBASIS_H, _CLIPPED),
    title="psi <= 0 everywhere",
    at=((J2, _H, _X0),),
    steps=(_constant,),
    repaired_by="T2d",
    further="One eigenvalue in (0, 1] beside zeros suffices: q >= 0 < p smooths (T2d).",
    formal=by.Formal("Refutations.v3_clip_smoothing", (1,)),
)
