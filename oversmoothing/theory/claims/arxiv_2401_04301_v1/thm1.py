"""Thm 1 of arXiv 2401.04301: the dominating eigenvalue belongs to one end of the spectrum of A."""

from fractions import Fraction

from oversmoothing.theory.claims.lemmas import SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, by, draw, given


def _law(spectrum: list[Fraction], x: Fraction, y: Fraction) -> None:
    moduli = {a: (1 + x * a) ** 2 + (y * a) ** 2 for a in [*spectrum, Fraction(1)]}
    assert max(moduli.values()) == max(moduli[Fraction(1)], moduli[min(moduli)])


CLAIM = Claim(
    name="P-2401.04301v1-thm1",
    clauses=(
        "Thm 1 (v1, poster; substance from public reviews, the case list is not known): with "
        "lambda_1^A <= ... <= lambda_n^A = 1, the eigenvalue of I + H (x) A of largest modulus "
        "(or each value of a tie) can be taken of the form 1 + lambda_j^H lambda_n^A or 1 + "
        "lambda_j^H lambda_1^A. It holds whenever the eigenvalues of A are real, for any H, "
        "complex spectrum included; that they are is a hypothesis of the ordering, not a "
        "consequence of softmax.",
    ),
    latex=r"\max_{i,j}|1+\lambda_j^H\lambda_i^A| = \max_j\max\{|1+\lambda_j^H\lambda_1^A|, "
    r"|1+\lambda_j^H\lambda_n^A|\}",
    source="arXiv 2401.04301 v1, Thm 1 (poster, public reviews)",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A),
    evidence=(
        by.Formal("Farthest.v1_thm1", (1,)),
        by.written(
            "from the pairs to the ends",
            SPECTRUM.covering(1),
            "[1] For each j, |1 + h_j t|^2 is convex in t, so over the points of spec(A) in "
            "[lambda_1, 1] it is largest at lambda_1 or at 1 (the query below).",
            "[1] The maximum over j of these maxima is the maximum over all pairs.",
        ),
        by.for_all(
            "|1 + h t| for complex h = x + iy is largest at an end of [a, 1]",
            given="a <= t; t <= 1",
            then="inside <= at_a or inside <= at_1",
            at="x=-1, y=1, t=0, a=-1/2",
            where={
                "inside": "(1+x*t)**2 + (y*t)**2",
                "at_a": "(1+x*a)**2 + (y*a)**2",
                "at_1": "(1+x)**2 + y**2",
            },
            covers=(1,),
        ).unless("only the end a", then="inside <= at_a"),
        by.searched(
            "pairs against ends, in fractions",
            _law,
            draw.attention_spectra(1, 5),
            draw.fractions(-4, 3),
            draw.fractions(-3, 3),
        ),
    ),
    further="Complex eigenvalues of A: P-2401.04301v1-thm1-complex, and T3a for what holds "
    "instead.",
)
