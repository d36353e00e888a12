"""When repeated attention is a low-pass filter: the pi-mean of the start decides."""

from fractions import Fraction

from hypothesis import assume

from oversmoothing.theory.claims.lemmas import POSITIVE_SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given, spectra


def _law(A: Matrix, H: Matrix, X: Matrix) -> None:
    """The pi-mean is kept; without it the floor of T1f holds as long as the state is not 0."""
    pi = spectra.stationary(A)
    mean = exact.weighted_mean(pi, X)
    floor = len(A) * spectra.squared_deviation(pi)
    without = [[x - c for x, c in zip(row, mean, strict=True)] for row in X]
    assume(any(map(any, without)))
    for _ in range(4):
        X, without = exact.product(A, X), exact.product(A, without)
        equal(exact.weighted_mean(pi, X), mean)
        hfc, lfc = exact.squared_norms(without)
        assert floor * hfc >= lfc
        equal(exact.squared_norms(X)[0], hfc)


def _falls() -> None:
    """[1; instance] A = [[1/2, 1/2], [1/4, 3/4]], pi = (1, 2)/3, x = (3, 0): A^t x = 1 + 4^-t (2,
    -1), so HFC/LFC is 3 4^-t/(2 + 4^-t)."""
    A, x = exact.matrix("1/2 1/2; 1/4 3/4"), exact.column("3 0")
    for t in range(5):
        q = Fraction(1, 4**t)
        equal(x, [[1 + 2 * q], [1 - q]])
        hfc, lfc = exact.squared_norms(x)
        equal(hfc * (2 + q) ** 2, lfc * (3 * q) ** 2)
        x = exact.product(A, x)


CLAIM = Claim(
    name="N-2203.05962-low-pass",
    clauses=(
        "One A > 0 applied again and again, no residual and no values, pi^T A = pi^T: if pi^T X "
        "!= 0, HFC/LFC of A^t X tends to 0. (That self-attention amounts to a low-pass filter: "
        "abstract; the limit is our reading.)",
        "If pi^T X = 0, HFC/LFC of A^t X is at least 1/(sqrt n ||pi - 1/n||) > 1/sqrt(n-1) at "
        "every t with A^t X != 0, infinite where A is doubly stochastic. So pi^T X != 0 is the "
        "condition, exactly.",
    ),
    latex=r"\frac{\|\mathrm{HFC}[A^tX]\|}{\|\mathrm{LFC}[A^tX]\|}\to0\iff\pi^\top X\ne0",
    source="arXiv 2203.05962, attention as a low-pass filter (abstract), our reading, with its "
    "exception",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "Perron, and the floor",
            POSITIVE_SPECTRUM.covering(1),
            "[1] So A^t -> 1 pi^T: HFC of A^t X tends to 0, and LFC to 1 pi^T X, which is not 0.",
            _falls,
            "[2] pi^T A^t X = pi^T X = 0, and T1f bounds every such state that is not 0.",
        ),
        by.law(_law, draw.cases(draw.attention(2, 4)), title="four applications, in fractions"),
    ),
    further="The rate of clause 1 is |lambda_2|, N-2312.06182-escalation.",
)
