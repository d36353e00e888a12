"""GRAFF's rule for high frequencies is the disc rule, where A has a negative eigenvalue."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, by, draw, given, spectra

_SIDE = "-1 < a; a < 0; q < 0; q <= p"


def _law(a_values: list[Fraction], h_values: list[Fraction], step: Fraction) -> None:
    """Fractions: rho = 1 - a_1, the rule in GRAFF's letters against all moduli."""
    rho, low, high = 1 - min(a_values), min(h_values), max(h_values)
    found = spectra.by_moduli([step * h for h in h_values], a_values)
    wanted = -low * (rho - 1) > high and step * -low * (2 - rho) < 2
    assert (found == "NON_SMOOTHING") == wanted
    other = -low * (rho - 1) < high or step * -low * (2 - rho) > 2
    assert (found == "SMOOTHING") == other


_SYMMETRIC = given.Hypothesis(
    "A and H are symmetric",
    lambda case: all([list(row) for row in zip(*M, strict=True)] == M for M in (case.A, case.H)),
    (given.case("1/2 1/2; 1/4 3/4"), given.case(H="0 1; 0 0")),
)

CLAIM = Claim(
    name="N-2206.10991-rule",
    clauses=(
        "X' = X + tau A X W, A and W symmetric, tau > 0, 1 - rho < 0 the smallest eigenvalue of A, "
        "rho < 2, l_- < 0 and l_+ the extreme eigenvalues of W. GRAFF's rule (recalled, our "
        "reading): high frequencies dominate if |l_-|(rho - 1) > l_+ and tau |l_-|(2 - rho) < 2. "
        "That is NON_SMOOTHING of T2d with a = 1 - rho, q = tau l_-, p = tau l_+: its second part "
        "says that q lies in the disc D(a) of T3b, its first that q beats p at a.",
        "SMOOTHING is |l_-|(rho - 1) < l_+ or tau |l_-|(2 - rho) > 2; with an equality and "
        "neither of these it is a TIE, which 'otherwise low frequencies' leaves out.",
        "For X_0 outside a null set the normalised energy tr(X^T (I - A) X)/||X||^2 tends to rho "
        "where the rule holds, and to 0 where SMOOTHING.",
    ),
    latex=r"|\lambda_-|(\rho-1)>\lambda_+,\ \tau|\lambda_-|(2-\rho)<2\iff \rho_C<\rho_Q,\quad "
    r"a_1=1-\rho\in(-1,0)",
    source="arXiv 2206.10991 (GRAFF), the rule from memory, our reading; for regular graphs A is "
    "row-stochastic",
    on_record=by.WRITTEN,
    hypotheses=(_SYMMETRIC, given.IRREDUCIBLE, given.TWO_TOKENS),
    evidence=(
        by.for_all(
            "the rule gives NON_SMOOTHING",
            given=(_SIDE, "p < q*a; q*(1+a) > -2"),
            then="NON_SMOOTHING",
            at="a=-1/2, q=-1, p=0",
            where=by.CORNERS,
            covers=(1,),
        ).unless("without its second part", without="q*(1+a) > -2"),
        by.for_all(
            "NON_SMOOTHING needs its first part",
            given=_SIDE,
            then="Implies(NON_SMOOTHING, p < q*a)",
            at="a=-1/2, q=-1, p=0",
            where=by.CORNERS,
            covers=(1,),
        ).unless("for a >= 0 too", without="a < 0", given="a < 1", at="a=1/2, q=-1, p=-1/10"),
        by.for_all(
            "and its second",
            given=_SIDE,
            then="Implies(NON_SMOOTHING, q*(1+a) > -2)",
            at="a=-1/2, q=-1, p=0",
            where=by.CORNERS,
            covers=(1,),
        ).unless("above -1", then="Implies(NON_SMOOTHING, q*(1+a) > -1)"),
        by.for_all(
            "SMOOTHING is the strict opposite of one part",
            given=_SIDE,
            then="Iff(SMOOTHING, p > q*a or q*(1+a) < -2)",
            at="a=-1/2, q=-1, p=1",
            where=by.CORNERS,
            covers=(2,),
        ).unless("at equality too", then="Iff(SMOOTHING, p >= q*a or q*(1+a) <= -2)"),
        by.written(
            "in GRAFF's letters",
            "[1, 2] q a = tau |l_-|(rho - 1), p = tau l_+, q(1 + a) = -tau |l_-|(2 - rho); the "
            "queries compare |1 + h a_i| at the corners, which decide by T2c. q in D(a) is -2/(1 + "
            "a) < q < 0 (T3b).",
            "[3] |1 + h a|^2 is strictly convex in a for h != 0, so the dominant pairs have a = 1 "
            "or a = a_1, and rho_C < rho_Q leaves a_1 alone (1 alone where rho_C > rho_Q). A and W "
            "are diagonalisable: X_L/||X_L|| approaches the states with A X = a_1 X (A X = X), "
            "whose energy is 1 - a_1 = rho (0).",
        ),
        by.searched(
            "spectra in fractions",
            _law,
            draw.lists(draw.inside(-1, 1), 0, 3).flatmap(
                lambda rest: draw.inside(-1, 0).map(lambda a: [a, *rest])
            ),
            draw.lists(draw.fractions(-4, 3), 0, 3).flatmap(
                lambda rest: draw.inside(-5, 0).map(lambda h: [h, *rest])
            ),
            draw.inside(0, 3),
        ),
    ),
    further="For a_1 >= 0 the rule is another one: N-2206.10991-attention.",
)
