"""The command `heads`: its files, its words, its refusals."""

import json

import pandas as pd
import pytest

from oversmoothing import main


def run(tmp_path, *options):
    small = ["--n", "5", "--d", "4", "--points", "8"]
    for name, value in (("--heads", "2"), ("--depth", "300")):
        small += [] if name in options else [name, value]
    return main(["simulate", *small, *options, "--out", str(tmp_path)])


def call(tmp_path, *options):
    assert run(tmp_path, *options) == 0
    return pd.read_csv(tmp_path / "heads.csv"), json.loads((tmp_path / "heads.json").read_text())


def test_a_fixed_layer_comes_with_the_verdict_of_all_heads_together(tmp_path, capsys):
    table, record = call(tmp_path)
    assert table["depth"].iloc[-1] == 300
    verdict = record["theory"]["verdict"]
    assert verdict in capsys.readouterr().out
    fell = table["log_hfc_lfc"].iloc[-1] < -3
    assert fell == (verdict == "SMOOTHING")
    assert record["configuration"]["heads"] == 2


@pytest.mark.parametrize("options", [("--attention", "drawn"), ("--weights", "drawn", "--causal")])
def test_drawn_layers_come_with_their_exponents(tmp_path, capsys, options):
    _, record = call(tmp_path, *options)
    assert record["theory"]["kind"] == "exponents" and record["theory"]["gap_error"] > 0
    assert "gamma_Q - gamma_C" in capsys.readouterr().out


def test_attention_that_follows_the_state_has_no_verdict(tmp_path, capsys):
    table, record = call(tmp_path, "--attention", "state", "--no-residual", "--depth", "8")
    assert record["theory"] == {"kind": "none"} and "follows the state" in capsys.readouterr().out
    # The digits triple (T9).
    assert table["log_hfc_lfc"].iloc[-1] < -20


@pytest.mark.parametrize("options", [("--rank", "9"), ("--device", "quantum")])
def test_options_that_do_not_fit_are_refused(tmp_path, capsys, options):
    assert run(tmp_path, *options) == 2
    assert "oversmoothing: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
