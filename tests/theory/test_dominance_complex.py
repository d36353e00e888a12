"""T3: complex spectra. The dominant eigenvalue of A is the one farthest from -1/h."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from oversmoothing.theory.ask import verdict
from oversmoothing.theory.layer.golden import golden_case
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.numbers.rational import from_flint, to_flint, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors
from oversmoothing.theory.verdict import exact_comparison
from oversmoothing.theory.verdict.dominance import (
    disc,
    disc_form,
    dominance,
    in_universal_disc,
    safe_interval,
)
from oversmoothing.theory.verdict.exact_comparison import EXACT_BITS, Mode, compare, exact_dominance
from tests.support.float_cases import disc_points

EPS = np.finfo(float).eps

complex_h = st.tuples(st.floats(-4, 4), st.floats(-4, 4)).map(lambda p: complex(*p))


@given(complex_h, disc_points())
def test_T3b_disc_form_is_the_difference_of_squared_moduli(h, a):
    difference = abs(1 + h) ** 2 - abs(1 + h * a) ** 2
    assert disc_form(h, a) == pytest.approx(difference, abs=64 * EPS * (1 + abs(h)) ** 2)


@given(complex_h, disc_points())
def test_T3b_consensus_loses_inside_the_disc_and_wins_outside(h, a):
    centre, radius = disc(a)
    distance = abs(h - centre) - radius
    assume(abs(distance) > 1e-9 * (1 + radius) ** 2)
    assert (abs(1 + h) < abs(1 + h * a)) == (distance < 0)


@given(disc_points())
def test_T3b_every_disc_has_0_on_its_boundary(a):
    centre, radius = disc(a)
    assert abs(centre) == pytest.approx(radius, rel=1e-12)


@given(complex_h.filter(lambda h: abs(h) > 1e-3), st.lists(disc_points(), min_size=1, max_size=6))
def test_T3a_the_dominant_mode_is_farthest_from_minus_1_over_h(h, points):
    a = np.array([*points, 1.0 + 0j])
    assert np.abs(1 + h * a) == pytest.approx(abs(h) * np.abs(a + 1 / h), rel=1e-9, abs=1e-12)


@given(
    st.tuples(st.floats(0, 1), st.floats(-np.pi, np.pi)).map(
        lambda p: -0.5 + 0.5 * p[0] * np.exp(1j * p[1])
    ),
    disc_points(),
)
@settings(max_examples=300)
def test_T3c_inside_the_universal_disc_some_mode_of_every_conjugate_pair_wins(h, a):
    assume(abs(h) > 1e-6 and abs(1 - a) > 1e-6)
    # In exact terms the gain is at least |h|^2 (1-|a|)^2 + ...; allow for rounding at the boundary.
    gain = max(abs(1 + h * a), abs(1 + h * a.conjugate())) - abs(1 + h)
    assert gain > -8 * EPS


@given(complex_h)
def test_T3c_outside_the_universal_disc_some_real_a_near_1_lets_consensus_win(h):
    assume(not in_universal_disc(h) and abs(abs(h + 0.5) - 0.5) > 1e-3)
    a = 1 - 1e-6
    assert disc_form(h, a) > 0


def test_T3c_the_universal_disc_contains_its_real_diameter_without_0():
    assert in_universal_disc(-1.0) and in_universal_disc(-0.5 + 0.5j) and in_universal_disc(-1e-300)
    assert not in_universal_disc(0.0) and not in_universal_disc(-1.0000001)


@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_T3c_a_contraction_parameterises_H_that_never_smooths(d, n, seed):
    """H = -(I - K)/2 with ||K||_2 < 1 is NON_SMOOTHING for every positive A."""
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((d, d))
    K *= rng.uniform(0, 0.999) / np.linalg.norm(K, 2)
    A = rng.dirichlet(np.ones(n), size=n)
    assume(A.min() > 1e-9)
    assert verdict(A=A, H=-(np.eye(d) - K) / 2).verdict == "NON_SMOOTHING"


@given(st.floats(-1, -1e-3), disc_points())
def test_T3d_a_real_h_in_minus_1_0_loses_to_every_mode(h, a):
    assume(abs(a) < 1 - 1e-9)
    assert abs(1 + h * a) > abs(1 + h) - 4 * EPS


def test_T3e_real_part_in_minus_1_0_is_not_enough():
    result = verdict(A=golden_case("GT8").A, H=golden_case("GT8").H)
    assert result.verdict == "SMOOTHING"
    assert result.rho_consensus**2 == pytest.approx(17 / 4)


def test_T3e_positive_real_part_does_not_force_smoothing():
    C3 = [["1/10", "4/5", "1/10"], ["1/10", "1/10", "4/5"], ["4/5", "1/10", "1/10"]]
    result = verdict(A=C3, H=[["1/5", "-3/2"], ["3/2", "1/5"]])
    assert result.verdict == "NON_SMOOTHING"
    assert result.rho_consensus**2 == pytest.approx(3.69)
    assert result.rho_quotient**2 == pytest.approx(3.800753, abs=5e-7)


@given(own.attention(3, 4), own.with_complex_pair())
@settings(max_examples=60)
def test_T3f_joint_conjugates_tie_and_the_winner_has_opposite_signs(A, pair):
    H, _ = pair
    found = exact_dominance(A, H)
    for mode in found.quotient:
        a, h = complex(mode.attention.ball(64).mid()), complex(mode.value.ball(64).mid())
        assert a.imag * h.imag <= 1e-15
        if a.imag * h.imag < 0:
            assert abs(1 + h * a) > abs(1 + h * a.conjugate())


@given(own.attention(2, 4), own.with_complex_pair())
@settings(max_examples=60)
def test_exact_radii_agree_with_lapack_for_complex_spectra(A, pair):
    H, h = pair
    result = verdict(A=A, H=H)
    a = np.linalg.eigvals(to_float(A))
    a = np.delete(a, np.argmin(np.abs(a - 1)))
    found = dominance(a, np.array([h, h.conjugate()]))
    assert result.rho_consensus == pytest.approx(found.rho_consensus, rel=1e-9)
    # Repeated eigenvalues of A lose half of their digits in floating point.
    assert result.rho_quotient == pytest.approx(found.rho_quotient, rel=1e-4)


@given(st.lists(disc_points(0.99), min_size=1, max_size=5), st.floats(-8, -1e-3))
def test_safe_interval_is_where_a_real_h_loses_to_some_mode(points, h):
    a = np.array(points)
    s = safe_interval(a)
    assume(abs(h + s) > 1e-9 * (1 + s))
    assert (dominance(a, np.array([h])).margin < 0) == (-s < h)


def test_an_irrational_tie_is_proved():
    """q (1 + a_1) = -2 with a_1 = -1/sqrt(24): T2d says TIE; no precision separates the radii."""
    A = [["5/12", "1/2", "1/12"], ["5/12", "1/3", "1/4"], ["1/6", "7/12", "1/4"]]
    A = [[Fraction(x) for x in row] for row in A]
    B = to_flint(rational_quotient(A))
    assert [f.degree for f in factors(rational_quotient(A))] == [2], "the example is irrational"
    H = from_flint((flint.fmpq_mat(2, 2, [1, 0, 0, 1]) + B).inv() * (-2))
    found = exact_dominance(A, H)
    assert found.comparison == 0
    assert found.bits_needed > 64, "proved by the gap bound, not by structure"
    assert verdict(A=A, H=H).verdict == "TIE"
    H[0][0] += Fraction(1, 10**30)
    assert verdict(A=A, H=H).verdict in ("SMOOTHING", "NON_SMOOTHING")


def test_a_comparison_out_of_reach_keeps_every_mode_and_proves_no_equality(monkeypatch):
    """h = -1 +- sqrt(2): |1 + h| = sqrt(2) twice, which only the gap bound can prove."""
    H = [[Fraction(-1), Fraction(2)], [Fraction(1), Fraction(-1)]]
    mixing = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    apart = [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]
    assert [exact_dominance(A, H).comparison for A in (mixing, apart)] == [1, 0]
    monkeypatch.setattr(exact_comparison, "gap_bits", lambda *modes: 2.0 * EXACT_BITS)
    found = exact_dominance(mixing, H)
    assert len(found.consensus) == 2 and found.comparison == 1
    assert found.bits_needed == 2 * EXACT_BITS
    # a = 1 twice: each mode of the quotient is one of consensus, but the largest is not proved.
    assert exact_dominance(apart, H).comparison is None


@given(own.attention(2, 4), own.exact_cases(max_d=2))
@settings(max_examples=60)
def test_comparison_of_modes_is_antisymmetric(A, case):
    H = case[1]
    modes = [
        Mode(a, h)
        for a in [None, *eigenvalues(factors(rational_quotient(A)))]
        for h in eigenvalues(factors(H))
    ]
    first, second = modes[0], modes[-1]
    forward, backward = compare(first, second)[0], compare(second, first)[0]
    assert forward is not None and forward == -backward
