"""Cases that round to the same floats: the members of a cell, and pairs with different answers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from .draw import Case, draw, in_binary64
from .rounding_cell import members, members_answers, rounds_to, ulp, witness
from .truth import truth


def _case(A: list, H: list, X0: list) -> Case:
    matrices = [[[Fraction(x) for x in row] for row in M] for M in (A, H, X0)]
    return in_binary64(Case("by hand", *matrices, kind=("by hand",) * 3))


@pytest.mark.parametrize("index", range(60))
def test_members_round_to_the_floats_and_their_rows_sum_to_one(index: int) -> None:
    case = draw(11, index)
    if not case.binary64:
        case = in_binary64(case)
    for A, H, X0 in members(case):
        assert all(sum(row) == 1 for row in A)
        for M, given in zip((A, H, X0), (case.A, case.H, case.X0), strict=True):
            for row, floats in zip(M, given, strict=True):
                assert [float(x) for x in row] == [float(x) for x in floats]
                assert [x == 0 for x in row] == [x == 0 for x in floats]


def test_a_boundary_of_the_verdict_has_a_witness() -> None:
    """h = -2 / (1 + a) with a = 1/14: above it, below it and on it round to one float."""
    case = _case([["1", 0], ["13/14", "1/14"]], [["-28/15"]], [[7], [2]])
    known = members_answers(case)
    found = witness(known, "verdict")
    assert found is not None
    assert not truth(*found[0]).verdict & truth(*found[1]).verdict
    assert all(rounds_to(member, (case.A, case.H, case.X0)) for member in found)


def test_a_mode_that_may_be_missing_has_a_witness() -> None:
    """A mean of 1/3 - 2/3 + 1/3: 0 as meant, and not of the floats."""
    case = _case([["1/3"] * 3] * 3, [["1/2"]], [["1/3"], ["-2/3"], ["1/3"]])
    assert witness(members_answers(case), "verdict_x0") is not None


def test_what_all_members_share_has_none() -> None:
    case = _case([["2/3", "1/3"], ["1/3", "2/3"]], [["1/2"]], [["1/3"], ["2/3"]])
    known = members_answers(case)
    assert len(known) > 5
    assert all(witness(known, field) is None for field in ("verdict", "verdict_x0", "tends_to"))


def test_a_unit_in_the_last_place() -> None:
    assert ulp(Fraction(1)) == Fraction(1, 2**53)
    assert ulp(Fraction(3, 2)) == Fraction(1, 2**52)
    assert ulp(Fraction(-1)) == Fraction(1, 2**53)
