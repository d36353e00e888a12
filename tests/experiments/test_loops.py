"""Loops of real blocks: prediction before, outcome after, how both are scored, and recall."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from oversmoothing import main, open_model
from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.repeated import predictors
from oversmoothing.experiments.repeated.blocks import plain_attention, recorded
from oversmoothing.experiments.repeated.growth import loop_laws
from oversmoothing.experiments.repeated.loop import Loops, loop, own_blocks, recalled
from oversmoothing.theory.at_consensus import LoopLaw
from tests.support.cases import cases
from tests.support.families_of_today import inputs as inputs_of_today, today
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import tiny, tokens


@pytest.fixture(scope="module")
def found():
    return loop(open_model(tiny_model(), dtype=torch.float64), random_pixels(4).double(), loops=40)


@pytest.mark.parametrize("recall", [0.0, 0.3])
def test_a_loop_is_the_block_again_and_again_and_recall_its_share_of_the_first_stream(recall):
    model = open_model(tiny_model(), dtype=torch.float64)
    run = recorded(model, random_pixels(2).double())
    f, X = run.blocks[0], run.states[0]
    with torch.no_grad(), plain_attention(model.module):
        several = predictors.looped([f], X, 20, recall)
        Z = X
        for _ in range(20):
            Z = f(Z) + recall * X
    torch.testing.assert_close(several.tail[-1], Z)
    np.testing.assert_allclose(several.logs[-1], log_ratio(Z).numpy())


def synthetic(streams: list[torch.Tensor]) -> predictors.Looped:
    """Of streams [1, n, d] that were not looped."""
    logs = np.array([log_ratio(X).numpy() for X in streams])
    return predictors.Looped(logs, logs, streams[len(streams) // 2], tuple(streams[-7:]))


def test_outcomes_are_told_apart_on_streams_made_to_be_so():
    rng = torch.Generator().manual_seed(0)
    base = torch.randn(1, 6, 8, generator=rng, dtype=torch.float64)
    E = base - base.mean(1, keepdim=True)
    one = torch.ones(1, 6, 8, dtype=torch.float64)
    F = E.roll(1, 2)
    made = {
        "collapsed": [one + E / (1 + t) ** 2 for t in range(41)],
        "falling as a power": [one + 3 * E * (1 + t) ** -0.3 for t in range(41)],
        "at rest elsewhere": [(1 + t) * (one + 3 * E) for t in range(41)],
        "a cycle": [one + 3 * E * (1 + 0.5 * (-1) ** t) for t in range(41)],
        "still moving": [one + 3 * (np.cos(t / 50) * E + np.sin(t / 50) * F) for t in range(41)],
    }
    for kind, streams in made.items():
        assert predictors.outcomes(synthetic(streams))[0]["kind"] == kind
    assert predictors.outcomes(synthetic(made["a cycle"]))[0]["period"] == 2
    assert predictors.outcomes(synthetic(made["collapsed"]))[0]["clusters"] == 1


def test_the_law_says_the_power_that_it_is():
    law = LoopLaw(loops=100, along=0.01, across=0.005, power=1.0, turning=0.0)
    assert predictors.from_law(law, 0.0, 99) == pytest.approx(-0.5 * math.log(100))
    bounded = LoopLaw(loops=100, along=0.0, across=-0.1, power=0.0, turning=0.0)
    assert predictors.from_law(bounded, 0.0, 50) == pytest.approx(-5)


def test_all_tokens_are_few_tokens_that_predict_exactly():
    """The predictor that loops some of the tokens, given all of them, is the outcome."""
    model = open_model(tiny_model(), dtype=torch.float64)
    run = recorded(model, random_pixels(2).double())
    X = run.states[0]
    with torch.no_grad():
        predicted = predictors.token_predictions(run.blocks[:1], X, X.shape[1], 30)
        measured = predictors.looped(run.blocks[:1], X, 30).logs[-1]
    np.testing.assert_allclose(predicted, measured)


def test_scores_are_those_of_their_definitions():
    measured = np.array([[-3.0, -2.0], [0.0, 1.0]])
    perfect = predictors.score_loops(measured, measured)
    assert (perfect.agree, perfect.rank, perfect.error) == (1.0, pytest.approx(1.0), 0.0)
    wrong = predictors.score_loops(measured, -measured + 2 * predictors.LINE)
    assert wrong.agree == 0.0 and wrong.rank == pytest.approx(-1)
    constant = predictors.score_loops(measured, np.zeros((2, 2)))
    assert constant.agree == constant.base == 0.5 and math.isnan(constant.rank)
    refuses(r"predictions \(1, 2\)", lambda: predictors.score_loops(measured, measured[:1]))


def test_the_predictor_is_chosen_on_one_half_and_scored_on_the_other():
    """What is right on the choosing half alone is chosen, and its one score shows it."""
    rng = np.random.default_rng(0)
    measured = rng.choice([-3.0, 0.0], size=(6, 8)) + 0.1 * rng.standard_normal((6, 8))
    names = {"lucky": measured.copy(), "steady": measured + 0.2 * rng.standard_normal((6, 8))}
    first = predictors.choose(measured, names, seed=1)
    there = np.ix_(first.blocks[1], first.inputs[1])
    names["lucky"][there] = -measured[there] + 2 * predictors.LINE
    second = predictors.choose(measured, names, seed=1)
    assert second.name == "lucky" and second.on_choice["lucky"].agree == 1
    assert second.score.agree == 0
    assert not set(second.blocks[0]) & set(second.blocks[1])
    assert not set(second.inputs[0]) & set(second.inputs[1])
    refuses("at least 2 of each", lambda: predictors.choose(measured[:1], names))


def test_every_block_and_input_has_a_prediction_and_an_outcome(found):
    frame = found.tables["runs"].rows
    assert len(frame) == 2 * 4 and np.isfinite(frame["end"]).all()
    assert {predictors.LOCAL, "few tokens, 4"} <= set(found.predicted)
    np.testing.assert_allclose(np.log(frame["end"]), found.curves[:, -1].ravel())
    assert found.chosen is not None and "chosen on half" in found.words()
    assert json.dumps(found.to_json_object())
    assert found.picture.files["png"]


def test_the_picture_has_the_medians_of_the_table_and_keeps_its_marks_in_their_panels(
    found, monkeypatch
):
    local = found.predicted[predictors.LOCAL]
    monkeypatch.setitem(found.predicted, predictors.LOCAL, 0 * local - 40)
    *panels, last = [axis for axis in found.picture.draw().axes if axis.has_data()]
    for panel, end in zip(panels, found.tables["by_group"].rows["end"], strict=True):
        median, (law,) = panel.lines[-3].get_ydata(), panel.lines[-2].get_ydata()
        assert median[-1] == pytest.approx(end)
        assert panel.get_ylim()[0] <= law <= panel.get_ylim()[1]
    assert last.get_xlabel().startswith("predicted by") and "measured" in last.get_ylabel()


def test_the_shares_are_those_of_the_runs_that_chose_nothing():
    """4 blocks, 10 inputs, 40 runs: of the 10 runs of the other 2 blocks and 5 inputs, 3 collapse,
    2 of them as predicted, and 2 more are predicted to: 7 are right, and 7 do not collapse."""
    measured, local = np.zeros((4, 10)), np.zeros((4, 10))
    halves = predictors.choose(local, {"": local}, 0)
    (a, b), (i, j, k, m, _) = halves.blocks[1], halves.inputs[1]
    measured[[a, a, b], [i, j, k]] = -2.0
    local[[a, a, b, b], [i, j, i, m]] = -2.0
    rows = pd.DataFrame([{"group": g, "input": x} for g in range(4) for x in range(10)])
    columns = ("start", "exponent", "slope", "turned", "clusters", "largest", "by the law")
    rows[[*columns]] = 1.0
    rows["end"], rows[predictors.LOCAL] = np.exp(measured).ravel(), local.ravel()
    rows = rows.assign(settled=True, kind=np.where(rows["end"] < 0.2, "collapsed", "a cycle"))
    curves = np.stack([measured, measured], axis=1)
    groups = [(g,) for g in range(1, 5)]
    said = Loops("m", groups, 0, rows, curves, (predictors.LOCAL,)).words()
    assert "In part: tokens collapse in 3 of 40 runs, 4 groups of blocks on 10 inputs." in said
    assert "(groups: 2, inputs: 5) it is right on collapse in 70 % of runs (no interval" in said
    assert "Always guessing the more common outcome is right in 70 %." in said


def test_no_exponent_is_said_of_a_law_that_has_not_settled(found):
    rows = found.tables["runs"].rows
    rows = rows.assign(group=rows["blocks"].astype(int) - 1, settled=rows["input"] == 2)
    rows.loc[rows["group"] == 1, "settled"] = False
    said = found._by_group(rows.assign(**{"by the law": 1.0}))["exponent"]
    assert said[0] == rows["exponent"][2] and np.isnan(said[1])


def test_groups_run_their_layers_in_turn():
    model = open_model(tiny_model(), dtype=torch.float64)
    pixels = random_pixels(1).double()
    found = loop(model, pixels, groups=[(1, 2)], loops=20)
    run = recorded(model, pixels)
    with torch.no_grad():
        Z = run.states[0]
        for _ in range(20):
            Z = run.blocks[1](run.blocks[0](Z))
    assert found.curves[0, -1, 0] == pytest.approx(float(log_ratio(Z)[0]))
    assert found.chosen is None and found.labels == ["1-2"]


def test_texts_of_different_lengths_and_masks_are_looped_one_by_one():
    model = open_model(tiny("llama"))
    found = loop(model, [tokens((7,))["input_ids"][0]], loops=20)
    assert found.curves.shape == (2, 21, 1) and "few tokens, 4" not in found.predicted


def test_the_block_of_albert_is_looped_once():
    model = open_model(today("ALBERT"))
    assert own_blocks(model) == [(1,)]
    found = loop(model, inputs_of_today("ALBERT", lengths=(6, 6)), loops=20)
    assert found.curves.shape[2] == 2


def test_float32_gives_the_same_law_as_float64():
    laws = []
    for dtype in (torch.float32, torch.float64):
        model = open_model(tiny_model(), dtype=dtype)
        run = recorded(model, random_pixels(1).to(dtype))
        X = run.states[0]
        laws.append(loop_laws(run.blocks[:1], X[:1].mean(1), X.shape[1], 100)[0])
    assert laws[0].exponent == pytest.approx(laws[1].exponent, abs=2e-2)


def test_recall_of_a_post_norm_block_finds_its_one_fixed_point():
    """Where the recall is large the norm shrinks what differs: one limit from three starts, the
    derivative there has radius < 1, and the limit solves X = f(X) + B X_0."""
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)  # Post-LN: bounded
    model = open_model(nn.TransformerEncoder(block, 1), dtype=torch.float64)
    X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    recall = recalled(model, X, 8.0, loops=60)
    assert "radius is estimated at" in recall.words()
    table = recall.table
    assert (table["outcome"] == "one fixed point from three starts").all()
    assert (table["radius"] < 1).all() and (table["apart"] < 1e-6).all()
    assert "At the fixed points HFC/LFC" in recall.words()
    run = recorded(model, X)
    with torch.no_grad(), plain_attention(model.module):
        end = predictors.looped(run.blocks, X, 60, 8.0).tail[-1]
        torch.testing.assert_close(run.blocks[0](end) + 8.0 * X, end)
    np.testing.assert_allclose(table["end"], np.exp(log_ratio(end)))


def test_recall_of_a_pre_norm_block_may_have_no_fixed_point():
    """Its branch is bounded and B X_0 is not taken back: the stream grows linearly."""
    model = open_model(tiny_model(), dtype=torch.float64)
    table = recalled(model, random_pixels(1).double(), 5.0, loops=40).table
    assert (table["outcome"] == "none: the stream grows").all()
    assert table["radius"].isna().all() and (table["growth"] - 1).abs().max() < 0.2


@cases(
    "how, said",
    ({"loops": 3}, "loops is 3: it must be at least 20"),
    ({"groups": [(1, 9)]}, "the group 1-9 names layers .* it has layers 1 to 2"),
    ({"groups": [range(1, 99)]}, r"the group 1-2-3-4-5-6-7-8-9-\.\.\. names layers"),
    ({"groups": [()]}, r"the group \(none\)"),
    ({"inputs": []}, "no inputs"),
    ({"recall": 0.0}, "give a finite number other than 0"),
    ({"recall": math.nan}, "give a finite number other than 0"),
)
def test_loops_that_cannot_be_run_are_refused(how, said):
    asked = recalled if "recall" in how else loop
    refuses(said, asked, open_model(tiny_model()), **{"inputs": random_pixels(1)} | how)


def test_the_command_loops_groups_with_recall(tmp_path, told):
    words = ["probe", "vit-random", "loop", "--count", "2", "--loops", "20", "--group", "1", "2-3"]
    assert "X <- f(X) + 0.5 X_0 in 4 runs" in told(0, *words, "--recall", "0.5", "--out", tmp_path)


@pytest.mark.parametrize("group", ["3-1", "\u00b2", "1-9999999", "9" * 5000, "1-", ""])
def test_a_group_that_names_no_layers_is_refused(group, tmp_path, capsys):
    """Digits that are no numbers, and more layers than a list holds, ended the program once."""
    assert main(["probe", "vit-random", "loop", "--group", group, "--out", str(tmp_path)]) == 2
    assert f"--group {group[:40]} names no layers" in capsys.readouterr().err
