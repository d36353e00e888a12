"""[-1, 0) for every X_0: two features of a special state smooth each other's ratio."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, ratio_is
from oversmoothing.theory.proofs.kit import AA, by, exact, given

# d = 1 cannot do it (T7b); all in quarters, X_0 of ones.
_H, _X0 = exact.matrix("-1/4 0; 0 -1"), exact.matrix("1 1; 1 -1")
_LOW, _HIGH = sp.Rational(3, 4) ** L, sp.Rational(1, 2) ** L
_STATE = sp.Matrix([[_LOW, _HIGH], [_LOW, -_HIGH]])


def _smooths() -> None:
    """Feature 1 is consensus, multiplied by 1 - 1/4 = 3/4; feature 2 is a multiple of (1, -1),
    eigenvalue 1/2 of A, multiplied by 1 - 1/2 = 1/2. So HFC/LFC = (2/3)^L, by induction."""
    induction(AA, _H, _X0, _STATE)
    ratio_is(_STATE, sp.Rational(4, 9) ** L)


CLAIM = by.refuted(
    name="P-2401.04301v3-control-every-state",
    statement="lambda_j^H in [-1, 0) for all j (or the clip to [-1, 0]) prevents oversmoothing for "
    "every X_0 with HFC and LFC not 0 (our reading: 'guarantees').",
    latex=r"\lambda_j^H \in [-1,0)\ \forall j \implies \mathrm{HFC}/\mathrm{LFC} \not\to 0 "
    r"\quad \forall X_0",
    source="arXiv 2401.04301, control of the spectrum, our reading of 'guarantees'",
    wording="our reading of 'guarantees'; which X_0 the paper leaves out was not at hand",
    hypotheses=(
        given.POSITIVE,
        given.TWO_TOKENS,
        given.REAL_A,
        given.EIGENBASIS_H,
        given.HALF_OPEN,
        given.BOTH_PARTS,
    ),
    title="one feature all mean, the other all difference",
    at=((AA, _H, _X0),),
    steps=(_smooths,),
    repaired_by="T2e",
    further="One feature: no genericity is needed (T7b-certificate).",
    formal=by.Formal("Refutations.v3_control_every_state", (1,)),
)
