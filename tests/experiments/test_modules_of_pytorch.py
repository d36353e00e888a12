"""PyTorch's own attention, whose three projections are one parameter, and its encoders."""

import pytest
import torch
from torch import Tensor, nn

from oversmoothing import describe, open_model
from oversmoothing.experiments.inspection.extract import extract
from tests.support.tiny_transformers import tiny

WIDTH, HEADS = 16, 4


def encoder(norm_first: bool, activation: str = "gelu", batch_first: bool = True) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 24, activation=activation, batch_first=batch_first, norm_first=norm_first
    )
    module = nn.TransformerEncoder(layer, 3, enable_nested_tensor=not norm_first)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def own_attention(module: nn.Module, X: Tensor, padding: Tensor) -> list[Tensor]:
    """Every layer's weights, as PyTorch's attention gives them when asked."""
    found = []
    with torch.no_grad():
        for layer in module.layers:
            seen = layer.norm1(X) if layer.norm_first else X
            A = layer.self_attn(
                seen, seen, seen, key_padding_mask=padding, average_attn_weights=False
            )[1]
            found.append(A.masked_fill(padding[:, None, :, None], 0.0))
            X = layer(X, src_key_padding_mask=padding)
    return found


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("lengths", [(7, 7), (7, 4)])
def test_an_encoder_of_pytorch_is_read(norm_first, activation, lengths):
    """Its fused path, which calls no part of it and nests padded tokens, is left out meanwhile."""
    module = encoder(norm_first, activation).eval()
    model = open_model(module)
    assert (model.modality, model.cls) == ("features", False)
    X = torch.randn(2, 7, WIDTH)
    padding = torch.arange(7) >= torch.tensor(lengths)[:, None]
    fused = torch.backends.mha.get_fastpath_enabled()
    found = extract(model, {"src": X, "src_key_padding_mask": padding})
    assert torch.backends.mha.get_fastpath_enabled() == fused
    for trace, A in zip(found.traces, own_attention(module, X, padding), strict=True):
        torch.testing.assert_close(trace.attention, A, atol=1e-5, rtol=0)
    last = found.traces[-1].after_ffn[found.keep]
    expected = module(X, src_key_padding_mask=padding)[~padding]
    torch.testing.assert_close(last, expected, atol=1e-5, rtol=1e-5)


def test_a_mask_of_pytorch_hides_what_is_true():
    module = encoder(norm_first=True).eval()
    model = open_model(module)
    later = torch.ones(7, 7, dtype=torch.bool).triu(1)
    X = torch.randn(2, 7, WIDTH)
    hooked = [layer.self_attn for layer in module.layers]
    for attention in hooked:
        # The encoder makes numbers of it; a block of one's own may hand it on.
        attention.register_forward_pre_hook(
            lambda _, args, kwargs: (args, kwargs | {"attn_mask": later}), with_kwargs=True
        )
    found = extract(model, X)
    assert all((trace.attention.triu(1) == 0).all() for trace in found.traces)


def test_tokens_in_front_of_the_batch_are_read_with_a_batch_in_front():
    """Such an encoder takes [n, b, d]: a batch of inputs is turned on its way in."""
    module = encoder(norm_first=True, batch_first=False)
    model = describe(module, run=lambda X: module(X.transpose(0, 1)))
    X = torch.randn(2, 7, WIDTH)
    found = extract(model, X)
    expected = module.eval()(X.transpose(0, 1)).transpose(0, 1)
    torch.testing.assert_close(found.traces[-1].after_ffn, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["vit", "llama"])
def test_flex_attention_is_read_as_its_formula(kind):
    """PyTorch's one operation is taken apart, whether it would be compiled or not."""
    module = tiny(kind).eval()
    batch = (
        torch.randn(2, 3, 32, 32)
        if kind == "vit"
        else {"input_ids": torch.arange(6, 24).view(2, 9)}
    )
    found = []
    for name in ("eager", "flex_attention"):
        module.set_attn_implementation(name)
        found.append(extract(describe(module), batch))
    for one, other in zip(*(each.traces for each in found), strict=True):
        torch.testing.assert_close(other.attention, one.attention, atol=1e-6, rtol=0)
        torch.testing.assert_close(other.after_ffn, one.after_ffn, atol=1e-5, rtol=1e-5)
