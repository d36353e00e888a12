"""T2d: the verdict for real spectra in closed form, from min h, max h and min spec(A) alone."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.certificates.certified_radii import certified_dominance
from oversmoothing.theory.claims.t2.d_real_sizes import closed_form_at_real_size
from oversmoothing.theory.numbers.rational import to_float
from oversmoothing.theory.proofs.kit import Claim, by, draw, given, spectra, verdict
from oversmoothing.theory.verdict.dominance import real_verdict


def _corners(name: str, case: str, then: str, at: str, covers: tuple[int, ...]) -> by.ForAllReals:
    """On q <= p and a; q < t for t = min(-2/(1+a), -2-ap) is multiplied out on both sides."""
    hypotheses = (by.EIGENVALUE, "q <= p", case)
    return by.for_all(name, given=hypotheses, then=then, at=at, covers=covers, where=by.CORNERS)


_QUERIES = (
    _corners(
        "Q8: p > 0 smooths iff p > aq or q(1+a) < -2, and ties iff q(1+a) >= -2 and p = aq, or "
        "q(1+a) = -2 and p <= aq",
        case="p > 0",
        then="Iff(SMOOTHING, p > a*q or q*(1+a) < -2) and Iff(TIE, (q*(1+a) >= -2 and p == a*q) "
        "or (q*(1+a) == -2 and p <= a*q))",
        at="q=-4, p=1, a=-3/4",
        covers=(1,),
    )
    .unless("some h > 0 always smooths", then="SMOOTHING", at="q=-4, p=1, a=-3/4")
    .unless(
        "q(1+a) = -2 alone ties", then="Iff(TIE, p == a*q or q*(1+a) == -2)", at="q=-4, p=3, a=-1/2"
    ),
    _corners(
        "Q9: p = 0 smooths iff q < -2 and q(1+a) < -2, and is non-smoothing iff a < 0, q < 0 and "
        "q(1+a) > -2",
        case="p == 0",
        then="Iff(SMOOTHING, q < -2 and q*(1+a) < -2) and "
        "Iff(NON_SMOOTHING, a < 0 and q < 0 and q*(1+a) > -2)",
        at="q=-3, p=0, a=1/2",
        covers=(2,),
    )
    .unless("q < -2 suffices", then="Iff(SMOOTHING, q < -2)", at="q=-3, p=0, a=-1/2")
    .unless(
        "whatever the sign of a",
        then="Iff(NON_SMOOTHING, q < 0 and q*(1+a) > -2)",
        at="q=-1, p=0, a=1/2",
    ),
    _corners(
        "Q10: p < 0 is non-smoothing iff q > min(-2/(1+a), -2-ap)",
        case="p < 0",
        then="Iff(NON_SMOOTHING, q*(1+a) > -2 or q > -2 - a*p)",
        at="q=-6/5, p=-1/2, a=1/2",
        covers=(3,),
    ).unless("iff q > -2/(1+a)", then="Iff(NON_SMOOTHING, q*(1+a) > -2)", at="q=-3/2, p=-1, a=3/8"),
    _corners(
        "Q10s: p < 0 smooths iff q < min(-2/(1+a), -2-ap)",
        case="p < 0",
        then="Iff(SMOOTHING, q*(1+a) < -2 and q < -2 - a*p)",
        at="q=-3, p=-1, a=1/2",
        covers=(3,),
    ).unless(
        "max for min", then="Iff(SMOOTHING, q*(1+a) < -2 or q < -2 - a*p)", at="q=-3/2, p=-1, a=3/8"
    ),
    _corners(
        "Q11: all h in [-1, 0) is non-smoothing for every a",
        case="-1 <= q; p < 0",
        then="NON_SMOOTHING",
        at="q=-1, p=-1/2, a=1/2",
        covers=(4,),
    )
    .unless("[-1, 0] closed", without="p < 0", given="p <= 0", at="q=-1, p=0, a=1/2")
    .unless("[-3/2, 0)", without="-1 <= q", given="-3/2 <= q", at="q=-4/3, p=-4/3, a=1/2"),
    _corners(
        "Q12: some h > 0 smooths if a >= 0 or all h >= 0",
        case="p > 0; a >= 0 or q >= 0",
        then="SMOOTHING",
        at="q=-4, p=1, a=0",
        covers=(5,),
    ).unless(
        "a > -1/2 suffices",
        without="a >= 0 or q >= 0",
        given="a > -1/2 or q >= 0",
        at="q=-3, p=1, a=-2/5",
    ),
)


def _law(h_values: list[Fraction], a_values: list[Fraction]) -> None:
    closed = real_verdict(min(h_values), max(h_values), min(a_values))
    assert closed == spectra.by_moduli(h_values, a_values)


def _boundary_law(a: Fraction, p: Fraction, side: int) -> None:
    """Every boundary of the closed form, and both its sides."""
    shift = Fraction(side, 1000)
    for q in (-2 / (1 + a) + shift, -2 - a * p + shift, *([p / a + shift] if a else [])):
        if q <= p:
            assert real_verdict(q, p, a) == spectra.by_moduli([q, p], [a])


def _matrix_law(attention: draw.Known, value: draw.Known) -> None:
    (A, a_values), (H, h_values) = attention, value
    closed = real_verdict(min(h_values), max(h_values), min(a_values))
    assert verdict(A=A, H=H).verdict == closed


@st.composite
def _dyadic_attention(pick: st.DrawFn) -> draw.Known:
    """Walsh attention in multiples of 2^-12, exact in binary64, and its eigenvalues but one 1."""
    n = pick(st.sampled_from([2, 4, 8]))
    counts = pick(draw.lists(st.integers(1, 2**12 // n), n - 1))
    return draw.walsh([Fraction(k, 2**12) for k in (*counts, 2**12 - sum(counts))])


@st.composite
def _dyadic_value(pick: st.DrawFn) -> draw.Known:
    """H with Jordan blocks at multiples of 2^-10, clustered at will, exact in binary64."""
    centre = pick(st.integers(-4096, 3072))
    values = pick(
        draw.lists(st.one_of(st.integers(-4096, 3072), st.integers(centre - 2, centre + 2)), 1, 3)
    )
    blocks = [(Fraction(k, 1024), pick(st.integers(1, 2))) for k in values]
    return pick(draw.with_jordan_blocks(blocks)), [value for value, _ in blocks]


def _certificate_law(attention: draw.Known, value: draw.Known) -> None:
    """Spectra chosen, matrices in exact floats: certified means right, or nothing is claimed."""
    (A, a_values), (H, h_values) = attention, value
    found = certified_dominance(to_float(A), to_float(H))
    truth = real_verdict(min(h_values), max(h_values), min(a_values))
    assert found.verdict in (truth, "UNDECIDED")


CLAIM = Claim(
    name="T2d",
    clauses=(
        "Real spectra, q = min h_j, p = max h_j, a = min spec(A). p > 0: SMOOTHING iff p > aq or"
        " q(1+a) < -2; TIE iff (q(1+a) >= -2 and p = aq) or (q(1+a) = -2 and p <= aq); else "
        "NON_SMOOTHING.",
        "p = 0: SMOOTHING iff q < -2 and q(1+a) < -2; NON_SMOOTHING iff a < 0, q < 0, q(1+a) > "
        "-2; else TIE.",
        "p < 0: with t = min(-2/(1+a), -2-ap), SMOOTHING iff q < t, TIE iff q = t, NON_SMOOTHING"
        " iff q > t.",
        "So (i) all h in [-1, 0) is NON_SMOOTHING for every A,",
        "and (iii) some h > 0 smooths iff p > aq or q(1+a) < -2, in particular if a >= 0 or all "
        "h >= 0, but not always.",
    ),
    latex=r"p>0:\ \rho_C>\rho_Q \iff p>aq \ \lor\ q(1+a)<-2;\qquad "
    r"p<0:\ \rho_C>\rho_Q \iff q<\min\big(-\tfrac{2}{1+a},\,-2-ap\big)",
    source="ours, repairing Theorems 1-3 of arXiv 2401.04301",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H),
    evidence=(
        by.Formal("T2_real.T2d", (1, 2, 3, 5)),
        by.Formal("T2_real.T2d_universal", (4,)),
        by.Formal("T2_real.T2d_some_positive", (5,)),
        by.Formal("T2_real.T2d_not_always", (5,)),
        by.written(
            "four corners", "[1, 2, 3, 4, 5] rho_C and rho_Q compare as their corners do (T2c)."
        ),
        *_QUERIES,
        by.searched(
            "closed form against all pairs", _law, draw.real_spectra(), draw.attention_spectra()
        ),
        by.searched(
            "on the boundaries and beside them",
            _boundary_law,
            draw.inside(-1, 1),
            draw.fractions(-4, 3),
            st.sampled_from([-1, 0, 1]),
            at=lambda a, p, side: given.two_tokens(a, p),
        ),
        by.searched(
            "closed form against the exact verdict on matrices",
            _matrix_law,
            draw.walsh_attention(),
            draw.value_projections(3),
            at=lambda attention, value: (attention[0], value[0]),
        ),
        by.searched(
            "the float64 certificate against the closed form",
            _certificate_law,
            _dyadic_attention(),
            _dyadic_value(),
            at=lambda attention, value: (attention[0], value[0]),
        ),
        by.Certified("n = 197, d = 64 and a head of width 768", closed_form_at_real_size),
    ),
    further="Complex spectra need the whole convex hull of spec(A) (T3).",
)
