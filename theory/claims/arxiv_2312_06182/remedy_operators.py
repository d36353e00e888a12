"""X <- (I - tau J) X, J = 1 1^T / n, composed with a layer: operators, states and their limits."""

from __future__ import annotations

from fractions import Fraction

from oversmoothing.theory.numbers.exact_matrix import identity, kronecker, layer, plus, product
from oversmoothing.theory.numbers.rational import Matrix

AFTER, BEFORE = "after", "before"


def removed(X: Matrix, tau: Fraction) -> Matrix:
    """(I - tau J) X: the mean of the tokens multiplied by 1 - tau."""
    means = [sum(col, Fraction(0)) / len(X) for col in zip(*X, strict=True)]
    return [[x - tau * m for x, m in zip(row, means, strict=True)] for row in X]


def step(A: Matrix, H: Matrix, X: Matrix, tau: Fraction, place: str) -> Matrix:
    """One layer with the removal after the update or before it."""
    if place == AFTER:
        return removed(layer(A, H, X), tau)
    return layer(A, H, removed(X, tau))


def removal(n: int, tau: Fraction) -> Matrix:
    """I - tau J [n, n]."""
    return [[Fraction(int(i == j)) - tau / n for j in range(n)] for i in range(n)]


def operator(A: Matrix, H: Matrix, tau: Fraction, place: str) -> Matrix:
    """The composed layer on vec(X) [n d, n d]."""
    n, d = len(A), len(H)
    plain = plus(identity(n * d), kronecker(H, A))
    remove = kronecker(identity(d), removal(n, tau))
    return product(remove, plain) if place == AFTER else product(plain, remove)
