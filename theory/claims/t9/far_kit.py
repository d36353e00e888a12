"""X -> A X W and softmax attention in hundreds of digits, and the slopes that T9 predicts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import mpmath as mp

from oversmoothing.theory.numbers.exact_matrix import matrix
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs.instances import A3

# Further modes die like 1e-23 or faster by the first depth; what is left is rounding to float.
ROUNDING = 1e-14
# (1/4)|c_1/c_2|/L is the relative correction of a Jordan block: 0.19/L for the pi-mean of START and
# 0.06/L for its mode at 1/2. On the slope from L to 2L that makes less than 1/L^2.
JORDAN = 1 / 150**2
# sigma_2/sigma_1 falls to 1e-235 at the greatest depth, its square (a Gram matrix) to 1e-470.
DIGITS = 700
DEPTH = 150

C3 = matrix("1/10 4/5 1/10; 1/10 1/10 4/5; 4/5 1/10 1/10")
START = matrix("1 4; 3 -5; -1 1")
# name -> (A, H, |lambda_2|, |h_2/h_1|, size of the Jordan block of H at h_1)
SYSTEMS: dict[str, tuple[Matrix, Matrix, mp.mpf, mp.mpf, int]] = {
    "h = 2, -1/2": (A3, matrix("2 0; 1 -1/2"), mp.mpf(1) / 2, mp.mpf(1) / 4, 1),
    "h = 1, -1": (A3, matrix("1 0; 1 -1"), mp.mpf(1) / 2, mp.mpf(1), 1),
    "h = +-2i": (A3, matrix("0 -2; 2 0"), mp.mpf(1) / 2, mp.mpf(1), 1),
    "h = 1/4, defective": (A3, matrix("1/4 1; 0 1/4"), mp.mpf(1) / 2, mp.mpf(1), 2),
    "complex pair of A, h = 1, 1/3": (
        C3,
        matrix("1 0; -1 1/3"),
        mp.mpf(7) / 10,
        mp.mpf(1) / 3,
        1,
    ),
}


def to_mp(M: Matrix) -> mp.matrix:
    return mp.matrix([[mp.mpf(x.numerator) / x.denominator for x in row] for row in M])


def without_residual(A: Matrix, H: Matrix, X0: Matrix, depth: int) -> mp.matrix:
    """A^depth X_0 W^depth."""
    return to_mp(A) ** depth * to_mp(X0) * (to_mp(H).T) ** depth


def centred(X: mp.matrix) -> tuple[mp.matrix, list[Any]]:
    """(HFC, mean over the tokens)."""
    mean = [mp.fsum(X[i, j] for i in range(X.rows)) / X.rows for j in range(X.cols)]
    high = mp.matrix([[X[i, j] - mean[j] for j in range(X.cols)] for i in range(X.rows)])
    return high, mean


def norm(X: Any) -> Any:
    return mp.sqrt(mp.fsum(x * x for x in X))


def log_hfc_lfc(X: mp.matrix) -> Any:
    high, mean = centred(X)
    return mp.log(norm(high) / (mp.sqrt(X.rows) * norm(mean)))


def log_sigma_ratio(X: mp.matrix) -> Any:
    """log(sigma_2/sigma_1) from the eigenvalues of the Gram matrix."""
    values = sorted(mp.eigsy(X.T * X, eigvals_only=True))
    return mp.log(values[-2] / values[-1]) / 2


def log_angle(X: mp.matrix) -> Any:
    """log of the largest 1 - |cos| over pairs of tokens."""
    rows = [[X[i, j] for j in range(X.cols)] for i in range(X.rows)]
    units = [[x / norm(row) for x in row] for row in rows]
    return mp.log(max(1 - abs(mp.fdot(x, y)) for x, y in combinations(units, 2)))


def slope(metric: Callable[[mp.matrix], Any], A: Matrix, H: Matrix, depth: int = DEPTH) -> Any:
    """(metric at 2 depth - metric at depth)/depth, for a state in general position."""
    with mp.workdps(DIGITS):
        first, second = (
            metric(without_residual(A, H, START, layers)) for layers in (depth, 2 * depth)
        )
        return (second - first) / depth


def attention(X: mp.matrix, M: mp.matrix, k: int) -> mp.matrix:
    """softmax(X M X^T/sqrt k) by rows."""
    logits = X * M * X.T / mp.sqrt(k)
    rows = []
    for i in range(X.rows):
        weights = [mp.exp(logits[i, j]) for j in range(X.rows)]
        rows.append([w / mp.fsum(weights) for w in weights])
    return mp.matrix(rows)
