"""The numerical rank beside HFC/LFC: what one says of the other."""

from fractions import Fraction

from oversmoothing.theory.claims.binary_softmax import squared_frobenius
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, equal, exact


def _law(A: Matrix, H: Matrix, X: Matrix) -> None:
    """sigma_1^2 >= ||LFC||^2, two features: not both eigenvalues of X^T X are below it."""
    X = [[*row, Fraction(0)][:2] for row in X]
    hfc, lfc = exact.squared_norms(X)
    equal(hfc + lfc, squared_frobenius(X))
    G = exact.product(exact.transposed(X), X)
    below = exact.plus(exact.identity(2, lfc), G, -1)
    assert 2 * lfc <= G[0][0] + G[1][1] or exact.determinant(below) <= 0


def _any_ratio() -> None:
    """[3; instance] (t + 1, 1 - t) has rank 1, and HFC/LFC = t: t = 0, 1/3, 1, 5; (1, -1) has LFC =
    0."""
    for t in ("0", "1/3", "1", "5"):
        hfc, lfc = exact.squared_norms([[1 + Fraction(t)], [1 - Fraction(t)]])
        equal(hfc, Fraction(t) ** 2 * lfc)
    equal(exact.squared_norms(exact.column("1 -1"))[1], 0)


CLAIM = Claim(
    name="N-2502.04591-rank",
    clauses=(
        "Numerical rank r(X) = ||X||_F^2/||X||_2^2 (the stable rank; our reading), X != "
        "0: 1 <= r, and r <= 1 + (HFC/LFC)^2 where LFC != 0. So HFC/LFC -> 0 makes r -> 1.",
        "r and HFC/LFC are the same for X and c X, c != 0, so growth and decay of all features "
        "at once do not move them; ||HFC|| alone and energies without a norm below them do.",
        "r = 1 says nothing on HFC/LFC: for n >= 2 every value in [0, infinity] occurs with r = 1.",
    ),
    latex=r"1\le\frac{\|X\|_F^2}{\|X\|_2^2}\le1+\Big(\frac{\mathrm{HFC}}{\mathrm{LFC}}\Big)^2",
    source="ours, for the numerical rank of arXiv 2502.04591 (abstract)",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "a projection does not lengthen",
            "[1] ||X||_2 >= ||J X||_2 = ||J X||_F = ||LFC||, since J is a projection and J X has "
            "rank 1; ||X||_F^2 = ||HFC||^2 + ||LFC||^2. And ||X||_F >= ||X||_2.",
            "[2] Both quotients are homogeneous of degree 0.",
            "[3] X = v u^T has r = 1 and HFC/LFC = ||P v||/||J v||, any value.",
            _any_ratio,
        ),
        by.law(_law, title="the largest singular value in fractions"),
    ),
    further="r -> 1 without smoothing, in a layer: N-2502.04591-rank-alone.",
)
