"""What extraction says of a model is what the model itself does."""

from unittest.mock import Mock

import pytest
import torch
import transformers
from hypothesis import given, strategies as st
from torch import Tensor, nn

from oversmoothing import describe, open_model
from oversmoothing.experiments.inspection.extract import extract, stream
from oversmoothing.experiments.inspection.verify import Questions
from tests.support.architectures import small_config
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import (
    FAMILIES,
    VISION,
    Stack,
    batch,
    hooks,
    pixels,
    tiny,
    tokens,
)  # fmt: skip

EPS = torch.finfo(torch.float32).eps


def own_inputs(count: int = 3, n: int = 5) -> torch.Tensor:
    return torch.randn(count, n, 6, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_layer_is_put_together_again_from_its_neutral_form(family):
    """In float64: X + sum_h A_h N(X) W_V,h W_O,h + b, then the FFN, or the Post-LN order."""
    model = open_model(tiny(family).double())
    found = extract(model, batch(family))
    for layer, trace in zip(model.layers, found.traces, strict=True):
        assert trace.attention.dtype == torch.float64
        X = trace.before
        if layer.placement == "pre":
            N = layer.norm_attention(X)
            middle = X + layer.heads.attended(trace.attention, N)
            after = middle + layer.ffn(layer.norm_ffn(middle))
        else:
            middle = layer.norm_attention(X + layer.heads.attended(trace.attention, X))
            after = layer.norm_ffn(middle + layer.ffn(middle))
        # RMSNorm and the library's softmax round to float32 even in a float64 model.
        limit = 1e-4 if family in ("llama", "vit", "deit") else 1e-10
        for own, theirs in ((middle, trace.after_attention), (after, trace.after_ffn)):
            difference = (own - theirs)[found.keep].abs().max()
            assert difference < limit * theirs.abs().max()


def test_scaling_by_layer_is_the_modules_own():
    """A variant of GPT-2 divides the logits by the layer's number."""
    module = tiny("gpt2", scale_attn_by_inverse_layer_idx=True)
    model = open_model(module)
    assert model.layers[1].scaling == pytest.approx(model.layers[0].scaling / 2)
    assert max(extract(model, tokens()).av_error) < 1e-4


@pytest.mark.parametrize("variant", ["vit", "vit-", "vit-shared", "vit-shared-band"])
def test_the_projects_own_vit_is_its_record(variant):
    """Where values are shared, heads of the sum are H^T / heads each."""
    module = tiny_model(variant)
    model = open_model(module)
    found = extract(model, random_pixels(3))
    stream = []
    with torch.no_grad():
        module(random_pixels(3), stream)
        attention = [
            block.heads_of(X) for block, X in zip(module.blocks(), stream[:-1], strict=True)
        ]
    exact = 1e-15 if "shared" in variant else 8 * EPS
    for number, H in enumerate(module.value_projections()):
        trace = found.traces[number]
        torch.testing.assert_close(trace.attention, attention[number], atol=8 * EPS, rtol=8 * EPS)
        assert torch.equal(trace.before, stream[number])
        assert torch.equal(trace.after_ffn, stream[number + 1])
        total = model.layers[number].heads.total().double()
        torch.testing.assert_close(total, H.mT, atol=exact, rtol=exact)
    assert max(found.av_error) < 1e-5


def test_an_unknown_module_is_described_in_a_few_lines():
    """Custom names, query-key-value head by head, residuals in place, LayerNorm then RMSNorm."""
    module = Stack().eval()
    model = describe(module)
    found = extract(model, own_inputs())
    assert max(found.av_error) < 1e-5
    assert [layer.norm_ffn.kind for layer in model.layers] == ["rms", "rms"]
    with torch.no_grad():
        start = module.embed(own_inputs())
        assert torch.equal(found.traces[0].before, start)  # not spoiled by the work in place
        torch.testing.assert_close(found.traces[-1].after_ffn, module(own_inputs()))
    assert torch.equal(found.traces[1].before, found.traces[0].after_ffn)


@pytest.mark.parametrize("training", [False, True])
def test_hooks_go_and_the_module_is_as_it_was_after_a_pass_a_failure_and_an_abandoned_stream(
    training,
):
    module = tiny("vit").train(training)
    model = open_model(module)
    before = [m.training for m in module.modules()]
    for trace in extract(model, pixels()).traces:
        for each in filter(torch.is_tensor, vars(trace).values()):
            assert not each.requires_grad
    handle = module.vit.layers[1].register_forward_pre_hook(Mock(side_effect=KeyboardInterrupt))
    refuses("", extract, model, pixels(), error=KeyboardInterrupt)
    handle.remove()
    parts = stream(model, pixels(3), batch_size=1)
    next(parts)
    assert not module.training
    parts.close()
    assert hooks(module) == 0 and [m.training for m in module.modules()] == before
    assert max(extract(model, pixels()).av_error) < 1e-4


@given(count=st.integers(1, 5), size=st.integers(1, 6), with_attention=st.booleans())
def test_a_stream_is_one_batch_cut_to_pieces(count, size, with_attention):
    model = describe(STACK)
    inputs = own_inputs(count)
    whole = extract(model, inputs, attention=with_attention)
    parts = list(stream(model, iter(inputs), batch_size=size, attention=with_attention))
    assert [len(part.keep) for part in parts] == [
        min(size, count - start) for start in range(0, count, size)
    ]
    for number, expected in enumerate(whole.traces):
        joined = torch.cat([part.traces[number].after_ffn for part in parts])
        torch.testing.assert_close(joined, expected.after_ffn, atol=1e-5, rtol=1e-5)
        assert (expected.attention is None) is not with_attention
    if not with_attention:
        assert whole.av_error == (0.0, 0.0)


STACK = Stack().eval()


def test_empty_streams_and_sizes_are_refused():
    model = describe(Stack())
    for nothing in ([], own_inputs(0), iter(())):
        refuses("no inputs", list, stream(model, nothing))
    refuses("at least 1", lambda: list(stream(model, own_inputs(), batch_size=0)))


def test_attention_can_be_had_in_float64():
    found = extract(open_model(tiny("vit")), pixels(), dtype=torch.float64)
    A = found.traces[0].attention
    assert A.dtype == torch.float64
    assert (A.sum(-1) - 1).abs().max() < A.shape[-1] * torch.finfo(torch.float64).eps


def test_numbers_that_are_not_finite_are_refused():
    model = describe(Stack())
    inputs = own_inputs()
    inputs[0, 0, 0] = torch.inf
    refuses("NaN or infinite", extract, model, inputs)
    wide = describe(Stack().double())
    refuses("inputs: look for them in its weights", extract, wide, inputs.double())


def test_texts_padded_on_the_left_that_give_nan_are_to_be_padded_on_the_right():
    """Of the library's eager attention in float64, whose softmax is in float32."""
    model, batch = open_model(tiny("llama", "eager").double()), tokens((7, 4))
    turned = {name: value.flip(1) for name, value in batch.items()}
    refuses("inputs: pad the texts on the right", extract, model, turned)


def test_the_first_refusal_of_a_layer_is_told_and_the_others_are_not():
    questions, told = Questions(), []
    for number in (0.0, 2.0, torch.nan):
        questions.ask(torch.tensor(number), told.append)
    (copied,) = questions.answered([torch.ones(2)])
    assert told[0] == 2.0 and len(told) == 2 and copied.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["VideoMAE", "Vivit"])
def test_a_video_is_one_input_of_all_its_pictures(kind):
    cut = {"tubelet_size": 2} if kind == "VideoMAE" else {"tubelet_size": [2, 8, 8]}
    config = small_config(kind, VISION | {"num_frames": 4}, cut)
    module = getattr(transformers, f"{kind}Model")(config).eval()
    video = torch.randn(2, 4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    traces = extract(open_model(module), video).traces
    with torch.no_grad():
        streams = module(video, output_hidden_states=True).hidden_states
    torch.testing.assert_close(traces[1].before, streams[1])


# --- PyTorch's own attention, whose three projections are one parameter, and its encoders ---


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
