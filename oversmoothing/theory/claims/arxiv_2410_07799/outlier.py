"""The outlying singular value of random attention, and what is left without 11^T/n."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.claims.binary_softmax import squared_frobenius
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given


def _law(A: Matrix) -> None:
    """Spectrum and norm of A - J; ||A 1|| = ||1||."""
    n = len(A)
    rest = exact.plus(A, exact.uniform(n), -1)
    equal(squared_frobenius(rest), squared_frobenius(A) - 1)
    assert squared_frobenius(rest) <= n * max(map(max, A)) - 1
    quotient = rational_quotient(A)
    expected = exact.characteristic(quotient) if quotient else exact.characteristic([[Fraction(0)]])
    found = exact.characteristic(rest)
    zero = exact.characteristic([[Fraction(0)]])
    equal(found, expected * zero if quotient else zero)


def _moment() -> sp.Expr:
    """[2; general] n^2 E p^2 - 1 for p of a Dirichlet row, E p^2 = (a+1)/(n (n a + 1)), is (n -
    1)/(n a + 1)."""
    n, a = sp.symbols("n a", positive=True)
    return n**2 * (a + 1) / (n * (n * a + 1)) - 1 - (n - 1) / (n * a + 1)


CLAIM = Claim(
    name="N-2410.07799-outlier",
    clauses=(
        "A row-stochastic, n x n, J = 11^T/n: ||A||_2 >= 1; the second singular value of A is at "
        "most ||A - J||_2; ||A - J||_F^2 = ||A||_F^2 - 1 <= n m - 1, m the largest entry of A; "
        "and A - J has the eigenvalues of A with one 1 replaced by 0.",
        "Rows with the Dirichlet distribution of parameters (a, ..., a), the softmax of logits "
        "whose exponentials are independent Gamma(a), dependent on each other or not: E ||A - "
        "J||_F^2 = (n-1)/(n a + 1) < 1/a. So the root mean square of the n singular values of A - "
        "J is below 1/sqrt(a n) in expectation of the square, beside one singular value of A >= "
        "1. (A gap between the two largest singular values: abstract, our reading. The largest of "
        "the bulk is not bounded here.)",
        "So the stable rank of A, ||A||_F^2/||A||_2^2, has an expectation below 1 + 1/a for every "
        "n: rank collapse in width.",
    ),
    latex=r"\mathbb E\|A-J\|_F^2=\frac{n-1}{na+1}<\frac1a,\qquad \|A\|_2\ge1",
    source="arXiv 2410.07799, random attention (abstract), our reading with Dirichlet rows",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written(
            "Weyl, and second moments",
            "[1] A 1 = 1. J has rank 1, so s_2(A) <= s_1(A - J) (Weyl). <A, J> = 1^T A 1/n = 1 = "
            "||J||_F^2; ||A||_F^2 <= n m since rows sum to 1. (A - J) 1 = 0, and on the quotient "
            "by 1 it is A, since J maps into span(1): T1c.",
            "[2] Gamma variables divided by their sum are Dirichlet, with E p^2 = a (a+1)/(n a (n "
            "a + 1)); n^2 entries, then clause 1.",
            _moment,
            "[3] ||A||_2 >= 1, so the stable rank is at most ||A||_F^2 = 1 + ||A - J||_F^2.",
        ),
        by.for_all(
            "below 1/a", given="n >= 1; a > 0", then="(n-1)*a < n*a + 1", at="n=2, a=1", covers=(2,)
        ).unless("a negative", without="a > 0"),
        by.searched(
            "norms and characteristic polynomials in fractions",
            _law,
            draw.attention(1, 5, zeros=True),
            at=given.of_attention,
        ),
    ),
    further="A sink keeps an outlier in A - J: N-2410.07799-sink. In a layer with residual: "
    "N-2410.07799-removal.",
)
