"""T14g, T14h: cosines of two tokens whose phases turn or whose leading sums cancel, by hand."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.verdict import cosines
from oversmoothing.theory.verdict.cosines import OSCILLATES, UNDEFINED, CosineLimit, TokensOfStart
from oversmoothing.theory.verdict.resolvent import Multipliers, OutOfReachError, resolvent
from oversmoothing.theory.verdict.tokens import token_of
from oversmoothing.theory.verdict.verdict import verdict
from tests.theory.test_tokens_as_sequences import ByModulus, part, sequence

EYE = [["1", "0"], ["0", "1"]]
FLAT = [["1/2", "1/2"], ["1/2", "1/2"]]
# Two tokens that average one another, and one alone.
APART = [["1/2", "1/2", "0"], ["1/2", "1/2", "0"], ["0", "0", "1"]]


def matrix(rows):
    return [[Fraction(x) for x in row] for row in rows]


def limit(A, H, X0, pair=(0, 1)):
    return verdict(A=A, H=H, X0=X0).cosine_limits[pair]


def constant(value):
    return CosineLimit("constant", (value,))


def pell(k):
    """p, q with p^2 - 2 q^2 = (-1)^k: x -> (1 + sqrt 2) x, k times."""
    p, q = 1, 0
    for _ in range(k):
        p, q = p + 2 * q, p + q
    return p, q


# --- sums that cancel ---


@pytest.mark.parametrize("k", [20, 80, 95, 96, 110, 701])
def test_T14g_a_dominant_part_however_small_decides_on_the_side(k):
    """M = [[1, 2], [1, 1]], and (p, -q) nearly where it shrinks: p - q sqrt 2 leads."""
    p, q = pell(k)
    assert p * p - 2 * q * q == (-1) ** k
    found = limit(EYE, [["0", "2"], ["1", "0"]], [[p, -q], [1, 0]])
    assert found == constant(float((-1) ** k))


def test_T14g_a_cosine_that_takes_more_bits_than_are_spent_is_left_open(monkeypatch):
    p, q = pell(700)
    case = {"A": EYE, "H": [["0", "2"], ["1", "0"]], "X0": [[p, -q], [1, 0]]}
    monkeypatch.setattr(cosines, "_MOST_BITS", 2000)
    assert verdict(**case).cosine_limits == {(0, 1): None}
    monkeypatch.setattr(cosines, "_MOST_BITS", 4096)
    assert verdict(**case).cosine_limits == {(0, 1): constant(1.0)}


@pytest.mark.parametrize(("k", "found"), [(12_000, constant(1.0)), (30_000, None)])
def test_T14g_a_cosine_takes_up_to_65536_bits(k, found):
    """The sum of p and -q sqrt 2 cancels to as many bits as both have together: 2.5 k."""
    p, q = pell(k)
    case = resolvent(matrix(EYE), matrix([["0", "2"], ["1", "0"]]), matrix([[p, -q], [1, 0]]))
    assert case is not None
    tokens = TokensOfStart(case, Multipliers(matrix(EYE), matrix([["0", "2"], ["1", "0"]]), 1), 2)
    assert tokens.cosines == {(0, 1): found}


def test_T14h_a_token_that_is_0_at_every_second_depth_leaves_that_residue_open():
    """Tokens 1 + (-1)^L and 3 (-1)^L."""
    found = limit(APART, [["-2"]], [[0], [2], [3]], (1, 2))
    assert found == CosineLimit("periodic", (1.0, None))
    assert limit(APART, [["-2"]], [[0], [2], [3]], (0, 1)) == UNDEFINED


def test_T14h_what_is_left_of_a_sum_that_cancels_may_turn_in_two_rounds():
    """Token 1 is (1 + (-1)^L, r_L), r_L = M^L (2, 0) with M half a quarter turn; token 2 stays at
    (0, 4/5, 2/5, 1). At odd depths r_L alone is left, and points up and down by turns."""
    H = [["-2", 0, 0, 0], [0, "-1", "-1/2", "1"], [0, "1/2", "-1", 0], [0, 0, 0, 0]]
    X0 = [[0, 2, 0, 0], [2, 2, 0, 0], ["0", "4/5", "2/5", "1"]]
    found = limit(APART, [[str(x) for x in row] for row in H], X0, (1, 2))
    up = 0.4 / math.sqrt(1.8)
    assert found.tends_to == "periodic"
    assert found.values == pytest.approx((0.0, up, 0.0, -up), abs=1e-15)


def test_T14g_a_vector_that_may_be_0_has_no_cosine():
    zero, one, wide = (
        [flint.arb(x), flint.arb(y)] for x, y in ((0, 0), (1, 0), (0, flint.arb(0, 1)))
    )
    for first, second in ((zero, one), (one, zero), (wide, one), (zero, zero)):
        assert cosines._cosine([first, second]) is None
    half = cosines._cosine([[flint.arb(1), flint.arb(1)], one])
    assert half.overlaps(flint.arb(2).rsqrt())


def test_T14g_no_cosine_leaves_its_interval_by_rounding():
    for value in (1, -1, 0.25):
        assert cosines._rounded(flint.arb(value, 2.0**-40)) == value
    assert cosines._rounded(flint.arb(1 + 2.0**-40)) == 1.0
    assert cosines._rounded(flint.arb(-1 - 2.0**-40)) == -1.0


def known(*sequences):
    """Tokens of one feature with these numerators and factors."""
    found = [
        token_of(part([numerator], *factors), ByModulus()) for numerator, *factors in sequences
    ]
    return TokensOfStart(None, ByModulus(), len(found)), found


TURNS, STAYS = ([2, -2, 1], 1), ([-1, 1], 1)


def test_T14h_what_is_left_has_the_sign_of_its_own_while_the_other_token_turns():
    """1 + Im (1 + i)^L beside Re (1 + i)^L: at L = 0 modulo 4 the first is 1, the second turns."""
    # 1 / (z - 1) + 1 / (z^2 - 2 z + 2), and (z - 1) / (z^2 - 2 z + 2).
    tokens, found = known(([1, -1, 1], TURNS, STAYS), ([-1, 1], TURNS))
    terms = [sequence(token.part, 40) for token in found]
    assert [x[0] for x in terms[0][:6]] == [1, 2, 3, 3, 1, -3]
    assert [x[0] for x in terms[1][:6]] == [1, 1, 0, -2, -4, -4]
    limit = tokens._by_residue((0, 1), tuple(found), 4)
    signs = [
        None if not y[0] else math.copysign(1, x[0] * y[0]) for x, y in zip(*terms, strict=True)
    ]
    assert limit == CosineLimit("periodic", tuple(signs[24:32]))


def test_T14h_what_is_left_by_two_multipliers_is_not_one_direction():
    """4^L + (-4)^L leaves at odd depths 2^L beside (2 i)^L: 4^k and (-4)^k."""
    whole = part([[0, 2]], ([-4, 1], 1), ([4, 1], 1))
    slower = part([[1, 3, 1]], ([-2, 1], 1), ([4, 0, 1], 1))
    both = [a[0] + b[0] for a, b in zip(sequence(whole, 6), sequence(slower, 6), strict=True)]
    numerator = whole.numerators[0] * slower.denominator
    numerator += slower.numerators[0] * whole.denominator
    summed = ([-4, 1], 1), ([4, 1], 1), ([-2, 1], 1), ([4, 0, 1], 1)
    tokens, (token,) = known((list(numerator), *summed))
    assert [x[0] for x in sequence(token.part, 6)] == both
    with pytest.raises(cosines._UnsettledError):
        tokens._every(0, token, 2, 1)
    assert tokens._every(0, token, 2, 0)(128)[0] > 0


def test_T14h_what_is_left_by_a_pair_that_turns_slowly_is_not_one_direction():
    """4^L + (-4)^L leaves at odd depths (2 + i)^L: 3 +- 4 i turn with a positive real part."""
    whole, slower = [0, 2], [-2, 1]
    summed = ([-4, 1], 1), ([4, 1], 1), ([5, -4, 1], 1)
    numerator = flint.fmpz_poly(whole) * flint.fmpz_poly([5, -4, 1])
    numerator += flint.fmpz_poly(slower) * flint.fmpz_poly([-16, 0, 1])
    tokens, (token,) = known((list(numerator), *summed))
    assert [x[0] for x in sequence(token.part, 4)] == [2 + 1, 0 + 2, 32 + 3, 0 + 2]
    with pytest.raises(cosines._UnsettledError):
        tokens._every(0, token, 2, 1)


# --- phases that turn ---


def test_T14h_slow_phases_are_seen_far_apart_and_slower_ones_prove_nothing():
    """Half a turn takes some 10^81 layers, or 10^90: a constant cosine would need a proof."""

    def turning(power):
        return [["1", f"-1e-{power}"], [f"5e-{power + 1}", "1"]]

    assert limit(EYE, turning(81), [[1, 0], [1, 1]]) == OSCILLATES
    assert limit(EYE, turning(90), [[1, 0], [1, 1]]) is None


def test_T14h_equal_values_at_all_residues_are_a_limit_where_one_eigenvalue_leads():
    # x and -x by turns in both tokens, of two features: the angle stays.
    assert limit(EYE, [["-3", "0"], ["0", "-3"]], [[1, 0], [1, 1]]) == constant(math.sqrt(1 / 2))
    quarter = [["0", "-1"], ["1", "0"]]
    assert limit(EYE, quarter, [[1, 0], [2, 0]]) == constant(1.0)


# --- what is not decided ---


class Refusing(Multipliers):
    """Decides between no two roots of which one is 4 times a multiplier of 5/4."""

    def _compare(self, first, second):
        if any(x.factor.degree == 1 and x.factor.rational_root == 5 for x in (first, second)):
            raise OutOfReachError
        return super()._compare(first, second)


def test_T14e_a_token_whose_growth_is_not_decided_takes_only_its_own_pairs_along():
    """diag(1/4, 1/2, 3/4), tokens 0 and 1 by one multiplier each, token 2 by two."""
    A, H = matrix(EYE), matrix([["1/4", 0], [0, "1/2"]])
    A = matrix([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    X0 = matrix([[0, 1], [0, 2], [1, 1]])
    found = resolvent(A, H, X0)
    assert found is not None and found.scale == 4
    tokens = cosines.TokensOfStart(found, Refusing(A, H, 4), 3)
    assert [g and g.rate for g in tokens.growth] == [1.5, 1.5, None]
    assert tokens.cosines == {(0, 1): constant(1.0), (0, 2): None, (1, 2): None}


def test_T14e_powers_of_L_are_whole_numbers_in_json():
    answer = verdict(A=EYE, H=[["-1", "0"], ["0", "1"]], X0=[[1, 0], [1, 1]])
    text = json.dumps(answer.to_json_object()["token_growth"])
    assert text == '[{"rate": 0.0, "power": 0}, {"rate": 2.0, "power": 0}]'
