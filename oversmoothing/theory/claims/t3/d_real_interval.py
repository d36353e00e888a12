"""T3d: a real h in [-1, 0) loses at consensus to every mode, whatever the complex spectrum."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, given, spectra
from oversmoothing.theory.verdict.exact_comparison import Mode, compare

EVERY_MODE = (
    by.for_all(
        "Q15: h in [-1, 0), |a| < 1: |1+h| < |1+ha|",
        given="u*u + v*v < 1; -1 <= h; h < 0",
        then="(1+h)**2 < (1+h*u)**2 + (h*v)**2",
        at="h=-1, u=0, v=1/2",
        covers=(1, 2),
    )
    .unless("[-1, 0] closed", without="h < 0", given="h <= 0", at="h=0, u=0, v=1/2")
    .unless("[-11/10, 0)", without="-1 <= h", given="-11/10 <= h", at="h=-11/10, u=9/10, v=0")
)


def _law(h: Fraction, a: spectra.Gaussian) -> None:
    assert spectra.squared_modulus(h, a) > spectra.squared_modulus(h, 1)


def _matrix_law(A: Matrix, h: Fraction) -> None:
    value = spectra.spectrum([[h]])[0]
    for a in spectra.attention_values(A):
        assert compare(Mode(a, value), Mode(None, value))[0] == 1


_INTERVAL = draw.fractions(-1, 0).filter(bool)

CLAIM = Claim(
    name="T3d",
    clauses=(
        "For real h in [-1, 0) and every complex |a| < 1: |1+ha| >= 1 - |h||a| > 1 - |h| = |1+h|.",
        "Every non-consensus mode beats consensus, not only the one of smallest eigenvalue.",
    ),
    latex=r"h\in[-1,0),\ |a|<1 \implies |1+ha|\ge 1-|h||a|>|1+h|",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.HALF_OPEN),
    evidence=(
        by.Formal("T3_matrix.T3d_chain", (1,)),
        by.Formal("Control.beats", (2,)),
        EVERY_MODE,
        by.for_all(
            "|1+ha| >= 1 - |h||a|, as squares",
            given="u*u + v*v == r*r; 0 <= r; r < 1; -1 <= h; h < 0",
            then="(1+h*u)**2 + (h*v)**2 >= (1+h*r)**2 and 1 + h*r > 1 + h",
            at="h=-1, u=0, v=1/2, r=1/2",
            covers=(1,),
        ).unless("any h", without="-1 <= h; h < 0", at="h=1, u=0, v=0, r=0"),
        by.searched("in fractions", _law, _INTERVAL, draw.gaussian_disc()),
        by.searched(
            "every exact eigenvalue of a positive A",
            _matrix_law,
            draw.attention(2, 4),
            _INTERVAL,
            at=lambda A, h: (A, [[h]]),
        ),
    ),
)
