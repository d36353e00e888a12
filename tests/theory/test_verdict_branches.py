"""T1-T6, T11: every way a verdict can come about, with what it says, by both ways of deciding."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from oversmoothing.theory.certificate import certify
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.depth import closed_form as closed_forms, ratios
from oversmoothing.theory.depth.ratios import (
    EXACT_DEPTH,
    ITERATED_DEPTH,
    Ratio,
    ball_ratios,
    floating_ratios,
    ratios_at,
)
from oversmoothing.theory.layer.layer import Layer, read_layer
from oversmoothing.theory.numbers.exact import exact_stationary
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict import decide, resolvent as resolvents
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.decide import compare_radii, limits_of_start
from oversmoothing.theory.verdict.disc_limits import Limits
from oversmoothing.theory.verdict.verdict import NEAR, answer, check_depths, verdict

EXACT = [["3/4", "1/4"], ["1/4", "3/4"]]
FLOAT = [[0.75, 0.25], [0.25, 0.75]]
A3 = [["4/5", "1/10", "1/10"], ["3/10", "3/5", "1/10"], ["1/2", "1/5", "3/10"]]
A3_FLOAT = [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]]


def of_start(case, start):
    compared = compare_radii(case)
    return limits_of_start(case, start, compared, compared.outcome)


def both(h):
    """One case with A = Aa (a = 1/2) and H = [h], in fractions and in binary64."""
    return verdict(A=EXACT, H=[[Fraction(h)]]), verdict(A=FLOAT, H=[[float(Fraction(h))]])


# --- radii, rate, margin and reason ---


def test_T5a_the_radii_of_a_strict_verdict_are_those_of_each_side():
    for found in both("1/2"):
        assert (found.verdict, found.rho_consensus) == ("SMOOTHING", pytest.approx(1.5))
        assert found.rho_quotient == pytest.approx(1.25)
        assert found.rate == pytest.approx(5 / 6) and found.margin == pytest.approx(0.25)
        assert "consensus dominates: |1 + h| = 1.5 (h = 0.5, a = 1)" in found.reason
        assert "|1 + h a| = 1.25 (h = 0.5, a = 0.5)" in found.reason
        assert "For generic X_0 HFC/LFC tends to 0, rank 1." in found.reason
    for found in both("-1/2"):
        assert found.verdict == "NON_SMOOTHING"
        assert "|1 + h a| = 0.75 (h = -0.5, a = 0.5) exceeds |1 + h| = 0.5" in found.reason
        assert "(h = -0.5, a = 1)" in found.reason
        assert "For generic X_0 HFC/LFC grows without bound, rank 1." in found.reason


@pytest.mark.parametrize(
    ("h", "a"), [("-5/2", "2/5"), ("-2", "1/2"), ("-7/3", "3/7"), ("3/2", "-2/3")]
)
def test_T5a_a_quotient_that_dies_at_once_has_radius_and_rate_0(h, a):
    """1 + h a = 0 in fractions whose parts no binary number holds."""
    a = Fraction(a)
    A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
    found = verdict(A=A, H=[[h]], X0=[[1], [2]], depth=2)
    assert found.verdict == "SMOOTHING"
    assert (found.rho_quotient, found.rate) == (0.0, 0.0)
    assert found.rho_consensus == pytest.approx(abs(1 + Fraction(h)), rel=1e-15)
    assert found.hfc_lfc[2].value == 0.0


def test_the_reason_names_the_dominant_pair_of_each_side_among_several():
    H, H_float = [[1, 0], [0, -4]], [[1.0, 0.0], [0.0, -4.0]]
    A, A_float = [["1/8", "7/8"], ["7/8", "1/8"]], [[0.125, 0.875], [0.875, 0.125]]
    for found in (verdict(A=A, H=H), verdict(A=A_float, H=H_float)):
        assert found.verdict == "NON_SMOOTHING"
        assert "|1 + h a| = 4 (h = -4, a = -0.75)" in found.reason
        assert "|1 + h| = 3, the largest at consensus (h = -4, a = 1)" in found.reason
    for found in (verdict(A=EXACT, H=H), verdict(A=FLOAT, H=H_float)):
        assert "|1 + h| = 3 (h = -4, a = 1)" in found.reason
        assert "|1 + h a| = 1.5 (h = 1, a = 0.5)" in found.reason


def test_a_tie_has_equal_radii_and_says_which_jordan_blocks_meet():
    found = verdict(A=EXACT, H=[["-4/3"]])
    assert found.verdict == "TIE" and found.margin == 0.0 and found.rate == 1.0
    assert found.rho_consensus == pytest.approx(1 / 3)
    assert "tie in modulus: |1 + h| = 0.333333" in found.reason
    assert "Jordan blocks of size 1 (consensus) and 1 (quotient)" in found.reason
    assert "goes like L^0" in found.reason
    block = verdict(A=[["1/2", "1/2"], ["1/2", "1/2"]], H=[[0, 1], [0, 0]])
    assert "Jordan blocks of size 2 (consensus) and 1 (quotient)" in block.reason
    assert "goes like L^-1" in block.reason
    assert "Jordan" not in both("1/2")[0].reason


def test_a_tie_in_floats_has_equal_radii_too():
    W_V = np.array([[1.0], [0.0], [0.0]])
    found = verdict(A=FLOAT, W=(W_V, -0.5 * W_V.T))
    assert (found.verdict, found.status) == ("TIE", "certified")
    assert found.rho_consensus == found.rho_quotient == 1.0 and found.margin == 0.0
    assert "tie in modulus" in found.reason


def test_an_undecided_case_shows_both_intervals_and_no_limit():
    found = verdict(A=FLOAT, H=[[-4 / 3]])
    assert found.verdict == "UNDECIDED" and found.tends_to is None and found.limit is None
    # Of one feature the rank is known, whichever mode leads.
    assert found.limit_rank == 1
    assert found.reason.count("0.333333333333 +- ") == 2
    assert found.rho_consensus == pytest.approx(1 / 3) == found.rho_quotient


# --- what depends on X_0 ---


def test_T4d_a_limit_that_depends_on_X_0_is_none_until_X_0_is_given():
    A, H = [["1/4", "3/4"], ["3/4", "1/4"]], [[-4, 0], [0, -1]]
    generic = verdict(A=A, H=H)
    assert (generic.tends_to, generic.limit, generic.verdict_x0) == ("constant", None, None)
    assert "a constant that depends on X_0" in generic.reason and not generic.has_x0
    found = verdict(A=A, H=H, X0=[[2, 1], [1, 3]])
    assert found.limit == pytest.approx(1 / 3) and found.has_x0 and found.verdict_x0 == "TIE"
    assert "For this X_0 HFC/LFC tends to 0.333333, rank 1." in found.reason


@pytest.mark.parametrize(
    ("X0", "expected"), [([[2, 0], [1, 0]], "SMOOTHING"), ([[0, 2], [0, 1]], "NON_SMOOTHING")]
)
def test_T4e_the_verdict_for_X_0_is_over_the_modes_it_contains(X0, expected):
    H = np.diag([0.5, -0.75])
    exact = verdict(A=EXACT, H=[["1/2", 0], [0, "-3/4"]], X0=X0)
    floating = verdict(A=FLOAT, H=H, X0=np.array(X0, dtype=float))
    for found in (exact, floating):
        assert found.verdict == "SMOOTHING" and found.verdict_x0 == expected
        assert found.tends_to == ("zero" if expected == "SMOOTHING" else "infinity")
        assert found.has_x0 and "verdict_x0" in found.to_json_object()


def test_T4e_in_floats_only_structure_makes_a_tie_among_the_modes_of_X_0():
    # Only the columns of h = 0 and -1/2: consensus 1 against (h, a) = (0, 1/2), also 1.
    H = np.diag([0.0, -0.5, 1.0])
    X0 = [[2.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    # |1 + h| = 1 with h = 0 stands on both sides by structure.
    found = verdict(A=FLOAT, H=H, X0=X0)
    assert (found.verdict, found.verdict_x0, found.tends_to) == ("SMOOTHING", "TIE", "constant")
    # 1 - 4/3 against 1 - 2/3, of which neither is a binary number: that is left open.
    H = np.diag([-4 / 3, -0.5, 1.0])
    X0 = [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    found = verdict(A=FLOAT, H=H, X0=X0)
    assert (found.verdict, found.verdict_x0, found.tends_to) == ("SMOOTHING", "UNDECIDED", None)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_T4e_radii_a_little_apart_decide_at_every_scale_of_X_0(size):
    signs = (1e-6, "SMOOTHING"), (-1e-6, "NON_SMOOTHING"), (1e-14, "SMOOTHING")
    for h, expected in (*signs, (-1e-300, "NON_SMOOTHING")):
        case, start = read_layer(FLOAT, [[h]], [[2 * size], [size]])
        assert of_start(case, start).outcome == expected
        grown, start = read_layer(FLOAT, [[1e3 + h, 0], [0, -0.5]], [[2 * size, 0], [size, 0]])
        assert of_start(grown, start).outcome == "SMOOTHING"


@pytest.mark.parametrize("apart", [0.0, 1.2e-16, -1.2e-16])
def test_T4e_radii_within_rounding_of_each_other_do_not_decide_however_large(apart):
    # 1 + 999 at consensus against 1 + 1998/2, up to a unit in the last place.
    given = FLOAT, [[999.0, 0], [0, 1998 * (1 + apart)]], [[2.0, 2.0], [2.0, -2.0]]
    assert of_start(*read_layer(*given)).outcome == "UNDECIDED"


def test_T4e_radii_thousands_of_units_apart_decide_however_large():
    given = FLOAT, [[999.0, 0], [0, 1998 * (1 - 3e-13)]], [[2.0, 2.0], [2.0, -2.0]]
    assert of_start(*read_layer(*given)).outcome == "SMOOTHING"


def test_T11_8_where_no_eigenbasis_is_trusted_the_reason_says_so_after_the_verdict():
    H = [[0.3, 1.0], [0.0, 0.3]]
    # Of the mean nothing is known but that it is close to 0.
    found = verdict(A=FLOAT, H=H, X0=[[1.0, 2.0], [-1.0, -2.0]], depth=3)
    assert (found.verdict, found.verdict_x0, found.tends_to) == ("SMOOTHING", "UNDECIDED", None)
    assert found.reason.startswith("consensus dominates")
    assert "too ill-conditioned to say which modes this X_0 contains" in found.reason
    # A Jordan block is no obstacle where every case that rounds to these floats agrees.
    shared = verdict(A=FLOAT, H=H, X0=[[1.0, 2.0], [3.0, 5.0]])
    assert (shared.verdict_x0, shared.tends_to, shared.limit_rank) == ("SMOOTHING", "zero", 1)
    flat = verdict(A=FLOAT, H=H, X0=[[1.0, 2.0], [1.0, 2.0]])
    assert flat.verdict_x0 == "TRIVIAL" and "too ill-conditioned" not in flat.reason
    # T4a asks for no eigenbasis.
    generic = verdict(A=FLOAT, H=H)
    assert (generic.verdict, generic.tends_to, generic.limit_rank) == ("SMOOTHING", "zero", 1)


@pytest.mark.parametrize("A", [EXACT, FLOAT])
def test_T11_a_state_at_consensus_stays_there_and_the_verdict_is_kept(A):
    one = 1 if A is EXACT else 1.0
    found = verdict(A=A, H=[[one]], X0=[[2 * one], [2 * one]], depth=[0, 2])
    assert (found.verdict, found.verdict_x0) == ("SMOOTHING", "TRIVIAL")
    assert found.reason.startswith("consensus dominates")
    assert "at consensus already" in found.reason and "For this X_0" in found.reason
    assert {k: r.value for k, r in found.hfc_lfc.items()} == {0: 0.0, 2: 0.0}
    # One column equal is not all of them.
    mixed = verdict(A=A, H=[[one, 0 * one], [0 * one, one]], X0=[[one, 2 * one], [one, 3 * one]])
    assert mixed.verdict_x0 == "SMOOTHING"


@pytest.mark.parametrize("A", [EXACT, FLOAT])
def test_T11_7_zero_is_checked_first(A):
    zero, one = (0, 1) if A is EXACT else (0.0, 1.0)
    found = verdict(A=A, H=[[one]], X0=[[zero], [zero]], depth=1)
    assert (found.verdict, found.verdict_x0, found.tends_to) == ("UNDEFINED", "UNDEFINED", None)
    assert found.reason == "X_0 = 0: every metric is 0/0 at every depth."
    assert found.rho_consensus == pytest.approx(2.0) and found.hfc_lfc == {1: Ratio(None, None)}
    part = verdict(A=A, H=[[one]], X0=[[zero], [one]])
    assert part.verdict_x0 == "SMOOTHING"


@pytest.mark.parametrize("one", [1, 1.0])
def test_T11_1_one_token_tends_to_0_unless_it_dies(one):
    found = verdict(A=[[one]], H=[[one]], X0=[[one]])
    assert (found.verdict, found.tends_to, found.limit, found.limit_rank) == (
        "TRIVIAL",
        "zero",
        0.0,
        1,
    )
    assert found.reason.startswith("one token only") and found.rho_consensus == 2.0
    generic = verdict(A=[[one]], H=[[one]])
    assert (generic.tends_to, generic.limit, generic.limit_rank) == ("zero", 0.0, 1)
    dead = verdict(A=[[one]], H=[[-one]])
    assert (dead.tends_to, dead.limit, dead.rho_consensus) == (None, None, 0.0)


def test_T11_a_state_that_becomes_exactly_0_is_undefined_from_there_on():
    found = verdict(A=EXACT, H=[[-2]], X0=[[1], [-1]], depth=[0, 1, 5])
    assert (found.verdict, found.verdict_x0) == ("SMOOTHING", "UNDEFINED")
    assert "From this X_0 the state becomes exactly 0." in found.reason
    assert found.hfc_lfc[0].value == math.inf and found.hfc_lfc[1].value is None


@pytest.mark.parametrize("one", [1, 1.0])
def test_T1_two_closed_classes_are_said_after_the_verdict_and_one_is_not(one):
    found = verdict(A=[[one, 0], [0, one]], H=[[one]])
    assert found.reason.startswith("tie in modulus") and "occurs 2 times" in found.reason
    causal = verdict(A=[[one, 0], [one / 2, one / 2]] if one != 1 or isinstance(one, float) else
                     [[1, 0], ["1/2", "1/2"]], H=[[one]])  # fmt: skip
    assert "occurs" not in causal.reason


# --- sizes ---


def diagonal(values):
    return [[x if i == j else 0 for j in range(len(values))] for i, x in enumerate(values)]


def test_limits_in_fractions_are_those_of_the_same_case_in_floats():
    n = 9
    rows = [[Fraction(1 + (i * j) % 7 + 5 * (i == j), 1) for j in range(n)] for i in range(n)]
    A = [[x / sum(row) for x in row] for row in rows]
    X0 = [[(3 * i + j) % 5 - 2 for j in range(2)] for i in range(n)]
    for H in (diagonal([Fraction(-1, 2), Fraction(-1, 4)]), diagonal([Fraction(1, 2), 1])):
        floats = [[float(x) for x in row] for row in H]
        A_float = [[float(x) for x in row] for row in A]
        for X in (None, X0):
            exact = verdict(A=A, H=H, X0=X)
            numerical = verdict(A=A_float, H=floats, X0=X)
            assert (exact.status, numerical.status) == ("exact", "certified")
            for name in ("verdict", "tends_to", "limit_rank", "verdict_x0"):
                assert getattr(exact, name) == getattr(numerical, name)
            assert exact.tends_to is not None
            assert exact.limit == pytest.approx(numerical.limit, rel=1e-9)
    flat = verdict(A=A, H=diagonal([Fraction(1, 2), 1]), X0=[[1, 2]] * n)
    assert flat.verdict_x0 == "TRIVIAL"


def test_fractions_too_large_for_an_exact_decision_are_rounded():
    for d, status in ((48, "exact"), (49, "certified")):
        found = verdict(A=EXACT, H=diagonal(list(range(1, d + 1))))
        assert (found.status, found.verdict) == (status, "SMOOTHING")
        assert found.rho_consensus == pytest.approx(1 + d)


def test_T11_5_deep_ratios_of_large_states_come_from_the_closed_form_in_order():
    case, start = read_layer(A3_FLOAT, [[-0.5]], [[1.0], [2.0], [4.0]])
    depths = [ITERATED_DEPTH + 1, 3, ITERATED_DEPTH, 10**6]
    found = floating_ratios(case, start, depths)
    assert list(found) == sorted(depths)
    pi = exact_stationary(case.rational_A, [[0, 1, 2]])
    balls = ball_ratios(case.rational_A, case.rational_H, start.fractions, pi, depths)
    for depth in depths:
        assert found[depth].log == pytest.approx(balls[depth].log, abs=1e-9)
        assert found[depth].value == pytest.approx(balls[depth].value, rel=1e-9)


def test_T11_5_a_ratio_beyond_the_floats_keeps_its_logarithm():
    case, start = read_layer(FLOAT, [[-0.5]], [[1.0], [2.0]])
    found = floating_ratios(case, start, [10**4])[10**4]
    # HFC/LFC starts at 1/3 and grows by (3/4)/(1/2) a layer.
    assert found.log == pytest.approx(10**4 * math.log(1.5) - math.log(3), rel=1e-9)
    assert found.value == math.inf


def test_T11_5_a_ratio_near_the_largest_float_has_a_value_as_long_as_one_exists():
    """HFC/LFC = (883/766)^L t for h = -234/1000; the largest binary64 has logarithm 709.78."""
    L = ITERATED_DEPTH + 1
    growth = L * math.log(883 / 766)
    for log, exists in ((709.5, True), (709.9, False)):
        t = math.exp(log - growth)
        case, start = read_layer(FLOAT, [[-0.234]], [[1 + t], [1 - t]])
        found = floating_ratios(case, start, [L])[L]
        assert found.log == pytest.approx(log, abs=1e-6)
        assert found.value == (pytest.approx(math.exp(log), rel=1e-6) if exists else math.inf)


@pytest.mark.parametrize("depth", [ITERATED_DEPTH, ITERATED_DEPTH + 1])
def test_T11_7_a_state_of_zeros_has_no_ratio_at_any_depth(depth):
    found = floating_ratios(*read_layer(FLOAT, [[0.5]], [[0.0], [0.0]]), [depth])
    assert found == {depth: Ratio(None, None)}


def test_T11_5_iteration_reaches_up_to_its_depth_and_the_closed_form_begins_beyond(monkeypatch):
    asked = []

    def spy(*, depths, **matrices):
        asked.extend(depths)
        return closed_form(**matrices, depths=depths)

    closed_form = closed_forms.closed_form
    monkeypatch.setattr(closed_forms, "closed_form", spy)
    case, start = read_layer(FLOAT, [[0.5]], [[1.0], [2.0]])
    found = floating_ratios(case, start, [ITERATED_DEPTH, ITERATED_DEPTH + 1])
    assert asked == [ITERATED_DEPTH + 1]
    # (5/4)/(3/2) a layer, from 1/3.
    for depth, ratio in found.items():
        assert ratio.log == pytest.approx(depth * math.log(5 / 6) - math.log(3), rel=1e-10)


def test_T11_5_the_squared_ratio_is_exact_up_to_its_depth_and_in_balls_beyond():
    case, start = read_layer(EXACT, [["1/2"]], [[1], [2]])
    found = ratios_at(case, start, [0, EXACT_DEPTH, EXACT_DEPTH + 1])
    assert found[0].squared == Fraction(1, 9)
    assert found[EXACT_DEPTH].squared == Fraction(5, 6) ** (2 * EXACT_DEPTH) / 9
    assert found[EXACT_DEPTH + 1].squared is None
    assert found[EXACT_DEPTH + 1].value == pytest.approx((5 / 6) ** (EXACT_DEPTH + 1) / 3)


@pytest.mark.parametrize(("n", "d", "balls"), [(2, 64, True), (2, 65, False), (65, 1, True)])
def test_T11_5_balls_are_for_states_of_up_to_64_coordinates_of_the_quotient(
    monkeypatch, n, d, balls
):
    """A = 11^T/n forgets HFC at once but for the residual: HFC stays, LFC grows by 1 + h."""
    asked = []

    def spy(A, H, X0, pi, depths):
        asked.append((len(A), len(H)))
        return ball_ratios(A, H, X0, pi, depths)

    monkeypatch.setattr(ratios, "ball_ratios", spy)
    X0 = np.ones((n, d))
    X0[0], X0[1] = 2.0, 0.0
    found = ratios_at(*read_layer(np.full((n, n), 1 / n), np.eye(d), X0), [3])[3]
    assert asked == ([(n, d)] if balls else [])
    # ||HFC||^2 = 2 d and ||LFC||^2 = n d at the start; 1 + h = 2.
    assert found.value == pytest.approx(math.sqrt(2 / n) / 2**3, rel=1e-12)


def test_T11_5_without_an_eigenbasis_every_depth_is_iterated():
    case, start = read_layer(FLOAT, [[0.5, 1.0], [0.0, 0.5]], [[1.0, 2.0], [3.0, 5.0]])
    found = floating_ratios(case, start, [ITERATED_DEPTH + 1])[ITERATED_DEPTH + 1]
    pi = [Fraction(1, 2)] * 2
    balls = ball_ratios(case.rational_A, case.rational_H, start.fractions, pi, [ITERATED_DEPTH + 1])
    assert found.log == pytest.approx(balls[ITERATED_DEPTH + 1].log, rel=1e-9)


def test_T11_rows_whose_sum_leaves_a_mersenne_prime_in_the_denominator_are_no_exception():
    """2^53 - 2 and a half as parts of rows that sum to 1 - 2^-61, a thing that softmax rows do."""
    A = [[1 - 2.0**-53, 2.0**-53 - 2.0**-61], [0.5, 0.5]]
    found = verdict(A=A, H=[[0.5]], X0=[[1.0], [2.0]], depth=3).hfc_lfc[3]
    exact = verdict(A=[[1, 0], ["1/2", "1/2"]], H=[["1/2"]], X0=[[1], [2]], depth=3).hfc_lfc[3]
    assert found.value == pytest.approx(exact.value, rel=1e-12)


# --- the object ---


def test_depths_are_sorted_distinct_layer_counts():
    assert check_depths(3) == [3] and check_depths(()) == [] and check_depths(0) == [0]
    assert check_depths([5, np.int64(2), 5]) == [2, 5]
    assert check_depths(x for x in (4, 1)) == [1, 4]
    for bad in (-1, True, 1.5, "3", [2, -1], None):
        with pytest.raises(InputError, match="must be an integer >= 0"):
            check_depths(bad)


def test_rate_and_margin_are_unknown_where_a_radius_is_and_infinite_where_consensus_dies():
    assert Verdict("NON_SMOOTHING", "exact", 0.0, 0.5, "").rate == math.inf
    assert Verdict("NON_SMOOTHING", "exact", 0.0, 0.5, "").margin == -0.5
    for radii in ((None, 0.5), (0.5, None), (None, None)):
        found = Verdict("UNDECIDED", "certified", *radii, "")
        assert found.rate is None and found.margin is None
    found = Verdict("SMOOTHING", "exact", 2.0, 0.5, "")
    assert (found.rate, found.margin) == (0.25, 1.5)


def test_the_json_object_of_a_verdict_has_every_field_and_no_infinity():
    found = Verdict(
        "NON_SMOOTHING",
        "exact",
        0.0,
        0.5,
        "why",
        "infinity",
        math.inf,
        1,
        "NON_SMOOTHING",
        {0: Ratio(0.5, -0.25, Fraction(1, 4)), 3: Ratio(math.inf, math.inf), 4: Ratio(None, None)},
        True,
    )
    assert found.to_json_object() == {
        "schema_version": 1,
        "verdict": "NON_SMOOTHING",
        "status": "exact",
        "about": "point",
        "rho_consensus": 0.0,
        "rho_quotient": 0.5,
        "rate": "inf",
        "margin": -0.5,
        "reason": "why",
        "tends_to": "infinity",
        "limit": "inf",
        "limit_rank": 1,
        "distance": None,
        "verdict_x0": "NON_SMOOTHING",
        "shows_from": None,
        "hfc_lfc_squared": {"0": "1/4"},
        "hfc_lfc": {"0": 0.5, "3": "inf", "4": None},
        "log_hfc_lfc": {"0": -0.25, "3": "inf", "4": None},
        "token_growth": None,
        "cosine_limits": None,
        "cos_min": None,
        "cos_mean": None,
    }
    bare = Verdict("TRIVIAL", "certified", 1.0, None, "")
    assert "hfc_lfc" not in bare.to_json_object() and bare.to_json_object()["rate"] is None


def test_T14_the_json_object_holds_how_each_token_grows_and_what_each_pair_tends_to():
    """h = -1/2: the difference of two tokens, 3/4 a layer, leads in both with opposite signs."""
    found = verdict(A=EXACT, H=[["-1/2"]], X0=[[1], [2]]).to_json_object()
    apart = {"tends_to": "constant", "values": [-1.0]}
    assert found["token_growth"] == [{"rate": 0.75, "power": 0}] * 2
    assert found["cosine_limits"] == [{"tokens": [0, 1], **apart}]
    assert found["cos_min"] == found["cos_mean"] == apart


def test_a_verdict_prints_as_its_answer_without_the_spectra():
    text = repr(both("1/2")[1])
    assert text.startswith("Verdict(verdict='SMOOTHING'") and "Spectrum" not in text
    assert both("1/2")[1].attention is not None and both("1/2")[1].value is not None


# --- the forms of input ---


def test_a_certificate_is_made_when_asked_for_and_only_then():
    for given in ({"H": [[0.5]]}, {"W": (np.array([[0.5]]), np.array([[1.0]]))}):
        assert "certified: " not in verdict(A=FLOAT, **given).reason
        found = verdict(A=FLOAT, **given, exact_binary=True, X0=[[1.0], [2.0]], depth=1)
        assert (found.status, found.verdict) == ("certified", "SMOOTHING")
        assert found.hfc_lfc[1].value == pytest.approx(5 / 18) and found.verdict_x0 == "SMOOTHING"


def test_a_verdict_says_whether_it_is_about_the_numbers_or_all_that_rounds_to_them():
    # The float nearest to -4/3 is on one side of the tie, the fraction on it.
    A = [[0.75, 0.25], [0.25, 0.75]]
    cell = verdict(A=A, H=[[-4 / 3]])
    point = verdict(A=A, H=[[-4 / 3]], exact_binary=True)
    assert (cell.verdict, cell.about, cell.status) == ("UNDECIDED", "cell", "numerical")
    assert (point.verdict, point.about, point.status) == ("NON_SMOOTHING", "point", "certified")
    exact = verdict(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[["-4/3"]])
    assert (exact.verdict, exact.about, exact.status) == ("TIE", "point", "exact")
    with pytest.warns(DeprecationWarning, match="exact_binary"):
        assert verdict(A=A, H=[[-4 / 3]], certified=True).to_json_object()["about"] == "point"


def test_logits_stand_for_the_softmax_of_their_rows():
    logits = np.array([[0.0, 1.0], [2.0, -1.0]])
    weights = np.exp(logits)
    A, X0 = weights / weights.sum(axis=1, keepdims=True), [[1.0], [2.0]]
    expected = verdict(A=A, H=[[-0.5]], X0=X0, depth=2)
    factors = (np.array([[-0.5]]), np.array([[1.0]]))
    for given in ({"H": [[-0.5]]}, {"W": [[-0.5]]}, {"W": factors}):
        found = verdict(logits=logits, **given, X0=X0, depth=2)
        assert found.verdict == expected.verdict and found.has_x0
        assert found.rho_quotient == pytest.approx(expected.rho_quotient)
        assert found.hfc_lfc[2].value == pytest.approx(expected.hfc_lfc[2].value)


def test_T6b_the_largest_block_on_each_side_is_the_one_that_counts():
    """A with 1, 0, 1/2 and H = (-2) + J_2(0): every dominant modulus is 1, blocks are 1 and 2."""
    A = [["7/12", "1/12", "1/3"], ["1/12", "7/12", "1/3"], ["1/3", "1/3", "1/3"]]
    found = verdict(A=A, H=[[-2, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert found.verdict == "TIE" and found.rho_consensus == 1.0
    assert "Jordan blocks of size 2 (consensus) and 2 (quotient)" in found.reason


def test_a_validated_case_gets_no_certificate_by_default():
    case = Layer.of(FLOAT, [[0.5]])
    assert "certified: " not in answer(case, None, []).reason
    assert answer(case, None, [], True).reason.startswith("certified: ")


# --- a start with more modes than are told apart ---


@pytest.fixture
def few_modes(monkeypatch):
    """As if two modes were too many to compute with."""
    monkeypatch.setattr(resolvents, "LARGEST_ORDER", 1)


@pytest.mark.parametrize(
    ("h", "expected", "tends_to"),
    [("1/2", "SMOOTHING", "zero"), ("-1/2", "NON_SMOOTHING", None), ("-4/3", "TIE", None)],
)
def test_T4e_a_start_with_every_mode_goes_as_generic_ones_do(few_modes, h, expected, tends_to):
    found = verdict(A=EXACT, H=[[h]], X0=[[1], [2]])
    assert (found.verdict, found.verdict_x0, found.tends_to) == (expected, expected, tends_to)


def test_T4e_of_a_start_with_too_many_modes_and_not_all_of_them_nothing_is_said(few_modes):
    H = [["1/2", 0], [0, "1/2"]]
    found = verdict(A=EXACT, H=H, X0=[[1, 2], [2, 5]])
    assert (found.verdict, found.verdict_x0) == ("SMOOTHING", "UNDECIDED")
    assert found.tends_to is None and "too many modes" in found.reason
    flat = verdict(A=EXACT, H=[["1/2"]], X0=[[2], [2]])
    assert (flat.verdict_x0, flat.tends_to) == ("TRIVIAL", "zero")


def test_T4c_the_generic_rank_is_that_of_the_matching_whatever_a_draw_proves(monkeypatch):
    """rho_C = 0, the quotient keeps its one mode: rank 1 without a look at any X_0."""
    monkeypatch.setattr(decide, "_drawn_limits", lambda *_: Limits("infinity", math.inf, None))
    for h in (-1, "-1/2"):
        assert verdict(A=EXACT, H=[[h]]).limit_rank == 1


def test_T2_near_a_tie_is_within_a_thousandth_of_the_larger_radius():
    """h = -4/3 + t: 1/3 - t against 1/3 + t/2, apart by 3 t/2."""
    for share, near in ((Fraction(999, 1000), True), (Fraction(1001, 1000), False)):
        # 3 t/2 = share NEAR (1/3 + t/2)
        t = share * Fraction(NEAR) / (3 * (Fraction(3, 2) - share * Fraction(NEAR) / 2))
        found = verdict(A=EXACT, H=[[Fraction(-4, 3) + t]])
        assert found.verdict == "NON_SMOOTHING" and (found.distance is not None) == near
    # Between a thousandth of the smaller and of the larger radius.
    t = Fraction(NEAR) * Fraction(2, 9) * (1 - Fraction(NEAR) / 12)
    assert verdict(A=EXACT, H=[[Fraction(-4, 3) + t]]).distance is not None


def test_T2_a_radius_of_1e_100_is_found_to_all_its_digits():
    """h = -1 +- sqrt 2 / 10^100 as roots of an irreducible polynomial: 1 + h cancels."""
    H = [[-1, 2], [Fraction(1, 10**200), -1]]
    for found in (verdict(A=[[1]], H=H), verdict(A=EXACT, H=H)):
        assert found.rho_consensus == pytest.approx(math.sqrt(2) * 1e-100, rel=1e-15, abs=0)


def test_T2_a_product_that_cancels_is_found_to_all_its_digits():
    """h = -2 +- sqrt 2 / 10^60 and a = 1/2 +- sqrt 2 / 10^61: |1 + h a| is half of the one and
    twice the other."""
    A = [
        [1, 0, 0],
        ["4/10", "1/2", "1/10"],
        [Fraction(1, 2) - Fraction(2, 10**121), "2e-121", "1/2"],
    ]
    found = verdict(A=A, H=[[-2, 1], ["2e-120", -2]])
    assert found.verdict == "SMOOTHING" and found.status == "exact"
    assert found.rho_quotient == pytest.approx(0.7 * math.sqrt(2) * 1e-60, rel=1e-14, abs=0)


@pytest.mark.parametrize("power", [20, 40, 60, 100])
def test_T2_real_eigenvalues_as_close_as_can_be_are_no_complex_pair(power):
    """h = 2 +- 10^-(power/2) and -2, a = -1: rho_C = 3 + 10^-(power/2) against |1 + 2| = 3."""
    swap = [[0, 1], [1, 0]]
    for sign, expected in ((1, "SMOOTHING"), (-1, "NON_SMOOTHING")):
        # h = -2 +- ...: the difference, with a = -1, is what is larger.
        H = [[2 * sign, 1, 0], [f"1e-{power}", 2 * sign, 0], [0, 0, -2 * sign]]
        found = verdict(A=swap, H=H, X0=[[1, 2, 3], [3, 5, -4]])
        assert (found.verdict, found.verdict_x0) == (expected, expected)
        assert check_certificate(json.dumps(certify(Layer.of(swap, H)))).accepted


# --- eigenvectors in floats, and what is asked beyond them ---
