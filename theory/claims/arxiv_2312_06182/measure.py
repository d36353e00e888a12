"""HFC/LFC over many layers in 250 digits (mpmath), for measured rates and limits."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath as mp

from oversmoothing.theory.claims.arxiv_2312_06182.remedy_operators import AFTER
from oversmoothing.theory.numbers.rational import Matrix

DIGITS = 250


def _mp(X: Matrix) -> mp.matrix:
    return mp.matrix([[mp.mpf(x.numerator) / x.denominator for x in row] for row in X])


def log_ratios(
    A: Matrix,
    H: Matrix,
    X0: Matrix,
    depths: Sequence[int],
    tau: str = "0",
    place: str = AFTER,
    residual: bool = True,
) -> list[float]:
    """log(HFC/LFC) at each depth, with the mean multiplied by 1 - tau in every layer."""
    with mp.workdps(DIGITS):
        a, w, x = _mp(A), _mp(H).T, _mp(X0)
        n, d = x.rows, x.cols
        factor = mp.mpf(1) - mp.mpf(tau)
        found = []
        for depth in range(max(depths) + 1):
            mean = [mp.fsum(x[i, j] for i in range(n)) / n for j in range(d)]
            if depth in depths:
                hfc = mp.fsum((x[i, j] - mean[j]) ** 2 for i in range(n) for j in range(d))
                lfc = n * mp.fsum(m**2 for m in mean)
                found.append(float(mp.log(hfc / lfc) / 2))
            if place != AFTER:
                x = _with_mean(x, mean, factor)
            x = x + a * x * w if residual else a * x * w
            if place == AFTER:
                moved = [mp.fsum(x[i, j] for i in range(n)) / n for j in range(d)]
                x = _with_mean(x, moved, factor)
        return found


def _with_mean(x: mp.matrix, mean: list[mp.mpf], factor: mp.mpf) -> mp.matrix:
    return mp.matrix(
        [[x[i, j] + (factor - 1) * mean[j] for j in range(x.cols)] for i in range(x.rows)]
    )


def slope(logs: Sequence[float], depths: Sequence[int]) -> float:
    """Of log(HFC/LFC) between the first and the last depth, per layer."""
    return (logs[-1] - logs[0]) / (depths[-1] - depths[0])
