"""T2, T3: the formulas for dominance on and beside their boundaries, moduli compared exactly, and
floats, which agree or say UNDECIDED."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import flint
import numpy as np
import pytest
from hypothesis import given, strategies as st

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.exact import from_flint, to_flint, to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.verdict import by_fractions
from oversmoothing.theory.verdict.answer import Pair
from oversmoothing.theory.verdict.by_discs import _for_every_attention
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
    real_verdict,
    safe_interval,
    threshold,
)
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.cases import cases
from tests.support.tables import matrix


def test_an_exact_answer_has_the_spectra_of_A_and_of_H_and_a_pair_of_each_side_that_leads():
    found = verdict(A=matrix("3/4 1/4; 1/4 3/4"), H=matrix("1/2 0; 0 1/4"))
    assert (found.attention.values == [0.5]).all() and (found.value.values == [0.5, 0.25]).all()
    assert found.pairs == (Pair(0.5, 1, 1.5, True),)


@cases(
    "h, outcome", ((0.5, -0.1), "SMOOTHING"), ((0.5, -0.6), "UNDECIDED"),
    ((-0.5, -0.1), "NON_SMOOTHING"),
)  # fmt: skip
def test_T2d_T3d_what_H_settles_for_every_A_in_discs(h, outcome):
    value = Discs(np.array(h, complex), np.full(2, 0.01), np.arange(2))
    assert _for_every_attention(value) == outcome


def by_squares(h_values, a) -> str:
    consensus = max((1 + h) ** 2 for h in h_values)
    quotient = max((1 + h * a) ** 2 for h in h_values)
    if consensus == quotient:
        return "TIE"
    return "SMOOTHING" if consensus > quotient else "NON_SMOOTHING"


@pytest.mark.parametrize("a", [Fraction(k, 4) for k in range(-3, 4)])
def test_T2d_a_tie_at_a_boundary_is_a_tie_and_nothing_beside_it_is(a):
    """All pairs q <= p from a grid that holds every boundary of the closed form, and points next
    to it: p = a q, q (1 + a) = -2, q = -2 - a p, p = 0, q = -2."""
    step = Fraction(1, 1000)
    grid = {Fraction(k, 2) for k in range(-8, 5)} | {threshold(a)}
    grid |= {a * q for q in grid} | {-2 - a * p for p in grid}
    grid |= {x + side * step for x in (Fraction(0), Fraction(-2), threshold(a)) for side in (-1, 1)}
    seen = set()
    for q, p in combinations_with_replacement(sorted(grid), 2):
        verdict = by_squares([q, p], a)
        assert real_verdict(q, p, a) == verdict, (q, p, a)
        seen.add((verdict, (p > 0) - (p < 0)))
    assert {("SMOOTHING", 1), ("TIE", 0), ("SMOOTHING", -1), ("TIE", -1)} <= seen
    below = {("NON_SMOOTHING", 1), ("TIE", 1), ("NON_SMOOTHING", 0)}
    assert seen & below == (below if a < 0 else set())


@cases(
    "a, h, consensus, quotient, rate",
    ([0.5, -0.75], [0.25, -4.0, 1.0], (3.0, 1), (4.0, (1, 1)), 4 / 3),
    # One token leaves consensus alone, and a consensus that dies at once an infinite rate.
    ([], [0.5, -3.0], (2.0, 1), (0.0, None), 0.0),
    ([0.5], [-1.0], (0.0, 0), (0.5, (0, 0)), np.inf),
    ([0.5], [0.0], (1.0, 0), (1.0, (0, 0)), 1.0),
)
def test_T2_the_radii_are_the_largest_moduli_and_their_indices_point_to_them(
    a, h, consensus, quotient, rate
):
    found = dominance(np.array(a), np.array(h))
    assert (found.rho_consensus, found.consensus_index) == consensus
    assert (found.rho_quotient, found.quotient_index) == quotient
    assert found.margin == consensus[0] - quotient[0] and found.rate == pytest.approx(rate)


@cases(
    "a, centre, radius",
    # Of a real a from the threshold to 0; of a complex one on the other side of the real axis.
    *[(a, threshold(a) / 2, -threshold(a) / 2) for a in (-0.75, -0.5, 0.0, 0.5, 0.75)],
    (0.25 + 0.5j, -(0.75 + 0.5j) / 0.6875, abs(0.75 - 0.5j) / 0.6875),
)
def test_T3b_the_disc_of_an_eigenvalue_of_A(a, centre, radius):
    assert disc(complex(a)) == (pytest.approx(centre), pytest.approx(radius))
    for turn in np.exp(2j * np.pi * np.arange(5) / 5):
        assert disc_form(centre + radius * turn, a) == pytest.approx(0, abs=1e-14)
        inside, outside = centre + 0.99 * radius * turn, centre + 1.01 * radius * turn
        assert disc_form(inside, a) < 0 < disc_form(outside, a)
        assert abs(1 + inside) < abs(1 + inside * a) and abs(1 + outside) > abs(1 + outside * a)


def test_T3c_the_universal_disc_is_bounded_by_its_circle():
    for turn in np.exp(2j * np.pi * (np.arange(7) + 0.5) / 7):
        assert in_universal_disc(-0.5 + 0.499 * turn)
        assert not in_universal_disc(-0.5 + 0.501 * turn)
    assert in_universal_disc(-1.0) and in_universal_disc(-0.5 + 0.5j)
    assert in_universal_disc(-0.5 - 0.5j) and not in_universal_disc(0.0)


@cases(
    "a, end",
    ([0.5, -0.5, 0.0], 4.0),
    ([0.25 + 0.5j], 1.5 / 0.6875),
    # a = -1 (a periodic A): -s < h < 0 has no end. A further copy of a = 1 ties and adds none.
    ([-1.0], np.inf),
    ([1j, -1j], np.inf),
    ([1.0], 0.0),
    ([1.0, 0.5], 4 / 3),
    ([], 0.0),
)
def test_T3b_the_safe_interval_is_that_of_the_eigenvalue_that_reaches_farthest(a, end):
    assert safe_interval(np.array(a)) == pytest.approx(end)


# --- floats beside fractions ---


@given(own.two_token_attention(), st.integers(1, 18), st.sampled_from([-1, 0, 1]))
def test_near_ties_are_decided_exactly_and_never_wrongly_in_floats(attention, k, side):
    A, a = attention
    h = threshold(a) + side * Fraction(1, 10**k)
    truth = by_squares([h], a)
    assert verdict(A=A, H=[[h]]).verdict == truth
    # The float case is its own case (rounded A and h): it may be undecided, and where it is
    # decided against the fractions the margin must be within the rounding of the input.
    rounded = verdict(A=to_float(A), H=[[float(h)]])
    if rounded.verdict not in (truth, "UNDECIDED"):
        assert abs(rounded.margin) <= 1e-14 * (1 + abs(float(h)))


# --- moduli compared exactly ---


def test_an_irrational_tie_is_proved():
    """q (1 + a_1) = -2 with a_1 = -1/sqrt(24): T2d says TIE; no precision separates the radii."""
    A = matrix("5/12 1/2 1/12; 5/12 1/3 1/4; 1/6 7/12 1/4")
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
    def pair(power):
        H = matrix([[1, 0], [0, 1 + Fraction(1, 2**power)]])
        return [Mode(None, x) for x in eigenvalues(factors(H))]

    first, second = pair(3000)
    sign, bits = compare(first, second, limit=1)
    assert sign in (1, -1) and 3000 < bits < 2**15
    assert compare(second, first, limit=1)[0] == -sign
    assert compare(*pair(40000), limit=1)[0] is None


def test_T4c_a_jordan_block_beside_a_simple_mode_leaves_the_rank_open():
    H = matrix([[1, 1, 0], [0, 1, 0], [0, 0, -3]])
    assert generic_rank(exact_dominance(HALF, H)) is None
    assert generic_rank(exact_dominance(HALF, matrix([[1, 0], [0, -3]]))) == 1


def test_a_verdict_factors_the_spectrum_of_each_matrix_once(monkeypatch):
    asked = []
    monkeypatch.setattr(by_fractions, "factors", lambda M: asked.append(len(M)) or factors(M))
    H = [["1/3", "1/7", 0], [0, "1/5", 1], ["1/11", 0, "-1/2"]]
    assert verdict(A=HALF, H=H, X0=[[1, 2, 3], [4, 5, 7]], depth=3).status == "exact"
    assert sorted(asked) == [1, 3]
