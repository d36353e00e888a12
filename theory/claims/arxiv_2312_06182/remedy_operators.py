"""X <- (I - tau J) X, J = 1 1^T / n, composed with a layer, after the update or before it."""

from fractions import Fraction

from oversmoothing.theory.depth.rates_measured import layer_rows
from oversmoothing.theory.proofs.kit import Matrix, exact

AFTER, BEFORE = "after", "before"


def removal(n: int, tau: Fraction) -> Matrix:
    """I - tau J [n, n]."""
    return exact.plus(exact.identity(n), exact.uniform(n), -tau)


def removed(X: Matrix, tau: Fraction) -> Matrix:
    """(I - tau J) X: the mean of the tokens multiplied by 1 - tau."""
    return exact.product(removal(len(X), tau), X)


def step(A: Matrix, H: Matrix, X: Matrix, tau: Fraction, place: str) -> Matrix:
    """One layer with the removal after the update or before it."""
    return (
        removed(exact.layer(A, H, X), tau) if place == AFTER else exact.layer(A, H, removed(X, tau))
    )


def operator(A: Matrix, H: Matrix, tau: Fraction, place: str) -> Matrix:
    """The composed layer [n d, n d] on the rows of X one after the other."""
    plain, remove = layer_rows(A, H), exact.kronecker(removal(len(A), tau), exact.identity(len(H)))
    return exact.product(remove, plain) if place == AFTER else exact.product(plain, remove)
