"""Every golden case: exact where exact values are known, else to the digits on record."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from oversmoothing.theory.claims.golden import golden_cases
from oversmoothing.theory.depth.ratios import exact_state, squared_norms
from oversmoothing.theory.layer.attention import perron_deviation, stationary_distribution
from oversmoothing.theory.verdict.verdict import verdict

CASES = golden_cases()
IDS = list(CASES)
DEEP = [1, 2, 5, 20, 40]


def result_for(case):
    return verdict(A=case.A, H=case.H, X0=case.X0, depth=DEEP)


@pytest.mark.parametrize("name", IDS)
def test_verdict_and_tendency(name):
    case = CASES[name]
    result = result_for(case)
    assert result.status == "exact"
    assert result.verdict == case.verdict
    assert result.tends_to == case.expected["tends_to"]
    if "limit_rank" in case.expected:
        assert result.limit_rank == case.expected["limit_rank"]
    if "limit" in case.expected:
        expected = {"1/3": 1 / 3, "8*sqrt(2)/5": 8 * np.sqrt(2) / 5}[case.expected["limit"]]
        assert result.limit == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", IDS)
def test_squared_ratio_is_the_exact_fraction(name):
    case = CASES[name]
    result = result_for(case)
    for depth, value in case.expected["hfc_lfc_squared"].items():
        assert result.hfc_lfc[int(depth)].squared == Fraction(value)


@pytest.mark.parametrize("name", IDS)
def test_ratio_matches_the_forty_digits_on_record_and_a_60_digit_recomputation(name):
    case = CASES[name]
    result = result_for(case)
    for depth, value in case.expected["hfc_lfc"].items():
        hfc, lfc = squared_norms(exact_state(case.A, case.H, case.X0, [int(depth)])[int(depth)])
        with mpmath.workdps(60):
            again = mpmath.sqrt(mpmath.mpf(hfc.numerator) / hfc.denominator)
            again /= mpmath.sqrt(mpmath.mpf(lfc.numerator) / lfc.denominator)
            recorded = mpmath.mpf(value)
            assert abs(again - recorded) <= mpmath.mpf(10) ** -39 * max(recorded, 1)
        assert result.hfc_lfc[int(depth)].value == pytest.approx(float(again), rel=1e-12, abs=0)


@pytest.mark.parametrize("name", IDS)
def test_floats_come_to_the_same_verdict_or_say_undecided(name):
    case = CASES[name]
    A, H, X0 = (np.array([[float(x) for x in r] for r in m]) for m in (case.A, case.H, case.X0))
    result = verdict(A=A, H=H, X0=X0, depth=DEEP)
    assert result.verdict in (case.verdict, "UNDECIDED")
    for depth, value in case.expected["hfc_lfc"].items():
        # The case in binary64 is the rounded case: rates move by an ulp, powers by depth ulps.
        assert result.hfc_lfc[int(depth)].value == pytest.approx(float(value), rel=1e-13, abs=0)


def test_T11_5_a_million_layers():
    result = verdict(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[[1]], X0=[[1], [2]], depth=10**6)
    assert result.hfc_lfc[10**6].log == pytest.approx(-287683.17106406955, rel=1e-15)
    assert f"{result.hfc_lfc[10**6].log:.5f}" == "-287683.17106"


def test_GT11_floor_of_T1f():
    A3 = np.array([[4 / 5, 1 / 10, 1 / 10], [3 / 10, 3 / 5, 1 / 10], [1 / 2, 1 / 5, 3 / 10]])
    floor = 1 / (np.sqrt(3) * perron_deviation(stationary_distribution(A3)))
    assert floor == pytest.approx(1.4645040518764252, rel=1e-14)


def test_T7b_rotating_weights_smooth_although_every_layer_alone_does_not():
    """W_l = -g_l g_l^T with g_(l+1) = R g_l, one fixed symmetric A: the clip fails when untied."""
    A = CASES["GT1"].A
    R = [[Fraction(4, 5), Fraction(-3, 5)], [Fraction(3, 5), Fraction(4, 5)]]
    g = [Fraction(1), Fraction(0)]
    X = [[Fraction(1), Fraction(2)], [Fraction(3), Fraction(5)]]
    ratios = {}
    for layer in range(1, 41):
        H = [[-x * y for y in g] for x in g]
        assert verdict(A=A, H=H).verdict != "SMOOTHING", "every layer alone"
        X = exact_state(A, H, X, [1])[1]
        hfc, lfc = squared_norms(X)
        ratios[layer] = hfc / lfc
        g = [sum(r * y for r, y in zip(row, g, strict=True)) for row in R]
    assert ratios[1] == Fraction(10, 49)
    assert ratios[2] == Fraction(493, 3136)
    for layer, value in {10: 0.08168, 20: 0.03307, 40: 0.003428}.items():
        assert float(ratios[layer]) ** 0.5 == pytest.approx(value, rel=2e-4)


def test_T7c_attention_that_follows_the_state_can_freeze_the_ratio():
    """A = softmax(x x^T), h = 1/2, x_0 = (2, -1): HFC/LFC stays at 2.816756; (.3, -.2) smooths."""

    def ratio_after(x, layers):
        for _ in range(layers):
            logits = np.outer(x, x)
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            x = x + 0.5 * (weights / weights.sum(axis=1, keepdims=True)) @ x
        return np.linalg.norm(x - x.mean()) / (np.sqrt(2) * abs(x.mean()))

    assert ratio_after(np.array([2.0, -1.0]), 60) == pytest.approx(2.816756, abs=5e-7)
    assert ratio_after(np.array([0.3, -0.2]), 60) < 1e-3


def test_radii_on_record():
    GT8, GT10 = result_for(CASES["GT8"]), result_for(CASES["GT10"])
    assert GT8.rho_consensus**2 == pytest.approx(17 / 4, rel=1e-15)
    assert GT8.rho_quotient == 1.0
    assert GT10.rho_consensus**2 == pytest.approx(1 / 2, rel=1e-15)
    assert result_for(CASES["GT1"]).rate == pytest.approx(5 / 6, rel=1e-15)
    assert result_for(CASES["GT18"]).rate == 0.0
