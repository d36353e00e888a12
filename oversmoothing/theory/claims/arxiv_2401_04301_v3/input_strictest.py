"""Input convergence as 'the strictest notion': states that vanish converge and do not align."""

import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, induction, symbolic
from oversmoothing.theory.proofs.kit import AA, by, equal, exact, given, spectra

_VANISH = given.Hypothesis(
    "input convergence, x_i - x_k -> 0 for generic X_0: |1 + h a| < 1 for every a != 1",
    lambda case: all(
        abs(1 + h * a) < 1 for a in spectra.values(case.A)[:-1] for h in spectra.values(case.H)
    ),
    (given.case(),),
)
_H, _X0 = exact.matrix("-1"), exact.column("1 -1")
_STATE = sp.Rational(1, 2) ** L * sp.Matrix([1, -1])
# Three tokens: A = I/2 + 11^T/6 keeps every X_0 without a mean, up to a factor 1/2 a layer.
_A3, _H2, _TRIANGLE = exact.flat("1/2", 3), exact.identity(2, -1), exact.matrix("1 0; 0 1; -1 -1")
_STATE3 = sp.Rational(1, 2) ** L * symbolic(_TRIANGLE)


def _angle() -> None:
    """X_L = 2^-L (1, -1): differences vanish, while the cosine is -1 in every layer."""
    induction(AA, _H, _X0, _STATE)
    equal(sp.limit(_STATE[0] - _STATE[1], L, sp.oo), 0)
    equal(sp.simplify(_STATE[0] * _STATE[1] / sp.Rational(1, 4) ** L), -1)


def _rank() -> None:
    """Rank: A = I/2 + 1 1^T/6 (n = 3), H = -I, X_0 = [[1, 0], [0, 1], [-1, -1]] give X_L = 2^-L
    X_0, of rank 2 in every layer."""
    induction(_A3, _H2, _TRIANGLE, _STATE3)
    equal([sp.limit(x, L, sp.oo) for x in _STATE3], [0] * 6)
    equal((_STATE3 * 2**L).applyfunc(sp.simplify).rank(), 2)


CLAIM = by.refuted(
    name="P-2401.04301v3-input-strictest",
    statement="Input convergence (x_i - x_k -> 0 for all i, k) is the strictest of the three "
    "notions: it implies angle convergence and rank collapse (v3; the names are the paper's, "
    "definitions and order our reading of a public summary).",
    latex=r"\|x_i-x_k\|\to 0 \implies \cos(x_i,x_k)\to 1,\ \sigma_2/\sigma_1\to 0",
    source="arXiv 2401.04301 v3, three notions of oversmoothing (public summary), our reading",
    wording="our reading of a public summary; the paper's definitions of the three notions were "
    "not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H, _VANISH),
    title="everything shrinks, nothing aligns",
    at=((AA, _H, _X0), (_A3, _H2, _TRIANGLE)),
    steps=(_angle, _rank),
    repaired_by="T4f",
    further="Relative input convergence, ||x_i - x_k|| / max ||x_j|| -> 0, is HFC/LFC -> 0 and "
    "does imply both (P-2401.04301v3-notions). Every H with spectrum in [-1, 0) and A with "
    "spectrum in (0, 1] has input convergence without smoothing.",
    formal=by.Formal("Refutations.v3_input_strictest", (1,)),
)
