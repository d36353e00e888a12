"""T4, T5a: what two draws of X_0 share, and how far precisions reach."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.verdict import cosines, decide, resolvent
from oversmoothing.theory.verdict.disc_limits import Limits, agreed
from oversmoothing.theory.verdict.resolvent import Multipliers, OutOfReachError


def test_T4_limits_are_whole_where_nothing_is_left_open():
    for whole in (("constant", 0.5, 1), ("zero", 0.0, 1), ("oscillates", None, 2)):
        assert Limits(*whole).whole
    for open_ in (("constant", None, 1), (None, None, 1), ("zero", 0.0, None)):
        assert not Limits(*open_).whole


def test_T4_two_draws_agree_on_what_they_share():
    one = Limits("constant", 2.0, 1)
    assert agreed(one, one) == one
    assert agreed(one, Limits("constant", 2.0 * (1 + 5e-9), 1)) == one
    assert agreed(one, Limits("constant", 2.0 * (1 - 5e-9), 1)) == one
    assert agreed(one, Limits("constant", 2.0 * (1 + 5e-8), 1)) == Limits("constant", None, 1)
    assert agreed(one, Limits("oscillates", None, 2)) == Limits(None, None, None)
    assert agreed(Limits("oscillates", None, 2), one) == Limits(None, None, None)
    never = Limits("infinity", math.inf, 3)
    assert agreed(never, never) == never
    assert agreed(never, Limits("zero", 0.0, 3)) == Limits(None, None, 3)
    small = Limits("constant", 1e-3, 1)
    assert agreed(small, Limits("constant", 1e-3 + 5e-9, 1)).limit is None


def test_T4_two_draws_agree_up_to_1e_8_of_the_smaller():
    one = Limits("constant", 1e8, 1)
    assert agreed(one, replace(one, limit=1e8 + 1)) == one
    assert agreed(one, replace(one, limit=1e8 + 1.01)).limit is None


def test_T4_draws_are_whole_numbers_of_up_to_six_digits(monkeypatch):
    asked = []

    def integers(low, high, size):
        asked.append((low, high, size))
        return np.array([[3], [-4]])

    exact = Layer.of([["1/2", "1/2"], ["1/4", "3/4"]], [["-1/2"]])
    found = decide._drawn_limits(exact, SimpleNamespace(integers=integers))
    assert asked == [(-(10**6), 10**6, (2, 1))] and found.tends_to == "constant"


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
    monkeypatch.setattr(resolvent, "compare", compare)
    first, second = Root(), Root()
    if sign is None:
        with pytest.raises(OutOfReachError):
            multipliers.compare(first, second)
    else:
        assert multipliers.compare(first, second) == sign
    assert first.asked == second.asked == [64, 128, 256, 512, 1024]
    assert matched == [bits for k in range(10, 17) for bits in [2**k] * 2]


def test_T14g_a_cosine_is_known_to_60_bits(monkeypatch):
    """A radius of 2^-60 is too wide, one of 2^-61 is not."""
    asked = []
    radii = {64: -60, 128: -61, 256: -200}

    def cosine(directions):
        asked.append(directions[0])
        return flint.arb(0.5, flint.arb(2) ** radii[directions[0]])

    monkeypatch.setattr(cosines, "_cosine", cosine)
    tokens = object.__new__(cosines.TokensOfStart)
    tokens._at_residue = lambda *_: lambda bits: bits
    both = SimpleNamespace(bits=64), SimpleNamespace(bits=64)
    assert tokens._residue((0, 1), both, 1, 0) == 0.5 and asked == [64, 128]
