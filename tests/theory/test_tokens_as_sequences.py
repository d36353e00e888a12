"""T14e, T14h: a token as a sequence: its leading sum, every N-th term, its phases."""

from __future__ import annotations

from functools import cache
from math import comb
from types import SimpleNamespace

import flint
import pytest

from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.verdict.by_fractions import squared_modulus
from oversmoothing.theory.verdict.resolvent import Multipliers, OutOfReachError, Part, growth_of
from oversmoothing.theory.verdict.tokens import (
    TokenGrowth,
    UnknownPhaseError,
    every,
    period_of,
    real_power,
    token_of,
)


class ByModulus:
    """Moduli told apart by 256 bits, far more than these need."""

    @staticmethod
    def compare(first, second):
        gap = squared_modulus(first, 256) - squared_modulus(second, 256)
        return 0 if gap.contains(0) else 1 if gap > 0 else -1


@cache
def factor(coefficients, exponent):
    """One and the same for all parts: a factor is equal to itself alone."""
    return Factor(flint.fmpz_poly(list(coefficients)), exponent, (exponent,))


def part(numerators, *factors):
    """Of (coefficients, exponent)."""
    found = tuple((factor(tuple(c), e), e) for c, e in factors)
    return Part(tuple(map(flint.fmpz_poly, numerators)), found)


def sequence(of, count):
    """The first terms of sum over L of x_L z^-(L+1), by long division."""
    shift = flint.fmpz_poly([0] * count + [1])
    quotients = [divmod(p * shift, of.denominator)[0] for p in of.numerators]
    return [[int(q[count - 1 - k]) for q in quotients] for k in range(count)]


def moduli(growth):
    return [float(squared_modulus(x, 64).mid()) ** 0.5 for x in growth.roots]


def roots(*coefficients):
    found = Factor(flint.fmpz_poly(list(coefficients)), 1, (1,))
    return [Eigenvalue(found, k) for k in range(found.degree)]


SEQUENCES = {
    "2, -2 and 1": part([[3, 1, 4], [1, -1, 2]], ([-2, 1], 1), ([2, 1], 1), ([-1, 1], 1)),
    "3 twice and -3": part([[1, 2, 3], [0, 5, -1]], ([-3, 1], 2), ([3, 1], 1)),
    "1 +- 2i, and 0 twice": part([[1, 2, 0, 7], [2, 0, 1, -3]], ([5, -2, 1], 1), ([0, 1], 2)),
    "the roots of z^3 - 2, and 1": part([[1, 2, 3, -4]], ([-2, 0, 0, 1], 1), ([-1, 1], 1)),
    "-5 alone": part([[7], [-2], [0]], ([5, 1], 1)),
}


# --- growth ---


def test_T4e_of_equal_moduli_those_of_the_largest_multiplicity_lead():
    """3 twice and -3: like L 3^L."""
    for of in (SEQUENCES["3 twice and -3"], part([[1, 2, 3]], ([3, 1], 1), ([-3, 1], 2))):
        growth = growth_of(of, ByModulus())
        assert moduli(growth) == [3.0] and growth.power == 1


def test_T2_squared_moduli_that_differ_by_less_than_1_are_told_apart():
    """3 of sqrt 3, and 2.618 of (1 + sqrt 5)/2."""
    compare = Multipliers([], [], 1).compare
    (_, three), golden = roots(-3, 0, 1), roots(-1, -1, 1)
    larger = max(golden, key=lambda x: float(x.ball(64).real))
    assert compare(three, larger) == 1 and compare(larger, three) == -1


# --- every N-th depth alone ---


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize("period", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("first", [0, 1, 5])
def test_T14h_every_Nth_term_of_a_token_is_the_sequence_of_its_part(name, period, first):
    whole = SEQUENCES[name]
    expected = sequence(whole, first + 12 * period)[first::period]
    found = every(whole, period, first, ByModulus())
    assert found is not None
    assert sequence(found.part, 12) == expected


def test_T14h_what_leads_at_every_depth_may_cancel_at_every_second():
    """2^L + (-2)^L + 1: at odd depths 1 is left."""
    alike = part([[-4, -2, 3]], ([-2, 1], 1), ([2, 1], 1), ([-1, 1], 1))
    terms = sequence(alike, 8)
    assert [row[0] for row in terms] == [2**k + (-2) ** k + 1 for k in range(8)]
    odd = every(alike, 2, 1, ByModulus())
    assert odd is not None and moduli(odd.growth) == [1.0] and odd.growth.power == 0
    even = every(alike, 2, 0, ByModulus())
    assert even is not None and moduli(even.growth) == [4.0]


def test_T14h_a_token_that_is_0_at_every_second_depth_has_nothing_there():
    turning = part([[0, 2]], ([-2, 1], 1), ([2, 1], 1))
    assert every(turning, 2, 1, ByModulus()) is None
    assert every(turning, 2, 0, ByModulus()) is not None
    gone = part([[1]], ([0, 1], 3))
    assert every(gone, 1, 0, ByModulus()) is None and token_of(gone, ByModulus()) is None


def test_T14h_powers_of_equal_moduli_lead_together_and_of_smaller_ones_do_not():
    """(1 + 2i)^2 has the modulus 5, 3^2 = 9, and 2^2 = 4."""
    whole = part([[1, 1, 1, 1]], ([5, -2, 1], 1), ([-2, 1], 1), ([-3, 1], 1))
    found = every(whole, 2, 0, ByModulus())
    assert found is not None and moduli(found.growth) == pytest.approx([9.0])
    whole = part([[1, 1, 1, 1]], ([5, -2, 1], 1), ([-2, 1], 1), ([1, 1], 1))
    found = every(whole, 2, 1, ByModulus())
    assert found is not None and moduli(found.growth) == pytest.approx([5.0, 5.0])


def test_T14h_roots_that_share_a_power_must_agree_on_what_is_larger():
    """4 is a power of 2 and of -2: an order that parts these says nothing of 4."""

    class Parting(ByModulus):
        @staticmethod
        def compare(first, second):
            values = [float(x.ball(64).real.mid()) for x in (first, second)]
            return 1 if values[0] > values[1] else -1

    whole = part([[1, 0, 0]], ([-2, 1], 1), ([2, 1], 1), ([-1, 1], 1))
    assert every(whole, 2, 0, ByModulus()) is not None
    with pytest.raises(OutOfReachError):
        every(whole, 2, 0, Parting())


# --- the leading sum ---


def test_T14e_the_leading_sum_is_the_token_over_its_growth():
    """x_L = L M^(L-1) e_1 beside M^L e_1, M = [[1, -2], [2, 1]]: its leading part is the first."""
    M = flint.fmpz_mat([[1, -2], [2, 1]])
    q = [5, -2, 1]
    # M^L e_1 has the numerators z - 1 and 2; L M^(L-1) e_1 those of its square.
    once = [flint.fmpz_poly([-1, 1]), flint.fmpz_poly([2])]
    square = [once[0] ** 2 - once[1] ** 2, 2 * once[0] * once[1]]
    rest = [p * flint.fmpz_poly(q) for p in once]
    whole = part([list(p) for p in square + rest], (q, 2))
    token = token_of(whole, ByModulus())
    assert token is not None and token.growth.power == 1 and len(token.growth.roots) == 2
    for depth in (1, 2, 7, 20):
        exact = (M ** (depth - 1)).tolist()
        expected = [int(exact[i][0]) / 5 ** ((depth - 1) / 2) for i in (0, 1)]
        state = sequence(whole, depth + 1)[depth]
        assert state[:2] == [depth * int(exact[i][0]) for i in (0, 1)]
        found = [float(c.mid()) for c in token.leading_sum(depth, token.bits)]
        assert found == pytest.approx([*expected, 0, 0], abs=1e-14)


@pytest.mark.parametrize("base", [-3, 2])
def test_T14e_of_one_real_multiplier_the_leading_sum_is_exact(base):
    """C(L, 2) base^(L-2) and 5 times that."""
    token = token_of(part([[1], [5]], ([-base, 1], 3)), ByModulus())
    assert token is not None and token.growth.power == 2
    for depth in (2, 5, 6):
        x = sequence(token.part, depth + 1)[depth]
        assert x == [comb(depth, 2) * base ** (depth - 2) * c for c in (1, 5)]
        scale = comb(depth, 2) * abs(base) ** (depth - 2)
        y = token.leading_sum(depth, token.bits)
        assert [float(c.mid()) for c in y] == pytest.approx([c / scale for c in x], rel=1e-15)
    assert token.measured(4) == TokenGrowth(abs(base) / 4, 2)


# --- phases ---


def leads(*values):
    """A token that these lead."""
    return SimpleNamespace(growth=SimpleNamespace(roots=values))


def test_T14h_signs_that_agree_repeat_at_once_and_others_after_two_rounds():
    (one,), (two,), (less,), (three,) = roots(-1, 1), roots(-2, 1), roots(2, 1), roots(-3, 1)
    for first, second, period in (
        ([two], [three], 1),
        ([one], [two], 1),
        ([less], [less], 1),
        ([two], [less], 2),
        ([two, less], [two], 2),
        ([two, less], [two, less], 2),
    ):
        assert period_of((leads(*first), leads(*second)), real_power) == period


def test_T14h_the_period_is_the_least_common_multiple_of_the_orders():
    (two,), (less,), quarter, third = roots(-2, 1), roots(2, 1), roots(2, -2, 1), roots(1, 1, 1)
    # (1 + i)^4 = -4, and a third of a turn gives 1 after three.
    assert period_of((leads(*quarter), leads(*quarter)), real_power) == 4
    assert period_of((leads(*quarter), leads(two)), real_power) == 8
    assert period_of((leads(*third), leads(two)), real_power) == 3
    assert period_of((leads(*third), leads(less)), real_power) == 6
    assert period_of((leads(*third), leads(*quarter)), real_power) == 24


def test_T14h_a_period_beyond_the_longest_is_not_followed():
    (one,) = roots(-1, 1)
    assert period_of((leads(one), leads(one)), lambda x: 240) == 240
    with pytest.raises(UnknownPhaseError):
        period_of((leads(one), leads(one)), lambda x: 241)
    assert period_of((leads(one), leads(*roots(5, -2, 1))), real_power) is None


def test_T14h_roots_of_integers_turn_by_parts_of_a_turn_up_to_the_degree_looked_at():
    orders = [real_power(x) for x in roots(-2, *[0] * 11, 1)]
    # Angles k / 12 of a turn: k / 6 of half a turn.
    assert sorted(k for k in orders if k) == [1, 1, 2, 2] + [3] * 4 + [6] * 4
    with pytest.raises(UnknownPhaseError):
        for x in roots(-2, *[0] * 12, 1):
            real_power(x)


@pytest.mark.parametrize(
    ("coefficients", "expected"),
    [
        # Primitive fifth, seventh, eighth, ninth and twelfth roots of unity.
        ([1, 1, 1, 1, 1], {5}),
        ([1] * 7, {7}),
        ([1, 0, 0, 0, 1], {4}),
        ([1, 0, 0, 1, 0, 0, 1], {9}),
        ([1, 0, -1, 0, 1], {6}),
        # i, 1 + i, a sixth of a turn, 3/2 + sqrt(3)/2 i; a real root alone and with a third.
        ([1, 0, 1], {2}),
        ([2, -2, 1], {4}),
        ([1, -1, 1], {3}),
        ([3, -3, 1], {6}),
        ([-3, 1], {1}),
        ([-2, 0, 0, 1], {1, 3}),
        # 1 +- 2i, and the roots of z^4 - 2 z + 5: no power is real.
        ([5, -2, 1], {None}),
        ([5, -2, 0, 0, 1], {None}),
        # i sqrt 2, and sqrt 2 times a twelfth of a turn.
        ([2, 0, 1], {2}),
        ([4, 0, -2, 0, 1], {6}),
    ],
)
def test_T14h_the_first_real_power_of_each_root(coefficients, expected):
    assert {real_power(x) for x in roots(*coefficients)} == expected


def test_T14h_a_power_that_balls_cannot_tell_from_a_real_one_is_not_called_real():
    """1 + 10^-200 i: its square has an imaginary part that 512 bits show, and none is real."""
    tiny = 10**200
    x = roots(tiny**2 + 1, -2 * tiny**2, tiny**2)[0]
    assert real_power(x) is None
