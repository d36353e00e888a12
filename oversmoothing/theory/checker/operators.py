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


def systems(A: Matrix, X: Matrix) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """(1, C_0) and (B, Y_0), exact: each layer is Z' = Z + T Z H^T with T the first, Z the second.

    C_0 [m, d]: the means pi_k^T X_0 of the m closed classes. Y_0 [n - 1, d]: the differences to the
    first token.
    """
    n, start = len(A), exact(X)
    weights = stationary(A)
    m = len(weights)
    identity = flint.fmpq_mat(m, m, [int(i == j) for i in range(m) for j in range(m)])
    consensus = identity, flint.fmpq_mat(weights) * start
    if n == 1:
        return consensus, (flint.fmpq_mat(0, 0), flint.fmpq_mat(0, start.ncols()))
    B = [[x - y for x, y in zip(row[1:], A[0][1:], strict=True)] for row in A[1:]]
    Y = [[x - y for x, y in zip(row, X[0], strict=True)] for row in X[1:]]
    return consensus, (exact(B), exact(Y))
