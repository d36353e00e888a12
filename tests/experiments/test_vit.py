"""The ViT of the experiments: its layer is the paper's, and watching it changes nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing.experiments.digits.config import TrainConfig
from oversmoothing.experiments.digits.vit import LayerTrace, ViT
from oversmoothing.theory.support.errors import InputError
from tests.support.tiny_models import random_pixels, tiny_model

VARIANTS = ["vit", "vit+", "vit-"]


def traced(model: ViT, pixels: torch.Tensor) -> list[LayerTrace]:
    record: list[LayerTrace] = []
    with torch.no_grad():
        model(pixels, record)
    return record


@pytest.mark.parametrize("variant", VARIANTS)
def test_recording_changes_no_bit_of_the_scores(variant: str) -> None:
    model, pixels = tiny_model(variant), random_pixels(5)
    record: list[LayerTrace] = []
    assert torch.equal(model(pixels), model(pixels, record))
    assert len(record) == 2
    assert not any(t.before.requires_grad or t.attention.requires_grad for t in record)


def test_attention_is_positive_and_row_stochastic() -> None:
    for trace in traced(tiny_model(), random_pixels(4)):
        assert trace.attention.shape == (4, 2, 17, 17)
        assert (trace.attention > 0).all()
        torch.testing.assert_close(trace.attention.sum(-1), torch.ones(4, 2, 17))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_attention_sublayer_is_the_kronecker_operator(variant: str) -> None:
    """vec(X') = vec(X) + (H (x) mean_h A_h) vec(LN X), vec stacking columns."""
    model = tiny_model(variant).double()
    trace = traced(model, random_pixels(1).double())[0]
    layer = next(model.stack())
    H = layer.value_projection().detach().numpy()
    A = trace.attention[0].mean(0).numpy()
    X = trace.before[0]
    normed = layer.norm_attention(X).detach().numpy()
    expected = X.numpy().flatten("F") + np.kron(H, A) @ normed.flatten("F")
    np.testing.assert_allclose(
        trace.after_attention[0].numpy().flatten("F"), expected, rtol=0, atol=1e-12
    )


def test_the_residual_stream_is_continuous_from_layer_to_layer() -> None:
    model, pixels = tiny_model(depth=3), random_pixels(3)
    record = traced(model, pixels)
    assert torch.equal(record[0].before, model.tokens(pixels))
    for earlier, later in pairwise(record):
        assert torch.equal(earlier.after_ffn, later.before)


@given(row=st.integers(0, 7), column=st.integers(0, 7))
@settings(max_examples=20, deadline=None)
def test_a_pixel_enters_the_token_of_its_patch_alone(row: int, column: int) -> None:
    model = tiny_model()
    blank = torch.zeros(1, 8, 8)
    lit = blank.clone()
    lit[0, row, column] = 1.0
    moved = (model.tokens(lit) - model.tokens(blank)).abs().sum(-1)[0]
    assert moved.nonzero().flatten().tolist() == [1 + 4 * (row // 2) + column // 2]


def test_weights_come_from_the_generator_and_not_from_global_state() -> None:
    before = torch.get_rng_state()
    torch.manual_seed(1)
    first = tiny_model().state_dict()
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = tiny_model().state_dict()
    assert torch.equal(torch.get_rng_state(), state)
    torch.set_rng_state(before)
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = tiny_model(seed=1).state_dict()
    assert not torch.equal(first["position"], other["position"])


def test_every_parameter_is_drawn() -> None:
    """Memory that was never written would show as extreme values."""
    for name, parameter in tiny_model("vit-").named_parameters():
        assert torch.isfinite(parameter).all() and parameter.abs().max() < 10, name


def test_values_and_queries_have_no_bias() -> None:
    names = [name for name, _ in tiny_model().named_parameters()]
    assert not any("query_key.bias" in n or "value_projection.bias" in n for n in names)


def test_float64_projections_are_those_of_the_model() -> None:
    model = tiny_model("vit-")
    for layer, H in zip(model.stack(), model.value_projections(), strict=True):
        assert H.dtype == torch.float64
        torch.testing.assert_close(H.float(), layer.value_projection(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [{"patch": 3}, {"width": 30, "heads": 4}])
def test_a_shape_that_does_not_fit_is_refused(shape: dict[str, int]) -> None:
    with pytest.raises(InputError, match="choose one"):
        TrainConfig(**shape)
