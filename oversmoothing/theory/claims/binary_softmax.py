"""Softmax attention in fractions: integer logits times ln 2, every weight a power of 2."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Matrix, draw, exact


def logits(X: Matrix, M: Matrix) -> Matrix:
    """X M X^T [n, n]."""
    return exact.product(X, M, exact.transposed(X))


def binary_softmax(L: Matrix) -> Matrix:
    """A_ij proportional to 2^L_ij, L of integers: the softmax of L ln 2."""
    weights = [[Fraction(2) ** int(entry) for entry in row] for row in L]
    return [[weight / sum(row) for weight in row] for row in weights]


def spread(x: list[Fraction], y: list[Fraction]) -> Fraction:
    """max - min of x - y: how far two rows of logits are apart, up to a constant."""
    found = [p - q for p, q in zip(x, y, strict=True)]
    return max(found) - min(found)


def squared_frobenius(M: Matrix) -> Fraction:
    """||M||_F^2."""
    return sum((entry * entry for row in M for entry in row), Fraction(0))


@st.composite
def heads_on_a_state(pick: st.DrawFn, even: bool = True) -> tuple[Matrix, Matrix, Matrix]:
    """(X, M, W): a state and M in small integers (those of M even where asked), W in fractions."""
    n, d = pick(st.integers(2, 4)), pick(st.integers(1, 2))
    small = draw.lists(st.integers(-2, 2), d)
    X, M = pick(draw.lists(small, n)), pick(draw.lists(small, d))
    W = pick(draw.lists(draw.lists(draw.fractions(-2, 2, 4), d), d))
    return exact.from_integers(X), exact.scaled(1 + even, exact.from_integers(M)), W
