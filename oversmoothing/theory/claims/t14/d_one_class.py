"""T14d: one closed class is enough where the sign of h decides; positivity is not needed."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict

_CYCLE = exact.matrix("0 1 0; 0 0 1; 1 0 0")


def _off_one() -> None:
    """[1, 2, 3; instance] One closed class: 1 is a simple eigenvalue (T14a), every other a has |a|
    <= 1 and a != 1, hence Re a < 1. Periodic attention has such a on the circle itself."""
    # The cycle has a = 1 and the two other cube roots of 1.
    assert verdict(A=_CYCLE, H=exact.matrix("1/2")).verdict == "SMOOTHING"
    assert verdict(A=_CYCLE, H=exact.matrix("-1/2")).verdict == "NON_SMOOTHING"
    causal = exact.matrix("1 0; 1/1000000000000 999999999999/1000000000000")
    assert verdict(A=causal, H=exact.matrix("1/2")).verdict == "SMOOTHING"


def _law(A: Matrix, h: Fraction) -> None:
    found = verdict(A=A, H=[[h]])
    if h > 0:
        assert found.verdict == "SMOOTHING"
    elif -1 <= h < 0:
        assert found.verdict == "NON_SMOOTHING"


CLAIM = Claim(
    name="T14d",
    clauses=(
        "Let A be row-stochastic with exactly one closed class, n >= 2 (causal, periodic and "
        "saturated attention included), and every h real. All h in [-1, 0): NON_SMOOTHING.",
        "All h > 0: SMOOTHING;",
        "likewise where the largest h is positive and exceeds |h_j| for every h_j <= 0, however "
        "close another eigenvalue of A comes to 1 or to the unit circle.",
    ),
    latex=r"|a|\le 1,\ a\neq 1:\quad h>0\Rightarrow|1+ha|<1+h,\qquad "
    r"-1\le h<0\Rightarrow|1+ha|>1+h",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(
        given.ROW_STOCHASTIC,
        given.TWO_TOKENS,
        given.SIMPLE_ONE.said("A has one closed class of tokens"),
        given.REAL_H,
    ),
    evidence=(
        by.for_all(
            "Q30: h > 0, |a| <= 1, a != 1: |1+ha| < 1+h",
            given="u*u + v*v <= 1; u < 1; h > 0",
            then="(1+h*u)**2 + (h*v)**2 < (1+h)**2",
            at="h=1, u=-1, v=0",
            covers=(2, 3),
        )
        .unless("a = 1 too", without="u < 1", at="h=1, u=1, v=0")
        .unless("h >= 0", without="h > 0", given="h >= 0", at="h=0, u=0, v=0"),
        by.for_all(
            "Q31: h in [-1, 0), |a| <= 1, a != 1: |1+ha| > 1+h",
            given="u*u + v*v <= 1; u < 1; -1 <= h; h < 0",
            then="(1+h*u)**2 + (h*v)**2 > (1+h)**2",
            at="h=-1, u=0, v=1",
            covers=(1,),
        )
        .unless("[-1, 0] closed", without="h < 0", given="h <= 0", at="h=0, u=0, v=0")
        .unless("[-3/2, 0)", without="-1 <= h", given="-3/2 <= h", at="h=-3/2, u=1/2, v=0"),
        by.for_all(
            "Q32: a smaller |g| never reaches 1+h",
            given="u*u + v*v <= 1; g*g < h*h; h > 0",
            then="(1+g*u)**2 + (g*v)**2 < (1+h)**2",
            at="h=2, g=-1, u=0, v=0",
            covers=(3,),
        ).unless("g = -h", without="g*g < h*h", given="g*g <= h*h", at="h=1, g=-1, u=-1, v=0"),
        by.written("eigenvalues off 1", _off_one),
        by.searched(
            "causal attention, exactly",
            _law,
            draw.causal_attention(4),
            draw.fractions(-2, 2, 8),
            at=lambda A, h: (A, [[h]]),
        ),
    ),
)
