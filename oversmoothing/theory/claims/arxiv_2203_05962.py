"""What the claims of arxiv_2203_05962.md execute."""

from fractions import Fraction

from hypothesis import assume

from oversmoothing.theory.claims.lemmas import squared_frobenius
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search, spectra


# N-2203.05962-low-pass
def falls() -> None:
    A, x = exact.matrix("1/2 1/2; 1/4 3/4"), exact.column("3 0")
    for t in range(5):
        q = Fraction(1, 4**t)
        equal(x, [[1 + 2 * q], [1 - q]])
        hfc, lfc = exact.squared_norms(x)
        equal(hfc * (2 + q) ** 2, lfc * (3 * q) ** 2)
        x = exact.product(A, x)


@search(draw.cases(draw.attention(2, 4)), at="A H X")
def law_low_pass(A: Matrix, H: Matrix, X: Matrix) -> None:
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


# N-2203.05962-rate
def raised() -> None:
    A = exact.matrix(f"{'17/20 1/20 1/20 1/20;' * 2} {'1/20 17/20 1/20 1/20;' * 2}"[:-1])
    x = exact.column("1 -1 0 0")
    moved = exact.product(A, x)
    equal(moved, exact.scaled("4/5", exact.column("1 1 -1 -1")))
    equal([exact.squared_norms(y)[0] for y in (x, moved)], [2, Fraction(64, 25)])


@search(draw.cases(draw.attention(1, 4, zeros=True)), at="A H X")
def law_rate(A: Matrix, H: Matrix, X: Matrix) -> None:
    """||A||_F^2 - ||J A||_F^2 = ||P A||_F^2 <= ||A||_F^2 - 1 <= n m - 1, and what it bounds."""
    n, most = len(A), max(map(max, A))
    high, low = exact.squared_norms(A)
    assert low >= 1 and squared_frobenius(A) == high + low <= n * most
    moved = exact.squared_norms(exact.product(A, X, exact.transposed(H)))[0]
    assert moved <= high * squared_frobenius(H) * exact.squared_norms(X)[0]
