"""T2, T3: the one comparison of rho_C with rho_Q, and how an answer is said."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import flint
import pytest

import oversmoothing
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of, outcome_of_sign


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1, 2, "SMOOTHING"),
        (5e-324, 1.0, "SMOOTHING"),
        (-2, -1, "NON_SMOOTHING"),
        (-1.0, -5e-324, "NON_SMOOTHING"),
        (0, 0, "TIE"),
        (Fraction(0), Fraction(0), "TIE"),
        (0, 1, "UNDECIDED"),
        (-1, 0, "UNDECIDED"),
        (-1, 1, "UNDECIDED"),
        (math.nan, math.nan, "UNDECIDED"),
        (flint.arb(-1), flint.arb(1), "UNDECIDED"),
    ],
)
def test_an_interval_decides_only_where_it_leaves_one_answer(low, high, expected):
    assert outcome_of(low, high) == expected


def test_a_sign_that_is_not_known_is_undecided():
    found = [outcome_of_sign(sign) for sign in (1, -1, 0, None)]
    assert found == ["SMOOTHING", "NON_SMOOTHING", "TIE", "UNDECIDED"]


def test_an_outcome_is_its_name():
    assert json.dumps(list(Outcome)) == json.dumps([one.name for one in Outcome])
    assert f"{Outcome.TIE}" == "TIE" == Outcome.TIE


def test_a_verdict_reads_as_sentences():
    found = oversmoothing.verdict(
        A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[["-3/2"]], X0=[[1], [2]], depth=[1, 100]
    )
    lines = str(found).splitlines()
    assert lines[0] == "SMOOTHING (exact)" and lines[1].startswith("  consensus dominates: ")
    assert lines[2] == ("  rho_C = 0.5, rho_Q = 0.25, rate rho_Q/rho_C = 0.5 a layer, margin 0.25")
    assert lines[3] == "  for this X_0: SMOOTHING"
    assert lines[4].endswith("HFC/LFC = 0.1666666667, log -1.79175946923, squared 1/36")
    assert "squared" not in lines[5]
    empty = oversmoothing.verdict(A=[[1]], H=[[-1]], X0=[[1]], depth=1)
    assert str(empty).endswith("L = 1: no value (the state is 0, or too cancelled to measure)")


def test_what_replaces_the_layer_object_is_said():
    with pytest.raises(AttributeError, match=r"oversmoothing\.verdict gives both spectra"):
        _ = oversmoothing.Update
