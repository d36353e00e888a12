"""What the claims of arxiv_2410_07799.md execute."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.claims.lemmas import squared_frobenius
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.exact import to_flint
from oversmoothing.theory.proofs.checks import L, around, induction
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search


# N-2410.07799-outlier
def removed(A: Matrix) -> Matrix:
    """A - 11^T/n."""
    return exact.plus(A, exact.uniform(len(A)), -1)


def moment() -> sp.Expr:
    n, a = sp.symbols("n a", positive=True)
    return n**2 * (a + 1) / (n * (n * a + 1)) - 1 - (n - 1) / (n * a + 1)


@search(draw.attention(1, 5, zeros=True), at=given.of_attention)
def law_outlier(A: Matrix) -> None:
    """Spectrum and norm of A - J; ||A 1|| = ||1||."""
    n = len(A)
    rest = removed(A)
    equal(squared_frobenius(rest), squared_frobenius(A) - 1)
    assert squared_frobenius(rest) <= n * max(map(max, A)) - 1
    expected = exact.characteristic(rational_quotient(A))
    equal(exact.characteristic(rest), expected * exact.characteristic([[Fraction(0)]]))


# N-2410.07799-removal
@search(draw.exact_cases(4, 2), at="A H X")
def law_removal(A: Matrix, H: Matrix, X: Matrix) -> None:
    Y, Z = X, X
    for _ in range(3):
        Y, Z = exact.layer(A, H, Y), exact.layer(removed(A), H, Z)
        equal(exact.centred(Y), exact.centred(Z))
    whole = exact.characteristic(exact.plus_identity(exact.kronecker(H, removed(A))))
    rest = exact.plus_identity(exact.kronecker(H, rational_quotient(A)))
    equal(whole, exact.characteristic(exact.identity(len(H))) * exact.characteristic(rest))


# N-2410.07799-removal-always
def without(A: Matrix, H: Matrix, X0: Matrix) -> None:
    half = sp.Rational(1, 2) ** L
    state = around(sp.Integer(2), half)
    induction(removed(A), H, X0, state, half**2 / 4)


# N-2410.07799-sink
def one(A: Matrix) -> None:
    rest = removed(A)
    equal(to_flint(rest).rank(), 1)
    equal(squared_frobenius(rest), Fraction(27, 25))
