"""T2, T3 over discs: what they mean for the radii and for the verdict."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from oversmoothing.theory.spectra.discs import Discs, components
from oversmoothing.theory.spectra.layer_discs import (
    attention_spectrum,
    consensus_radius,
    eigenvalues,
    quotient_radius,
)


def discs(values, radii=0.0) -> Discs:
    z = np.array(values, dtype=complex)
    r = np.broadcast_to(radii, z.shape).astype(float)
    return Discs(z, r, components(z, r))


# --- the two radii ---


def test_each_bound_of_rho_C_comes_from_the_disc_that_gives_most():
    found = consensus_radius(discs([1.0, 0.9], [0.01, 0.3]))
    assert found.high == pytest.approx(2.2) and found.low == pytest.approx(1.6)
    assert found.shown == 2.0 and found.index == (-1, 0)
    apart = consensus_radius(discs([1.0, 0.5], [0.01, 0.3]))
    assert apart.low == pytest.approx(1.99) and apart.high == pytest.approx(2.01)


def test_each_bound_of_rho_Q_holds_for_all_points_of_both_discs():
    found = quotient_radius(discs([0.5], 0.1), discs([2.0], 0.25))
    assert found.low == pytest.approx(2.0 - (0.2 + 0.125 + 0.025))
    assert found.high == pytest.approx(2.0 + (0.2 + 0.125 + 0.025))


def test_T10_the_bounds_hold_for_points_of_the_discs_in_fractions():
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, h = rng.standard_normal(2).tolist()
        r, s = (10.0 ** rng.uniform(-20, 0, 2)).tolist()
        found = quotient_radius(discs([a], r), discs([h], s))
        for p in (-1, 0, 1):
            for q in (-1, 0, 1):
                x = Fraction(a) + p * Fraction(r)
                y = Fraction(h) + q * Fraction(s)
                assert Fraction(found.low) <= abs(1 + x * y) <= Fraction(found.high)


def test_only_an_exact_zero_gives_exactly_one():
    exact = consensus_radius(discs([0.0]))
    assert (exact.low, exact.high) == (1.0, 1.0)
    still = quotient_radius(discs([0.0, 0.0, 0.5]), discs([0.0]))
    assert (still.low, still.high, still.shown) == (1.0, 1.0, 1.0)
    near = consensus_radius(discs([0.0], 1e-300))
    assert near.low < 1.0 < near.high


def test_one_token_has_the_empty_quotient():
    found = quotient_radius(discs([]), discs([1.0]))
    assert (found.low, found.high, found.index) == (0.0, 0.0, None)


# --- eigenvalues alone ---


def test_a_triangular_matrix_is_taken_at_its_word_unless_it_was_rounded():
    for M in (np.array([[1.0, 5.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [5.0, 2.0]])):
        found = eigenvalues(M)
        assert found.tolist() == [1, 2]
        assert sorted(eigenvalues(M, rounded=True).real) == pytest.approx([1, 2])
    assert len(eigenvalues(np.zeros((0, 0)))) == 0


@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
def test_eigenvalues_scale_with_their_matrix_whatever_its_size(exponent):
    M = np.array([[1.0, 2.0], [3.0, -1.0]])
    plain, scaled = eigenvalues(M), eigenvalues(np.ldexp(M, exponent))
    assert scaled.tolist() == (plain * 2.0**exponent).tolist()


def test_T1h_causal_attention_shows_its_spectrum_on_the_diagonal():
    A = np.array([[1.0, 0, 0, 0], [1.0, 0.0, 0, 0], [0.25, 0.25, 0.5, 0], [0.2, 0.2, 0.3, 0.3]])
    found = attention_spectrum(A)
    assert found.tolist() == [0.0, 0.3, 0.5]
    assert attention_spectrum(np.eye(2)).tolist() == [1]
    upper = attention_spectrum(A[::-1, ::-1])
    assert upper.tolist() == [0.0, 0.3, 0.5]


def test_T1c_further_copies_of_1_are_exact_and_the_rest_is_kept():
    block = np.array([[0.75, 0.25], [0.5, 0.5]])
    found = attention_spectrum(np.kron(np.eye(3), block))
    assert found[:2].tolist() == [1, 1]
    assert found[2:] == pytest.approx(0.25, abs=1e-7)
