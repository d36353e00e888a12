"""T2b: for a single real h, consensus loses exactly on (-2/(1+a), 0)."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, given, spectra, verdict
from oversmoothing.theory.verdict.dominance import real_verdict, threshold


def _law(h: Fraction, second: list[Fraction]) -> None:
    (a,) = second
    expected = "NON_SMOOTHING" if threshold(a) < h < 0 else "SMOOTHING"
    expected = "TIE" if h in (0, threshold(a)) else expected
    assert real_verdict(h, h, a) == expected == spectra.by_moduli([h], [a])


def _matrix_law(attention: tuple[Matrix, Fraction], h: Fraction) -> None:
    A, a = attention
    assert verdict(A=A, H=[[h]]).verdict == real_verdict(h, h, a)
    assert verdict(A=A, H=[[threshold(a)]]).verdict == "TIE"


_QUERIES = (
    by.for_all(
        "Q1: (1+h)^2 - (1+ha)^2 = h (1-a) (2 + h(1+a))",
        then="(1+h)**2 - (1+h*a)**2 == h*(1-a)*(2+h*(1+a))",
        at="h=1, a=0",
        covers=(1,),
    ).unless("1-a for 1+a in the last factor", then="(1+h)**2 - (1+h*a)**2 == h*(1-a)*(2+h*(1-a))"),
    by.for_all(
        "Q5: consensus loses strictly iff -2/(1+a) < h < 0",
        given=by.EIGENVALUE,
        then="Iff((1+h)**2 < (1+h*a)**2, h < 0 and h*(1+a) > -2)",
        at="h=-1, a=1/2",
        covers=(2,),
    ).unless(
        "the interval reaches to -2 for every a",
        then="Iff((1+h)**2 < (1+h*a)**2, h < 0 and h > -2)",
    ),
    by.for_all(
        "Q5t: tie iff h = 0 or h = -2/(1+a)",
        given=by.EIGENVALUE,
        then="Iff((1+h)**2 == (1+h*a)**2, h == 0 or h*(1+a) == -2)",
        at="h=0, a=0",
        covers=(2,),
    ).unless("only h = 0 ties", then="Iff((1+h)**2 == (1+h*a)**2, h == 0)", at="h=-4/3, a=1/2"),
    by.for_all(
        "Q6: h in [-1, 0) loses at consensus for every a in (-1, 1)",
        given=(by.EIGENVALUE, "-1 <= h; h < 0"),
        then="(1+h)**2 < (1+h*a)**2",
        at="h=-1/2, a=0",
        covers=(3,),
    )
    .unless("[-1, 0] closed", without="h < 0", given="h <= 0", at="h=0, a=1/2")
    .unless("[-3/2, 0)", without="-1 <= h", given="-3/2 <= h", at="h=-4/3, a=1/2"),
    by.for_all(
        "Q6b: h < -1 wins at consensus for a = -1/h, an eigenvalue in (0, 1)",
        given="h < -1; a*h == -1",
        then="0 < a < 1 and (1+h*a)**2 < (1+h)**2",
        at="h=-2, a=1/2",
        covers=(4,),
    ).unless("h < -1/2", without="h < -1", given="h < -1/2", at="h=-1, a=1"),
)

CLAIM = Claim(
    name="T2b",
    clauses=(
        "For a single real h and a = min spec(A) in (-1, 1): (1+h)^2 - (1+ha)^2 = h (1-a) (2 + "
        "h(1+a)),",
        "so consensus wins strictly iff h > 0 or h < -2/(1+a), ties iff h = 0 or h = -2/(1+a), "
        "and loses strictly iff -2/(1+a) < h < 0.",
        "The threshold -2/(1+a) is below -1: -1 itself is safe for every A,",
        "and every h < -1 smooths for some A.",
    ),
    latex=r"|1+h| < |1+ha| \iff -\tfrac{2}{1+a} < h < 0",
    source="ours, repairing the control statement of arXiv 2401.04301 v3",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H, given.ONE_VALUE),
    evidence=(
        by.Formal("T2_real.identity", (1,)),
        by.Formal("T2_real.one_value_smooths", (2,)),
        by.Formal("T2_real.one_value_ties", (2,)),
        by.Formal("T2_real.one_value_keeps", (2,)),
        by.Formal("T2_real.minus_one_is_safe", (3,)),
        by.Formal("T2_real.two_tokens_attention", (4,)),
        by.Formal("T2_real.below_minus_one_smooths", (4,)),
        *_QUERIES,
        by.written(
            "an A for every a",
            "[4] The positive symmetric A of two tokens with A_12 = (1-a)/2 has the eigenvalue a.",
        ),
        by.searched(
            "closed form against squares",
            _law,
            draw.fractions(-6, 3),
            draw.attention_spectra(1, 1),
            at=lambda h, second: given.two_tokens(second[0], h),
        ),
        by.searched(
            "closed form against the exact verdict on matrices",
            _matrix_law,
            draw.two_token_attention(),
            draw.fractions(-6, 3),
            at=lambda attention, h: (attention[0], [[h]]),
        ),
    ),
)
