"""The minimal polynomial of a start under a matrix, exactly, from Krylov vectors modulo a prime."""

from math import lcm
from typing import Any

import flint

# Modulo a prime a rank is at most what it is: a bad prime shows, and the next one is tried.
PRIMES = (2**61 - 1, 2**31 - 1, 2**62 - 57)
# Largest degree, and largest degree^3 times the bits of a vector, that is computed.
DEGREE, WORK = 160, 2**36


def minimal_polynomial(operator: Any, starts: Any) -> Any:
    """The monic p of least degree with p(operator) starts = 0, as a polynomial over the integers.

    operator [k, k] and starts [k, m] are rational. 1 for starts that are 0; None where the degree
    is too large to compute with.
    """
    if not any(starts.entries()):
        return flint.fmpz_poly([1])
    scale = lcm(*(int(x.q) for x in operator.entries()))
    whole = (operator * scale).numer_denom()[0]
    start = starts.numer_denom()[0]
    bits = 1 + max(int(x).bit_length() for x in whole.entries())
    for prime in PRIMES:
        rank = _rank(whole, start, prime)
        if rank is None or rank**4 * bits > WORK:
            return None
        vectors = [start]
        for _ in range(rank):
            vectors.append(whole * vectors[-1])
        table = flint.fmpz_mat([[int(x) for x in v.entries()] for v in vectors]).transpose()
        found = _relation(table, rank, prime)
        if found is not None:
            # p(scale x) for a p that annihilates under scale times the operator.
            scaled = [c * flint.fmpz(scale) ** j for j, c in enumerate(found)]
            return flint.fmpz_poly(scaled)
    return None


def _rank(whole: Any, start: Any, prime: int) -> int | None:
    """The number of independent Krylov vectors modulo a prime, None beyond `DEGREE`."""
    step, vector = flint.nmod_mat(whole, prime), flint.nmod_mat(start, prime)
    most = min(whole.nrows(), DEGREE)
    rows: list[list[Any]] = []
    for _ in range(most + 1):
        rows.append(vector.entries())
        vector = step * vector
    flat = [x for row in rows for x in row]
    rank = int(flint.nmod_mat(len(rows), len(rows[0]), flat, prime).rank())
    return rank if rank <= most else None


def _relation(table: Any, rank: int, prime: int) -> list[Any] | None:
    """Integers c_0 ... c_rank, not all 0, with sum c_j v_j = 0 for the columns v_j, exactly."""
    reduced, found = flint.nmod_mat(table.transpose(), prime).rref()
    if found != rank:
        return None
    rows = reduced.tolist()[:rank]
    places = [next(j for j, x in enumerate(row) if int(x)) for row in rows]
    entries = table.tolist()
    left = flint.fmpq_mat(flint.fmpz_mat([entries[i][:rank] for i in places]))
    right = flint.fmpq_mat(flint.fmpz_mat([[entries[i][rank]] for i in places]))
    solution = left.solve(right).entries()
    common = lcm(1, *(int(x.q) for x in solution))
    relation = [int(-x * common) for x in solution] + [common]
    total = table * flint.fmpz_mat(rank + 1, 1, relation)
    return None if any(total.entries()) else relation
