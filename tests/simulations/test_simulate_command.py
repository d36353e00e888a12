"""The command `simulate`, of one head and of several: its table, its record, the same bytes from
the same seed."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from oversmoothing import main
from oversmoothing.simulations.against_theory.simulate import (
    Configuration,
    _theory,
    log_spaced_depths,
    simulate,
)
from oversmoothing.simulations.engine.layers import Fixed
from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION
from tests.support.cases import cases


def run(*arguments: str) -> int:
    return main(["simulate", *arguments, "--device", "cpu"])


def test_table_record_and_sentence(tmp_path, capsys):
    """The same seed writes the same bytes again."""
    assert run("--n", "6", "--d", "3", "--depth", "300", "--seed", "4", "--out", str(tmp_path)) == 0
    table = pd.read_csv(tmp_path / "simulate.csv")
    record = json.loads((tmp_path / "simulate.json").read_text())
    named = "depth hfc_lfc log_hfc_lfc cos_mean cos_min cos_abs_mean cos_abs_min effective_rank"
    assert list(table.columns[:9]) == [*named.split(), "sigma2_sigma1"]
    assert {"predicted_log_hfc_lfc", "log_rate", "predicted_limit"} <= set(table.columns)
    assert table["depth"].iloc[0] == 0 and table["depth"].iloc[-1] == 300
    assert record["configuration"]["seed"] == 4 and record["provenance"]["versions"]["numpy"]
    out = " ".join(capsys.readouterr().out.split())
    assert record["verdict"]["reason"] in out and record["verdict"]["verdict"] in out
    assert "layer/s" not in out and "\r" not in out
    before = [(tmp_path / f"simulate.{kind}").read_bytes() for kind in ("csv", "json")]
    run("--n", "6", "--d", "3", "--depth", "300", "--seed", "4", "--out", str(tmp_path))
    assert before == [(tmp_path / f"simulate.{kind}").read_bytes() for kind in ("csv", "json")]


@cases(
    "attention, value",
    *((kind, "ginibre") for kind in ATTENTION),
    *(("softmax", kind) for kind in VALUE_PROJECTION),
)
def test_measurement_agrees_with_the_closed_form(attention, value):
    d = 4
    options = {"eigenvalues": [-0.5, 0.3, -0.2 + 0.4j, -0.2 - 0.4j]} if value == "spectrum" else {}
    drawn = {"attention": attention, "value": value, "value_options": options}
    result = simulate(Configuration(**drawn, n=6, d=d, depth=20, seed=1), device="cpu")
    table, theory = result.table, result.details
    assert np.isfinite(table["log_hfc_lfc"]).all()
    if value == "defective":
        assert theory["closed_form_note"] is not None
        assert table["predicted_log_hfc_lfc"].isna().all()
    else:
        # The eigenbases' condition numbers, about 1e3 here, times 20 layers of rounding.
        assert theory["largest_error_of_log_hfc_lfc"] < 1e-9
    assert theory["verdict"]["verdict"] in result.words()


def test_float32_is_held_against_the_same_prediction():
    run = simulate(Configuration(n=8, d=4, depth=100, dtype="float32"), device="cpu")
    assert 1e-9 < run.details["largest_error_of_log_hfc_lfc"] < 1e-2


def test_the_slope_of_a_smoothing_run_is_the_rate():
    drawn = {"value": "spectrum", "value_options": {"eigenvalues": [0.5, 0.2]}}
    run = simulate(Configuration(**drawn, n=8, d=2, depth=4000), device="cpu")
    assert run.details["verdict"]["verdict"] == "SMOOTHING"
    told = "Drawn with seed 0: A softmax (8 x 8), largest |a| beside a = 1: "
    assert told in run.words() and "(2 x 2), largest |1 + h| = 1.5 at h = 0.5" in run.words()
    table = run.table
    last = table.iloc[-2:]
    slope = last["log_hfc_lfc"].diff().iloc[1] / last["depth"].diff().iloc[1]
    assert slope == pytest.approx(table["log_rate"].iloc[0], rel=1e-2)


def test_log_spaced_depths():
    assert log_spaced_depths(0, 5) == [0]
    assert log_spaced_depths(1, 5) == [0, 1]
    depths = log_spaced_depths(10**6, 40)
    assert depths[0] == 0 and depths[-1] == 10**6 and depths == sorted(set(depths))


def test_single_token_and_feature(tmp_path):
    assert run("--n", "1", "--d", "1", "--depth", "3", "--out", str(tmp_path)) == 0
    assert (pd.read_csv(tmp_path / "simulate.csv")["hfc_lfc"] == 0).all()


@cases(
    "arguments",
    ("--value", "spectrum"),
    ("--value", "spectrum", "--eigenvalues=1,2", "--d", "3"),
    ("--value", "goe", "--rank", "2"),
    ("--value", "spectrum", "--eigenvalues=1,two"),
    ("--coupling", "0.1"),
    ("--attention", "nearly_reducible", "--n", "1"),
    ("--device", "cuda:99"),
    ("--heads", "2", "--d", "4", "--rank", "9"),
    ("--heads", "2", "--device", "quantum"),
    ids=" ".join,
)
def test_bad_arguments_are_refused_before_anything_is_written(arguments, tmp_path, told):
    assert told(2, "simulate", *arguments, "--out", tmp_path).startswith("oversmoothing: ")
    assert not list(tmp_path.iterdir())


def test_eigenvalues_set_the_number_of_features(tmp_path):
    run("--value", "spectrum", "--eigenvalues=-0.5, 0.1+1i, 0.1-1i", "--n", "3", "--depth", "2",
        "--out", str(tmp_path))  # fmt: skip
    record = json.loads((tmp_path / "simulate.json").read_text())
    assert record["configuration"]["d"] == 3
    assert math.isfinite(record["largest_error_of_log_hfc_lfc"])


@pytest.fixture
def heads(told, tmp_path):
    """The table, the record and the words of a run of several heads."""

    def run(*options):
        small = ["--d", "4", "--points", "8"]
        for name, value in (("--n", "5"), ("--heads", "2"), ("--depth", "300")):
            small += [] if name in options else [name, value]
        out = told(0, "simulate", *small, *options, "--out", tmp_path)
        record = json.loads((tmp_path / "heads.json").read_text())
        return pd.read_csv(tmp_path / "heads.csv"), record, out

    return run


def test_a_fixed_layer_comes_with_the_verdict_of_all_heads_together(heads):
    table, record, out = heads()
    assert table["depth"].iloc[-1] == 300
    verdict = record["theory"]["verdict"]
    assert verdict in out
    fell = table["log_hfc_lfc"].iloc[-1] < -3
    assert fell == (verdict == "SMOOTHING")
    assert record["configuration"]["heads"] == 2


@pytest.mark.parametrize("options", [("--attention", "drawn"), ("--weights", "drawn", "--causal")])
def test_drawn_layers_come_with_their_exponents(heads, options):
    _, record, out = heads(*options)
    assert record["theory"]["kind"] == "exponents" and record["theory"]["gap_error"] > 0
    assert "gamma_Q - gamma_C" in out


def test_layers_that_take_all_to_0_have_a_table_and_no_exponents(heads):
    table, record, out = heads("--weights", "drawn", "--scale", "0", "--no-residual")
    assert record["theory"] == {"kind": "none"} and "There are no exponents" in out
    assert table["log_hfc_lfc"].isna().sum() == len(table) - 1
    _, record, out = heads("--weights", "drawn", "--n", "1")
    assert record["theory"] == {"kind": "none"} and "nothing to smooth" in out


def test_attention_that_follows_the_state_has_no_verdict(heads):
    table, record, out = heads("--attention", "state", "--no-residual", "--depth", "8")
    assert record["theory"] == {"kind": "none"} and "follows the state" in out
    assert f"goes from {table['log_hfc_lfc'].iloc[0]:.3g} to" in out.split("\n")[1]
    # The digits triple (T9).
    assert table["log_hfc_lfc"].iloc[-1] < -20


def test_a_slope_is_told_where_the_rate_is_a_number_above_0():
    A = Fixed(np.array([[[0.75, 0.25], [0.25, 0.75]]]))
    for h, residual, slope in ((-4.0, True, -math.log(3)), (-1.0, True, None), (0.0, False, None)):
        found = _theory(A, Fixed(np.array([[[h]]])), residual)[2]
        assert found == pytest.approx(slope)
