"""What the claims on escalation share: t = ||HFC||/(sqrt n |c|) layer by layer, and the remedy."""

from collections.abc import Callable
from fractions import Fraction

from oversmoothing.theory.depth.rates_measured import layer_rows
from oversmoothing.theory.proofs.kit import Matrix, equal, exact, spectra


def t_falls(
    A: Matrix,
    X: Matrix,
    move: Callable[[Matrix], Matrix],
    by: Fraction,
    over: Fraction,
    layers: int,
) -> None:
    """One feature: every layer multiplies t by |by|/|over|, exactly (c = pi^T X)."""
    pi = spectra.stationary(A)
    for _ in range(layers):
        moved = move(X)
        (before,), (after,) = exact.weighted_mean(pi, X), exact.weighted_mean(pi, moved)
        hfc, moved_hfc = exact.squared_norms(X)[0], exact.squared_norms(moved)[0]
        equal(moved_hfc * before**2 * over**2, by**2 * hfc * after**2)
        X = moved


# ------------- the remedy X <- (I - tau J) X, J = 1 1^T / n, after a layer or before it

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
