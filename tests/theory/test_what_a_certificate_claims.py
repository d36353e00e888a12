"""What a certificate may claim, part by part: where a part stands, and what it may be."""

from __future__ import annotations

from fractions import Fraction

import pytest

from oversmoothing.theory.checker.containment import Bounds
from oversmoothing.theory.checker.reading import NotACertificate
from oversmoothing.theory.checker.schema import read_claim


def claim(**parts):
    return read_claim({"verdict": "UNDECIDED", **parts})


def test_an_interval_may_have_no_end_on_either_side():
    low, high = (-1.5).hex(), (2.0).hex()
    assert claim(margin=["-inf", "inf"]).margin == Bounds(None, None)
    assert claim(margin=["-inf", high]).margin == Bounds(None, Fraction(2))
    assert claim(margin=[low, "inf"]).margin == Bounds(Fraction(-3, 2), None)
    assert claim(margin=[low, high]).margin == Bounds(Fraction(-3, 2), Fraction(2))
    for bad in (["inf", "inf"], ["-inf", "-inf"], [low, "-inf"], ["inf", high], [high, low]):
        with pytest.raises(NotACertificate):
            claim(margin=bad)


def test_T5d_a_depth_goes_with_an_eps_above_0_and_an_X_0_that_smooths():
    found = claim(verdict_x0="SMOOTHING", eps="1/1000", depth=0)
    assert (found.eps, found.depth) == (Fraction(1, 1000), 0)
    for eps, outcome in (("0", "SMOOTHING"), ("-1/2", "SMOOTHING"), ("1/2", "TIE")):
        with pytest.raises(NotACertificate, match="an eps above 0"):
            claim(verdict_x0=outcome, eps=eps, depth=3)


def test_T4e_a_coefficient_that_is_not_0_lies_above_0_and_up_to_1():
    def claimed(*ends):
        part = {"mode": "consensus", "coefficient": [end.hex() for end in ends]}
        return read_claim({"verdict": "SMOOTHING", "genericity": part}).coefficient

    assert claimed(0.25, 1.0) == Bounds(Fraction(1, 4), Fraction(1))
    for low, high in ((0.25, 1.5), (0.25, 2.0), (0.0, 1.0), (-0.5, 1.0)):
        with pytest.raises(NotACertificate, match="above 0 and up to 1"):
            claimed(low, high)
