"""A wrong reading is refused and an honest one accepted, in float32 and in bfloat16."""

import math
import re

import pytest
import torch
import transformers
from transformers.models.olmo.modeling_olmo import OlmoLayerNorm

from oversmoothing import InputError, inspect, open_model
from oversmoothing.experiments.inspection.extract import Checked, extract, stream
from oversmoothing.experiments.models.fits import norm_of
from oversmoothing.experiments.models.model import Model, Norm
from oversmoothing.experiments.models.pass_graph import watch
from tests.support.cases import cases
from tests.support.families_of_today import TODAY, inputs, today
from tests.support.refusals import refuses
from tests.support.tampered import TAMPERED, WHERE, opened
from tests.support.tiny_transformers import FAMILIES, TEXT, batch, tiny, tokens

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_model_is_refused_and_its_layer_named(name, dtype):
    family, tamper = TAMPERED[name]
    wrong = tamper(opened(family, DTYPES[dtype]))
    assert wrong.dtype == DTYPES[dtype]
    if name == "layers in another order":
        refuses("1 of the 2 layers", lambda: extract(wrong, batch(family)))
        return
    first = 0 if name == "causal where it is not" else WHERE
    with pytest.raises(InputError, match=rf"layers? .*\b{first}\b") as refusal:
        extract(wrong, batch(family))
    # How large the error is, as a number.
    assert re.search(r"\d\.\de[+-]\d\d", str(refusal.value))


def sharpness(model: Model, family: str) -> float:
    """The smallest ratio over layers of the attention's mean entropy to that of a uniform one, the
    mean over tokens that attend to at least four."""
    found = extract(model, batch(family))
    ratios = []
    for trace in found.traces:
        assert trace.attention is not None
        A = trace.attention.double()
        seen = (A > 0).sum(-1)
        entropy = -(A * A.clamp_min(1e-300).log()).sum(-1)
        ratios.append(float((entropy / seen.double().log())[seen >= 4].mean()))
    return max(ratios)


@cases("dtype", torch.float32, torch.bfloat16, torch.float16)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_honest_model_is_accepted_and_attends_far_from_uniformly(family, dtype):
    model = opened(family, dtype)
    before = {name: each.clone() for name, each in model.module.state_dict().items()}
    places = {name: each.data_ptr() for name, each in model.module.named_parameters()}
    assert sharpness(model, family) < 0.8
    found, wide = (extract(each, batch(family)) for each in (model, opened(family, torch.float32)))
    exact = wide.traces[0].before
    rounded = float((found.traces[0].before - exact).abs().max())
    assert rounded <= 4 * torch.finfo(dtype).eps * float(exact.abs().max())
    assert max(found.av_error) < 1e-4 and found.traces[0].attention.dtype == torch.float32
    # The pass in float32 leaves no trace: the same numbers in the same memory.
    for name, each in model.module.state_dict().items():
        assert each.dtype == before[name].dtype and torch.equal(each, before[name])
    assert places == {name: each.data_ptr() for name, each in model.module.named_parameters()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", TEXT)
def test_an_honest_model_is_accepted_with_padding_on_the_left(family, dtype):
    given = {name: value.flip(1) for name, value in tokens((7, 4)).items()}
    assert max(extract(opened(family, DTYPES[dtype]), given).av_error) < 1e-4


def test_a_sink_excuses_no_other_token():
    """The first token's stream is 10^4 long; 3 % of one other token's attention is missing."""
    name = "a token's attention by 1.01"
    model = opened("gpt2", torch.float32)
    given = batch("gpt2")
    with torch.no_grad():
        model.module.transformer.wpe.weight[0, 3] += 1e4
    found = extract(model, given)
    lengths = torch.linalg.vector_norm(found.traces[1].before, dim=-1)
    assert float(lengths[0, 0] / lengths[0, 1:].max()) > 100
    refuses("layer 1: attention times values", lambda: extract(TAMPERED[name][1](model), given))
    assert math.isfinite(max(found.av_error))


@pytest.mark.parametrize(("left", "verified"), [(1e-1, True), (1e-2, True), (1e-3, False)])
def test_attention_whose_heads_cancel_to_rounding_is_refused(left, verified):
    """Pairs of equal heads, one with -(1 - left) times the other's output: what rounding may be is
    some 10 times 32 eps/left of it, and above 5e-3 verifies nothing."""
    model = tiny("llama")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight.view(2, 2, 8, -1)[:, 1] = (
                layer.self_attn.q_proj.weight.view(2, 2, 8, -1)[:, 0]
            )
            out = layer.self_attn.o_proj.weight.view(-1, 2, 2, 8)
            out[:, :, 1] = -(1 - left) * out[:, :, 0]
    if verified:
        extract(open_model(model), batch("llama"))
    else:
        with pytest.raises(InputError, match=r"cannot be verified: .* terms cancelling") as refused:
            extract(open_model(model), batch("llama"))
        found = re.search(r"may be (\S+) of it", str(refused.value))
        assert found and 5e-3 < float(found[1]) < 0.1


@pytest.mark.parametrize("name", TODAY)
def test_today_s_models_are_accepted_in_bfloat16(name):
    module = today(name).bfloat16()
    for part in ("encoder.layers.0", "encoder.layers.1") if name == "Swin" else (None,):
        assert max(extract(open_model(module, part=part), inputs(name)).av_error) < 1e-5


def test_autocast_is_left_out_and_said():
    """The numbers are those without it, to the last bit."""
    plain = inspect(open_model(today("Qwen3")), inputs("Qwen3"))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = inspect(open_model(today("Qwen3")), inputs("Qwen3"))
        assert max(extract(open_model(today("Qwen3")), inputs("Qwen3")).av_error) < 1e-5
        assert torch.is_autocast_enabled("cpu")
    assert mixed.to_frame().equals(plain.to_frame())
    assert any("autocast" in note for note in mixed.notes) and not plain.notes


def test_positions_between_the_blocks_of_yolos_are_refused():
    """Without them it is a ViT."""
    torch.manual_seed(0)
    config = transformers.YolosConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=24,
        image_size=[32, 32], patch_size=8, num_detection_tokens=4,
    )  # fmt: skip
    module = transformers.YolosModel(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    refuses(r"the stream changes behind this layer.*attention 1, 2", open_model, module)
    module.config.use_mid_position_embeddings = False
    plain = transformers.YolosModel(module.config)
    assert max(extract(open_model(plain), batch("vit")).av_error) < 1e-5


def test_longer_batches_and_the_first_padded_one_are_verified_again():
    """In half precision nothing else would notice what happens to them alone."""
    model = opened("gpt2", torch.bfloat16)
    out = model.layers[WHERE].out
    assert out is not None
    out.register_forward_hook(lambda _, __, Y: Y * (1.01 if Y.shape[1] > 5 else 1.0))
    texts = [torch.arange(3, 3 + n) for n in (4, 4, 5, 4, 6, 4)]
    batches = stream(model, texts, batch_size=1)
    assert [len(next(batches).traces) for _ in range(4)] == [2, 2, 2, 2]
    refuses("layer 1: attention times values", next, batches)
    seen = Checked()
    padded = tokens((7, 4))
    whole = {name: each[:1] for name, each in padded.items()}
    assert [seen.new(each) for each in (whole, whole, padded, padded, whole)] == [
        True, False, True, False, False,
    ]  # fmt: skip


def norm_told(module: torch.nn.Module, width: int) -> Norm | None:
    """The norm that a module is, by a pass of it."""
    X = torch.randn(2, 12, width, generator=torch.Generator().manual_seed(0)) * 2 + 1
    g = watch(module, module, X)
    return norm_of(g, next(iter(g.inputs)), g.nodes[-1].outs[0])


class Lying(torch.nn.LayerNorm):
    """States another eps than it uses."""

    def __init__(self, used: float) -> None:
        super().__init__(12)
        self.used = used

    def forward(self, X):
        return torch.nn.functional.layer_norm(X, (12,), self.weight, self.bias, self.used)


class OnePlus(torch.nn.RMSNorm):
    def forward(self, X):
        return torch.nn.functional.rms_norm(X, (12,), 1 + self.weight, self.eps)


@cases(
    "module, kind, eps",
    (torch.nn.LayerNorm(12), "layer", 1e-5),
    (torch.nn.RMSNorm(12, eps=1e-3), "rms", 1e-3),
    (OnePlus(12, eps=1e-3), "rms", 1e-3),
    (torch.nn.LayerNorm(12, eps=1e-6, elementwise_affine=False), "layer", 1e-6),
    (OlmoLayerNorm(12), "layer", 1e-5),  # which states none
    (Lying(1e-3), "layer", 1e-3),
    (Lying(1e-6), "layer", 1e-6),
    (Lying(1e-12), "layer", 1e-12),
)
def test_norms_and_their_eps_are_told_by_what_they_do(module, kind, eps):
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(12))
    norm = norm_told(module, 12)
    assert norm is not None and norm.module is module
    X = torch.randn(3, 5, 12)
    torch.testing.assert_close(norm(X), module(X))
    assert norm.kind == kind and norm.eps == pytest.approx(eps, rel=1e-4, abs=0)
    assert norm_told(torch.nn.Sequential(module, torch.nn.Tanh()), 12) is None


def test_a_masked_autoencoder_shows_every_patch():
    torch.manual_seed(0)
    config = transformers.ViTMAEConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32,
        image_size=32, patch_size=8,
    )  # fmt: skip
    module = transformers.ViTMAEModel(config).eval()
    ratio = module.config.mask_ratio
    first, again = (inspect(module, batch("vit"), name="mae") for _ in range(2))
    assert first.tokens == 1 + 16
    assert first.to_frame().equals(again.to_frame())
    assert module.config.mask_ratio == ratio == 0.75
    assert any("random mask" in note for note in first.notes)
