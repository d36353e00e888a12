"""Thm 1 read for every softmax A: a third kind of eigenvalue can dominate."""

from fractions import Fraction

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.proofs.kit import by, equal, exact, given
from oversmoothing.theory.verdict.exact_comparison import exact_dominance

# Smallest over positive circulants of 4 tokens (denominators 4..10) and h = x + iy in halves, by
# exhaustive search; three tokens cannot do it (both non-consensus eigenvalues share a real part).
_A = exact.matrix("1/5 1/5 1/5 2/5; 2/5 1/5 1/5 1/5; 1/5 2/5 1/5 1/5; 1/5 1/5 2/5 1/5")
_H = exact.matrix("-1/2 -1; 1 -1/2")


def _modulus(re: Fraction, im: Fraction) -> Fraction:
    """|1 + h a|^2 for h = -1/2 + i and a = re + i im."""
    x, y = Fraction(-1, 2) * re - im, Fraction(-1, 2) * im + re
    return (1 + x) ** 2 + y**2


def _spectrum() -> None:
    """The eigenvalues of A are 1, -1/5 and +- i/5 (vectors (1, -1, 1, -1) and (1, +-i, -1, -+i));
    those of H are -1/2 +- i."""
    # H = -1/2 + i as a real matrix: (H + 1/2)^2 = -1.
    shifted = exact.plus(_H, exact.identity(2, "1/2"))
    equal(exact.product(shifted, shifted), exact.identity(2, -1))
    for value, vector in (("-1/5", exact.column("1 -1 1 -1")), ("1", exact.column("1 1 1 1"))):
        equal(exact.product(_A, vector), exact.scaled(value, vector))
    # v = p + iq = (1, i, -1, -i): A v = -i v/5 = q/5 - i p/5.
    p, q = exact.column("1 0 -1 0"), exact.column("0 1 0 -1")
    equal(
        (exact.product(_A, p), exact.product(_A, q)),
        (exact.scaled("1/5", q), exact.scaled("-1/5", p)),
    )


def _moduli() -> None:
    """For h = -1/2 + i: |1 + h|^2 = 5/4, |1 - h/5|^2 = 5/4, |1 - ih/5|^2 = 29/20, |1 + ih/5|^2 =
    13/20."""
    fifth, zero = Fraction(1, 5), Fraction(0)
    equal(_modulus(Fraction(1), zero), Fraction(5, 4))
    equal(_modulus(-fifth, zero), Fraction(5, 4))
    equal(_modulus(zero, -fifth), Fraction(29, 20))
    equal(_modulus(zero, fifth), Fraction(13, 20))


def _decided() -> None:
    """So a = -i/5 (with its conjugate partner) dominates: not 1, and not -1/5, the smallest real
    part. Decided independently by the exact dominance of all pairs."""
    found = exact_dominance(_A, _H)
    equal(found.comparison, -1)
    with at_precision(128):
        for mode in found.quotient:
            assert mode.attention is not None
            assert not mode.attention.is_real, "the dominant a is real"
            assert mode.attention.ball(128).real > -0.1, "a = -1/5"


CLAIM = by.refuted(
    name="P-2401.04301v1-thm1-complex",
    statement="Thm 1 for every softmax A, with lambda_1^A the eigenvalue of smallest real part "
    "(our reading: what the ordering becomes when eigenvalues are complex): the eigenvalue of I + "
    "H (x) A of largest modulus is of the form 1 + lambda_j^H lambda_n^A or 1 + lambda_j^H "
    "lambda_1^A.",
    latex=r"\arg\max_{i,j}|1+\lambda_j^H\lambda_i^A| \in \{(n,j),(1,j)\},\ "
    r"\mathrm{Re}\,\lambda_1^A\le\dots\le\mathrm{Re}\,\lambda_n^A",
    source="arXiv 2401.04301 v1, Thm 1, our reading for complex spectra",
    wording="our reading, without the real, sorted eigenvalues of A that the paper takes (poster) "
    "and the counterexample has not: for real ones P-2401.04301v1-thm1 holds",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    title="another high-frequency mode dominates",
    at=((_A, _H),),
    steps=(_spectrum, _moduli, _decided),
    repaired_by="T3a",
    further="The candidates are the vertices of the convex hull of spec(A), farthest from -1/h.",
)
