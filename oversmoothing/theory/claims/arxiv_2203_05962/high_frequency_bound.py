"""How much one attention layer can raise or lower the high frequencies."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.binary_softmax import binary_softmax, squared_frobenius
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given


def _law(A: Matrix, H: Matrix, X: Matrix) -> None:
    """||A||_F^2 - ||J A||_F^2 = ||P A||_F^2 <= ||A||_F^2 - 1 <= n m - 1, and what it bounds."""
    n, most = len(A), max(map(max, A))
    high, low = exact.squared_norms(A)
    assert low >= 1 and squared_frobenius(A) == high + low <= n * most
    moved = exact.squared_norms(exact.product(A, X, exact.transposed(H)))[0]
    assert moved <= high * squared_frobenius(H) * exact.squared_norms(X)[0]


def _largest(L: list[list[int]]) -> None:
    """Logits in [-a, a], in units of ln 2: no entry exceeds k/(k + n - 1), k = e^(2a)."""
    n, a = len(L[0]), max(abs(entry) for row in L for entry in row)
    k = Fraction(4) ** a
    assert max(map(max, binary_softmax(exact.from_integers(L)))) * (k + n - 1) <= k


def _raised() -> None:
    """[4; instance] Four tokens, A with the rows (17, 1, 1, 1)/20 twice and (1, 17, 1, 1)/20
    twice, x = (1, -1, 0, 0), W = 1: A x = 4/5 (1, 1, -1, -1), ||HFC||^2 rises from 2 to 64/25."""
    A = exact.matrix(f"{'17/20 1/20 1/20 1/20;' * 2} {'1/20 17/20 1/20 1/20;' * 2}"[:-1])
    x = exact.column("1 -1 0 0")
    moved = exact.product(A, x)
    equal(moved, exact.scaled("4/5", exact.column("1 1 -1 -1")))
    equal([exact.squared_norms(y)[0] for y in (x, moved)], [2, Fraction(64, 25)])


CLAIM = Claim(
    name="N-2203.05962-rate",
    clauses=(
        "X' = A X W, A row-stochastic: ||HFC(X')||_F <= ||P A P||_2 ||W||_2 ||HFC(X)||_F, and ||P "
        "A P||_2^2 <= ||A||_F^2 - 1 <= n m - 1, m the largest entry of A.",
        "With all logits in [-a, a], k = e^(2a): m <= k/(k + n - 1), so the factor beside ||W||_2 "
        "is at most sqrt(n k/(k + n - 1) - 1), and below the paper's sqrt(n k/(k + n - 1)) "
        "(recalled, our reading).",
        "The recalled factor is at least 1, with equality iff a = 0 or n = 1: where ||W||_2 >= 1 "
        "it never shows that HFC falls. The one of clause 2 is below 1 iff (n-2) e^(2a) < 2 "
        "(n-1): for nearly equal logits it shows that.",
        "No factor below 1 holds for all A: one layer of a softmax with ||W||_2 = 1 can raise "
        "||HFC||_F.",
    ),
    latex=r"\|\mathrm{HFC}[AXW]\|_F\le\sqrt{\tfrac{ne^{2a}}{e^{2a}+n-1}-1}\;\|W\|_2\,"
    r"\|\mathrm{HFC}[X]\|_F",
    source="ours, for the rate of arXiv 2203.05962 (recalled)",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written(
            "Frobenius norms",
            "[1] P A X W = P A P X W, since A 1 = 1 gives P A J = 0. Norms are submultiplicative, "
            "||P A P||_2 <= ||P A||_F and ||P A||_F^2 = ||A||_F^2 - ||J A||_F^2, where ||J A||_F^2 "
            "= ||1^T A||^2/n >= (1^T A 1)^2/n^2 = 1 (Cauchy-Schwarz).",
            "[1] sum_j A_ij^2 <= m sum_j A_ij = m in each of n rows.",
            "[2] An entry e^l/(e^l + the others) is largest at l = a with the n - 1 others at -a.",
            _raised,
        ),
        by.for_all(
            "the recalled factor is at least 1",
            given="n >= 1; k >= 1",
            then="n*k >= k + n - 1 and Iff(n*k == k + n - 1, k == 1 or n == 1)",
            at="n=2, k=2",
            covers=(3,),
        ).unless("k below 1", without="k >= 1", given="k > 0"),
        by.for_all(
            "when the other is below 1",
            given="n >= 2; k >= 1",
            then="Iff(n*k < 2*(k + n - 1), (n-2)*k < 2*(n-1))",
            at="n=3, k=2",
            covers=(3,),
        ).unless(
            "at equality too",
            then="Iff(n*k < 2*(k + n - 1), (n-2)*k <= 2*(n-1))",
            at="n=4, k=3",  # some versions of z3 answer with an irrational model
        ),
        by.law(_law, draw.cases(draw.attention(1, 4, zeros=True)), title="norms in fractions"),
        by.searched(
            "the largest entry, logits in integers times ln 2",
            _largest,
            st.integers(1, 4).flatmap(
                lambda n: draw.lists(draw.lists(st.integers(-4, 4), n), 1, 4)
            ),
        ),
    ),
    further="With a residual such bounds become 1 + a factor, and say nothing on smoothing (T2d "
    "does).",
)
