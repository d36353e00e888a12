"""Softmax in fractions, and generic X_0."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from random import Random

import pytest

from .generic import generic_truth
from .rounding_cell import members
from .softmax import draw_logits, exp_bounds, softmax


@pytest.mark.parametrize("x", ["0", "-1", "-1/3", "-17/8", "-60", "-12345/16", "-900", "1/2", "7"])
def test_exp_lies_between_its_bounds(x: str) -> None:
    number = Fraction(x)
    low, high = exp_bounds(number)
    digits = Context(prec=60)
    known = digits.exp(digits.divide(Decimal(number.numerator), Decimal(number.denominator)))
    true = Fraction(known)
    # The argument in decimals and the result are each off by 1e-60 of themselves at most.
    slack = true * Fraction(2000, 10**60)
    assert low <= true + slack and true - slack <= high
    assert high - low <= low * Fraction(1, 2**99)


def test_rows_of_a_softmax_sum_to_one_and_equal_logits_share() -> None:
    rows = softmax(
        [[Fraction(3), Fraction(3), None], [Fraction(0), Fraction(1), Fraction(2)]], True
    )
    assert rows[0] == [Fraction(1, 2), Fraction(1, 2), 0] and sum(rows[1]) == 1
    below = softmax([[Fraction(0), Fraction(1), Fraction(2)]], False)[0]
    assert all(abs(x - y) < Fraction(1, 2**90) for x, y in zip(below, rows[1], strict=True))


@pytest.mark.parametrize("index", range(30))
def test_drawn_logits_are_floats_and_so_are_the_members_of_their_cells(index: int) -> None:
    case = draw_logits(5, index)
    assert case.logits is not None and case.binary64
    assert all(x is None or Fraction(float(x)) == x for row in case.logits for x in row)
    for A, _, _ in members(case):
        assert all(sum(row) == 1 for row in A)
        assert [[x == 0 for x in row] for row in A] == [[x is None for x in r] for r in case.logits]


@pytest.mark.parametrize(
    ("H", "tends_to", "limit", "rank"),
    [
        ([["1/2"]], "zero", True, 1),
        ([["-1/2"]], "infinity", True, 1),
        # A tie of consensus and the rest: the limit depends on X_0.
        ([["-4/3"]], "constant", False, 1),
        ([["-1/2", "0"], ["0", "-1/2"]], "infinity", True, 1),
    ],
)
def test_generic_limits_by_hand(H: list, tends_to: str, limit: bool, rank: int) -> None:
    A = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    found = generic_truth(A, [[Fraction(x) for x in row] for row in H], Random(1))
    assert (found.tends_to, found.limit is not None, found.limit_rank) == (tends_to, limit, rank)
