"""All cases that round to the same floats, in balls: what a verdict in binary64 has to hold for.

An entry x stands for every number within half a unit in the last place, 0 for 0 alone. A is taken
through E = I - A, whose diagonal is the sum of what a token gives to the others: 1 - a then has
small relative errors however close to 1 an eigenvalue a is.
"""

from dataclasses import dataclass
from functools import cached_property

import flint
import numpy as np

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.support.arrays import Array

# Half a unit in the last place, relative, and the most that a subnormal number can be off.
_UNIT, _LEAST = 2.0**-53, 2.0**-1074
_ROUND_UP = 1 + 2.0**-20

Balls = list[list[flint.acb]]


@dataclass(frozen=True)
class RoundingCell:
    """The cell of a case [n, d] in binary64."""

    case: Case

    @cached_property
    def _attention(self) -> list[list[flint.arb]]:
        """The entries of A, row by row."""
        if self.case.logits is None:
            given = self.case.given["A"].floats
            error = np.abs(given.sum(axis=1) - 1) + (1 + len(given)) * _UNIT
            return [
                [_ball(x, e) for x in row]
                for row, e in zip(given.tolist(), error.tolist(), strict=True)
            ]
        rows = []
        for row in self.case.logits.tolist():
            # In balls no weight underflows.
            largest = _ball(max(row), _UNIT)
            weights = [
                flint.arb(0) if x == -np.inf else (_ball(x, _UNIT) - largest).exp() for x in row
            ]
            total = sum(weights, flint.arb(0))
            rows.append([w / total for w in weights])
        return rows

    @cached_property
    def departures(self) -> Balls:
        """E = I - A."""
        n = self.case.n
        A = self._attention
        return [
            [flint.acb(self._given_away(i) if i == j else -A[i][j]) for j in range(n)]
            for i in range(n)
        ]

    def _given_away(self, i: int) -> flint.arb:
        """1 - A_ii: the sum of the others, or the difference where that is known better."""
        A = self._attention
        others = sum((x for j, x in enumerate(A[i]) if j != i), flint.arb(0))
        rest = 1 - A[i][i]
        return others if others.rad() <= rest.rad() else rest

    @cached_property
    def value(self) -> Balls:
        """H."""
        if self.case.factors is None:
            return _entries(self.case.given["H"].floats)
        W_V, W_proj = (flint.acb_mat(_entries(M)) for M in self.case.factors)
        product: Balls = (W_V * W_proj).transpose().tolist()
        return product

    @cached_property
    def start(self) -> Balls:
        """X_0 [n, d]."""
        assert self.case.X0 is not None
        return _entries(self.case.X0)


def _entries(M: Array) -> Balls:
    return [[flint.acb(_ball(x, _UNIT)) for x in row] for row in M.tolist()]


def _ball(x: float, relative: float) -> flint.arb:
    if not x:
        return flint.arb(0)
    radius = max(abs(x) * relative, _LEAST / 2)
    return flint.arb(x, radius * _ROUND_UP)
