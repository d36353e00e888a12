"""What is true for generic X_0: two drawn ones stand for all outside a null set.

The exceptions are zeros of polynomials in X_0; among so many integers a draw hits one with a
probability of about one in a million. Two limits that differ depend on X_0.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from .draw import Matrix
from .matrices import Rationals
from .truth import Truth, truth

_SIZE = 10**6


def drawn_start(n: int, d: int, rng: Random) -> Matrix:
    return [[Fraction(rng.randint(-_SIZE, _SIZE)) for _ in range(d)] for _ in range(n)]


def generic_truth(A: Rationals, H: Rationals, rng: Random) -> Truth:
    """verdict, tends_to, limit (None where it depends on X_0) and limit_rank."""
    n, d = len(A), len(H)
    first = truth(A, H, drawn_start(n, d, rng))
    if not isinstance(first.limit, tuple):
        return first
    second = truth(A, H, drawn_start(n, d, rng))
    assert isinstance(second.limit, tuple) and first.limit_rank == second.limit_rank
    apart = first.limit[0] > second.limit[1] or second.limit[0] > first.limit[1]
    return replace(first, limit=None) if apart else first
