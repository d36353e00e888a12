"""What the claims of arxiv_2312_10794.md execute."""

import sympy as sp


def equation() -> sp.Expr:
    n, g, beta = sp.symbols("n g beta")
    p = sp.exp(beta * g) / (sp.exp(beta) + (n - 1) * sp.exp(beta * g))
    moved = 2 * p * ((1 - g**2) + (n - 2) * (g - g**2))
    return moved - 2 * p * (1 - g) * (1 + (n - 1) * g)
