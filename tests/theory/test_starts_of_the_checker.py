"""T4e, T5d: what the checker confirms of one X_0, and what is beyond it."""

from __future__ import annotations

from fractions import Fraction

import flint
import pytest

from oversmoothing.theory.checker import start
from oversmoothing.theory.checker.reading import Check, Given
from oversmoothing.theory.checker.schema import Claim
from oversmoothing.theory.checker.start import DEPTH_SIDE, check_x0, verdict_of

HALF = [[Fraction(1, 2)] * 2] * 2
X = [[Fraction(1)], [Fraction(2)]]
H = [[Fraction(1, 3)]]
DEPTH = Claim("SMOOTHING", eps=Fraction(1, 2), depth=3)


def first(n):
    """Every token attends to the first."""
    return [[Fraction(int(j == 0)) for j in range(n)] for _ in range(n)]


def given(n, d):
    square = [[Fraction(int(i == j)) for j in range(d)] for i in range(d)]
    return Given(
        first(n), None, square, None, [[Fraction(i + j) for j in range(d)] for i in range(n)]
    )


# --- a depth ---


def test_T5d_a_depth_is_confirmed_of_matrices_and_a_start_that_are_all_given(monkeypatch):
    monkeypatch.setattr(start, "check_depth", lambda *_: Check(True, "followed"))
    assert check_x0(Given(HALF, None, H, None, X), DEPTH) == Check(True, "followed")
    for A, values, X0 in ((None, H, X), (HALF, [], X), (HALF, H, None)):
        found = check_x0(Given(A, None, values, None, X0), DEPTH)
        words = "a depth is confirmed for A and H in fractions or binary64 only"
        assert found == Check(False, words, beyond=True)
    # Without both a depth and an eps there is none.
    for claim in (Claim("SMOOTHING", eps=Fraction(1, 2)), Claim("SMOOTHING", depth=3)):
        assert check_x0(Given(None, None, H, None, X), claim) == Check(True, "")


@pytest.mark.parametrize(
    ("n", "d", "followed"), [(65, 1, True), (66, 1, False), (17, 4, True), (14, 5, False)]
)
def test_T5d_a_depth_is_confirmed_up_to_64_coordinates(monkeypatch, n, d, followed):
    assert DEPTH_SIDE == 64
    monkeypatch.setattr(start, "has_polynomial", lambda *_: True)
    monkeypatch.setattr(start, "check_depth", lambda *_: Check(True, "followed"))
    found = check_x0(given(n, d), DEPTH)
    assert (found.accepted, found.beyond) == (followed, not followed)


def test_T5d_a_depth_is_confirmed_where_both_matrices_have_polynomials(monkeypatch):
    monkeypatch.setattr(start, "check_depth", lambda *_: Check(True, "followed"))
    for known in (HALF, H):
        monkeypatch.setattr(start, "has_polynomial", lambda M, _, known=known: M is known)
        found = check_x0(Given(HALF, None, H, None, X), DEPTH)
        assert not found.accepted and found.beyond


# --- the verdict ---


@pytest.mark.parametrize("known", [(None, "q"), ("c", None), (None, None)])
def test_T4e_a_side_whose_modes_take_too_long_leaves_the_verdict_open(monkeypatch, known):
    sides = iter(known)
    monkeypatch.setattr(start, "minimal_polynomial", lambda *_: next(sides))
    assert verdict_of(HALF, H, X) is None


@pytest.mark.parametrize(
    ("tie", "found", "last"),
    [((["c"], ["q"]), "TIE", []), (9e9, None, []), (None, None, [40960, 40960])],
)
def test_T4e_roots_that_balls_do_not_part_tie_by_proof_alone(monkeypatch, tie, found, last):
    """Balls of 160 and 2560 bits come first, and 40960 where the proof says that they differ."""
    asked = []

    def roots(polynomial, bits):
        asked.append(bits)
        return [flint.acb(flint.arb(1, 0.5))]

    monkeypatch.setattr(start, "minimal_polynomial", lambda *_: "any")
    monkeypatch.setattr(start, "_roots", roots)
    monkeypatch.setattr(start, "tied", lambda *_: tie)
    assert verdict_of(HALF, H, X) == found
    assert asked == [160, 160, 160, 160, 2560, 2560, *last]
