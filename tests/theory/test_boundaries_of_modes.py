"""T4, T6, T11: where terms, modes and methods part, and what happens on the boundary itself."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from oversmoothing.theory.depth import ratios as trajectory
from oversmoothing.theory.depth.closed_form import ClosedForm
from oversmoothing.theory.depth.eigenbasis import EPS, Multipliers
from oversmoothing.theory.depth.ratios import Ratio, _modulo_prime, death, numerical_ratios
from oversmoothing.theory.depth.residuals import FeatureModes, TokenModes
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import to_flint
from oversmoothing.theory.verdict.verdict import layer_verdict

BIT = flint.arb(2) ** -10


def uniform(n):
    return [[f"1/{n}"] * n for _ in range(n)]


# --- words ---


def test_T6b_the_words_of_a_tie_name_the_largest_block_of_each_side():
    """h = -2 against h = 0: |1 + h| = |1 + h a| = 1 for a = 0, with blocks of both sizes."""
    found = layer_verdict(Layer.of(uniform(3), [[-2, 0, 0], [0, 0, 1], [0, 0, 0]]), None, [])
    assert found.verdict == "TIE"
    assert "Jordan blocks of size 2 (consensus)" in found.reason


# --- the closed form ---


@pytest.mark.parametrize("depth", [10, 4000, 200_000])
def test_T9_a_head_whose_modes_all_decay_leaves_its_limit_at_any_depth(depth):
    """X' = X + A X W with W = -1/2: the mean halves, the difference goes by 3/4."""
    tokens = TokenModes(np.array([[0.75, 0.25], [0.25, 0.75]]))
    features = FeatureModes(P=np.array([[1.0], [0.0]]), Q=np.array([[-0.5, 0.25]]))
    hfc, c = np.array([[1.0, 2.0], [-1.0, -2.0]]), np.array([2.0, 1.0])
    (found,) = ClosedForm(tokens, features).states(hfc, c, [depth])
    shares = [1 - 0.75**depth, 1 - 0.5**depth]
    moved = np.array([-1.0, 0.5])
    expected = hfc + shares[0] * hfc[:, :1] * moved
    assert np.ldexp(found.hfc, found.hfc_exponent) == pytest.approx(expected, abs=1e-13)
    mean = c + shares[1] * c[0] * moved
    assert np.ldexp(found.c, found.c_exponent) == pytest.approx(mean, abs=1e-13)


def test_T9_the_error_of_a_closed_form_grows_with_the_condition_of_its_eigenvectors(monkeypatch):
    """4 eps times the condition, beside what the eigenvalues themselves may be off by."""
    monkeypatch.setattr(Multipliers, "uncertainty", lambda *arguments: 0.0)
    tokens = TokenModes(np.array([[0.75, 0.25], [0.25, 0.75]]))
    for size in (0.0, 10.0, 1e4):
        form = ClosedForm(tokens, FeatureModes(H=np.array([[0.5, size], [0.0, 0.25]])))
        (found,) = form.states(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.ones(2), [3])
        assert form.condition >= max(1.0, size)
        # No mode outgrows another by more than (3/2)^3 at this depth.
        assert 4 <= found.error / (EPS * form.condition) * (1 + EPS) <= 4 * 1.5**3


# --- radii and ratios in floats ---


def test_T11_5_a_ratio_is_a_number_as_long_as_binary64_holds_it():
    y, c = np.array([[1.0]]), np.array([1.0])
    for exponent, held in ((1000, True), (1023, True), (1025, False), (-1000, True)):
        found = trajectory._numerical_ratio(y, exponent, c, 0, np.zeros(1), 1)
        assert found.log == pytest.approx(exponent * math.log(2), rel=1e-15)
        expected = 2.0**exponent if held else math.inf
        assert found.value == pytest.approx(expected, rel=1e-12)
        size = flint.arb(2) ** exponent
        assert trajectory._as_float(size, float(size.log().mid())) == expected


def test_T1e_entries_modulo_a_prime_are_quotients():
    matrix = to_flint([[Fraction(3, 7), Fraction(-5, 4)], [Fraction(0), Fraction(1, 1000)]])
    prime = trajectory._PRIME
    found = [int(x) for x in _modulo_prime(matrix).entries()]
    parts = [(3, 7), (-5, 4), (0, 1), (1, 1000)]
    assert all((x * q - p) % prime == 0 for x, (p, q) in zip(found, parts, strict=True))
    assert found[2] == 0 and all(0 < x < prime for x in (found[0], found[1], found[3]))


def test_T1e_a_nilpotent_block_is_gone_after_its_size_and_no_other_ever_is():
    shift = [[Fraction(int(j == i + 1)) for j in range(4)] for i in range(4)]
    for k in range(4):
        start = [[Fraction(int(i == k))] for i in range(4)]
        assert death(to_flint(shift), start) == k + 1
    half = [[Fraction(1, 2)]]
    assert death(to_flint(half), [[Fraction(1)]]) is None
    assert death(to_flint(half), [[Fraction(0)]]) == 0


def test_T11_5_a_ratio_in_balls_takes_twice_the_bits_until_there_are_none(monkeypatch):
    asked = []

    def none(A, H, X0, pi, depths):
        asked.append(flint.ctx.prec)
        return {}

    monkeypatch.setattr(trajectory, "_try", none)
    monkeypatch.setattr(trajectory, "MAX_BITS", 768)
    monkeypatch.setattr(
        trajectory, "_by_recurrences", lambda *given: dict.fromkeys(given[-1], Ratio(None, None))
    )
    found = trajectory.ball_ratios([], [], [], [], [5, 3, 5])
    assert asked == [192, 384, 768]
    assert list(found) == [3, 5] and all(ratio.value is None for ratio in found.values())


def test_T11_5_depths_in_floats_start_at_0():
    found = numerical_ratios(
        np.full((2, 2), 0.5), np.array([[1.0]]), np.array([[1.0], [3.0]]), [0, 1]
    )
    assert found[0].value == pytest.approx(0.5) and found[1].value == pytest.approx(0.25)
