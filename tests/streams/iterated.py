"""Brute force: the layer of all streams as one integer matrix, raised to a power by squaring.

Nothing of the theory is used but pi, which is solved for here: growth of what is left of a state
without its mean over tokens, of its pi-mean, and of differences between streams, each over two
spans of layers.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, lcm, log
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from tests.support.tables import rational

from .drawing import Drawn, Rationals


@dataclass(frozen=True)
class Growth:
    """Natural logarithms per layer between depth L and 2 L; -inf where the part is 0."""

    quotient: float
    consensus: float
    apart: float
    whole: float


def array(M: Any) -> NDArray[Any]:
    """Fractions in an array: NumPy's products of it are exact."""
    return np.array(M, dtype=object)


def identity(k: int) -> NDArray[Any]:
    return np.eye(k, dtype=object)


def outer(case: Drawn) -> NDArray[Any]:
    return np.outer(array(case.p), array(case.q))


def operator(case: Drawn) -> NDArray[Any]:
    """R (x) I + (p q^T) (x) H (x) A on states listed stream by stream, feature by feature."""
    A, H, R = map(array, (case.A, case.H, case.R))
    return np.kron(R, identity(len(A) * len(H))) + np.kron(outer(case), np.kron(H, A))


def stationary(A: Rationals) -> NDArray[Any]:
    """A row vector pi with pi A = pi and sum 1, by elimination."""
    n = len(A)
    system = np.vstack((array(A).T - identity(n), np.ones((1, n), dtype=object)))
    reduced, rank = rational(np.c_[system, [0] * n + [1]]).rref()
    pi = [Fraction(0)] * n
    for row in reduced.tolist()[:rank]:
        column = next(j for j, x in enumerate(row) if x)
        pi[column] = Fraction(int(row[n].p), int(row[n].q))
    return array([pi])


def reached(case: Drawn) -> NDArray[Any]:
    """Columns of streams that copies of one state reach, under R and under p q^T alike."""
    basis: list[NDArray[Any]] = []
    waiting = [array([1] * len(case.R))]
    while waiting:
        v = waiting.pop(0)
        if rational(array([*basis, v])).rank() > len(basis):
            basis.append(v)
            waiting += [M @ v for M in (array(case.R), outer(case))]
    return array(basis).T


def growth(case: Drawn, squarings: int) -> Growth:
    """Over L to 2 L layers, L = 2^squarings, of all starts at once."""
    s, n, d = len(case.R), len(case.A), len(case.H)
    layer, scale = _integers(operator(case))
    starts = identity(s) if case.start == "generic" else reached(case)
    S, _ = _integers(np.kron(starts, identity(n * d)))
    apart = identity(s) - array([[int(j == s - 1) for j in range(s)]] * s)
    parts = {
        "quotient": np.kron(identity(s * d), identity(n) - Fraction(1, n)),
        "consensus": np.kron(identity(s * d), stationary(case.A)),
        "apart": np.kron(apart, identity(n * d)),
        "whole": identity(s * n * d),
    }
    for _ in range(squarings):
        layer = layer * layer
    first, second = layer * S, layer * (layer * S)
    found = {}
    for name, part in parts.items():
        M, _ = _integers(part)
        before, after = _log_norm(M * first), _log_norm(M * second)
        gain = after - before if before > -inf and after > -inf else -inf
        found[name] = gain / 2**squarings - log(scale)
    return Growth(**found)


def mixture(case: Drawn, squarings: int) -> list[float]:
    """What each stream has of the largest entry of the state after 2^squarings layers."""
    s, n, d = len(case.R), len(case.A), len(case.H)
    layer, _ = _integers(operator(case))
    for _ in range(squarings):
        layer = layer * layer
    entries = layer.tolist()
    i, j = max(np.ndindex(s * n * d, s * n * d), key=lambda at: abs(int(entries[at[0]][at[1]])))
    top = int(entries[i][j])
    return [float(Fraction(int(entries[k * n * d + i % (n * d)][j]), top)) for k in range(s)]


def _integers(M: NDArray[Any]) -> tuple[flint.fmpz_mat, int]:
    scale = lcm(*(x.denominator for x in M.flat))
    return flint.fmpz_mat([[int(x * scale) for x in row] for row in M]), scale


def _log_norm(M: flint.fmpz_mat) -> float:
    total = sum(int(x) ** 2 for x in M.entries())
    if not total:
        return -inf
    shift = max(0, total.bit_length() - 64)
    return (log(total >> shift) + shift * log(2.0)) / 2
