"""What the claims of arxiv_2312_10794.md execute."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import draw, equal, exact, search

# ------------------------------------------------------------------ N-2312.10794-equiangular


def equation() -> sp.Expr:
    n, g, beta = sp.symbols("n g beta")
    p = sp.exp(beta * g) / (sp.exp(beta) + (n - 1) * sp.exp(beta * g))
    moved = 2 * p * ((1 - g**2) + (n - 2) * (g - g**2))
    return moved - 2 * p * (1 - g) * (1 + (n - 1) * g)


@search(st.integers(2, 5), draw.fractions(-1, 1), draw.inside(0, 9), draw.inside(0, 9))
def law_equiangular(n: int, g: Fraction, same: Fraction, other: Fraction) -> None:
    """d<x_i, x_k>/dt from the matrix of cosines G, any weights same : other in a row."""
    G = [[Fraction(1) if i == k else g for k in range(n)] for i in range(n)]
    total = same + (n - 1) * other
    A = [[(same if i == k else other) / total for k in range(n)] for i in range(n)]
    S = exact.product(A, G)
    for i in range(n):
        for k in range(n):
            moved = S[i][k] - S[i][i] * G[i][k] + S[k][i] - S[k][k] * G[i][k]
            wanted = 2 * other / total * (1 - g) * (1 + (n - 1) * g)
            equal(moved, wanted if i != k else 0)
