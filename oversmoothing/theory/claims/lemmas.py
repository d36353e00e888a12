"""Matrices of symbols, and a step on them, that several written proofs share."""

import sympy as sp


def symbolic_attention(n: int) -> sp.Matrix:
    """A row-stochastic A in symbols: the last entry of each row is 1 minus the others."""
    free = [[sp.Symbol(f"a{i + 1}{j + 1}", positive=True) for j in range(n - 1)] for i in range(n)]
    return sp.Matrix([[*row, 1 - sum(row)] for row in free])


def symbolic_matrix(rows: int, columns: int, name: str) -> sp.Matrix:
    """A matrix of real symbols name_ij."""
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}{i + 1}{j + 1}", real=True))


def complement(n: int) -> sp.Matrix:
    """Q [n, n-1] in sympy: Helmert's orthonormal basis of the vectors orthogonal to 1."""
    columns = [
        sp.Matrix([1] * k + [-k] + [0] * (n - k - 1)) / sp.sqrt(k * (k + 1)) for k in range(1, n)
    ]
    return sp.Matrix.hstack(*columns)


def angle() -> sp.Expr:
    """1 - |cos| = sin^2/(1 + |cos|), and |x|^2 |y|^2 sin^2 = |x ^ y|^2 is the sum of
    the squared 2 x 2 minors of the rows x, y; over all pairs of tokens these are all of X ^ X."""
    x, y = symbolic_matrix(1, 3, "x"), symbolic_matrix(1, 3, "y")
    minors = [x[i] * y[j] - x[j] * y[i] for i in range(3) for j in range(i)]
    return sp.expand(x.dot(x) * y.dot(y) - x.dot(y) ** 2 - sum(m * m for m in minors))
