"""No positive ratio is printed as 0, none that is finite as inf, and no 0 with a sign."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

import oversmoothing
from oversmoothing.commands.options import table_text
from oversmoothing.simulations.drawing.wording import as_html, signed
from oversmoothing.theory.numbers.rounding import ratio_text
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.tables import matrix

AA = matrix("AA")


def test_a_ratio_below_all_floats_is_printed_from_its_logarithm(tmp_path, capsys):
    """Uniform A (a = 0) and h = 1: HFC/LFC = 2^-L / 3."""
    path = tmp_path / "case.json"
    case = {"A": [["1/2", "1/2"], ["1/2", "1/2"]], "H": [[1]], "X0": [[1], [2]]}
    path.write_text(json.dumps(case))
    assert oversmoothing.main(["verdict", str(path), "--depth", "1", "--depth", "1000000"]) == 0
    said = capsys.readouterr().out
    # 2^-1000000 / 3, from 2^1000000 = 9.9006562292958982506979236163e301029.
    assert "after 1,000,000 layers: HFC/LFC = 3.37e-301031\n" in said
    assert "after 1 layer: HFC/LFC = 0.167, squared 1/36" in said


def test_a_ratio_above_all_floats_is_printed_from_its_logarithm():
    """h = -6/5: -1/5 and 2/5 a layer, HFC/LFC = 2^L / 3."""
    found = verdict(A=AA, H=[["-6/5"]], X0=[[1], [2]], depth=[10**6])
    assert "HFC/LFC = 3.3e+301029" in str(found)


def test_what_is_0_or_infinite_is_printed_as_that():
    same = verdict(A=AA, H=[["-1/2"]], X0=[[1], [1]], depth=[3])
    assert "after 3 layers: HFC/LFC = 0, squared 0" in str(same)
    away = verdict(A=AA, H=[["-1/2"]], X0=[[1], [-1]], depth=[3])
    assert "after 3 layers: HFC/LFC = inf" in str(away)


@pytest.mark.parametrize(
    ("value", "log", "digits", "text"),
    [
        (0.5, math.log(0.5), 10, "0.5"),
        (0.0, -1000 * math.log(10), 3, "1e-1000"),
        (0.0, math.log(9.9999) - 1000 * math.log(10), 3, "1e-999"),
        (math.inf, 1000 * math.log(10) + math.log(2.5), 2, "2.5e+1000"),
        (0.0, -math.inf, 3, "0"),
        (math.inf, math.inf, 3, "inf"),
        (None, None, 3, "-"),
        (5e-324, math.log(5e-324), 3, "4.94e-324"),
    ],
)
def test_ratio_text(value, log, digits, text):
    assert ratio_text(value, log, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (-0.0, "0.00"), (-0.001, "0.00"), (0.314, "+0.31"), (-0.02, "-0.02")],
)
def test_a_change_has_a_sign_and_0_has_none(value, text):
    assert signed(value) == text


def test_a_table_says_no_minus_0_and_no_0_for_a_positive_ratio():
    table = pd.DataFrame(
        {
            "HFC/LFC": [0.25, 4e-7, 0.0, math.nan],
            "ln HFC/LFC": [-1.4, -0.0, -0.0001, 2.0],
            "layer": [0, 1, 2, 3],
        }
    )
    number = "{:+.3f}".format
    rows = [line.split() for line in table_text(table, number).splitlines()[1:]]
    assert rows == [
        ["+0.250", "-1.400", "0"],
        ["4e-07", "0.000", "1"],
        ["0.000", "0.000", "2"],
        ["-", "+2.000", "3"],
    ]
    shown = as_html("words", table)
    assert "4e-07" in shown and "-0.000" not in shown and "nan" not in shown.lower()
