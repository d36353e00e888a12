"""Attention from logits in balls: nothing underflows, and what nearly cancels is seen to."""

from collections.abc import Sequence
from fractions import Fraction

import flint

from oversmoothing.theory.numbers.balls import at_precision, to_ball


def softmax_balls(logits: Sequence[Sequence[Fraction | None]], bits: int) -> flint.arb_mat:
    """softmax of the rows in balls; None is masked (exactly 0)."""
    with at_precision(bits):
        found = []
        for row in logits:
            top = max(x for x in row if x is not None)
            weights = [flint.arb(0) if x is None else to_ball(x - top).exp() for x in row]
            total = sum(weights, flint.arb(0))
            found.append([weight / total for weight in weights])
        return flint.arb_mat(found)


def stationary_balls(A: flint.arb_mat, closed: Sequence[Sequence[int]]) -> list[flint.arb]:
    """pi with pi^T A = pi^T, pi^T 1 = 1 in balls; the mean over the given closed classes.

    By state reduction without a subtraction (Grassmann, Taksar, Heyman 1985): each entry keeps the
    relative accuracy of those of A.
    """
    pi = [flint.arb(0)] * A.nrows()
    for members in closed:
        P = [[A[i, j] for j in members] for i in members]
        for k in range(len(P) - 1, 0, -1):
            total = sum(P[k][:k], flint.arb(0))
            for i in range(k):
                P[i][k] /= total
                for j in range(k):
                    P[i][j] += P[i][k] * P[k][j]
        weights = [flint.arb(1)]
        for k in range(1, len(P)):
            weights.append(sum((w * P[i][k] for i, w in enumerate(weights)), flint.arb(0)))
        total = sum(weights, flint.arb(0)) * len(closed)
        for i, weight in zip(members, weights, strict=True):
            pi[i] = weight / total
    return pi
