"""T2: which eigenvalue dominates when both spectra are real. Exact arithmetic throughout."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.verdict.formulas import dominance, real_verdict, safe_interval, threshold
from oversmoothing.theory.verdict.verdict import verdict


def brute_force(h_values, a_values) -> str:
    """The verdict from all pairs, by squares of fractions."""
    consensus = max((1 + h) ** 2 for h in h_values)
    quotient = max((1 + h * a) ** 2 for h in h_values for a in a_values)
    if consensus == quotient:
        return "TIE"
    return "SMOOTHING" if consensus > quotient else "NON_SMOOTHING"


@given(own.fractions(-4, 3), own.attention_spectra(2, 2))
def test_T2a_the_ends_of_an_interval_bound_the_modulus_inside(h, ends):
    a, b = sorted(ends)
    assert (1 + h * b) ** 2 <= max((1 + h * a) ** 2, (1 + h) ** 2)
    if a < b and h != 0:
        assert (1 + h * b) ** 2 < max((1 + h * a) ** 2, (1 + h) ** 2)


def test_T2b_identity():
    h, a = sp.symbols("h a", real=True)
    assert sp.expand((1 + h) ** 2 - (1 + h * a) ** 2 - h * (1 - a) * (2 + h * (1 + a))) == 0


@given(own.fractions(-6, 3), own.attention_spectra(1, 1))
def test_T2b_threshold_of_a_single_h(h, spectrum):
    a = spectrum[0]
    expected = "NON_SMOOTHING" if threshold(a) < h < 0 else "SMOOTHING"
    if h in (0, threshold(a)):
        expected = "TIE"
    assert brute_force([h], [a]) == expected == real_verdict(h, h, a)


@given(own.attention_spectra(1, 1), st.sampled_from([0, 1, -1]), st.integers(1, 40))
def test_T2b_at_the_threshold_the_closed_form_ties_and_next_to_it_does_not(spectrum, side, k):
    a = spectrum[0]
    h = threshold(a) + side * Fraction(1, 10**k)
    expected = {0: "TIE", 1: "NON_SMOOTHING", -1: "SMOOTHING"}[side]
    if side == 1 and h >= 0:
        return
    assert real_verdict(h, h, a) == expected


@given(own.real_spectra(), own.attention_spectra())
def test_T2c_four_corners_decide(h_values, a_values):
    q, p, a = min(h_values), max(h_values), min(a_values)
    consensus = max((1 + p) ** 2, (1 + q) ** 2)
    corner = max((1 + q * a) ** 2, (1 + p * a) ** 2)
    quotient = max((1 + h * b) ** 2 for h in h_values for b in a_values)
    assert (quotient > consensus) == (corner > consensus)
    assert (quotient == consensus) == (corner == consensus) or corner < quotient == consensus


@given(own.real_spectra(), own.attention_spectra())
@settings(max_examples=400)
def test_T2d_closed_form_equals_all_pairs(h_values, a_values):
    closed = real_verdict(min(h_values), max(h_values), min(a_values))
    assert closed == brute_force(h_values, a_values)


@given(st.lists(own.fractions(-1, 0).filter(bool), min_size=1, max_size=5), own.attention_spectra())
def test_T2d_i_all_h_in_minus_1_0_never_smooth(h_values, a_values):
    assert brute_force(h_values, a_values) == "NON_SMOOTHING"


@given(own.real_spectra())
def test_T2d_ii_universal_set_for_a_whole_spectrum(h_values):
    """NON_SMOOTHING for every positive A iff some maximiser of |1 + h_j| lies in [-1, 0)."""
    radius = max((1 + h) ** 2 for h in h_values)
    safe = any((1 + h) ** 2 == radius and -1 <= h < 0 for h in h_values)
    # Witnesses for the converse: A with a_1 close to 1 on either side of what the spectrum needs.
    tests = [Fraction(k, 1000) for k in range(-999, 1000, 37)] + [Fraction(999999, 10**6)]
    outcomes = {brute_force(h_values, [a]) for a in tests}
    assert safe == (outcomes == {"NON_SMOOTHING"})


def test_T2d_iii_some_positive_h_does_not_force_smoothing():
    assert real_verdict(Fraction(-4), Fraction(1), Fraction(-3, 4)) == "NON_SMOOTHING"


def test_the_spectrum_minus_6_5_and_minus_1_2_never_smooths_although_it_leaves_the_interval():
    h_values = [Fraction(-6, 5), Fraction(-1, 2)]
    for k in range(-999, 1000, 13):
        assert brute_force(h_values, [Fraction(k, 1000)]) == "NON_SMOOTHING"


@given(own.real_spectra(0, 4), own.attention_spectra())
def test_T2e_an_eigenvalue_0_forbids_strict_smoothing_when_the_rest_is_in_minus_1_0(rest, spectrum):
    h_values = [Fraction(0), *(h for h in rest if -1 <= h <= 0)]
    assert brute_force(h_values, spectrum) != "SMOOTHING"


@given(own.two_token_attention(), own.value_projections(3))
@settings(max_examples=200)
def test_the_exact_verdict_is_the_closed_form(attention, projection):
    (A, a), (H, h_values) = attention, projection
    result = verdict(A=A, H=H)
    assert result.status == "exact"
    assert result.verdict == real_verdict(min(h_values), max(h_values), a)
    assert result.verdict == brute_force(h_values, [a])
    assert result.rho_consensus == pytest.approx(float(max(abs(1 + h) for h in h_values)))
    assert result.rho_quotient == pytest.approx(float(max(abs(1 + h * a) for h in h_values)))


@given(own.two_token_attention(), st.integers(1, 18), st.sampled_from([-1, 0, 1]))
def test_near_ties_are_decided_exactly_and_never_wrongly_in_floats(attention, k, side):
    A, a = attention
    h = threshold(a) + side * Fraction(1, 10**k)
    truth = brute_force([h], [a])
    assert verdict(A=A, H=[[h]]).verdict == truth
    # The float case is its own case (rounded A and h): it may be undecided, and where it is
    # decided against the fractions the margin must be within the rounding of the input.
    rounded = verdict(A=to_float(A), H=[[float(h)]])
    if rounded.verdict not in (truth, "UNDECIDED"):
        assert abs(rounded.margin) <= 1e-14 * (1 + abs(float(h)))


@given(own.exact_cases())
@settings(max_examples=150)
def test_the_numerical_verdict_agrees_with_the_exact_one_or_says_undecided(case):
    A, H, _ = case
    exact = verdict(A=A, H=H)
    numerical = verdict(A=to_float(A), H=to_float(H))
    # Short binary numbers are what they say: where rounding would decide, they are decided so.
    assert numerical.status == "numerical" or numerical.verdict == exact.verdict
    assert numerical.verdict in (exact.verdict, "UNDECIDED")
    if exact.margin is not None and abs(exact.margin) > 1e-3:
        assert numerical.verdict == exact.verdict


@given(own.attention_spectra())
def test_the_safe_interval_of_a_real_spectrum_ends_at_2_over_1_plus_a_1(spectrum):
    s = safe_interval(np.array([float(a) for a in spectrum]))
    assert s == pytest.approx(float(2 / (1 + min(spectrum))))


@given(own.real_spectra(), own.attention_spectra())
def test_dominance_in_floats_names_the_winning_pairs(h_values, a_values):
    a, h = (np.array([float(x) for x in values]) for values in (a_values, h_values))
    found = dominance(a, h)
    assert found.rho_consensus == abs(1 + h[found.consensus_index])
    i, j = found.quotient_index
    assert found.rho_quotient == abs(1 + a[i] * h[j])
    assert (np.abs(1 + np.outer(a, h)) <= found.rho_quotient).all()
