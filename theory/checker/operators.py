"""The two decoupled systems of a layer, exactly: consensus, and differences to the first token."""

from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.checker.spectra import exact, to_fmpq


def stationary(A: list[list[Fraction]]) -> list[Fraction] | None:
    """pi with pi^T A = pi^T and sum 1, None where it is not unique."""
    n = len(A)
    system = [[A[j][i] - (i == j) for j in range(n)] for i in range(n - 1)] + [[Fraction(1)] * n]
    right = flint.fmpq_mat(n, 1, [0] * (n - 1) + [1])
    try:
        solution = exact(system).solve(right)
    except ZeroDivisionError:
        return None
    return [Fraction(int(x.p), int(x.q)) for x in solution.entries()]


def operators(
    A: list[list[Fraction]], H: list[list[Fraction]], X: list[list[Fraction]]
) -> tuple[Any, Any, Any, Any] | None:
    """(I + H, c_0, I + B (x) H on row-major differences to the first token, y_0), exact."""
    pi = stationary(A)
    if pi is None:
        return None
    n, d = len(A), len(H)
    consensus = exact([[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(H)])
    c = [sum((p * row[j] for p, row in zip(pi, X, strict=True)), Fraction(0)) for j in range(d)]
    B = [[A[i][j] - A[0][j] for j in range(1, n)] for i in range(1, n)]
    block = [
        [B[i][j] * H[p][q] + (i == j and p == q) for j in range(n - 1) for q in range(d)]
        for i in range(n - 1)
        for p in range(d)
    ]
    y = [X[i][p] - X[0][p] for i in range(1, n) for p in range(d)]
    return consensus, _column(c), exact(block) if block else None, _column(y)


def _column(values: list[Fraction]) -> Any:
    return flint.fmpq_mat(len(values), 1, [to_fmpq(x) for x in values])
