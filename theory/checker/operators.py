"""The two decoupled systems of a layer, exactly: consensus, and differences to the first token."""

from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.checker.reading import Matrix
from oversmoothing.theory.checker.spectra import exact


def closed_classes(A: Matrix) -> list[list[int]]:
    """The closed classes of tokens: sets that attend to themselves alone, each token to each."""
    n = len(A)
    reach = [[i == j or A[i][j] > 0 for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            if reach[i][k]:
                reach[i] = [x or y for x, y in zip(reach[i], reach[k], strict=True)]
    # A token is in a closed class where all that it reaches reaches back.
    found: list[list[int]] = []
    for i in range(n):
        members = [j for j in range(n) if reach[i][j]]
        if members[0] == i and all(reach[j][i] for j in members):
            found.append(members)
    return found


def stationary(A: Matrix) -> list[Any]:
    """pi_k with pi_k^T A = pi_k^T and sum 1 for each closed class k: rows of n numbers."""
    n, rows = len(A), []
    for members in closed_classes(A):
        k = len(members)
        system = [[A[j][i] - (i == j) for j in members] for i in members[:-1]]
        left = exact([*system, [Fraction(1)] * k])
        weights = left.solve(flint.fmpq_mat(k, 1, [0] * (k - 1) + [1])).entries()
        row = [flint.fmpq(0)] * n
        for i, weight in zip(members, weights, strict=True):
            row[i] = weight
        rows.append(row)
    return rows


def operators(A: Matrix, H: Matrix, X: Matrix) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """(I + H, c_0) and (I + B (x) H, y_0), exact.

    c_0 [d, m]: the means pi_k^T X_0 of the m closed classes. y_0 [(n - 1) d, 1]: the differences to
    the first token, token by token.
    """
    n, d = len(A), len(H)
    start = exact(X)
    consensus = exact([[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(H)])
    c = (flint.fmpq_mat(stationary(A)) * start).transpose()
    B = [[A[i][j] - A[0][j] for j in range(1, n)] for i in range(1, n)]
    block = [
        [B[i][j] * H[p][q] + (i == j and p == q) for j in range(n - 1) for q in range(d)]
        for i in range(n - 1)
        for p in range(d)
    ]
    y = [[X[i][p] - X[0][p]] for i in range(1, n) for p in range(d)]
    empty = flint.fmpq_mat(0, 0)
    return (consensus, c), (exact(block), exact(y)) if block else (empty, empty)
