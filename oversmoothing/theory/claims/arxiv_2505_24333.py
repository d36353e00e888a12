"""What the claims of arxiv_2505_24333.md execute."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import (
    binary_softmax,
    dobrushin,
    oscillation,
    squared_diameter,
    with_state,
)
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, search

# N-2505.24333-threshold
_Z, _SIGMA = sp.symbols("z sigma", positive=True)


def _density(x: sp.Expr) -> sp.Expr:
    return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def cancels() -> sp.Expr:
    left = sp.exp(_SIGMA**2 / 2 - _Z * _SIGMA) * _density(_SIGMA - _Z) / _density(_Z)
    return sp.simplify(left) - 1


def completes() -> sp.Expr:
    x = sp.Symbol("x")
    return x * _SIGMA - x**2 / 2 - (_SIGMA**2 / 2 - (x - _SIGMA) ** 2 / 2)


def limit() -> None:
    b, more = sp.symbols("b more", positive=True)
    z, gap = sp.sqrt(2 * b), more * sp.sqrt(b)
    assert sp.simplify(sp.limit((1 + z**2) / (z * gap), b, sp.oo) - sp.sqrt(2) / more) == 0


# N-2505.24333-two-ends
@search(
    with_state(st.integers(2, 4).flatmap(lambda n: draw.matrices(st.integers(-4, 4), n, n)), 2),
    draw.lists(draw.fractions(-3, 3, 4), 4),
)
def law_two_ends(L: list[list[int]], X: Matrix, change: list[Fraction]) -> None:
    """Logits in integers times ln 2: e^s is then 2^s, tanh(s/2) = (2^s - 1)/(2^s + 1)."""
    A, change = binary_softmax(exact.from_integers(L)), change[: len(X)]
    span = 2 ** max(max(row) - min(row) for row in L)
    assert dobrushin(A) * (span + 1) <= span - 1
    for a, logits in zip(A, L, strict=True):
        mean = exact.dot(a, change)
        moved = exact.product([[p * (c - mean) for p, c in zip(a, change, strict=True)]], X)[0]
        left = 1 - max(a)
        size = left * oscillation(change)
        assert exact.dot(moved, moved) <= size**2 * squared_diameter(X)
        lead = sorted(logits)[-1] - sorted(logits)[-2]
        assert left * 2**lead <= len(X) - 1
