"""T2d, T3d: what is decided of intervals that overlap, from the signs of spec(H) alone."""

from __future__ import annotations

import numpy as np
import pytest

from oversmoothing.theory.spectra.spectrum import Spectrum, exact_spectrum
from oversmoothing.theory.verdict.float_comparison import compare

TINY = 2.0**-53


def spectrum(*values, errors=0.0) -> Spectrum:
    found = np.array(values, dtype=complex)
    return Spectrum(found, np.broadcast_to(errors, found.shape), np.zeros(len(found), dtype=bool))


# An a that may be as near to 1 as it likes: the intervals of the radii always overlap.
NEAR_1 = spectrum(1.0, errors=1.0)


def outcome(*values, errors=0.0, attention=NEAR_1) -> str:
    return compare(attention, spectrum(*values, errors=errors))[0]


@pytest.mark.parametrize("h", [-1.0, -0.5, -TINY])
def test_T2d_all_h_in_minus_1_0_lose_to_any_a(h):
    assert outcome(h) == outcome(-0.75, h) == "NON_SMOOTHING"
    assert outcome(-1 - 2 * TINY) == outcome(-0.5, -1.5) == "UNDECIDED"


@pytest.mark.parametrize("h", [TINY, 0.5, 40.0])
def test_T2d_a_largest_h_above_0_wins_over_any_a(h):
    assert outcome(h) == "SMOOTHING"
    # |1 + h'| and |1 + h' a| are at most 1 + |h'| for every other h'.
    assert outcome(h, -h / 2) == outcome(h, 0.4j * h, -0.4j * h) == outcome(h, 0.0) == "SMOOTHING"
    assert outcome(h, -h) == outcome(h / 2, -h) == outcome(h, 1j * h, -1j * h) == "UNDECIDED"


def test_T2d_signs_are_known_beyond_the_error_of_each_eigenvalue():
    assert outcome(0.5, errors=0.4) == "SMOOTHING"
    assert outcome(0.5, errors=0.6) == "UNDECIDED"
    assert outcome(-0.5, errors=0.4) == "NON_SMOOTHING"
    assert outcome(-0.5, errors=0.6) == outcome(-0.75, errors=0.5) == "UNDECIDED"
    # The largest h may be no more than 0.5, the other as much as 0.55.
    assert outcome(0.5, -0.45, errors=[0.0, 0.1]) == "UNDECIDED"
    assert outcome(0.5, -0.35, errors=[0.0, 0.1]) == "SMOOTHING"
    assert outcome(0.6, -0.45, errors=[0.2, 0.0]) == "UNDECIDED"


def test_T2d_eigenvalues_that_may_be_a_complex_pair_have_no_sign():
    """Two that errors may join can be h +- i t; apart, each is its own conjugate."""
    assert outcome(0.5, 0.6, errors=0.3) == outcome(-0.5, -0.4, errors=0.1) == "UNDECIDED"
    assert outcome(0.5, 1.0, errors=0.25) == "UNDECIDED"
    assert outcome(0.5, 1.0, errors=0.2) == "SMOOTHING"
    assert outcome(-0.75, -0.25, errors=0.2) == "NON_SMOOTHING"
    assert outcome(0.5 + 0.1j, 0.5 - 0.1j) == "UNDECIDED"
    # Of the three the largest is apart, and whatever the others are they are smaller.
    assert outcome(1.0, -0.2, -0.2, errors=[0.0, 0.1, 0.1]) == "SMOOTHING"


@pytest.mark.parametrize("h", [-0.25, 0.25])
def test_T2d_an_h_that_may_be_0_loses_to_no_a_and_wins_over_none(h):
    assert outcome(h, errors=0.25) == "UNDECIDED"
    assert outcome(h, errors=0.24) != "UNDECIDED"


def test_T11_1_without_a_quotient_the_signs_of_h_say_nothing():
    nothing = Spectrum(np.zeros(0, dtype=complex), np.zeros(0), np.zeros(0, dtype=bool))
    assert outcome(-1 + TINY, attention=nothing) == "UNDECIDED"


def test_T2_what_is_left_of_A_without_1_keeps_its_errors():
    """rho_C = 0.3; |1 - 1.3 a| is 0.35 at a = 0.5, and 0.22 to 0.48 within 0.1 of it."""
    assert outcome(-1.3, attention=spectrum(0.5)) == "NON_SMOOTHING"
    assert outcome(-1.3, attention=spectrum(0.5, errors=0.1)) == "UNDECIDED"
    one = exact_spectrum([1.0])
    mixed = Spectrum(
        np.concatenate([one.values, [0.5 + 0j]]), np.array([0.0, 0.1]), np.array([True, False])
    )
    assert outcome(-1.3, attention=mixed) == "UNDECIDED"


def test_T14_a_repeated_eigenvalue_1_ties_at_least():
    twice = exact_spectrum([1.0])
    assert outcome(0.5, attention=twice) == outcome(-0.5, attention=twice) == "TIE"
