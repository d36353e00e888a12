"""T14e-T14i: growth token by token and cosines pair by pair, on cases worked by hand."""

import math
from fractions import Fraction

import pytest

from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, factors
from oversmoothing.theory.verdict.cosines import CosineLimit, mean, smallest
from oversmoothing.theory.verdict.tokens import real_power
from oversmoothing.theory.verdict.verdict import verdict

EYE = [["1", "0"], ["0", "1"]]
FLAT = [["1/2", "1/2"], ["1/2", "1/2"]]
LOST = [["1", "0", "0"], ["1/2", "1/2", "0"], ["1/4", "1/2", "1/4"]]
CYCLE = [["0", "1", "0"], ["0", "0", "1"], ["1", "0", "0"]]


def found(A, H, X0):
    return verdict(A=A, H=H, X0=X0)


def growth(A, H, X0):
    return [(g.rate, g.power) for g in found(A, H, X0).token_growth]


def limit(A, H, X0, pair=(0, 1)):
    return found(A, H, X0).cosine_limits[pair]


def constant(value):
    return CosineLimit("constant", (value,))


# --- growth ---


def test_each_token_of_a_causal_mask_has_its_own_rate():
    assert growth(LOST, [["-1/2"]], [[1], [3], [2]]) == [(0.5, 0), (0.75, 0), (0.875, 0)]


def test_a_chain_of_equal_diagonals_adds_a_power_of_L_at_each_token():
    A = [["1", "0", "0", "0"], ["1/2", "1/2", "0", "0"], ["1/4", "1/4", "1/2", "0"],
         ["1/4", "1/8", "1/8", "1/2"]]  # fmt: skip
    assert growth(A, [["-1/2"]], [[1], [3], [-2], [5]]) == [
        (0.5, 0), (0.75, 0), (0.75, 1), (0.75, 2)
    ]  # fmt: skip


def test_a_token_that_becomes_0_has_rate_0_and_no_cosine():
    answer = found(EYE, [["-1"]], [[1], [0]])
    assert answer.verdict_x0 == "UNDEFINED" and growth(EYE, [["-1"]], [[1], [2]]) == [(0, 0)] * 2
    mixed = found(EYE, [["-1", "0"], ["0", "1"]], [[1, 0], [1, 1]])
    assert [(g.rate, g.power) for g in mixed.token_growth] == [(0, 0), (2, 0)]
    assert mixed.cosine_limits == {(0, 1): CosineLimit("undefined")}
    assert mixed.cos_min == mixed.cos_mean == CosineLimit("undefined")
    assert "Token 0 is exactly 0 from some depth on." in mixed.reason


def test_no_rate_that_is_not_0_becomes_0_in_floats():
    tiny = "1/" + "1" + "0" * 400
    A = [["1", "0"], ["0", "1"]]
    answer = growth(A, [["-1", "0"], ["0", f"-1{'0' * 400}/1{'0' * 399}"]], [[0, 1], [1, 0]])
    assert answer == [(9.0, 0), (0.0, 0)]
    slow = [[str(Fraction(tiny) - 1)]]
    assert growth(A, slow, [[1], [2]]) == [(5e-324, 0)] * 2


def test_X0_of_0_and_one_token():
    answer = found(EYE, [["1"]], [[0], [0]])
    assert growth(EYE, [["1"]], [[0], [0]]) == [(0, 0)] * 2
    assert answer.cosine_limits == {(0, 1): CosineLimit("undefined")}
    alone = found([["1"]], [["1"]], [[3]])
    assert alone.cosine_limits == {} and growth([["1"]], [["1"]], [[3]]) == [(2, 0)]


def test_without_a_start_or_from_rounded_floats_nothing_is_said():
    assert verdict(A=EYE, H=[["1"]]).token_growth is None
    rounded = verdict(A=[[0.7, 0.3], [0.3, 0.7]], H=[[0.1]], X0=[[1.0], [2.0]])
    assert rounded.token_growth is rounded.cosine_limits is rounded.cos_min is None
    assert rounded.to_json_object()["cosine_limits"] is None


def test_short_binary_numbers_are_taken_at_their_word():
    floats = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]
    answer = verdict(A=floats, H=[[-0.5]], X0=[[1.0], [3.0], [2.0]])
    assert answer.cos_min == constant(-1.0)
    assert answer.token_growth == found(LOST, [["-1/2"]], [[1], [3], [2]]).token_growth


# --- one multiplier each ---


def test_a_token_without_the_dominant_mode_turns_by_its_own():
    answer = found(LOST, [["-1/2"]], [[1], [3], [2]])
    assert answer.cosine_limits == {
        (0, 1): constant(1.0), (0, 2): constant(-1.0), (1, 2): constant(-1.0)
    }  # fmt: skip
    assert answer.cos_min == constant(-1.0)
    assert answer.cos_mean.values == pytest.approx((-1 / 3,))


def test_a_negative_multiplier_of_both_cancels_and_of_one_alternates():
    assert limit(EYE, [["-3"]], [[1], [-2]]) == constant(-1.0)
    H = [["1", "0"], ["0", "-3"]]
    # 2 and -2 in different tokens that have no feature in common.
    assert limit(EYE, H, [[1, 0], [0, 1]]) == constant(0.0)
    # 5/2 leads nothing here: -2 leads token 1, 2 token 2, at 45 degrees in a sheared basis.
    sheared = [["1", "-4"], ["0", "-3"]]
    turning = limit(EYE, sheared, [[1, 0], [1, 1]])
    assert turning.tends_to == "periodic"
    assert turning.values == pytest.approx((math.sqrt(1 / 2), -math.sqrt(1 / 2)))


def test_a_power_of_L_more_turns_the_sign_of_a_negative_multiplier():
    assert limit(EYE, [["-3", "1"], ["0", "-3"]], [[1, 0], [1, 1]]) == constant(-1.0)
    assert limit(EYE, [["1", "1"], ["0", "1"]], [[1, 0], [1, 1]]) == constant(1.0)


# --- several ---


def test_multipliers_1_and_minus_1_leave_no_depth_with_a_cosine():
    assert limit(FLAT, [["-2"]], [[0], [2]]) == CosineLimit("undefined")


def test_a_sum_that_cancels_at_some_depths_leaves_what_grows_more_slowly():
    # Token 1 is (1 + (-1)^L) u and, of a third h, (1/2)^L v: at odd depths v is left.
    H = [["-2", "0"], ["0", "-1/2"]]
    turning = limit(FLAT, H, [[0, 2], [-2, 2]])
    assert turning.tends_to == "periodic"
    for L in (30, 31):
        x = [(-1) ** L * -1 + 1, 2 * 0.5**L]
        y = [(-1) ** L * -1 - 1, 2 * 0.5**L]
        cosine = (x[0] * y[0] + x[1] * y[1]) / math.hypot(*x) / math.hypot(*y)
        assert turning.values[L % len(turning.values)] == pytest.approx(cosine, abs=1e-6)


def test_a_rotation_keeps_angles_and_a_sheared_one_does_not():
    assert limit(EYE, [["0", "-1"], ["1", "0"]], [[1, 0], [1, 1]]).values == (math.sqrt(1 / 2),)
    assert limit(EYE, [["1", "-2"], ["2", "1"]], [[1, 0], [1, 1]]) == constant(math.sqrt(1 / 2))
    assert limit(EYE, [["1", "-2"], ["1", "1"]], [[1, 0], [1, 1]]) == CosineLimit("oscillates")


def test_tokens_that_agree_by_a_complex_h_have_the_cosine_1():
    assert limit(FLAT, [["1", "-2"], ["1", "1"]], [[1, 0], [1, 1]]) == constant(1.0)


def test_tokens_alike_have_the_cosine_1_however_they_turn():
    A = [["0", "0", "1"], ["0", "0", "1"], ["1/2", "1/2", "0"]]
    assert limit(A, [["1", "-2"], ["1", "1"]], [[1, 0], [1, 0], [3, 4]]) == constant(1.0)
    A = [["0", "1", "0", "0"], ["0", "0", "1/2", "1/2"], ["1", "0", "0", "0"], ["1", "0", "0", "0"]]
    assert limit(A, [["-2"]], [[1], [2], [5], [5]], (2, 3)) == constant(1.0)
    assert limit(A, [["-2"]], [[1], [2], [5], [5]], (0, 3)) == CosineLimit("oscillates")


def test_the_cycle_of_three_goes_by_residues_modulo_6_at_minus_1_alone():
    answer = found(CYCLE, [["-1"]], [[1], [2], [5]])
    assert answer.cosine_limits[0, 1].values == (1.0, 1.0, -1.0, -1.0, -1.0, -1.0)
    assert answer.cos_min == constant(-1.0)
    assert found(CYCLE, [["-2"]], [[1], [2], [5]]).cos_mean is None
    assert found(CYCLE, [["1/2"]], [[1], [2], [5]]).cos_min == constant(1.0)


def test_slow_phases_are_seen_to_turn():
    # Eigenvalues of H are 1 +- i/1000: half a turn takes some 6000 layers.
    H = [["1", "-1/1000"], ["1/2000", "1"]]
    assert limit(EYE, H, [[1, 0], [1, 1]]) == CosineLimit("oscillates")


# --- phases and roots ---


@pytest.mark.parametrize(
    ("matrix", "power"),
    [
        ([[0, -1], [1, 0]], 2),
        ([[1, -1], [1, 1]], 4),
        ([[0, -1], [1, 1]], 3),
        ([[2, -1], [1, 1]], 6),
        ([[1, -2], [2, 1]], None),
        ([[0, 0, 2], [1, 0, 0], [0, 1, 0]], 3),
        ([[3, 0], [0, 3]], 1),
    ],
)
def test_the_least_real_power_of_a_root(matrix, power):
    factor = factors([[Fraction(x) for x in row] for row in matrix])[0]
    roots = [Eigenvalue(factor, k) for k in range(factor.degree)]
    assert {real_power(x) for x in roots if not x.is_real or factor.degree == 1} == {power}


def test_real_roots_that_agree_to_25_digits_are_their_own_conjugates():
    import flint

    x, big = flint.fmpz_poly([0, 1]), flint.fmpz(10) ** 25
    p = (x - big) * (x - big - 1) * (x - big - 2) * (x - 3) - 1
    assert len(p.factor()[1]) == 1
    assert Factor(p, 1, (1,)).conjugate_index == [0, 1, 2, 3]


# --- over pairs ---


def test_cos_min_and_cos_mean_over_residues():
    one, turning = constant(0.5), CosineLimit("periodic", (1.0, None))
    assert smallest([one, turning], 2) == CosineLimit("periodic", (0.5, 0.5))
    assert mean([one, turning], 2) == CosineLimit("periodic", (0.75, 0.5))
    gone = CosineLimit("undefined")
    assert mean([one, gone], 2) == one and mean([gone], 2) == smallest([], 2) == gone
    assert mean([one, None], 2) is None and smallest([one, CosineLimit("oscillates")], 2) is None


def test_of_one_feature_a_pair_at_minus_1_is_the_smallest_whatever_the_others_do():
    assert smallest([constant(-1.0), CosineLimit("oscillates")], 1) == constant(-1.0)
    assert smallest([constant(1.0), CosineLimit("oscillates")], 1) is None
    assert smallest([CosineLimit("periodic", (1.0, -1.0)), None], 1) is None
    by_turns = [CosineLimit("periodic", (1.0, -1.0)), CosineLimit("periodic", (-1.0, 1.0))]
    assert smallest(by_turns, 1) == constant(-1.0)


def test_the_answer_in_words_and_in_JSON():
    answer = found(LOST, [["-1/2"]], [[1], [3], [2]])
    assert "Its tokens do not all grow alike: like 0.5^L, 0.75^L, 0.875^L." in answer.reason
    assert "The smallest cosine between tokens tends to -1." in answer.reason
    table = answer.to_json_object()
    assert table["token_growth"][2] == {"rate": 0.875, "power": 0}
    assert table["cosine_limits"][1] == {
        "tokens": [0, 2], "tends_to": "constant", "values": [-1.0]
    }  # fmt: skip
    assert table["cos_min"] == {"tends_to": "constant", "values": [-1.0]}
    turning = found(CYCLE, [["-2"]], [[1], [2], [5]])
    assert "The cosines of 3 of 3 pairs of tokens oscillate." in turning.reason
    assert turning.to_json_object()["cosine_limits"][0]["values"] == []
