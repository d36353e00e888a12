"""The account of a layer: its parts sum to the measured change, and each part is what it says."""

import math

import pytest
import torch
from torch import Tensor, nn

from oversmoothing.experiments.inspection.observe import PARTS, SUBLAYERS, bare, layer_account
from oversmoothing.experiments.models.model import Heads, Layer, Norm, Placement, Trace
from oversmoothing.simulations.state_metrics import stream_log_ratio as log_ratio
from tests.support.made_models import draw

B, N, D, H, R = 3, 7, 6, 2, 3


def heads(seed: int = 1) -> Heads:
    weights = [draw(H, D, R, seed=seed + k) for k in range(3)]
    return Heads(
        *weights, draw(H, R, D, seed=seed + 3), b_V=draw(H, R, seed=9), b_O=draw(D, seed=8)
    )


def layer_and_trace(
    placement: Placement, kind: str = "layer", *, plain: bool = False, seed: int = 0
) -> tuple[Layer, Trace]:
    """A layer with the FFN x -> tanh(x F), and what it does to a random stream."""
    gain = torch.ones(D, dtype=torch.float64) if plain else draw(D, seed=5)
    shift = None if plain or kind == "rms" else draw(D, seed=6)
    norm = Norm(kind, gain, shift, 1e-6)
    F = draw(D, D, seed=7)
    own = heads()
    layer = Layer(
        lambda: own, own.number, own.width, norm, norm, placement, lambda x: torch.tanh(x @ F),
        nn.Identity(), nn.Identity(),
    )  # fmt: skip
    X = draw(B, N, D, seed=seed) + 1
    if plain:  # every token has the same mean and the same scale
        X = X - X.mean(-1, keepdim=True)
        X = X / X.square().mean(-1, keepdim=True).sqrt()
    A = draw(B, H, N, N, seed=3).softmax(-1)
    assert layer.ffn is not None
    if placement == "pre":
        middle = X + layer.heads.attended(A, norm(X))
        after = middle + layer.ffn(norm(middle))
    else:
        middle = norm(X + layer.heads.attended(A, X))
        after = norm(middle + layer.ffn(middle))
    return layer, Trace(A, X, middle, after)


def of(parts: dict[str, Tensor], sublayer: str) -> Tensor:
    """The change over one sublayer."""
    return sum((parts[f"{sublayer}_{part}"] for part in PARTS), torch.zeros(()))


def error(parts: dict[str, Tensor], trace: Trace) -> Tensor:
    """|sum of the parts - measured change|."""
    change = log_ratio(trace.after_ffn) - log_ratio(trace.before)
    return (of(parts, "attention") + of(parts, "ffn") - change).abs()


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("kind", ["layer", "rms", "none"])
@pytest.mark.parametrize("verify", [True, False])
def test_the_parts_sum_to_the_measured_change(placement, kind, verify):
    layer, trace = layer_and_trace(placement, kind)
    parts = layer_account(layer, trace, log_ratio, verify=verify)
    start, middle, end = map(log_ratio, (trace.before, trace.after_attention, trace.after_ffn))
    assert float(error(parts, trace).max()) < 1e-12
    torch.testing.assert_close(of(parts, "attention") + of(parts, "ffn"), end - start)
    torch.testing.assert_close(of(parts, "attention"), middle - start)


def test_a_model_that_was_misread_does_not_close():
    layer, trace = layer_and_trace("pre")
    wrong = Trace(trace.attention, trace.before, trace.after_attention, 1.01 * trace.after_ffn + 1)
    assert float(error(layer_account(layer, wrong, log_ratio), wrong).min()) > 1e-3


def test_without_norms_the_body_is_the_whole_change():
    found = layer_account(*layer_and_trace("pre", "none"), log_ratio)
    for sublayer in SUBLAYERS:
        for part in ("scales", "gains"):
            assert not found[f"{sublayer}_{part}"].any()


def test_tokens_of_one_scale_and_unit_gains_leave_nothing_to_the_norm():
    found = layer_account(*layer_and_trace("pre", plain=True), log_ratio)
    for part in ("scales", "gains"):
        assert float(found[f"attention_{part}"].abs().max()) < 1e-5  # eps of the norm


def test_the_bare_norm_has_the_mean_square_of_the_scaled_one():
    norm, X = Norm("layer", draw(D), draw(D, seed=1), 0.0), draw(B, N, D) + 2
    size = bare(norm, X).square().sum((1, 2))
    torch.testing.assert_close(size, torch.full((B,), float(N * D), dtype=torch.float64))
    torch.testing.assert_close(norm.scaled(X) * norm.gain + norm.shift, norm(X))


def test_padding_counts_for_nothing():
    layer, trace = layer_and_trace("pre")
    keep = torch.ones(B, N, dtype=torch.bool)
    keep[:, -2:] = False
    assert trace.attention is not None
    A = trace.attention * keep[:, None, None, :]
    A = A / A.sum(-1, keepdim=True)

    def run(X):
        middle = X + layer.heads.attended(A, layer.norm_attention(X))
        assert layer.ffn is not None
        return Trace(A, X, middle, middle + layer.ffn(layer.norm_ffn(middle)))

    other = trace.before.clone()
    other[:, -2:] = 100.0
    found = [
        layer_account(layer, run(X), lambda Y: log_ratio(Y, keep), keep)
        for X in (trace.before, other)
    ]
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name])
    assert len(PARTS) * len(SUBLAYERS) == len(found[0])


def test_the_body_of_attention_is_the_paper_s_layer_up_to_one_scale():
    """X + A X W with W scaled by 1/s, s the common scale, when rows have mean 0 (T8e)."""
    layer, trace = layer_and_trace("pre", plain=True)
    bare_heads = Heads(layer.heads.W_Q, layer.heads.W_K, layer.heads.W_V, layer.heads.W_O)
    layer = Layer(
        lambda: bare_heads, bare_heads.number, bare_heads.width, layer.norm_attention,
        layer.norm_ffn, "pre", None, nn.Identity(), nn.Identity(),
    )  # fmt: skip
    X = trace.before
    assert trace.attention is not None
    s = math.sqrt(1 + 1e-6)  # rows have mean square 1
    after = X + bare_heads.attended(trace.attention, X / s)
    found = layer_account(layer, Trace(trace.attention, X, after, after), log_ratio)
    torch.testing.assert_close(found["attention_body"], log_ratio(after) - log_ratio(X))
    assert not of(found, "ffn").any()
