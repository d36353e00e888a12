"""Heads one by one and the tokens that come together, against models and states made by hand."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from matplotlib.figure import Figure
from torch import Tensor

import oversmoothing
from oversmoothing import InputError, inspect, open_model
from oversmoothing.experiments.inspection import plots
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import extract, stream
from oversmoothing.experiments.inspection.heads_and_why import (
    head_table,
    of_heads,
    why_heads,
    worst_heads,
)
from oversmoothing.experiments.inspection.observe import Observer
from oversmoothing.experiments.inspection.states import (
    ALONE,
    clusters,
    merged_words,
    shares,
    shortened,
    shown_pixels,
    shown_words,
    token_table,
)
from oversmoothing.experiments.intervals import FEWEST
from oversmoothing.experiments.models.model import Model
from oversmoothing.simulations.state_metrics import stream_log_ratio as log_ratio
from tests.support.made_models import made, sharing
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import Letters, batch, pixels, tiny, tokens

DATA = os.environ.get("OVERSMOOTHING_DATA")


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


def without(model: torch.nn.Module, layer: int, head: int, width: int) -> torch.nn.Module:
    """A ViT whose head adds nothing: the columns of its output projection are 0."""
    linear = model.vit.layers[layer].attention.o_proj
    with torch.no_grad():
        linear.weight[:, head * width : (head + 1) * width] = 0
    return model


def test_leaving_a_head_out_is_a_model_without_it():
    """In the last layer, whose attention is the same in both models."""
    whole = head_measures(open_model(tiny("vit")), pixels(3))
    there = extract(open_model(tiny("vit")), pixels(3)).traces[-1].after_attention
    for head in range(3):
        other = extract(open_model(without(tiny("vit"), 1, head, 8)), pixels(3))
        expected = log_ratio(there) - log_ratio(other.traces[-1].after_attention)
        np.testing.assert_allclose(whole["log_change"][1, head], expected, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_padding_counts_for_nothing_in_a_head(family):
    model = open_model(tiny(family))
    both = tokens((7, 4))
    short = {name: value[1:, :4] for name, value in both.items()}
    padded = head_measures(model, both)
    alone = head_measures(model, short)
    for name, values in alone.items():
        np.testing.assert_allclose(padded[name][..., 1:], values, atol=1e-5, err_msg=name)


def test_the_table_has_a_row_a_head_and_names_the_worst():
    change = np.array(
        [[[-0.5, -0.4, -0.6], [0.1, 0.2, 0.1]], [[-0.9, 0.9, 0.0], [-0.2, -0.2, -0.21]]]
    ).repeat(2, axis=-1)
    nothing = np.full_like(change, np.nan)
    names = ("consensus", "radius", "rho_consensus", "margin", "dobrushin", "entropy", "sink_mass")
    measured = {"log_change": change, "sink_token": np.zeros_like(change)}
    table = head_table(measured | dict.fromkeys(names, nothing))
    assert list(zip(table["layer"], table["head"], strict=True)) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    worst = worst_heads(table)
    assert list(zip(worst["layer"], worst["head"], strict=True)) == [(1, 0), (2, 1)]


def test_clusters_are_what_is_connected_and_numbered_by_size():
    X = torch.tensor([[1.0, 0.0], [0, 1], [1, 0.01], [-1, 0], [0, 2], [3, 0.0], [0, 0]])
    assert clusters(X).tolist() == [0, 1, 0, ALONE, 1, 0, ALONE]
    angles = torch.linspace(0, 1.5, 16, dtype=torch.float64)  # neighbours at .1, ends far apart
    assert set(clusters(torch.stack([angles.cos(), angles.sin()], 1)).tolist()) == {0}
    columns = shares(clusters(X))
    assert columns["merged_share"] == pytest.approx(5 / 7)
    assert columns["largest_cluster"] == pytest.approx(3 / 7)


def test_collapsed_tokens_are_one_cluster_and_the_report_says_so(tmp_path):
    report = inspect(made(value=2.0, depth=6), sharing(FEWEST), name="made")
    assert report.to_frame()["largest_cluster"].iloc[-1] == 1
    assert (
        "After the last layer 100 % of the tokens have another within cosine 0.95"
        in report.summary()
    )
    assert "6 of 6 heads smooth in their own layer: right after its attention" in report.summary()
    assert "Most of all: layer 1 head 0 (-" in report.summary()
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


def images_of(report_tokens: pd.DataFrame, shown: Tensor | np.ndarray | None) -> int:
    figure = plots.draw_tokens(report_tokens, None if shown is None else np.asarray(shown), "t")
    return sum(len(axis.get_images()) for axis in figure.axes)


def test_vision_is_drawn_on_the_image_and_text_by_position():
    own = inspect(tiny_model("vit-"), random_pixels(4), name="tiny")
    assert own.pixels is not None and own.pixels.shape == (3, 8, 8, 3)
    assert own.pixels.min() == 0 and own.pixels.max() == 1
    # Of each of three inputs the image, and grey with its clusters after layers 0, 1 and 2.
    assert images_of(own.tokens_together, own.pixels) == 3 * (1 + 2 * 3)
    text = inspect(tiny("bert"), batch("bert"), name="bert")
    assert text.pixels is None and images_of(text.tokens_together, None) == 2
    # An iterator is read but once, and by the model.
    assert shown_pixels(made(), iter(sharing(2))) is None


@pytest.mark.parametrize("side", ["right", "left"])
def test_words_stand_at_their_tokens_whatever_the_padding(side):
    model = open_model(tiny("bert"), tokenizer=Letters())
    given = model.prepare(["cdefg", "ba"])
    if side == "left":
        given = {name: value.flip(1) for name, value in given.items()}
    words = shown_words(model, given)
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
    labels = [np.array([[0, ALONE, 0, 0], [1, 0, 1, 0]]), np.array([[ALONE] * 2] * 2)]
    found = merged_words(token_table(labels, [["a", "b", "a", "c"], ["d", "e"]]))
    rows = [tuple(row) for row in found.itertuples(index=False)]
    assert rows == [(0, 0, 0, 3, "a x2, c"), (0, 1, 0, 2, "b, c"), (0, 1, 1, 2, "a x2")]


def test_a_list_of_words_is_cut_between_them():
    assert shortened("the x3, of", 10) == "the x3, of"
    assert shortened("the x3, of, a", 11) == "the x3, of ..."
    assert shortened("the x3, often, a", 11) == "the x3 ..."
    assert shortened("endless", 3) == "end ..."


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
        assert shown_words(model, batch("bert")) is None
        report = inspect(model, batch("bert"))
        assert report.merged.empty and "merged" not in report.save(tmp_path)
    # An iterator is read but once, and by the model.
    assert shown_words(open_model(tiny("bert"), tokenizer=Letters()), iter(["ab"])) is None


@pytest.mark.skipif(DATA is None, reason="needs OVERSMOOTHING_DATA")
def test_the_words_that_merge_in_a_trained_decoder_are_those_of_its_own_states():
    """From the library's hidden states and tokenizer: in front of all equal words are one."""
    assert DATA is not None
    folder = Path(DATA) / "stories260K"
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


def test_T2_a_causal_head_of_low_rank_has_no_margin_below_0():
    """|1 + h a| <= max(1, |1 + h|) for a in [0, 1], and h = 0 is among the eigenvalues of H."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        A = np.tril(rng.random((5, 5)) + 1e-3)
        A /= A.sum(axis=1, keepdims=True)
        answer = oversmoothing.verdict(A=A, W=(rng.normal(size=(4, 2)), rng.normal(size=(2, 4))))
        assert answer.margin > -1e-9


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
