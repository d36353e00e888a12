"""T3: complex spectra. The dominant eigenvalue of A is the one farthest from -1/h."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from oversmoothing.theory.claims.golden import golden_case
from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.exact import from_flint, to_flint, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors
from oversmoothing.theory.verdict import by_fractions
from oversmoothing.theory.verdict.by_fractions import (
    EXACT_BITS,
    ExactDominance,
    Mode,
    all_modes,
    compare,
    exact_dominance,
    gap_bits,
    generic_rank,
)
from oversmoothing.theory.verdict.formulas import (
    disc,
    disc_form,
    dominance,
    in_universal_disc,
    safe_interval,
)
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.float_cases import disc_points
from tests.support.tables import matrix

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
    result = verdict(A=matrix("C3"), H=[["1/5", "-3/2"], ["3/2", "1/5"]])
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
    H, mixing, apart = matrix("-1 2; 1 -1"), matrix("AA"), matrix("1 0; 0 1")
    assert [exact_dominance(A, H).comparison for A in (mixing, apart)] == [1, 0]
    monkeypatch.setattr(by_fractions, "gap_bits", lambda *modes: 2.0 * EXACT_BITS)
    found = exact_dominance(mixing, H)
    assert len(found.consensus) == 2 and found.comparison == 1
    assert found.bits_needed == 2 * EXACT_BITS
    # a = 1 twice: each mode of the quotient is one of consensus, but the largest is not proved.
    assert exact_dominance(apart, H).comparison is None


# --- the parts of a proof ---

HALF, FLAT = matrix("AA"), matrix("FLAT")


def test_T14_a_further_eigenvalue_1_of_A_is_consensus_by_structure():
    apart = matrix([[1, 0], [0, 1]])
    for H in (matrix([["1/2"]]), matrix([[0, -2], [1, 0]])):
        found = exact_dominance(apart, H)
        assert found.comparison == 0 and found.bits_needed == 0
        keys = {mode.structural for mode in found.consensus + found.quotient}
        assert len(keys) == 1 and len(found.quotient) == len(H)


def test_T6b_the_gap_bound_takes_a_leading_coefficient_once_for_a_pair_and_twice_for_a_real_root():
    """3 x^2 + 2 x + 5, |h| = sqrt(5/3), and a = 1/2: q = 3 * 2^2, two conjugates."""
    H = matrix([[0, "-5/3"], [1, "-2/3"]])
    modes = all_modes(HALF, H)
    consensus, other = (
        next(mode for mode in modes if (mode.attention is None) == one) for one in (True, False)
    )
    q = math.log2(3) + 2
    size = q + 1 + 2 * math.log2(1 + math.sqrt(5 / 3))
    assert gap_bits(consensus, other) == pytest.approx(q + size + 2, abs=1e-5)


def test_T1_one_token_leaves_consensus_alone():
    found = exact_dominance(matrix([[1]]), matrix([[1, 0], [0, "1/2"]]))
    assert found.comparison == 1 and not found.quotient and found.bits_needed == 64
    assert found.radius(False) == 0 and found.radius(True) == 2


def test_a_radius_that_cancels_is_known_to_half_of_its_bits():
    """h = -1 + 10^-60, from a root of x^2 - 2 next to it: 1 + h takes 200 bits off."""
    h = Fraction(math.isqrt(2 * 10**120), 10**60) + 1
    H = matrix([[-h, 2], [1, -h]])
    found = Mode(None, min(eigenvalues(factors(H)), key=lambda x: abs(1 + x.ball(400))))
    for bits in (128, 256):
        radius = ExactDominance([found], [], 1, 0).radius(True, bits)
        assert radius.rel_accuracy_bits() >= bits // 2 and radius < flint.arb(10) ** -59
    # What is 0 and not exactly so in balls has an end: h a = -1 for h = -sqrt 2, a = 1/sqrt 2.
    root = eigenvalues(factors(matrix([[0, 2], [1, 0]])))
    other = eigenvalues(factors(matrix([[0, "1/2"], [1, 0]])))
    (gone,) = (Mode(a, h) for a in other for h in root[:1] if (a.ball(64) * h.ball(64)).real < 0)
    assert ExactDominance([gone], [], 1, 0).radius(True).contains(0)


def test_T6b_equality_is_proved_beyond_2_to_the_15_bits():
    """h = -1 + c + i s on the unit circle about -1, against 1 = |1 + 0 h| of a = 0."""
    p = 2**9000 + 1
    c, s = Fraction(p * p - 1, p * p + 1), Fraction(2 * p, p * p + 1)
    found = exact_dominance(FLAT, [[c - 1, -s], [s, c - 1]])
    assert found.comparison == 0 and found.bits_needed > 2**15


def test_where_equality_is_out_of_reach_2_to_the_14_bits_still_separate():
    far = Fraction(1, 2**3000)
    first, second = (Mode(None, x) for x in eigenvalues(factors(matrix([[1, 0], [0, 1 + far]]))))
    sign, bits = compare(first, second, limit=1)
    assert sign in (1, -1) and 3000 < bits < 2**15
    assert compare(second, first, limit=1)[0] == -sign
    far = Fraction(1, 2**40000)
    assert (
        compare(*(Mode(None, x) for x in eigenvalues(factors(matrix([[1, 0], [0, 1 + far]])))), 1)[
            0
        ]
        is None
    )


def test_T2_modes_that_tie_with_the_largest_bring_their_conjugates():
    """|1 + 4| = |1 + 2 +- 4 i| = 5."""
    found = exact_dominance(HALF, matrix([[4, 0, 0], [0, 2, -4], [0, 4, 2]]))
    assert len(found.consensus) == 3
    # The pair first, then what exceeds it.
    larger = exact_dominance(HALF, matrix([[0, -4, 0], [4, 0, 0], [0, 0, 7]]))
    assert len(larger.consensus) == 1 and larger.consensus[0].value.is_real


def test_a_tie_is_proved_where_both_sides_know_their_largest(monkeypatch):
    """h = 1 and -3: |1 + h| = 2 twice, which is left open here."""
    of_all = by_fractions.compare

    def open_in_consensus(first, second):
        if first.attention is second.attention is None and first is not second:
            return None, 5
        return (0, 3) if first.attention is not second.attention else of_all(first, second)

    monkeypatch.setattr(by_fractions, "compare", open_in_consensus)
    found = exact_dominance(HALF, matrix([[1, 0], [0, -3]]))
    assert found.comparison is None and len(found.consensus) == 2


def test_T4c_a_jordan_block_beside_a_simple_mode_leaves_the_rank_open():
    H = matrix([[1, 1, 0], [0, 1, 0], [0, 0, -3]])
    assert generic_rank(exact_dominance(HALF, H)) is None
    assert generic_rank(exact_dominance(HALF, matrix([[1, 0], [0, -3]]))) == 1


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


def test_a_verdict_factors_the_spectrum_of_each_matrix_once(monkeypatch):
    asked = []
    monkeypatch.setattr(by_fractions, "factors", lambda M: asked.append(len(M)) or factors(M))
    H = [["1/3", "1/7", 0], [0, "1/5", 1], ["1/11", 0, "-1/2"]]
    assert verdict(A=HALF, H=H, X0=[[1, 2, 3], [4, 5, 7]], depth=3).status == "exact"
    assert sorted(asked) == [1, 3]
