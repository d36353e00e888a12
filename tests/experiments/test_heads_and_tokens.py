"""Heads one by one and the tokens that come together, against models and states made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.closer import shown_pixels
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.inspection.head_table import head_measures, head_table, worst_heads
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.inspection.observe import log_ratio
from oversmoothing.experiments.inspection.token_clusters import ALONE, cluster_columns, clusters
from oversmoothing.experiments.inspection.token_picture import draw_tokens
from oversmoothing.experiments.models.sources import open_model
from tests.support.made_models import made, sharing
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import batch, pixels, tiny, tokens


def test_a_single_head_left_out_leaves_the_stream_in_front() -> None:
    model, inputs = made(value=0.3, depth=2), sharing(3)
    found = extract(model, inputs)
    measured = head_measures(model, found, 3)
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


def test_leaving_a_head_out_is_a_model_without_it() -> None:
    """In the last layer, whose attention is the same in both models."""
    whole = head_measures(open_model(tiny("vit")), extract(open_model(tiny("vit")), pixels(3)), 0)
    there = extract(open_model(tiny("vit")), pixels(3)).traces[-1].after_attention
    for head in range(3):
        other = extract(open_model(without(tiny("vit"), 1, head, 8)), pixels(3))
        expected = log_ratio(there) - log_ratio(other.traces[-1].after_attention)
        np.testing.assert_allclose(whole["log_change"][1, head], expected, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_padding_counts_for_nothing_in_a_head(family: str) -> None:
    model = open_model(tiny(family))
    both = tokens((7, 4))
    short = {name: value[1:, :4] for name, value in both.items()}
    padded = head_measures(model, extract(model, both), 2)
    alone = head_measures(model, extract(model, short), 1)
    for name, values in alone.items():
        np.testing.assert_allclose(padded[name][..., 1:], values, atol=1e-5, err_msg=name)


def test_the_table_has_a_row_a_head_and_names_the_worst() -> None:
    change = np.array(
        [[[-0.5, -0.4, -0.6], [0.1, 0.2, 0.1]], [[-0.9, 0.9, 0.0], [-0.2, -0.2, -0.21]]]
    )
    nothing = np.full_like(change, np.nan)
    names = ("consensus", "radius", "rho_consensus", "margin", "dobrushin", "entropy", "sink_mass")
    measured = {"log_change": change, "sink_token": np.zeros_like(change)}
    table = head_table(measured | dict.fromkeys(names, nothing))
    assert list(zip(table["layer"], table["head"], strict=True)) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    worst = worst_heads(table)
    assert list(zip(worst["layer"], worst["head"], strict=True)) == [(1, 0), (2, 1)]


def test_clusters_are_what_is_connected_and_numbered_by_size() -> None:
    X = torch.tensor([[1.0, 0.0], [0, 1], [1, 0.01], [-1, 0], [0, 2], [3, 0.0], [0, 0]])
    assert clusters(X).tolist() == [0, 1, 0, ALONE, 1, 0, ALONE]
    angles = torch.linspace(0, 1.5, 16, dtype=torch.float64)  # neighbours at .1, ends far apart
    assert set(clusters(torch.stack([angles.cos(), angles.sin()], 1)).tolist()) == {0}
    columns = cluster_columns([clusters(X)[None]])
    assert columns["merged_share"] == pytest.approx(5 / 7)
    assert columns["largest_cluster"] == pytest.approx(3 / 7)


def test_collapsed_tokens_are_one_cluster_and_the_report_says_so(tmp_path: Path) -> None:
    report = inspect(made(value=2.0, depth=6), sharing(4), name="made")
    assert report.to_frame()["largest_cluster"].iloc[-1] == 1
    assert "After the last layer 100 % of the tokens are within cosine 0.95" in report.summary()
    assert "Left out one at a time, the heads that smooth most are layer 1 head 0 (-" in (
        report.summary()
    )
    files = report.save(tmp_path)
    assert files["tokens"].read_bytes()[:4] == b"\x89PNG"
    heads = pd.read_csv(files["heads"])
    assert list(heads["layer"]) == [1, 2, 3, 4, 5, 6] and (heads["head"] == 0).all()
    drawn = pd.read_csv(files["clusters"])
    assert (drawn[drawn["layer"] == 6]["cluster"] == 0).all() and drawn["input"].nunique() == 3
    assert "Which tokens come together" in files["html"].read_text()


def test_without_a_closer_look_there_is_none(tmp_path: Path) -> None:
    report = inspect(made(), sharing(2), closer=0)
    assert report.heads.empty and report.plot_tokens() is None
    assert set(report.save(tmp_path)) == {"html", "json", "csv", "png"}


def images_of(report_tokens: pd.DataFrame, shown: Tensor | np.ndarray | None) -> int:
    figure = draw_tokens(report_tokens, None if shown is None else np.asarray(shown), "t")
    return sum(len(axis.get_images()) for axis in figure.axes)


def test_vision_is_drawn_on_the_image_and_text_by_position() -> None:
    own = inspect(tiny_model("vit-"), random_pixels(4), name="tiny")
    assert own.pixels is not None and own.pixels.shape == (3, 8, 8, 3)
    assert own.pixels.min() == 0 and own.pixels.max() == 1
    # Of each of three inputs the image, and grey with its clusters after layers 0, 1 and 2.
    assert images_of(own.tokens_together, own.pixels) == 3 * (1 + 2 * 3)
    text = inspect(tiny("bert"), batch("bert"), name="bert")
    assert text.pixels is None and images_of(text.tokens_together, None) == 2
    # An iterator is read but once, and by the model.
    assert shown_pixels(made(), iter(sharing(2))) is None


def test_no_input_left_for_interval_means_no_word_on_heads() -> None:
    assert "Left out" not in inspect(made(value=1.0), sharing(1)).summary()
