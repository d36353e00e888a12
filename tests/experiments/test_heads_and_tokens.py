"""Heads one by one and the tokens that come together, against models and states made by hand."""

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from matplotlib.figure import Figure
from torch import Tensor

import oversmoothing
from oversmoothing import InputError, inspect, metrics, open_model
from oversmoothing.experiments.inspection import plots, states
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import extract, stream
from oversmoothing.experiments.inspection.heads_and_why import (
    head_table,
    of_heads,
    why_heads,
    worst_heads,
)
from oversmoothing.experiments.inspection.observe import Linearity, Observer
from oversmoothing.experiments.inspection.sentences import of_rank, of_sinks
from oversmoothing.experiments.intervals import FEWEST
from oversmoothing.experiments.models.model import Model, Trace
from oversmoothing.simulations.state_metrics import stream_log_ratio as log_ratio
from tests.support.families_of_today import inputs, today, whole
from tests.support.made_models import WIDTH, draw, made, sharing
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import Letters, batch, pixels, tiny, tokens


def head_measures(model: Model, inputs: Any) -> dict[str, np.ndarray]:
    """Every number of every head, [layers, heads, inputs]."""
    seen = Observer(model, Plan(9, 9, 9, 9), None)
    for _ in stream(model, inputs, see=seen.see):
        pass
    return seen.heads.arrays()


def test_a_single_head_left_out_leaves_the_stream_in_front():
    model, inputs = made(value=0.3, depth=2), sharing(3)
    found = extract(model, inputs)
    measured = head_measures(model, inputs)
    for layer, trace in enumerate(found.traces):
        change = log_ratio(trace.after_attention) - log_ratio(trace.before)
        np.testing.assert_allclose(measured["log_change"][layer, 0], change, atol=1e-6)
    # Uniform attention: a = 0, so rho_Q = 1, and H = .3 gives rho_C = 1.3.
    assert measured["margin"] == pytest.approx(0.3, abs=1e-6)
    assert measured["dobrushin"] == pytest.approx(0, abs=1e-6)
    assert measured["entropy"] == pytest.approx(1, abs=1e-6)
    assert measured["sink_mass"] == pytest.approx(1 / 12, abs=1e-6)


def test_leaving_a_head_out_is_a_model_without_it():
    """In the last layer, whose attention is the same in both models."""
    whole = head_measures(open_model(tiny("vit")), pixels(3))
    there = extract(open_model(tiny("vit")), pixels(3)).traces[-1].after_attention
    for head in range(3):
        less = tiny("vit")
        with torch.no_grad():
            less.vit.layers[1].attention.o_proj.weight[:, head * 8 : (head + 1) * 8] = 0
        other = extract(open_model(less), pixels(3))
        expected = log_ratio(there) - log_ratio(other.traces[-1].after_attention)
        np.testing.assert_allclose(whole["log_change"][1, head], expected, atol=1e-5)


def test_the_table_has_a_row_a_head_and_names_the_worst():
    change = np.array(
        [[[-0.5, -0.4, -0.6], [0.1, 0.2, 0.1]], [[-0.9, 0.9, 0.0], [-0.2, -0.2, -0.21]]]
    ).repeat(2, axis=-1)
    names = ("consensus", "radius", "rho_consensus", "margin", "dobrushin", "entropy", "sink_mass")
    measured = {"log_change": change, "sink_token": np.zeros_like(change)}
    table = head_table(measured | dict.fromkeys(names, np.full_like(change, np.nan)))
    places = [each[["layer", "head"]].to_numpy().tolist() for each in (table, worst_heads(table))]
    assert places == [[[1, 0], [1, 1], [2, 0], [2, 1]], [[1, 0], [2, 1]]]


def test_clusters_are_what_is_connected_and_numbered_by_size():
    X = torch.tensor([[1.0, 0.0], [0, 1], [1, 0.01], [-1, 0], [0, 2], [3, 0.0], [0, 0]])
    assert states.clusters(X).tolist() == [0, 1, 0, states.ALONE, 1, 0, states.ALONE]
    angles = torch.linspace(0, 1.5, 16, dtype=torch.float64)  # neighbours at .1, ends far apart
    assert set(states.clusters(torch.stack([angles.cos(), angles.sin()], 1)).tolist()) == {0}
    columns = states.shares(states.clusters(X))
    assert columns["merged_share"] == pytest.approx(5 / 7)
    assert columns["largest_cluster"] == pytest.approx(3 / 7)


def test_collapsed_tokens_are_one_cluster_and_the_report_says_so(tmp_path):
    report = inspect(made(value=2.0, depth=6), sharing(FEWEST), name="made")
    assert report.to_frame()["largest_cluster"].iloc[-1] == 1
    for said in (
        "After the last layer 100 % of the tokens have another within cosine 0.95",
        "6 of 6 heads smooth in their own layer: right after its attention",
        "Most of all: layer 1 head 0 (-",
    ):
        assert said in report.summary()
    whole, parts = report.replies[1].details[0][0].split("By part:")
    assert whole.startswith(f"On {FEWEST} inputs ln HFC/LFC changes by ")
    signed = r"[+-]\d+\.\d+"
    added = sum(map(float, re.findall(signed, parts)))
    assert float(re.findall(signed, whole)[0]) == pytest.approx(added, abs=0.025)
    assert any("layer 1 head 0 (-" in words for words, _ in report.replies[1].details)
    files = report.save(tmp_path)
    assert files["report_tokens.png"].read_bytes()[:4] == b"\x89PNG"
    heads = pd.read_csv(files["heads"])
    assert list(heads["layer"]) == [1, 2, 3, 4, 5, 6] and (heads["head"] == 0).all()
    drawn = pd.read_csv(files["report_tokens.csv"])
    assert (drawn[drawn["layer"] == 6]["cluster"] == 0).all() and drawn["input"].nunique() == 3
    assert "Which tokens come together" in files["html"].read_text()


def test_without_a_closer_look_there_is_none(tmp_path):
    report = inspect(made(), sharing(2), budget=Plan(ranks=2))
    assert report.heads.empty and report.plot_tokens() is None
    assert set(report.save(tmp_path)) == {"html", "json", "csv", "png", "pdf", "txt"}


def images_of(report: oversmoothing.Report) -> int:
    return sum(len(axis.get_images()) for axis in report.plot_tokens().axes)


def test_vision_is_drawn_on_the_image_and_text_by_position():
    own = inspect(tiny_model("vit-"), random_pixels(4), name="tiny")
    assert own.pixels is not None and own.pixels.shape == (3, 8, 8, 3)
    assert own.pixels.min() == 0 and own.pixels.max() == 1
    # Of each of three inputs the image, and grey with its clusters after layers 0, 1 and 2.
    assert images_of(own) == 3 * (1 + 2 * 3)
    text = inspect(tiny("bert"), batch("bert"), name="bert")
    assert text.pixels is None and images_of(text) == 2
    # An iterator is read but once, and by the model.
    assert states.shown_pixels(made(), iter(sharing(2))) is None


@pytest.mark.parametrize("side", ["right", "left"])
def test_words_stand_at_their_tokens_whatever_the_padding(side):
    model = open_model(tiny("bert"), tokenizer=Letters())
    given = model.prepare(["cdefg", "ba"])
    if side == "left":
        given = {name: value.flip(1) for name, value in given.items()}
    words = states.shown_words(model, given)
    assert words is not None
    first, second = (each[:: 1 if side == "right" else -1] for each in words)
    # A line end cannot be shown: its piece is. Blanks in front of a word are no part of it.
    assert first[1:] == list("cdefg") and second[1:] == ["<4>", "<b>"]
    table = inspect(model, given, name="bert").tokens_together
    for number, each in enumerate(words):
        for layer in (0, 2):
            rows = table[(table["input"] == number) & (table["layer"] == layer)]
            assert list(rows.sort_values("token")["word"]) == each


def test_words_are_counted_cluster_by_cluster():
    labels = [np.array([[0, states.ALONE, 0, 0], [1, 0, 1, 0]]), np.array([[states.ALONE] * 2] * 2)]
    found = states.merged_words(states.token_table(labels, [["a", "b", "a", "c"], ["d", "e"]]))
    rows = [tuple(row) for row in found.itertuples(index=False)]
    assert rows == [(0, 0, 0, 3, "a x2, c"), (0, 1, 0, 2, "b, c"), (0, 1, 1, 2, "a x2")]


def test_a_list_of_words_is_cut_between_them():
    for words, room, shown in (
        ("the x3, of", 10, "the x3, of"), ("the x3, of, a", 11, "the x3, of ..."),
        ("the x3, often, a", 11, "the x3 ..."), ("endless", 3, "end ..."),
    ):  # fmt: skip
        assert states.shortened(words, room) == shown


def test_equal_words_are_together_in_front_of_all_and_the_report_says_so(tmp_path):
    """Without positions equal words are equal tokens; the words are data, not markup."""
    module = tiny("bert")
    with torch.no_grad():
        module.embeddings.position_embeddings.weight.zero_()
    model = open_model(module, tokenizer=Letters())
    report = inspect(model, ["aaabb", "cde"], name="bert")
    merged = report.merged
    first = merged[(merged["input"] == 0) & (merged["layer"] == 0)]
    assert set(first["words"]) == {"<b> x3", "<4> x2"}
    last = merged[(merged["input"] == 0) & (merged["layer"] == 2)].iloc[0]
    said = f"The largest cluster of the first text then has {last['tokens']}: {last['words']}."
    assert said in report.summary()
    files = report.save(tmp_path)
    assert len(pd.read_csv(files["merged"])) == len(merged)
    page = files["html"].read_text()
    assert "&lt;b&gt; x3" in page and "<b> x3" not in page
    assert json.loads(files["json"].read_text())["merged"] == merged.to_dict("records")


def test_without_a_tokenizer_there_are_no_words(tmp_path):
    def fails():
        raise InputError("this folder has no tokenizer")

    for tokenizer in (None, fails):
        model = open_model(tiny("bert"), tokenizer=tokenizer)
        assert states.shown_words(model, batch("bert")) is None
        report = inspect(model, batch("bert"))
        assert report.merged.empty and "merged" not in report.save(tmp_path)
    # An iterator is read but once, and by the model.
    assert states.shown_words(open_model(tiny("bert"), tokenizer=Letters()), iter(["ab"])) is None


def test_the_words_that_merge_in_a_trained_decoder_are_those_of_its_own_states(real):
    """From the library's hidden states and tokenizer: in front of all equal words are one."""
    folder = real("stories260K")
    text = "One day the big dog and the big cat saw the tree."
    report = inspect(open_model(folder), [text], name="stories")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    module = transformers.AutoModelForCausalLM.from_pretrained(folder)
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        states = module(ids, output_hidden_states=True).hidden_states
    words = [tokenizer.decode([k]).strip() for k in ids[0].tolist()]
    merged = report.merged
    for layer in (0, 1, 4):
        unit = torch.nn.functional.normalize(states[layer][0].double(), dim=-1)
        near = (unit @ unit.mT >= 0.95).sum(-1) > 1
        own = sorted(word for word, joined in zip(words, near, strict=True) if joined)
        rows = merged[merged["layer"] == layer]
        found = [part.split(" x") for row in rows["words"] for part in row.split(", ")]
        assert sorted(word for word, *k in found for _ in range(int(k[0]) if k else 1)) == own
    first = merged[merged["layer"] == 0]["words"]
    assert {"the x3", "big x2"} <= set(first)


def table_of_heads(**columns: list[float]) -> pd.DataFrame:
    """Three heads of layer 1; the first measures most, and its interval holds 0."""
    rows = {
        "layer": [1, 1, 1], "head": [0, 1, 2], "log_change": [-0.095, -0.07, 0.1],
        "log_change_low": [-0.2, -0.1, 0.05], "log_change_high": [0.003, -0.02, 0.2],
        "share": [np.nan, 0.0, np.nan],
        "margin": [np.nan, -0.16, np.nan], "entropy": [0.9, 0.66, 0.5],
        "sink_mass": [0.1, 0.25, 0.1], "sink_token": [0, 0, 0],
    }  # fmt: skip
    return pd.DataFrame(rows | columns)


def test_a_head_that_measures_more_is_named_though_its_interval_holds_0():
    said = of_heads(table_of_heads(), FEWEST)
    assert "Most of all: layer 1 head 1 (-0.070); layer 1 head 0 " in said
    assert "(-0.095) measures more, but its interval contains 0" in said
    assert "sharpen, with intervals above 0: 1. Most against it: layer 1 head 2 (+0.100)." in said
    assert f" Undecided on these {FEWEST} inputs: 1. More inputs may name other heads" in said
    few = of_heads(table_of_heads(), 2)
    assert "2 inputs looked at closely" in few and "layer" not in few
    axis = (figure := Figure()).subplots()  # without an interval a head is white
    bare = {"log_change_low": [np.nan, -0.1, np.nan], "log_change_high": [np.nan, -0.02, np.nan]}
    plots._heads(figure, axis, table_of_heads(**bare))
    assert axis.collections[0].get_array().ravel().tolist() == [0.0, -0.07, 0.0]
    none = of_heads(table_of_heads(log_change_high=[0.003, 0.1, 0.2]), FEWEST)
    assert "No head is seen to smooth" in none and "(-0.095) measures most" in none


def test_a_spectrum_that_contradicts_the_measurement_is_said_not_to_explain_it():
    against = why_heads(table_of_heads(), cls=True)
    assert "Layer 1 head 1: its spectrum does not explain it (margin -0.16)" in against
    assert "entropy of its rows is 0.66" in against and "25 % of its attention is on CLS" in against
    decoder = table_of_heads(share=[np.nan, 1.0, 0.0], margin=[np.nan, 0.2, 0.0])
    with_it, why = why_heads(decoder), why_heads(decoder, causal=True)
    assert "its spectrum agrees (margin +0.20)" in with_it and "entropy" not in with_it
    assert "margin is above 0 in 1 of the 1 heads that smooth, and in 0 of the 1 that" in with_it
    assert "margin is above 0 in" not in against
    assert why_heads(table_of_heads(), cls=True, causal=True) == against
    assert "each head whose spectrum was taken smooths or ties by it" in why
    # A head of full rank may have one: then the sentence would be false.
    other = table_of_heads(share=[np.nan, 1.0, 0.0], margin=[np.nan, 0.2, -0.1])
    assert "its spectrum agrees" in why_heads(other, causal=True)
    tied = why_heads(table_of_heads(margin=[np.nan, 0.0, np.nan]))
    assert "does not explain it (margin 0, a tie)" in tied and "is on token 0" in tied


def test_the_heads_that_are_named_have_the_spectra_that_a_whole_run_gives_them():
    model, inputs = made(value=2.0, depth=6), sharing(FEWEST)
    some = inspect(model, inputs, budget=Plan(FEWEST, FEWEST, FEWEST, why=2))
    every = inspect(model, inputs, budget=Plan(FEWEST, FEWEST, FEWEST, 2))
    named = worst_heads(some.heads).index
    assert some.spectra == 0 and some.heads["margin"].notna().sum() == len(named) == 3
    assert "No spectra of whole layers were taken" in some.summary() and "Why? " in some.summary()
    spectral = ["share", "radius", "rho_consensus", "margin"]
    pd.testing.assert_frame_equal(some.heads.loc[named, spectral], every.heads.loc[named, spectral])


@pytest.mark.parametrize("window", [3, None])
def test_attention_to_all_tokens_in_sight_has_entropy_1_and_to_one_alone_0(window):
    """A decoder whose queries are large, and 0, with a sliding window and without; padded texts."""
    config = transformers.MistralConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, intermediate_size=16, head_dim=8, sliding_window=window,
    )  # fmt: skip
    model = transformers.MistralForCausalLM(config).eval()
    weight = model.model.layers[0].self_attn.q_proj.weight
    # Of large queries all weights but one are 0 in float32, and 0 log 0 is 0.
    for scale, entropy in ((1e9, 0.0), (0.0, 1.0)):
        with torch.no_grad():
            weight.mul_(scale)
        heads = inspect(model, tokens((12, 9))).heads
        np.testing.assert_allclose(heads["entropy"], entropy, rtol=1e-6)


# --- what one large direction hides, and how linear a layer is: laws on states made to be known ---


@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (7, 7)])
def test_the_raw_rank_is_a_function_of_the_rank_behind_the_sink(shape):
    """T4g: erank(X) = e^eta(p) erank(X')^(1-p)."""
    X = draw(*shape) + 5
    found, raw = states.sinks(X), float(metrics(X)["effective_rank"])
    p = found["sink_share"]
    eta = torch.special.entr(p) + torch.special.entr(1 - p)
    assert float(eta.exp() * found["effective_rank_desunk"] ** (1 - p)) == pytest.approx(raw)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
@pytest.mark.parametrize("pull", [0.0, 0.3, 3.0, 60.0])
def test_the_largest_direction_is_that_of_the_singular_values(shape, pull):
    """Whatever the distance of the second: the further they are pulled the larger it is."""
    X = draw(*shape) + pull
    u, sigma, v = torch.linalg.svd(X, full_matrices=False)
    found, rest = states.sinks(X), metrics(X - sigma[0] * torch.outer(u[:, 0], v[0]))
    for name in ("cos_mean", "effective_rank"):
        # Near collapse the rounding of a Gram matrix, 1e-8 of sigma_2, counts as a direction.
        torch.testing.assert_close(found[f"{name}_desunk"], rest[name], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(found["sink_share"], sigma[0] / sigma.sum(), rtol=1e-9, atol=0)


def test_a_pivot_that_rounding_leaves_at_0_does_not_hide_the_largest_direction():
    """The eigenvalue as known lies so far below that the shifted matrix is exactly singular."""
    eps = torch.finfo(torch.float64).eps
    gram = torch.diag(torch.tensor([1 + 4 * eps, 0.5], dtype=torch.float64))
    assert states._first_vector(gram, gram.new_tensor(1.0)).abs().tolist() == [1.0, 0.0]


def test_behind_a_sink_token_stands_what_stood_there_without_it():
    Z, v = draw(30, 8), draw(8, seed=1)
    X = Z.clone()
    X[3] += 1e6 * v
    found = states.sinks(X)
    assert float(metrics(X)["effective_rank"]) < 1.001 and found["large_tokens"] == 1
    kept = torch.arange(30) != 3
    across = v / v.norm()
    clean = metrics(Z[kept] - torch.outer(Z[kept] @ across, across))
    torch.testing.assert_close(
        found["effective_rank_desunk"], clean["effective_rank"], rtol=1e-4, atol=0
    )
    without = metrics(Z[kept])
    for name in ("cos_mean", "effective_rank"):
        torch.testing.assert_close(found[f"{name}_without_large"], without[name])


@pytest.mark.parametrize(("cls", "registers"), [(True, 2), (False, 3), (True, 0), (False, 0)])
@pytest.mark.parametrize("width", [6, 14])
def test_registers_and_cls_are_left_out_by_their_number(width, cls, registers):
    """Each part as if it were a state of its own, raw and without its largest direction."""
    X, how = draw(14, width) + 1, {"cls": cls, "registers": registers}
    found = {
        k: x[0] for k, x in states.state_numbers(X[None], **how, ranks=1, closely=1)[1][0].items()
    }
    end = int(cls) + registers
    parts = {"without_first": list(range(1, 14))}
    if registers:
        parts["without_registers"] = [k for k in range(14) if not cls <= k < end]
        parts["patches"] = list(range(end, 14))
    for name, kept in parts.items():
        raw, alone = metrics(X[kept]), states.sinks(X[kept])
        for column in ("cos_mean", "effective_rank"):
            torch.testing.assert_close(found[f"{column}_{name}"], raw[column])
            torch.testing.assert_close(found[f"{column}_desunk_{name}"], alone[f"{column}_desunk"])
        torch.testing.assert_close(found[f"sink_share_{name}"], alone["sink_share"])
    assert ("cos_mean_patches" in found) == (registers > 0)


@pytest.mark.parametrize("name", ["DINOv2 with registers", "DINOv3"])
def test_registers_of_a_model_are_counted_and_left_out(name):
    """A large register hides the patches from every raw column, and from none without it."""
    module = today(name)
    with torch.no_grad():
        module.embeddings.register_tokens[0, 1] += 1e3
    model = open_model(module)
    assert (model.cls, model.registers) == (True, 2)
    report = inspect(model, inputs(name), name="registers")
    assert report.counted == "all 19 tokens with CLS and 2 registers"
    row = report.to_frame().iloc[0]
    X = extract(model, inputs(name)).traces[0].before.double()
    for column in ("cos_mean", "effective_rank"):
        for place, first in (("patches", []), ("without_registers", [0])):
            kept = [*first, *range(3, 19)]
            expected = metrics(X[:, kept])[column].mean()
            assert row[f"{column}_{place}"] == pytest.approx(float(expected), rel=1e-6)
    assert row["large_tokens"] == 1
    assert row["effective_rank"] < 2 < 5 < row["effective_rank_without_registers"]
    assert "Its patches alone, without CLS and the 2 registers, have" in report.summary()


def test_models_without_registers_have_no_columns_of_them():
    report = inspect(open_model(today("DINOv2")), inputs("DINOv2"))
    assert report.counted == "all 17 tokens with CLS"
    assert "cos_mean_patches" not in report.table and "patches alone" not in report.summary()
    assert "cos_mean_desunk_without_first" in report.table
    assert open_model(whole("DINOv3", num_register_tokens=0)).registers == 0


def test_rank_one_and_one_token_have_nothing_behind_them():
    one = states.sinks(torch.outer(draw(6), draw(4, seed=1)))
    assert one["effective_rank_desunk"].isnan() and one["sink_share"] == pytest.approx(1.0)
    assert states.sinks(draw(1, 4))["cos_mean_without_first"].isnan()


@pytest.mark.parametrize(("rank", "converged"), [(3, True), (64, False)])
def test_the_rank_converges_where_directions_are_fewer_than_tokens(rank, converged):
    X = draw(64, rank) @ draw(rank, 64, seed=1)
    growth = metrics(X)["effective_rank"] / states.sinks(X)["effective_rank_half"]
    assert (float(growth) <= 1.1) == converged


def scores(X: Tensor, Y: Tensor) -> dict[str, float]:
    held = Linearity(made(depth=1))
    keep = torch.ones(X.shape[:2], dtype=torch.bool)
    for part in (slice(0, 3), slice(3, None)):
        held.see(0, Trace(None, X[part], X[part], Y[part]), keep[part], part.start)
    return held.columns()[0]


def test_a_linear_layer_is_linear_and_noise_is_not():
    X = draw(9, 40, WIDTH) + 3
    exact = scores(X, X + X @ draw(WIDTH, WIDTH, seed=1) + 2)
    assert exact["linear_with_residual"] == pytest.approx(1, abs=1e-6)
    assert exact["linear_without_residual"] == pytest.approx(1, abs=1e-6)
    noise = scores(X, X + 0.5 * draw(9, 40, WIDTH, seed=2))
    # Var X / (Var X + 1/4), and nothing of the noise itself.
    assert noise["linear_with_residual"] == pytest.approx(0.8, abs=0.05)
    assert -0.3 < noise["linear_without_residual"] < 0.05


def test_of_directions_that_were_not_fitted_a_layer_is_not_said_to_take_them_away():
    """Texts with words of their own, before any position is added: X + X / 10 is near to X."""
    X = draw(10, 40, WIDTH)
    X[::2, :, WIDTH // 2 :] = 0
    X[1::2, :, : WIDTH // 2] = 0
    found = scores(X, 1.1 * X)
    assert found["linear_with_residual"] == pytest.approx(1 - 0.1**2 / 1.1**2, abs=2e-3)
    assert found["linear_without_residual"] == pytest.approx(0, abs=0.02)


def test_too_few_tokens_tell_nothing_of_linearity():
    X = draw(4, 6, WIDTH)
    assert all(value != value for value in scores(X, X).values())


def test_the_report_has_the_columns_and_says_them():
    report = inspect(made(value=0.1), sharing(10), name="made", budget=Plan(10, 3))
    row = report.to_frame().iloc[-1]
    assert report.closer == 3 and "over the first 3 images" in report.summary()
    assert f"mean cosine {row['cos_mean_desunk']:.3f} and effective rank" in report.summary()
    raw = report.cosines[-1, :3].mean()
    assert f"; raw {raw:.3f} and " in report.summary() and abs(raw - row["cos_mean"]) > 2e-3
    # Behind an H that is a multiple of 1 a layer of equal heads is linear but for its norms.
    assert 0 < row["linear_with_residual"] <= 1
    assert "rank_growth" not in inspect(made(), sharing(2), budget=Plan(ranks=2)).table
    refuses("closely is -1", lambda: Plan(closely=-1))


def test_the_sentences_read_the_table():
    table = pd.DataFrame({"layer": range(5), "rank_growth": [1.2, 1.3, 1.0, 1.05, 1.11]})
    table[["sink_share", "cos_mean_desunk", "effective_rank_desunk"]] = 0.625, 0.05, 669.0
    table[["cos_mean", "effective_rank"]] = 0.829, 191.0
    assert "After layers 0 to 1, 4 (0: the input) the effective rank still grows" in of_rank(table)
    assert "twice as many have up to 1.30 times the rank" in of_rank(table)
    said = of_sinks(table, 1, "text")
    assert "over the first text" in said and "rank 669.0; raw 0.829 and 191.0." in said
    assert of_sinks(table, 0, "text") == "" and of_rank(table[table["layer"].isin([2, 3])]) == ""
