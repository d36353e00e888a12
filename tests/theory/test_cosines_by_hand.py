"""T14e-T14i: growth token by token and cosines pair by pair, on cases worked by hand."""

import json
import math
from fractions import Fraction
from statistics import fmean
from types import SimpleNamespace as Some

import flint
import pytest

from oversmoothing.theory.verdict.cosines import (
    OSCILLATES,
    UNDEFINED,
    CosineLimit,
    TokensOfStart,
    keep_their_angle,
    over_pairs,
)
from oversmoothing.theory.verdict.resolvent import resolvent
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.cases import cases
from tests.support.tables import matrix
from tests.theory.test_leading_by_hand import ByModulus, part

EYE, EYE3 = "1 0; 0 1", "diag 1 1 1"
CHAIN4 = "1 0 0 0; 1/2 1/2 0 0; 1/4 1/4 1/2 0; 1/4 1/8 1/8 1/2"
ROOT = math.sqrt(1 / 2)


def found(A, H, X0):
    return verdict(A=matrix(A), H=matrix(H), X0=matrix(X0))


def constant(value):
    return CosineLimit("constant", (value,))


def periodic(*values):
    return CosineLimit("periodic", values)


# --- growth ---


@cases(
    "A, H, X0, growth",
    ("LOST", "-1/2", "1; 3; 2", [(0.5, 0), (0.75, 0), (0.875, 0)]),
    # A chain of equal diagonals adds a power of L at each token.
    (CHAIN4, "-1/2", "1; 3; -2; 5", [(0.5, 0), (0.75, 0), (0.75, 1), (0.75, 2)]),
    (EYE, "-1", "1; 2", [(0, 0)] * 2),
    (EYE, "1", "0; 0", [(0, 0)] * 2),
    (EYE, "-1 0; 0 1", "1 0; 1 1", [(0, 0), (2, 0)]),
    ("1", "1", "3", [(2, 0)]),
    # No rate that is not 0 becomes 0 in floats.
    (EYE, f"-1 0; 0 {-(10**400)}/1{'0' * 399}", "0 1; 1 0", [(9.0, 0), (0.0, 0)]),
    (EYE, f"{Fraction(1, 10**400) - 1}", "1; 2", [(5e-324, 0)] * 2),
)
def test_T14e_each_token_has_its_own_rate_and_power_of_L(A, H, X0, growth):
    answer = found(A, H, X0)
    assert [(g.rate, g.power) for g in answer.token_growth] == growth
    # Powers of L are whole numbers in JSON.
    table = json.dumps(answer.to_json_object()["token_growth"])
    assert table == json.dumps([{"rate": float(r), "power": p} for r, p in growth])


def test_T14e_short_binary_numbers_are_taken_at_their_word_and_others_say_nothing():
    floats = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]
    answer = verdict(A=floats, H=[[-0.5]], X0=[[1.0], [3.0], [2.0]])
    assert answer.cos_min == constant(-1.0)
    assert answer.token_growth == found("LOST", "-1/2", "1; 3; 2").token_growth
    assert verdict(A=matrix(EYE), H=[["1"]]).token_growth is None
    rounded = verdict(A=[[0.7, 0.3], [0.3, 0.7]], H=[[0.1]], X0=[[1.0], [2.0]])
    assert rounded.token_growth is rounded.cosine_limits is rounded.cos_min is None
    assert rounded.to_json_object()["cosine_limits"] is None


# --- cosines of cases ---

CASES = [
    # A token without the dominant mode turns by its own.
    ("LOST", "-1/2", "1; 3; 2",
     {(0, 1): constant(1.0), (0, 2): constant(-1.0), (1, 2): constant(-1.0)}),
    # A negative multiplier of both cancels, of one alternates; apart there is nothing in common.
    (EYE, "-3", "1; -2", constant(-1.0)),
    (EYE, "1 0; 0 -3", "1 0; 0 1", constant(0.0)),
    (EYE, "1 -4; 0 -3", "1 0; 1 1", periodic(ROOT, -ROOT)),
    # A power of L more turns the sign of a negative multiplier.
    (EYE, "-3 1; 0 -3", "1 0; 1 1", constant(-1.0)),
    (EYE, "1 1; 0 1", "1 0; 1 1", constant(1.0)),
    ("FLAT", "-2", "0; 2", UNDEFINED),
    (EYE, "-1 0; 0 1", "1 0; 1 1", UNDEFINED),
    (EYE, "1", "0; 0", UNDEFINED),
    ("1", "1", "3", {}),
    # A rotation keeps angles and a sheared one does not.
    (EYE, "0 -1; 1 0", "1 0; 1 1", constant(ROOT)),
    (EYE, "1 -2; 2 1", "1 0; 1 1", constant(ROOT)),
    (EYE, "1 -2; 1 1", "1 0; 1 1", OSCILLATES),
    (EYE, "-3 0; 0 -3", "1 0; 1 1", constant(ROOT)),
    (EYE, "0 -1; 1 0", "1 0; 2 0", constant(1.0)),
    # Tokens that agree by a complex h, or are alike however they turn.
    ("FLAT", "1 -2; 1 1", "1 0; 1 1", constant(1.0)),
    ("0 0 1; 0 0 1; 1/2 1/2 0", "1 -2; 1 1", "1 0; 1 0; 3 4", {(0, 1): constant(1.0)}),
    ("0 1 0 0; 0 0 1/2 1/2; 1 0 0 0; 1 0 0 0", "-2", "1; 2; 5; 5",
     {(2, 3): constant(1.0), (0, 3): OSCILLATES}),
    # The cycle of three goes by residues modulo 6 at -1 alone.
    ("CYCLE", "-1", "1; 2; 5", {(0, 1): periodic(1.0, 1.0, -1.0, -1.0, -1.0, -1.0)}),
    # Half a turn takes some 6000 layers, 10^81, 10^90: a constant cosine would need a proof.
    (EYE, "1 -1/1000; 1/2000 1", "1 0; 1 1", OSCILLATES),
    (EYE, "1 -1e-81; 5e-82 1", "1 0; 1 1", OSCILLATES),
    (EYE, "1 -1e-90; 5e-91 1", "1 0; 1 1", None),
    # Tokens 1 + (-1)^L and 3 (-1)^L: the first is 0 at every second depth.
    ("APART", "-2", "0; 2; 3", {(1, 2): periodic(1.0, None), (0, 1): UNDEFINED}),
    # One real simple a leads, where h turns; with a = 1 three times there is none.
    ("A3", "-1/2 -1; 1/16 -1/2", "1 2; 3 5; -2 1",
     {(0, 1): constant(1.0), (1, 2): constant(-1.0), (0, 2): constant(-1.0)}),
    (EYE3, "1/2 -1; 1/16 1/2", "1 0; 1 1; 2 0", {(0, 1): OSCILLATES, (0, 2): constant(1.0)}),
    ("LOST", "-1/2 -1; 1/16 -1/2", "1 2; 3 5; -2 1", {(0, 1): OSCILLATES, (1, 2): OSCILLATES}),
    # Tokens r x and x beside parts that die out, of an H whose other features turn.
    *[(EYE3, "-1 0 0; 0 1/2 -1; 0 1/16 1/2", [[5, 2 * r, r], [7, 2, 1], [0, 1, 2]],
       {(0, 1): constant(math.copysign(1.0, r)), (0, 2): OSCILLATES})
      for r in map(Fraction, ("1", "3", "-1/3", "100/97"))],
    # A rational factor may leave nothing at all; of no root in common it says nothing.
    (EYE3, "1/2 -1 0; 1/16 1/2 0; 0 0 3", "2 1 0; 6 3 0; 0 0 1",
     {(0, 1): constant(1.0), (0, 2): constant(0.0)}),
]  # fmt: skip


@pytest.mark.parametrize(("A", "H", "X0", "limits"), CASES)
def test_T14g_the_cosine_of_two_tokens(A, H, X0, limits):
    seen = found(A, H, X0).cosine_limits
    for pair, limit in (limits if isinstance(limits, dict) else {(0, 1): limits}).items():
        if limit is None:
            assert seen[pair] is None
            continue
        assert seen[pair].tends_to == limit.tends_to, (pair, seen[pair])
        pairs = zip(seen[pair].values, limit.values, strict=True)
        assert all(x == (y if y is None else pytest.approx(y, rel=1e-14)) for x, y in pairs)
    assert limits != {} or not seen


@cases(
    "A, H, X0, least, average",
    ("LOST", "-1/2", "1; 3; 2", constant(-1.0), constant(-1 / 3)),
    ("CYCLE", "-1", "1; 2; 5", constant(-1.0), constant(-1 / 3)),
    ("CYCLE", "-2", "1; 2; 5", None, None),
    ("CYCLE", "1/2", "1; 2; 5", constant(1.0), constant(1.0)),
    (EYE, "-1 0; 0 1", "1 0; 1 1", UNDEFINED, UNDEFINED),
)
def test_T14i_the_least_and_the_mean_cosine(A, H, X0, least, average):
    answer = found(A, H, X0)
    for seen, limit in ((answer.cos_min, least), (answer.cos_mean, average)):
        assert (seen is None) == (limit is None)
        if limit is not None and seen.tends_to == "constant":
            assert seen.values == pytest.approx(limit.values)


def test_T14h_a_sum_that_cancels_at_some_depths_leaves_what_grows_more_slowly():
    """Token 1 is (1 + (-1)^L) u and, of a third h, (1/2)^L v: at odd depths v is left."""
    turning = found("FLAT", "-2 0; 0 -1/2", "0 2; -2 2").cosine_limits[0, 1]
    assert turning.tends_to == "constant"
    for L in (30, 31):
        x, y = ([(-1) ** L * -1 + sign, 2 * 0.5**L] for sign in (1, -1))
        cosine = (x[0] * y[0] + x[1] * y[1]) / math.hypot(*x) / math.hypot(*y)
        assert turning.values[L % len(turning.values)] == pytest.approx(cosine, abs=1e-6)


def test_T14h_what_is_left_of_a_sum_that_cancels_may_turn_in_two_rounds():
    """Token 1 is (1 + (-1)^L, r_L), r_L = M^L (2, 0) with M half a quarter turn; token 2 stays at
    (0, 4/5, 2/5, 1). At odd depths r_L alone is left, and points up and down by turns."""
    H = "-2 0 0 0; 0 -1 -1/2 1; 0 1/2 -1 0; 0 0 0 0"
    seen = found("APART", H, "0 2 0 0; 2 2 0 0; 0 4/5 2/5 1").cosine_limits[1, 2]
    up = 0.4 / math.sqrt(1.8)
    assert seen.tends_to == "periodic"
    assert seen.values == pytest.approx((0.0, up, 0.0, -up), abs=1e-15)


def test_T14h_irrational_tokens_at_a_right_angle_stay_there():
    """H + I = O (S (x) R) O^T, S = [[2, 1], [1, -1]] with irrational eigenvalues, R a quarter turn
    and O orthogonal; the tokens are O (1, 0, 3, 4) and a quarter turn of it: balls around 0 alone
    are no two values."""
    H = "-1 -2/21 -6/7 -43/21; 2/21 -1 9/7 -10/21; 6/7 -9/7 -1 -3/7; 43/21 10/21 3/7 -1"
    answer = found(EYE, H, "19/21 -16/3 68/7 -298/21; 208/21 -37/3 26/7 164/21")
    assert answer.cosine_limits[0, 1] == answer.cos_min == answer.cos_mean == constant(0.0)


def test_T14g_a_negative_cosine_is_the_nearest_float_too():
    assert found(EYE, "0 0; 0 0", "1 2; -2 -1").cos_min == constant(-0.8)


def test_T14_the_answer_in_words_and_in_JSON():
    answer, turning = found("LOST", "-1/2", "1; 3; 2"), found("CYCLE", "-2", "1; 2; 5")
    assert "Its tokens do not all grow alike: like 0.5^L, 0.75^L, 0.875^L." in answer.reason
    table, limit = answer.to_json_object(), {"tends_to": "constant", "values": [-1.0]}
    assert table["cosine_limits"][1] == {"tokens": [0, 2]} | limit and table["cos_min"] == limit
    assert turning.to_json_object()["cosine_limits"][0]["values"] == []


# --- sums that nearly cancel ---


def pell(k):
    """(p, -q) with p^2 - 2 q^2 = (-1)^k: x -> (1 + sqrt 2) x, k times; p - q sqrt 2 leads."""
    p, q = 1, 0
    for _ in range(k):
        p, q = p + 2 * q, p + q
    assert p * p - 2 * q * q == (-1) ** k
    return [[p, -q], [1, 0]]


@pytest.mark.parametrize("k", [20, 80, 95, 96, 110, 701])
def test_T14g_a_dominant_part_however_small_decides_on_the_side(k):
    assert found(EYE, "0 2; 1 0", pell(k)).cosine_limits[0, 1] == constant(float((-1) ** k))


@pytest.mark.parametrize(("k", "limit"), [(12_000, constant(1.0)), (30_000, None)])
def test_T14g_a_cosine_takes_up_to_65536_bits(k, limit):
    """The sum of p and -q sqrt 2 cancels to as many bits as both have together: 2.5 k."""
    A, H, X0 = matrix(EYE), matrix("0 2; 1 0"), matrix(pell(k))
    tokens = TokensOfStart(resolvent(A, H, X0))
    assert tokens.cosines == {(0, 1): limit}


class Order(ByModulus):
    """Neither an eigenvalue of A nor a rational factor helps."""

    @staticmethod
    def pairs(root):
        return [Some(attention=None)]


def tokens_of(*parts):
    """Of these parts; any sum of two grows like the first."""
    found = Some(
        scale=1,
        table=flint.fmpz_mat(len(parts), 1),
        part=lambda rows: parts[0] if 1 not in rows[0] else parts[rows[0].index(1)],
    )
    return TokensOfStart(found), found


# 1 +- 2i, whose powers are never real; 2; -2; 3 +- 4i.
TURNING, TWO, LESS, OTHER = ([5, -2, 1], 1), ([-2, 1], 1), ([2, 1], 1), ([25, -6, 1], 1)


# M^L e_1 for M = [[1, -2], [2, 1]] has the numerators z - 1 and 2: g . g = 0 at 1 + 2i.
SPUN, MOVED = [[-1, 1], [2]], [[-3, 1], [1, 1]]


BY_TURNS = [[0, 2], [4]]  # (1, 1) 2^L + (1, -1) (-2)^L


NOTHING = [[0], [0]]


@cases(
    "first, second, expected",
    # Sizes that may vanish: one pair leads and the tokens are multiples of each other.
    (([[1], [0]], TURNING), ([[3], [0]], TURNING), True),
    (([[1], [0]], TURNING), ([[1, 1], [0]], TURNING), False),
    (([[1], [3]], TURNING), ([[2], [6]], TURNING), True),
    (([[0], [2, 1]], TURNING), ([[0], [6, 3]], TURNING), True),
    (([[1], [0]], TURNING), ([[-3], [0]], TURNING), True),
    (([[1], [0]], TURNING), ([[0], [1]], TURNING), False),
    (([*SPUN, [0]], TURNING), ([[0], [0], [1]], TURNING), False),
    (([[0], [0], [1]], TURNING), ([*SPUN, [0]], TURNING), False),
    (([[1]], TURNING), ([[1]], OTHER), False),
    # 2^L - (-2)^L is 0 at every second depth, (1, 1) of both at every other.
    (([[4]], TWO, LESS), ([[8]], TWO, LESS), False),
    (([[0, 2], [0, 2]], TWO, LESS), ([[0, 2], [0, 2]], TWO, LESS), False),
    # Features apart, whatever leads, or rational roots with orthogonal directions.
    (([*SPUN, *NOTHING], TURNING), ([*NOTHING, *SPUN], TURNING), True),
    (([[1], [0]], TWO), ([[0], [1]], TWO), True),
    (([[1], [1]], TWO), ([[1], [-1]], LESS), True),
    (([[1], [1]], TWO), ([[1], [-2]], LESS), False),
    ((BY_TURNS, TWO, LESS), ([[1], [-1]], TWO), False),
    (([[1], [-1]], TWO), (BY_TURNS, TWO, LESS), False),
    (([[1], [0]], TWO), ([[1], [1]], LESS), False),
    # One pair keeps sizes and products where its squares vanish.
    ((SPUN, TURNING), (SPUN, TURNING), True),
    ((SPUN, TURNING), (MOVED, TURNING), True),
    ((MOVED, TURNING), (SPUN, TURNING), True),
    ((SPUN, TURNING), ([[-1, 1], [-2]], TURNING), False),
    ((SPUN, TURNING), (SPUN, OTHER), False),
    # 2 and -2 lead with independent directions: no pair of conjugates, and no one h.
    ((BY_TURNS, TWO, LESS), ([[0, 4], [6]], TWO, LESS), False),
)
def test_T14h_two_tokens_keep_their_angle(first, second, expected):
    parts = [part(numerators, *factors, order=Order) for numerators, *factors in (first, second)]
    assert keep_their_angle((0, 1), tuple(parts), tokens_of(*parts)[1]) == expected


def test_T14h_what_may_return_by_residues_is_not_said_to_oscillate():
    """17 values by turns, of roots of 1 of degree 16, whose order is not looked for."""
    of_unity = [1] * 17, 1
    first, second = (
        part(numerators, of_unity, order=Order) for numerators in ([[1], [0, 1]], [[1, 2], [3]])
    )
    assert tokens_of(first, second)[0].cosines == {(0, 1): None}


HALF, BOTH = constant(0.5), periodic(1.0, -1.0)


@cases(
    "limits, features, least, average",
    ([HALF, periodic(1.0, None)], 2, HALF, periodic(0.75, 0.5)),
    ([periodic(1.0, None), periodic(0.5, None)], 2, periodic(0.5, None), periodic(0.75, None)),
    ([HALF, UNDEFINED], 2, HALF, HALF),
    ([UNDEFINED], 2, UNDEFINED, UNDEFINED),
    ([], 2, UNDEFINED, UNDEFINED),
    ([HALF, None], 2, None, None),
    ([HALF, OSCILLATES], 2, None, None),
    # Of one feature a pair at -1 is the smallest whatever the others do.
    ([constant(-1.0), OSCILLATES], 1, constant(-1.0), None),
    ([constant(-1.0), OSCILLATES], 2, None, None),
    ([constant(1.0), OSCILLATES], 1, None, None),
    ([BOTH, None], 1, None, None),
    ([BOTH, periodic(-1.0, 1.0)], 1, constant(-1.0), constant(0.0)),
    # The last digit of a float is no difference.
    ([periodic(0.1 + 0.2, 0.3)], 2, None, None),
    # Periods of up to 240 layers.
    ([periodic(1.0, *[0.5] * 15), periodic(*[0.25] * 15)], 2, None,
     periodic(*[0.625 if k % 16 == 0 else 0.375 for k in range(240)])),
    ([periodic(*[0.5] * 16), periodic(*[0.25] * 17)], 2, None, None),
    ([periodic(*[0.5] * 241)], 2, None, None),
)  # fmt: skip
def test_T14i_cos_min_and_cos_mean_over_residues(limits, features, least, average):
    assert [over_pairs(limits, of, features) for of in (min, fmean)] == [least, average]
