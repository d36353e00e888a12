"""T4, T5a: what is said in floats just at a tolerance, and how far errors and precisions reach."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.case import make_case
from oversmoothing.theory.spectra.radii import Interval
from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.verdict import growth, start_limits
from oversmoothing.theory.verdict.expansion import PresentRadii
from oversmoothing.theory.verdict.growth import Multipliers, OutOfReachError
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, Term, agreed, limits
from oversmoothing.theory.verdict.outcome import Outcome


def term(hfc, mean, *, phase=0.0) -> Term:
    return Term(phase, np.array(hfc, dtype=complex), np.array(mean, dtype=complex))


# --- the ratio ---


def test_T3f_an_interference_as_large_as_the_tolerance_is_rounding():
    """HFC 1 and -1, twice 5e-10 turning by pi: 2 e-9 beside a squared norm of 2."""
    for size, tends_to in ((5e-10, "constant"), (5.001e-10, "oscillates")):
        terms = [term([[1], [-1]], [1]), term([[size], [-size]], [0], phase=math.pi)]
        assert limits(terms, (2, 1)).tends_to == tends_to


def test_T4_a_limit_is_a_number_up_to_an_error_of_1e_7():
    for error, limit in ((5e-8, 1.0), (5.001e-8, None)):
        found = replace(term([[1], [-1]], [1]), error=error)
        assert limits([found], (2, 1)) == Limits("constant", limit, 1)


def test_T4_two_draws_agree_up_to_1e_8_of_the_smaller():
    one = Limits("constant", 1e8, 1)
    assert agreed(one, replace(one, limit=1e8 + 1)) == one
    assert agreed(one, replace(one, limit=1e8 + 1.01)).limit is None


# --- the rank ---


def rank(*terms, shape=(2, 2)):
    return limits(terms, shape).limit_rank


def test_T4c_roundings_of_24_depths_are_exceeded_64_times():
    """64 (4 24 + 2 sqrt 2) roundings over sqrt 2 tokens: 4472."""
    for roundings, found in ((4450, None), (4500, 2)):
        turning = term([[1, 0], [-1, 0]], [0, 0], phase=1.0)
        assert rank(turning, term([[0, 0], [0, 0]], [0, roundings * EPS])) == found


def test_T4c_of_one_phase_one_depth_is_rounded():
    """64 (4 + 2 sqrt 2) roundings over sqrt 2 tokens: 309."""
    for roundings, found in ((307, None), (311, 2)):
        assert rank(term([[1, 0], [-1, 0]], [0, roundings * EPS])) == found


def test_T4c_each_term_adds_its_own_roundings():
    """Two of size 1 that turn: 64 (4 24 2 + 4 sqrt 2) roundings over sqrt 2 tokens, 8945."""
    for roundings, found in ((8000, None), (9200, 2)):
        first = term([[1, 0], [-1, 0]], [0, 0])
        assert rank(first, term([[1, 0], [-1, 0]], [0, roundings * EPS], phase=1.0)) == found


def test_T4c_a_turn_by_a_third_comes_round_after_three_layers():
    """t I - C for the shift C of three tokens is singular just where t^3 = 1."""
    C = np.roll(np.eye(3), 1, axis=0)
    terms = [
        term(G - G.mean(axis=0), G.mean(axis=0), phase=phase)
        for G, phase in ((-C, 0.0), (np.eye(3), 2 * math.pi / 3))
    ]
    assert rank(*terms, shape=(3, 3)) == 2


# --- one X_0 in floats ---

CASE = make_case([[0.7, 0.3], [0.4, 0.6]], [[0.5]], [[1.0], [2.0]])


def test_radii_as_far_apart_as_1e9_of_the_larger_are_not_apart():
    """1e9 and 1e9 - 1: beyond 1e9 of the smaller they are."""
    for low, apart in ((1e9 - 1, False), (1e9 - 1.1, True)):
        for radii in ((1e9, low), (low, 1e9)):
            found = SimpleNamespace(
                outcome=Outcome.SMOOTHING, rho_consensus=radii[0], rho_quotient=radii[1]
            )
            assert start_limits._apart(found) == apart


def by_eigenvectors(monkeypatch, consensus, quotient, error):
    """What is said of radii that came out like this, with an error of the coefficients."""
    found = PresentRadii(Interval(consensus, consensus), Interval(quotient, quotient), False)
    monkeypatch.setattr(start_limits, "expand", lambda *_: SimpleNamespace(error=error))
    monkeypatch.setattr(start_limits, "expansion_limits", lambda _: UNKNOWN)
    monkeypatch.setattr(start_limits, "shows_from", lambda _: None)
    monkeypatch.setattr(start_limits, "present_radii", lambda _: found)
    return start_limits._by_eigenvectors(CASE).outcome


def test_T4e_radii_of_one_X_0_are_doubted_by_64_errors_of_the_larger(monkeypatch):
    for share, sure in ((0.995, True), (1.005, False)):
        error = share / 64 / 2
        decided = Outcome.SMOOTHING if sure else Outcome.UNDECIDED
        assert by_eigenvectors(monkeypatch, 2.0, 1.0, error) is decided
        decided = Outcome.NON_SMOOTHING if sure else Outcome.UNDECIDED
        assert by_eigenvectors(monkeypatch, 1.0, 2.0, error) is decided


def test_T11_of_two_radii_that_came_out_as_0_neither_is_known_to_be(monkeypatch):
    assert by_eigenvectors(monkeypatch, 0.0, 0.0, 1e-16) is Outcome.UNDECIDED


def test_T4_draws_are_whole_numbers_of_up_to_six_digits(monkeypatch):
    asked = []

    def integers(low, high, size):
        asked.append((low, high, size))
        return np.array([[3], [-4]])

    exact = make_case([["1/2", "1/2"], ["1/4", "3/4"]], [["-1/2"]])
    found = start_limits._drawn_limits(exact, SimpleNamespace(integers=integers))
    assert asked == [(-(10**6), 10**6, (2, 1))] and found.tends_to == "constant"


# --- roots that are told apart ---


class Root:
    """A root whose square is known to no bit, and the precisions that it was asked for."""

    def __init__(self):
        self.asked = []
        self.conjugate = self

    def ball(self, bits):
        self.asked.append(bits)
        return flint.acb(flint.arb(1, 1))


@pytest.mark.parametrize(("last", "sign"), [(2**16, 1), (2**16, -1), (2**16 + 1, None)])
def test_T4e_roots_are_compared_in_balls_up_to_1024_bits_and_as_pairs_up_to_2_to_16(
    monkeypatch, last, sign
):
    matched = []

    def pairs(root, bits):
        matched.append(bits)
        return ["of first" if root is first else "of second"]

    def compare(x, y):
        assert (x, y) == ("of first", "of second")
        return (sign if matched[-1] >= last else None), 0

    multipliers = Multipliers([], [], 1)
    multipliers.pairs = pairs
    monkeypatch.setattr(growth, "compare", compare)
    first, second = Root(), Root()
    if sign is None:
        with pytest.raises(OutOfReachError):
            multipliers.compare(first, second)
    else:
        assert multipliers.compare(first, second) == sign
    assert first.asked == second.asked == [64, 128, 256, 512, 1024]
    assert matched == [bits for k in range(10, 17) for bits in [2**k] * 2]
