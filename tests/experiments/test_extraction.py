"""What extraction says of a model is what the model itself does."""

import pytest
import torch
import transformers
from hypothesis import given, strategies as st

from oversmoothing import InputError, describe, open_model
from oversmoothing.experiments.inspection.extract import extract, stream
from oversmoothing.experiments.inspection.verify import Questions
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import FAMILIES, Stack, batch, hooks, pixels, tiny, tokens

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


def test_what_happens_between_the_blocks_is_refused():
    """Each block is called with the tensor that the last one gave, changed in place: no layer's
    account would hold that change (YOLOS adds positions there)."""

    class Nudged(Stack):
        def forward(self, x):
            x = self.embed(x)
            for floor in self.floors:
                x = floor(x)
                x += 1
            return x

    with pytest.raises(InputError, match="the stream changes behind this layer"):
        extract(describe(Nudged()), own_inputs())


@pytest.mark.parametrize("training", [False, True])
def test_hooks_go_and_the_module_is_as_it_was(training):
    module = tiny("vit").train(training)
    model = open_model(module)
    before = [m.training for m in module.modules()]
    found = extract(model, pixels())
    assert hooks(module) == 0 and [m.training for m in module.modules()] == before
    for trace in found.traces:
        for each in filter(torch.is_tensor, vars(trace).values()):
            assert not each.requires_grad


def test_hooks_go_when_the_forward_pass_fails():
    module = tiny("vit")
    model = open_model(module)

    def fail(*_):
        raise KeyboardInterrupt

    handle = module.vit.layers[1].register_forward_pre_hook(fail)
    refuses("", lambda: extract(model, pixels()), error=KeyboardInterrupt)
    handle.remove()
    assert hooks(module) == 0
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


def test_abandoned_streams_leave_no_trace():
    module = Stack().train()
    found = stream(describe(module), own_inputs(3), batch_size=1)
    next(found)
    assert not module.training
    found.close()
    assert module.training and hooks(module) == 0


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
    size = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
            "intermediate_size": 32, "image_size": 32, "num_frames": 4}  # fmt: skip
    cut = (
        {"patch_size": 8, "tubelet_size": 2} if kind == "VideoMAE" else {"tubelet_size": [2, 8, 8]}
    )
    config = getattr(transformers, f"{kind}Config")(**size, **cut)
    module = getattr(transformers, f"{kind}Model")(config).eval()
    video = torch.randn(2, 4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    traces = extract(open_model(module), video).traces
    with torch.no_grad():
        streams = module(video, output_hidden_states=True).hidden_states
    torch.testing.assert_close(traces[1].before, streams[1])
