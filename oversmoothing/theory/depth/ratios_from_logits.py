"""HFC/LFC of X_L where attention is given as logits: its softmax is no matrix of fractions.

A rational matrix near it serves where nothing cancels. A mean of size e^-1500 beside one, though,
is not that of a matrix whose entries are off by 1e-16: here the softmax itself is carried in balls.
"""

from dataclasses import replace
from fractions import Fraction

import flint

from oversmoothing.theory.depth.ratios import (
    MAX_BITS,
    Powers,
    Ratio,
    death,
    ratio_from_balls,
    ratio_of_squares,
    squared_norms,
)
from oversmoothing.theory.layer.cell import softmax_balls, stationary_balls
from oversmoothing.theory.layer.layer import Case
from oversmoothing.theory.numbers.balls import at_precision, to_ball
from oversmoothing.theory.numbers.exact import Matrix, plus_identity, to_flint


def softmax_ratios(case: Case, depths: list[int]) -> dict[int, Ratio]:
    """HFC/LFC at each of the depths, to about 1e-17 relative, of a case with logits, n > 1 and X_0.

    No value where `MAX_BITS` bits do not tell HFC or LFC from 0.
    """
    wanted = set(depths)
    found: dict[int, Ratio] = {}
    bits = 192
    while wanted and bits <= MAX_BITS:
        with at_precision(bits):
            found |= _try(case, sorted(wanted), bits)
        wanted -= found.keys()
        bits *= 2
    return found | dict.fromkeys(wanted, Ratio(None, None))


def _try(case: Case, depths: list[int], bits: int) -> dict[int, Ratio]:
    X0, H, n, d = case.rational_X0, case.rational_H, case.n, case.d
    assert X0 is not None
    A = softmax_balls(case.given["logits"].masked, bits)
    # A doubly stochastic A has pi = 1/n exactly, so that a mean of 0 stays 0.
    pi = None if case.may_balance else stationary_balls(A, case.classes)
    uniform = to_ball(Fraction(1, n))
    eta = [flint.arb(0) if pi is None else uniform - pi[i] for i in range(n)]
    if pi is None:
        c0 = [to_ball(sum((row[j] for row in X0), Fraction(0)) / n) for j in range(d)]
    else:
        c0 = (flint.arb_mat([pi]) * flint.arb_mat(to_flint(X0))).entries()
    consensus = to_flint(plus_identity(H))
    c_death = death(consensus, [[Fraction(int(i == j)) for j in range(d)] for i in range(d)])
    c_power = Powers(flint.arb_mat(consensus), c0)
    y_power = Powers(_differences(A, H), _from_the_last(X0))
    found = {}
    for depth in depths:
        if depth == 0:
            found[depth] = replace(ratio_of_squares(*squared_norms(X0)), squared=None)
            continue
        dead = c_death is not None and depth >= c_death
        c = [flint.arb(0)] * d if dead else c_power.at(depth)
        ratio = ratio_from_balls(c, y_power.at(depth) + [flint.arb(0)] * d, eta, n, d)
        if ratio is not None:
            found[depth] = ratio
    return found


def _differences(A: flint.arb_mat, H: Matrix) -> flint.arb_mat:
    """I + B' (x) H for the differences to the last token, B'_ij = A_ij - A_nj (T1c)."""
    m, d = A.nrows() - 1, len(H)
    return flint.arb_mat(
        [
            [
                (A[i, j] - A[m, j]) * to_ball(H[k][q]) + int((i, k) == (j, q))
                for j in range(m)
                for q in range(d)
            ]
            for i in range(m)
            for k in range(d)
        ]
    )


def _from_the_last(X0: Matrix) -> list[flint.arb]:
    return [to_ball(x - z) for row in X0[:-1] for x, z in zip(row, X0[-1], strict=True)]
