"""Loops of real blocks: prediction before, outcome after, how both are scored, and recall."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from oversmoothing import main, open_model
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.repeated import flips, predictors
from oversmoothing.experiments.repeated.blocks import plain_attention, recorded
from oversmoothing.experiments.repeated.flips import FROZEN, GAP, MEANS, NONE, flipped, sign_flips
from oversmoothing.experiments.repeated.growth import loop_laws
from oversmoothing.experiments.repeated.loop import Loops, loop, own_blocks, recalled
from oversmoothing.theory.at_consensus import LoopLaw
from oversmoothing.theory.spectra.layer_discs import radii
from tests.support.cases import cases
from tests.support.families_of_today import inputs as inputs_of_today, today
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import pixels, tiny, tokens


@pytest.fixture(scope="module")
def found():
    return loop(open_model(tiny_model(), dtype=torch.float64), random_pixels(4).double(), loops=40)


@pytest.mark.parametrize(("group", "recall"), [([0], 0.0), ([0], 0.3), ([0, 1], 0.0)])
def test_a_loop_is_its_blocks_in_turn_and_recall_its_share_of_the_first_stream(group, recall):
    model = open_model(tiny_model(), dtype=torch.float64)
    run = recorded(model, random_pixels(2).double())
    blocks, X = [run.blocks[k] for k in group], run.states[0]
    with torch.no_grad(), plain_attention(model.module):
        several = predictors.looped(blocks, X, 20, recall)
        Z = X
        for _ in range(20):
            for f in blocks:
                Z = f(Z)
            Z = Z + recall * X
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


def test_texts_are_looped_one_by_one_in_groups_and_the_block_of_albert_once():
    model, text = open_model(tiny("llama")), tokens((7,))["input_ids"]
    found, run = loop(model, [text[0]], groups=[(2, 1)], loops=20), recorded(model, text)
    alone = predictors.looped(run.blocks[:2][::-1], run.states[1], 20)
    np.testing.assert_allclose(found.curves[0], alone.logs)
    assert found.curves.shape == (1, 21, 1) and "few tokens, 4" not in found.predicted
    assert found.chosen is None and found.labels == ["2-1"]
    model = open_model(today("ALBERT"))
    assert own_blocks(model) == [(1,)]
    found = loop(model, inputs_of_today("ALBERT", lengths=(6, 6)), loops=20)
    assert found.curves.shape[2] == 2


def test_float32_gives_the_same_law_as_float64():
    laws = []
    for dtype in (torch.float32, torch.float64):
        run = recorded(open_model(tiny_model(), dtype=dtype), random_pixels(1).to(dtype))
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


# --- the sign of a norm's gain flipped in real layers: T8d to the last bit, T8e by definition ---


def shifted(placement: str):
    """The project's ViT with shifts at its norms, in float64."""
    module = tiny_model(placement=placement)
    with torch.no_grad():
        for layer in module.blocks():
            layer.norm_attention.bias.normal_(generator=torch.Generator().manual_seed(1))
    return open_model(module, dtype=torch.float64)


@pytest.fixture(scope="module")
def pre():
    return sign_flips(shifted("pre"), random_pixels(6).double())


def test_pre_norm_without_query_and_key_biases_has_the_frozen_attention_exactly(pre):
    """T8d: (gamma, beta) -> -(gamma, beta) leaves A as it is, so that the frozen prediction is the
    effect; gamma alone changes A, and it is not."""
    for target in ("attention", "layer"):
        effect = pre.effects["gain and shift", target]
        predicted = pre.predictions["gain and shift", target, FROZEN]
        np.testing.assert_allclose(predicted, effect, atol=1e-9)
        gain = pre.effects["gain", target] - pre.predictions["gain", target, FROZEN]
        assert np.abs(gain).max() > 1e-4


def test_post_norm_sublayer_feels_nothing_of_gain_and_shift_to_the_last_bit():
    found = sign_flips(shifted("post"), random_pixels(4).double())
    assert np.abs(found.effects["gain and shift", "attention"]).max() == 0.0
    assert np.abs(found.effects["gain", "attention"]).max() > 1e-3
    assert found.gaps is None and "T8d" in found.words()
    assert set(name for _, _, name in found.predictions) == {NONE}
    assert found.picture.files["png"]


def test_the_flip_is_that_of_the_weights_and_is_taken_back(pre):
    """By the norm's output or by its parameters: the same stream."""
    model = shifted("pre")
    norm = model.layers[0].norm_attention
    X = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():
        before = norm.module(X)
        with flipped(norm, "gain"):
            by_output = norm.module(X)
        assert torch.equal(norm.module(X), before)
        norm.module.weight.neg_()
        torch.testing.assert_close(norm.module(X), by_output)


def test_the_gap_is_that_of_h_eff_and_of_its_negative(pre):
    """T8e on the definition: W^T diag(gamma) C / s, the mean attention, both signs."""
    model = shifted("pre")
    trace = extract(model, random_pixels(6).double(), dtype=torch.float64).traces[0]
    X, layer = trace.before[0].numpy(), model.layers[0]
    d = X.shape[1]
    C = np.eye(d) - 1 / d
    gamma = layer.norm_attention.gain.double().numpy()
    s = np.sqrt(((X @ C) ** 2).mean() + layer.norm_attention.eps)
    H = layer.heads.total().numpy().T @ np.diag(gamma) @ C / s
    A = trace.attention[0].numpy().mean(0)
    a = np.linalg.eigvals(A[:-1, :-1] - A[-1:, :-1])
    for k, sign in enumerate((1, -1)):
        consensus, quotient = radii(a, np.linalg.eigvals(sign * H))
        assert pre.gaps[0, 0, k] == pytest.approx(np.log(quotient / consensus), abs=1e-6)


def test_a_tie_of_h_eff_is_a_verdict_of_its_own():
    """T8e: H_eff negative but for the 0 of the centring ties under a causal A, -H_eff smooths."""
    module, d = tiny("gpt2").double(), 24
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for block in module.transformer.h:
            Q = torch.linalg.qr(torch.randn(d, d, generator=draw, dtype=torch.float64))[0]
            W = -(Q * torch.linspace(0.02, 0.3, d).double()) @ Q.T
            block.attn.c_attn.weight[:, 2 * d :] = W
            block.attn.c_proj.weight.copy_(torch.eye(d))
            block.ln_1.weight.fill_(1.0)
    found = sign_flips(open_model(module), torch.randint(3, 40, (8, 7), generator=draw))
    assert found.predicted_reversals.all()


def test_a_block_that_serves_two_layers_is_flipped_in_one_at_a_time():
    nets = [tiny("gpt2").double() for _ in range(2)]
    nets[0].transformer.h[1] = nets[0].transformer.h[0]
    nets[1].transformer.h[1].load_state_dict(nets[1].transformer.h[0].state_dict())
    texts = torch.randint(3, 40, (4, 7), generator=torch.Generator().manual_seed(0))
    tied, apart = (sign_flips(open_model(net), texts) for net in nets)
    for name, effect in apart.effects.items():
        np.testing.assert_allclose(tied.effects[name], effect, atol=1e-9)


def test_scores_are_taken_on_inputs_that_calibrated_nothing(pre):
    known, held = pre.split
    assert len(known) == len(held) == 3 and not set(known) & set(held)
    assert pre.scored["gain", "layer", MEANS].r2_within == pytest.approx(0.0, abs=1e-12)
    assert pre.scored["gain and shift", "layer", FROZEN].r2 > 1 - 1e-9
    table = pre.table
    assert list(table["layer"]) == [1, 2, 1, 2] and (table["reversed"] <= 1).all()
    gain = pre.effects["gain", "layer"].mean(0)
    np.testing.assert_allclose(table["effect_layer"][:2], gain)
    assert json.dumps(pre.to_json_object())
    assert "T8e predicts that the verdict is reversed" in pre.words()
    assert (("gain", "layer", GAP)) in pre.scored and pre.picture.files["png"]


def test_the_shares_are_those_of_all_layers_and_inputs():
    """10 inputs, 2 layers: 8 reversals are predicted, 5 seen, 3 both, so that 13 of 20 agree."""
    one, gaps = np.zeros((10, 2)), np.ones((10, 2, 2))
    one[:5, 0], gaps[2:, 0, 1] = -3.0, -1.0
    effects = {("gain", target): one for target in ("attention", "layer", "end")}
    predictions = {(*key, name): one for key in effects for name in (GAP, FROZEN)}
    said = flips.Flips("m", "pre", effects, predictions, np.ones((10, 2)), gaps, 0).words()
    assert "reversed in 40 % of the cases" in said and "really has the other sign in 25 %" in said
    assert "The two agree in 65 % (95 % interval 35 % to 86 %, 10 inputs)" in said
    assert "always guessing the more common answer is right in 75 %." in said


def test_biases_of_queries_and_keys_break_the_symmetry():
    """ViT has them: the frozen attention is no longer exact for (gamma, beta) either."""
    found = sign_flips(open_model(tiny("vit"), dtype=torch.float64), pixels(4))
    effect = found.effects["gain and shift", "attention"]
    error = effect - found.predictions["gain and shift", "attention", FROZEN]
    assert np.abs(error).max() > 1e-3


def test_what_has_no_sign_to_flip_is_refused():
    of = open_model(today("Gemma 3"))
    given = inputs_of_today("Gemma 3", lengths=(6, 6))
    refuses("parallel FFN or norms behind", sign_flips, of, given)
    refuses("give at least 4", sign_flips, shifted("pre"), random_pixels(3).double())
    refuses("no inputs", sign_flips, shifted("pre"), [])
