"""The ViT of the experiments: its layer is the paper's, and watching it changes nothing."""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.digits.vit import LayerTrace, ViT
from oversmoothing.experiments.forms.regions import parameterisation
from oversmoothing.theory.support.errors import InputError
from tests.support.tiny_models import random_pixels, tiny_model

VARIANTS = ["vit", "vit+", "vit-", "vit-clip-minus", "vit-disc", "vit-interval", "vit-band"]


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


def test_tied_layers_share_one_h_and_untied_ones_do_not() -> None:
    for tied, number in ((True, 1), (False, 3)):
        model = tiny_model("vit-band", depth=3, tied=tied)
        assert len(model.projections()) == number
        held = [name for name in model.state_dict() if name.endswith("psi")]
        assert held == [f"layers.{k}.value_projection.psi" for k in range(number)]
        H = model.value_projections()
        assert H.shape == (3, 16, 16)
        assert torch.equal(H[0], H[2]) == tied
    copied = copy.deepcopy(tiny_model("vit-band", depth=3, tied=True))
    assert len(copied.projections()) == 1
    loss = copied(random_pixels(2)).square().sum()
    loss.backward()
    assert all(p.grad is not None for p in copied.parameters())


def test_only_the_chosen_layers_take_the_form() -> None:
    model = tiny_model("vit-band", depth=4, form_layers=[2, 4])
    inside = [bool(parameterisation("band").inside(H)) for H in model.value_projections()]
    assert inside == [False, True, False, True]
    tied = tiny_model("vit-band", depth=4, form_layers=[2, 4], tied=True)
    H = tied.value_projections()
    assert torch.equal(H[1], H[3]) and torch.equal(H[0], H[2]) and not torch.equal(H[0], H[1])


@pytest.mark.parametrize("gains", ["free", "positive", "negative", "fixed"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_gains_keep_their_sign_through_training(placement: str, gains: str) -> None:
    model = tiny_model("vit", placement=placement, gains=gains).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    for _ in range(3):
        optimizer.zero_grad()
        model(random_pixels(4)).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    for layer in model.stack():
        for norm in (layer.norm_attention, layer.norm_ffn):
            gain = norm.weight.detach()
            moved = not torch.equal(gain.abs(), torch.ones_like(gain))
            assert moved == (gains != "fixed")
            assert {"positive": (gain > 0), "negative": (gain < 0)}.get(gains, gain == gain).all()


def test_post_ln_normalises_behind_each_sublayer() -> None:
    """X <- LN(X + A X H^T), X <- LN(X + FFN(X)): T8c's order, from the record."""
    model = tiny_model("vit", placement="post").double()
    trace = traced(model, random_pixels(1).double())[0]
    layer = next(model.stack())
    A, X = trace.attention[0].mean(0), trace.before[0]
    middle = layer.norm_attention(X + A @ X @ layer.value_projection().mT)
    torch.testing.assert_close(trace.after_attention[0], middle, rtol=0, atol=1e-12)
    after = layer.norm_ffn(middle + layer.ffn(middle))
    torch.testing.assert_close(trace.after_ffn[0], after, rtol=0, atol=1e-12)
    assert torch.equal(trace.attention[0], layer.attention(X[None])[0])


def test_the_sign_of_all_gains_reverses_h_in_pre_ln_and_nothing_in_post_ln() -> None:
    """T8d, exactly: Pre-LN gamma -> -gamma in front of attention is H -> -H; Post-LN is odd."""
    flip = {"gains": "negative"}
    pixels = random_pixels(2).double()
    plain, flipped = (tiny_model("vit", **how).double() for how in ({}, flip))
    first, second = traced(plain, pixels)[0], traced(flipped, pixels)[0]
    gained = [trace.after_attention - trace.before for trace in (first, second)]
    torch.testing.assert_close(gained[0], -gained[1], rtol=0, atol=1e-13)
    assert torch.equal(first.attention, second.attention)
    plain, flipped = (tiny_model("vit", placement="post", **how).double() for how in ({}, flip))
    first, second = traced(plain, pixels)[0], traced(flipped, pixels)[0]
    assert torch.equal(first.after_attention, -second.after_attention)


@pytest.mark.parametrize("shape", [{"patch": 3}, {"width": 30, "heads": 4}])
def test_a_shape_that_does_not_fit_is_refused(shape: dict[str, int]) -> None:
    with pytest.raises(InputError, match="choose one"):
        TrainConfig(**shape)
