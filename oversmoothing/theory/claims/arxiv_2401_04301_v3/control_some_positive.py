"""'Some lambda_H > 0, so it oversmooths': a large negative eigenvalue can win."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, ratio_is
from oversmoothing.theory.proofs.kit import by, equal, exact, given, spectra

_SOME = given.Hypothesis(
    "some eigenvalue of H is > 0",
    lambda case: spectra.has_value(case.H, lambda h: h > 0),
    (given.case(H="0"), given.case(H="-1")),
)

# The smallest integers with quarters in A; [[1/3, 2/3], [2/3, 1/3]] with diag(1/2, -2) also does.
_A, _H = exact.matrix("1/4 3/4; 3/4 1/4"), exact.matrix("1 0; 0 -3")
_X0 = exact.matrix("1 0; 1 2")
_HIGH = sp.Rational(5, 2) ** L
_STATE = sp.Matrix([[2**L, (-2) ** L - _HIGH], [2**L, (-2) ** L + _HIGH]])


def _multipliers() -> None:
    """A has eigenvalues 1 and -1/2: consensus is multiplied by 2 and -2, differences by 1/2 and
    5/2. The largest is 5/2."""
    equal(spectra.values(_A), [Fraction(-1, 2), Fraction(1)])
    equal(spectra.values(_H), [-3, 1])
    equal(
        [(1 + h, 1 + h * spectra.values(_A)[0]) for h in (1, -3)],
        [(2, Fraction(1, 2)), (-2, Fraction(5, 2))],
    )


def _grows() -> None:
    """X_L has columns 2^L (1, 1) and (-2)^L (1, 1) + (5/2)^L (-1, 1), by induction: (HFC/LFC)^2 =
    (25/16)^L / 2 diverges."""
    induction(_A, _H, _X0, _STATE)
    ratio_is(_STATE, sp.Rational(25, 16) ** L / 2)


CLAIM = by.refuted(
    name="P-2401.04301v3-control-some-positive",
    statement="Some lambda_j^H > 0 suffices for oversmoothing (a reading of 'lambda^H in (0, inf) "
    "=> lambda_n^A dominates', ours, not the paper's own words).",
    latex=r"\exists j: \lambda_j^H > 0 \implies \mathrm{HFC}/\mathrm{LFC} \to 0",
    source="arXiv 2401.04301, control of the spectrum, our reading",
    wording="our reading, without the paper's hypothesis that every lambda_j^H lies in (0, inf) (a "
    "public summary), which the counterexample violates: P-2401.04301v3-control-positive holds",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H, _SOME),
    title="1 beside -3",
    at=((_A, _H, _X0),),
    steps=(_multipliers, _grows),
    repaired_by="T2d",
    formal=by.Formal("Refutations.v3_some_positive", (1,)),
)
