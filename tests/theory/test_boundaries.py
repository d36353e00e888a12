"""T2, T3: every formula for dominance on and beside its boundaries, where a wrong sign shows."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from oversmoothing.theory.verdict.formulas import (
    disc,
    disc_form,
    dominance,
    in_universal_disc,
    real_verdict,
    safe_interval,
    threshold,
)


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
    for outcome in (("NON_SMOOTHING", 1), ("TIE", 1), ("NON_SMOOTHING", 0)):
        assert (outcome in seen) == (a < 0)


def test_T2_the_radii_are_the_largest_moduli_and_their_indices_point_to_them():
    a, h = np.array([0.5, -0.75]), np.array([0.25, -4.0, 1.0])
    found = dominance(a, h)
    assert (found.rho_consensus, found.consensus_index) == (3.0, 1)
    assert (found.rho_quotient, found.quotient_index) == (4.0, (1, 1))
    assert found.margin == -1.0 and found.rate == pytest.approx(4 / 3)


def test_T1c_one_token_leaves_consensus_alone():
    found = dominance(np.zeros(0), np.array([0.5, -3.0]))
    assert (found.rho_consensus, found.rho_quotient) == (2.0, 0.0)
    assert (found.consensus_index, found.quotient_index) == (1, None)
    assert (found.rate, found.margin) == (0.0, 2.0)
    assert safe_interval(np.zeros(0)) == 0.0


def test_T5a_the_rate_is_infinite_where_consensus_dies_at_once():
    found = dominance(np.array([0.5]), np.array([-1.0]))
    assert (found.rho_consensus, found.rho_quotient, found.rate) == (0.0, 0.5, np.inf)
    assert dominance(np.array([0.5]), np.array([0.0])).rate == 1.0


@pytest.mark.parametrize("a", [-0.75, -0.5, 0.0, 0.5, 0.75])
def test_T3b_the_disc_of_a_real_a_has_the_diameter_from_the_threshold_to_0(a):
    centre, radius = disc(complex(a))
    assert centre == pytest.approx(threshold(a) / 2) and radius == pytest.approx(-threshold(a) / 2)
    assert disc_form(threshold(a), a) == pytest.approx(0, abs=1e-14)
    assert disc_form(centre, a) < 0 < disc_form(1.0, a)


def test_T3b_the_disc_of_a_complex_a_lies_on_the_other_side_of_the_real_axis():
    a = 0.25 + 0.5j
    centre, radius = disc(a)
    assert centre == pytest.approx(-(0.75 + 0.5j) / 0.6875)
    assert radius == pytest.approx(abs(0.75 - 0.5j) / 0.6875)
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


def test_T3b_the_safe_interval_is_that_of_the_eigenvalue_that_reaches_farthest():
    assert safe_interval(np.array([0.5, -0.5, 0.0])) == pytest.approx(4.0)
    assert safe_interval(np.array([0.25 + 0.5j])) == pytest.approx(1.5 / 0.6875)


def test_T3b_on_the_unit_circle_every_negative_h_loses_except_at_1_itself():
    """a = -1 (a periodic A): -s < h < 0 has no end. A further copy of a = 1 ties and adds none."""
    assert safe_interval(np.array([-1.0])) == np.inf
    assert safe_interval(np.array([1j, -1j])) == np.inf
    assert safe_interval(np.array([1.0])) == 0.0
    assert safe_interval(np.array([1.0, 0.5])) == pytest.approx(4 / 3)
