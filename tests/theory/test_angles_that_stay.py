"""T14h: what keeps the angle of two tokens while their phases turn, and what does not."""

from __future__ import annotations

from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.spectra.algebraic import Factor
from oversmoothing.theory.verdict import cosines
from oversmoothing.theory.verdict.cosines import TokensOfStart, keep_their_angle
from oversmoothing.theory.verdict.resolvent import Multipliers, Part, growth_of, resolvent
from oversmoothing.theory.verdict.tokens import Token
from tests.theory.test_tokens_as_sequences import ByModulus

# 1 +- 2i, whose powers are never real; 2; -2; 3 +- 4i.
TURNING, TWO, LESS, OTHER = (
    Factor(flint.fmpz_poly(c), 1, (1,)) for c in ([5, -2, 1], [-2, 1], [2, 1], [25, -6, 1])
)
# M^L e_1 for M = [[1, -2], [2, 1]] has the numerators z - 1 and 2: g . g = 0 at 1 + 2i.
ROTATED = [[-1, 1], [2]]


def token(numerators, *factors):
    part = Part(tuple(map(flint.fmpz_poly, numerators)), tuple((f, 1) for f in factors))
    return Token(part, growth_of(part, ByModulus()))


def kept(first, second):
    """Where no rational factor and no eigenvalue of A is asked for."""
    return keep_their_angle((0, 1), (first, second), None, None)


# --- sizes ---


def test_a_leading_sum_stays_away_from_0_where_its_directions_are_independent():
    for numerators, factors, expected in (
        ([[1]], [TWO], True),
        # (1, 1) 2^L + (1, -1) (-2)^L and (1, 1) 2^L + (1, 1) (-2)^L.
        ([[0, 2], [4]], [TWO, LESS], True),
        ([[0, 2], [0, 2]], [TWO, LESS], False),
        # 2^L - (-2)^L.
        ([[4]], [TWO, LESS], False),
        (ROTATED, [TURNING], True),
        ([[1]], [TURNING], False),
        ([[1], [3]], [TURNING], False),
    ):
        assert cosines._is_never_small(token(numerators, *factors)) == expected


def test_a_pair_of_conjugates_is_two_roots_that_mirror_each_other():
    assert cosines._is_one_pair(token(ROTATED, TURNING))
    assert not cosines._is_one_pair(token([[1]], TWO))
    assert not cosines._is_one_pair(token([[0, 2], [4]], TWO, LESS))


# --- multiples of each other ---


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([[2, 4], [6]], [[1, 2], [3]], True),
        ([[1, 2], [3]], [[-3, -6], [-9]], True),
        ([[0], [2, 1]], [[0], [6, 3]], True),
        ([[1, 2], [3]], [[1, 2], [4]], False),
        ([[1, 2], [3]], [[2, 2], [3]], False),
        # No coefficient where the other has its first.
        ([[0, 1], [1]], [[1], [1]], False),
    ],
)
def test_tokens_are_parallel_where_all_their_numerators_are(first, second, expected):
    tokens = token(first, TURNING), token(second, TURNING)
    assert cosines._are_parallel(tokens) == expected


def test_tokens_of_other_roots_are_not_parallel():
    assert not cosines._are_parallel((token([[1]], TURNING), token([[1]], OTHER)))


def test_tokens_that_may_be_small_keep_their_angle_where_one_pair_leads_and_they_are_parallel():
    small, apart = token([[1], [0]], TURNING), token([[0], [1]], TURNING)
    assert kept(small, token([[3], [0]], TURNING))
    assert not kept(small, token([[1, 1], [0]], TURNING))
    # No feature in common says nothing where the sizes may vanish, of one token or of both.
    assert not kept(small, apart)
    assert not kept(token([*ROTATED, [0]], TURNING), token([[0], [0], [1]], TURNING))
    assert not kept(token([[0], [0], [1]], TURNING), token([*ROTATED, [0]], TURNING))
    # 2^L - (-2)^L is 0 at every second depth.
    assert not kept(token([[4]], TWO, LESS), token([[8]], TWO, LESS))


# --- nothing in common ---


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # Features apart, whatever leads.
        (token([*ROTATED, [0], [0]], TURNING), token([[0], [0], *ROTATED], TURNING), True),
        (token([[1], [0]], TWO), token([[0], [1]], TWO), True),
        # (1, 1) against (1, -1); (1, 1) and (1, -1) by turns against (1, -1).
        (token([[1], [1]], TWO), token([[1], [-1]], LESS), True),
        (token([[1], [1]], TWO), token([[1], [-2]], LESS), False),
        (token([[0, 2], [4]], TWO, LESS), token([[1], [-1]], TWO), False),
        (token([[1], [-1]], TWO), token([[0, 2], [4]], TWO, LESS), False),
        (token([[1], [0]], TWO), token([[1], [1]], TWO), False),
        # An irrational root is not evaluated.
        (token([[1]], TWO), token([[-5, 1]], TURNING), False),
        (token([[-5, 1]], TURNING), token([[1]], TWO), False),
    ],
)
def test_the_cosine_tends_to_0_where_nothing_is_in_common(first, second, expected):
    assert cosines._are_apart((first, second)) == expected


# --- one pair, without what turns in sizes and products ---


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (ROTATED, ROTATED, True),
        # M^L (1, 1): the numerators are z - 3 and z + 1.
        (ROTATED, [[-3, 1], [1, 1]], True),
        ([[-3, 1], [1, 1]], ROTATED, True),
        (ROTATED, [[-1, 1], [4]], False),
        ([[-1, 1], [4]], ROTATED, False),
        # Each by itself keeps its size, and they turn in opposite directions.
        (ROTATED, [[-1, 1], [-2]], False),
        ([[1], [1]], [[1], [1]], False),
    ],
)
def test_a_pair_keeps_sizes_and_products_where_its_squares_vanish(first, second, expected):
    tokens = token(first, TURNING), token(second, TURNING)
    assert cosines._keep_their_sizes(tokens) == expected


def test_sizes_are_compared_of_one_pair_alone():
    turning, other = token(ROTATED, TURNING), token(ROTATED, OTHER)
    assert not cosines._keep_their_sizes((turning, other))
    assert not cosines._keep_their_sizes((token([[1]], TWO), token([[1]], TWO)))


# --- one eigenvalue of A, and rational factors ---


class Start:
    """The tokens of one X_0."""

    def __init__(self, A, H, X0):
        A, H, X0 = ([[Fraction(x) for x in row] for row in M] for M in (A, H, X0))
        self.found = resolvent(A, H, X0)
        self.multipliers = Multipliers(A, H, self.found.scale)
        self.tokens = TokensOfStart(self.found, self.multipliers, len(A))._tokens

    def pair(self, i, j):
        return self.tokens[i], self.tokens[j]

    def by_one(self, i, j):
        return cosines._by_one_eigenvalue(self.pair(i, j), self.multipliers)

    def by_a_rational(self, i, j):
        return cosines._by_a_rational((i, j), self.pair(i, j), self.found, self.multipliers)

    def kept(self, i, j):
        return keep_their_angle((i, j), self.pair(i, j), self.found, self.multipliers)


# Eigenvalues 1, 1/2, 1/5, and an H that turns: 1 + h a is largest at a = 1/5.
A3 = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]
SHEARED = [["-1/2", -1], ["1/16", "-1/2"]]
EYE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_one_real_simple_eigenvalue_of_A_gives_every_token_one_direction():
    start = Start(A3, SHEARED, [[1, 2], [3, 5], [-2, 1]])
    assert start.by_one(0, 1) and start.by_one(1, 2) and start.kept(0, 2)
    # Consensus is no such eigenvalue here: a = 1 three times.
    alone = Start(EYE, [["1/2", -1], ["1/16", "1/2"]], [[1, 0], [1, 1], [2, 0]])
    assert not alone.by_one(0, 1)


def test_tokens_that_other_multipliers_lead_share_no_direction():
    causal = [[1, 0, 0], ["1/2", "1/2", 0], ["1/4", "1/2", "1/4"]]
    start = Start(causal, SHEARED, [[1, 2], [3, 5], [-2, 1]])
    assert not start.by_one(1, 2) and not start.by_one(0, 1)
    assert not start.by_a_rational(1, 2)


@pytest.mark.parametrize("ratio", ["1", "3", "-1/3", "100/97"])
def test_a_rational_factor_leaves_something_slower(ratio):
    """Tokens r x and x beside parts that die out, of an H whose second and third features turn."""
    H = [[-1, 0, 0], [0, "1/2", -1], [0, "1/16", "1/2"]]
    r = Fraction(ratio)
    start = Start(EYE, H, [[5, 2 * r, r], [7, 2, 1], [0, 1, 2]])
    assert start.by_a_rational(0, 1) and start.by_a_rational(1, 0) and start.kept(0, 1)
    assert not start.by_a_rational(0, 2) and not start.by_a_rational(2, 1)
    assert not start.kept(0, 2)


def test_a_rational_factor_may_leave_nothing_at_all_and_needs_a_root_in_common():
    turning = [["1/2", -1, 0], ["1/16", "1/2", 0], [0, 0, 3]]
    start = Start(EYE, turning, [[2, 1, 0], [6, 3, 0], [0, 0, 1]])
    assert start.by_a_rational(0, 1)
    assert not start.by_a_rational(0, 2)
