"""What the claims on clustering share: one step of X' = (1 - eps) X + eps A X."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Matrix, exact, given, spectra

_NOT_DOUBLY = given.case("1/2 1/2; 1/4 3/4")
DOUBLY = given.Hypothesis(
    "A is doubly stochastic: A >= 0, A 1 = 1, 1^T A = 1^T",
    lambda case: given.is_stochastic(case.A) and given.is_stochastic(exact.transposed(case.A)),
    (_NOT_DOUBLY,),
)


def averaged(A: Matrix, X: Matrix, eps: Fraction) -> Matrix:
    """(1 - eps) X + eps A X."""
    return exact.plus(exact.scaled(1 - eps, X), exact.product(A, X), eps)


def gap(A: Matrix) -> Fraction:
    """1 - max |a_i| over the eigenvalues but one copy of 1; they are rational here."""
    return 1 - max(map(abs, spectra.values(A)[:-1]))
