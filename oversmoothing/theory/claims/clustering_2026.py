"""What the claims of clustering_2026.md execute."""

from fractions import Fraction

from oversmoothing.theory.claims.lemmas import dobrushin, oscillation, with_state
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, search, spectra


# averaging
def averaged(A: Matrix, X: Matrix, eps: Fraction) -> Matrix:
    """(1 - eps) X + eps A X."""
    return exact.plus(exact.scaled(1 - eps, X), exact.product(A, X), eps)


def gap(A: Matrix) -> Fraction:
    """1 - max |a_i| over the eigenvalues but one copy of 1; they are rational here."""
    return 1 - max(map(abs, spectra.values(A)[:-1]))


# N-clustering2026-diameter
# 9/10 of the lazy walk on a cycle of six, 1/10 of 11^T/6: symmetric and positive.


# N-clustering2026-norms
@search(with_state(draw.attention(2, 4, zeros=True), 1), draw.fractions(0, 1), at="A")
def law_norms(A: Matrix, X: Matrix, eps: Fraction) -> None:
    moved = averaged(A, X, eps)
    before, after = (oscillation([row[0] for row in Y]) for Y in (X, moved))
    assert after <= (1 - eps * (1 - dobrushin(A))) * before
