"""The two decoupled systems of a layer, exactly, and the modes that a start has in each.

Consensus, and the differences to the first token. The minimal polynomial of a start under a matrix
comes from Krylov vectors modulo a prime and is verified over the integers.
"""

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
    classes: list[list[int]] = []
    for i in range(n):
        members = [j for j in range(n) if reach[i][j]]
        if members[0] == i and all(reach[j][i] for j in members):
            classes.append(members)
    return classes


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


# Modulo a prime a rank is at most what it is: a bad prime shows, and the next one is tried.
PRIMES = (2**61 - 1, 2**31 - 1, 2**62 - 57)
# Largest degree, and largest degree^4 times the bits by which a layer grows, that is computed: some
# seconds.
DEGREE, WORK = 160, 2**33


def minimal_polynomial(T: Any, H: Any, start: Any) -> Any:
    """The p of least degree with p(S) start = 0 for the layer S Z = Z + T Z H^T, over the integers.

    T [k, k], H [d, d] and start [k, d] are rational. 1 for a start that is 0; None where the degree
    is too large to compute with.
    """
    if not any(start.entries()):
        return flint.fmpz_poly([1])
    (left, s), (right, t), (first, _) = (M.numer_denom() for M in (T, H.transpose(), start))
    scale = int(s * t)
    sizes = [max(abs(int(x)) for x in M.entries()) * M.nrows() for M in (left, right)]
    bits = (scale + sizes[0] * sizes[1]).bit_length()
    for prime in PRIMES:
        rank = _rank(left, right, first, prime)
        if rank is None or rank**4 * bits > WORK:
            return None
        states = [first]
        for _ in range(rank):
            states.append(states[-1] * scale + left * states[-1] * right)
        table = flint.fmpz_mat([[int(x) for x in Z.entries()] for Z in states]).transpose()
        coefficients = _relation(table, rank, prime)
        if coefficients is not None:
            # p(scale x) for a p that annihilates under scale times the layer.
            return flint.fmpz_poly([c * scale**j for j, c in enumerate(coefficients)])
    return None


def _rank(left: Any, right: Any, first: Any, prime: int) -> int | None:
    """The number of independent Krylov vectors modulo a prime, None beyond `DEGREE`: those of
    Z -> left Z right, which span the same as with a multiple of Z added."""
    T, W, Z = (flint.nmod_mat(M, prime) for M in (left, right, first))
    most = min(len(Z.entries()), DEGREE)
    rows = []
    for _ in range(most + 1):
        rows.append(Z.entries())
        Z = T * Z * W
    flat = [x for row in rows for x in row]
    rank = int(flint.nmod_mat(len(rows), len(rows[0]), flat, prime).rank())
    return rank if rank <= most else None


def _relation(table: Any, rank: int, prime: int) -> list[Any] | None:
    """Integers c_0 ... c_rank = 1 with sum c_j v_j = 0 for the columns v_j, exactly.

    The minimal polynomial of integers is integer (Gauss): fractions come of a bad prime, and their
    numerators alone do not annihilate.
    """
    reduced, pivots = flint.nmod_mat(table.transpose(), prime).rref()
    if pivots != rank:
        return None
    rows = reduced.tolist()[:rank]
    places = [next(j for j, x in enumerate(row) if int(x)) for row in rows]
    entries = table.tolist()
    left = flint.fmpq_mat(flint.fmpz_mat([entries[i][:rank] for i in places]))
    right = flint.fmpq_mat(flint.fmpz_mat([[entries[i][rank]] for i in places]))
    relation = [-x.p for x in left.solve(right).entries()] + [flint.fmpz(1)]
    total = table * flint.fmpz_mat(rank + 1, 1, relation)
    return None if any(total.entries()) else relation
