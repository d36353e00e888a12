"""The quotient by consensus (T1c): what X -> X + A X W does to differences between tokens.

With Q an orthonormal basis of the vectors orthogonal to 1, Y = Q^T X is autonomous,
Y' = Y + B Y W with B = Q^T A Q, and spec(B) is spec(A) without one copy of the eigenvalue 1.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from oversmoothing.theory.support.arrays import Array


def complement_basis(n: int) -> Array:
    """Q [n, n-1]: orthonormal columns orthogonal to 1, from a Householder reflector.

    The reflector that sends 1/sqrt(n) to -e_1 is symmetric and costs no factorisation.
    """
    u = np.full(n, 1.0 / np.sqrt(n))
    u[0] += 1.0
    reflector = np.eye(n) - np.outer(u, u) / u[0]
    return np.ascontiguousarray(reflector[:, 1:])


def quotient(A: Array) -> Array:
    """B = Q^T A Q, [..., n-1, n-1], for A [..., n, n] (T1c).

    A is centred first: P A and A differ by 1 1^T A / n, which Q^T removes anyway, and centring
    keeps the entries of a nearly uniform A from cancelling in the product.
    """
    Q = complement_basis(A.shape[-1])
    centred = A - A.mean(axis=-2, keepdims=True)
    result: Array = Q.T @ centred @ Q
    return result


def rational_quotient(A: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """B'_ij = A_ij - A_nj for i, j < n: similar to B, and without square roots (T1c).

    Its coordinates are y_i = x_i - x_n.
    """
    last = A[-1]
    return [[row[j] - last[j] for j in range(len(A) - 1)] for row in A[:-1]]
