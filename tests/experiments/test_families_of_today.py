"""Today's architectures, each against its own attentions and hidden states.

The reference is a few lines: the library's eager attention with output_attentions and
output_hidden_states, and the blocks' inputs and outputs as they pass.
"""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.models.olmo.modeling_olmo import OlmoLayerNorm
from transformers.models.swin import modeling_swin as swin

from oversmoothing import inspect, ladder, metrics, open_model, readings_of, reparameterise
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import Checked, extract, stream
from oversmoothing.experiments.models.fits import norm_of
from oversmoothing.experiments.models.model import Extraction, Model, Norm
from oversmoothing.experiments.models.pass_graph import watch
from oversmoothing.experiments.repeated.blocks import cycled_layers
from oversmoothing.experiments.repeated.flips import sign_flips
from tests.support.architectures import built
from tests.support.cases import cases
from tests.support.families_of_today import TODAY, inputs, today, whole
from tests.support.refusals import refuses
from tests.support.tampered import TAMPERED, WHERE, opened
from tests.support.tiny_transformers import FAMILIES, TEXT, batch, pixels, tiny, tokens

OF_TEXT = [*TEXT, *(name for name, each in TODAY.items() if each.reads == "text")]


def made_of(name: str, implementation: str = "eager") -> nn.Module:
    return (tiny if name in FAMILIES else today)(name, implementation)


def given(name: str, side: str) -> Any:
    """A batch, of texts with padding on that side."""
    if name in TODAY:
        return inputs(name, side)
    if name not in TEXT:
        return {"pixel_values": pixels()}
    return {key: X if side == "right" else X.flip(1) for key, X in tokens((7, 4)).items()}


def reference(model: Model, batch: Any) -> tuple[list[Tensor], list[Tensor]]:
    """(attention of every layer, the stream in front of every layer and behind the last), of a
    model whose attention is eager.

    The library's last hidden state may have gone through a final norm: the last block's is taken.
    """
    behind: list[Tensor] = []
    hook = model.layers[-1].block.register_forward_hook(
        lambda _, __, out: behind.append(out if isinstance(out, Tensor) else out[0])
    )
    with torch.no_grad():
        found = model.module(**batch, output_attentions=True, output_hidden_states=True)
    hook.remove()
    return list(found.attentions), [*found.hidden_states[: len(found.attentions)], behind[-1]]


def compare(found: Extraction, attentions: list[Tensor], streams: list[Tensor]) -> None:
    """Attention to 1e-5, HFC/LFC and cosine to 1e-6, over the kept tokens; 0 at padding."""
    assert max(found.av_error) < 1e-4
    own = [found.traces[0].before, *(trace.after_ffn for trace in found.traces)]
    assert len(own) == len(streams) and len(attentions) == len(found.traces)
    sharp = 0.0
    for k, keep in enumerate(found.keep):
        for trace, given in zip(found.traces, attentions, strict=True):
            assert trace.attention is not None
            A, B = (each[k][:, keep][:, :, keep] for each in (trace.attention, given))
            torch.testing.assert_close(A, B, atol=1e-5, rtol=0)
            sharp = max(sharp, float((B - B.mean(-1, keepdim=True)).abs().max()))
        both = metrics(torch.stack([X[k][keep].double() for X in (*own, *streams)]))
        for name in ("hfc_lfc", "cos_mean"):
            ours, theirs = both[name].view(2, -1).tolist()
            assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)
    assert sharp > 0.2  # far from uniform
    for trace in found.traces:
        for axes in ((0, 2, 1, 3), (0, 3, 1, 2)):
            assert not trace.attention.permute(axes)[~found.keep].any()


@pytest.mark.parametrize("name", [name for name in (*FAMILIES, *TODAY) if name != "Swin"])
def test_attention_and_streams_are_the_models_own(name):
    """Eager and fused, padded on either side."""
    eager = open_model(made_of(name))
    fused = name in FAMILIES or TODAY[name].fused
    models = [eager, open_model(made_of(name, "sdpa"))] if fused else [eager]
    for side in ("right", "left")[: 1 + (name in OF_TEXT)]:
        batch = given(name, side)
        own = reference(eager, batch)
        for model in models:
            compare(extract(model, batch), *own)


@pytest.mark.parametrize("stage", [0, 1])
def test_a_stage_of_swin_is_attention_within_shifted_windows(stage):
    """The library gives [windows, heads, side^2, side^2]: its own partition says which tokens."""
    module, batch = today("Swin"), inputs("Swin")
    refuses(r"part='encoder.layers.0' or part='encoder.layers.1'", open_model, module)
    model = open_model(module, part=f"encoder.layers.{stage}")
    weights, streams, hooks = [], [], []
    blocks = [layer.block for layer in model.layers]
    for block in blocks:
        hooks += [
            block.attention.register_forward_hook(lambda _, __, out: weights.append(out[1])),
            block.register_forward_hook(lambda _, args, out: streams.extend([args[0], out[0]])),
        ]
    with torch.no_grad():
        module(**batch, output_attentions=True)
    for hook in hooks:
        hook.remove()
    side, maps = 8 // 2**stage, []
    for given, block in zip(weights, blocks, strict=True):
        w = block.window_size
        tokens = block.cyclic_shift(torch.arange(side * side).view(1, side, side, 1))
        tokens = swin.window_partition(tokens, w).view(-1, w * w)
        A = torch.zeros(2, given.shape[1], side * side, side * side)
        for k, part in enumerate(given.view(2, -1, *given.shape[1:]).transpose(0, 1)):
            A[:, :, tokens[k][:, None], tokens[k]] = part
        maps.append(A)
    compare(extract(model, batch), maps, [streams[0], *streams[1::2]])
    assert [block.shift_size for block in blocks] == [0, 2 * (1 - stage)]


def test_a_grid_that_swin_pads_is_refused():
    module, pixels = today("Swin"), {"pixel_values": torch.randn(1, 3, 20, 20)}
    module.config.image_size = 20
    refuses(
        "tokens are moved", lambda: extract(open_model(module, part="encoder.layers.0"), pixels)
    )


def test_what_holds_several_stacks_names_them():
    module = whole("CLIP, texts")
    refuses("part='text_model' or part='vision_model'", open_model, module)
    text, images = (open_model(module, part=f"{name}_model") for name in ("text", "vision"))
    assert (text.modality, text.causal, text.cls) == ("text", True, False)
    assert (images.modality, images.causal, images.cls) == ("vision", False, True)
    refuses("its parts are: text_model, vision_model", open_model, module, part="sound_model")
    module = whole("T5")
    refuses("part='encoder'", open_model, module)
    assert not open_model(module, part="encoder").cls


def test_a_mask_of_later_tokens_is_found_where_no_config_tells_of_it():
    """Against the attention itself: XGLM says nothing, CLIP's texts say the contrary."""
    for name in ("XGLM", "BioGPT", "OPT", "BART", "CLIP, texts", "SigLIP, texts"):
        model = open_model(today(name))
        attentions, _ = reference(model, inputs(name))
        own = all(torch.equal(A, A.tril()) for A in attentions)
        assert model.causal is own is (name not in ("BART", "SigLIP, texts"))


def test_albert_is_one_block_many_times():
    model = open_model(today("ALBERT of two groups"))
    blocks = [layer.block for layer in model.layers]
    assert len(blocks) == 4 and blocks[0] is blocks[1] and blocks[2] is blocks[3] is not blocks[0]


def test_a_report_of_a_model_with_every_further_part():
    """The account's parts sum to the change where norms stand behind a sublayer, in parallel, and
    with scaled outputs."""
    for name in ("Gemma 3", "OLMo 2", "Cohere", "Granite", "BEiT", "ALBERT"):
        report = inspect(open_model(today(name)), inputs(name))
        assert report.account_error < 1e-4, name


def test_attention_with_sinks_has_no_spectra():
    model = open_model(today("GPT-OSS"))
    report = inspect(model, inputs("GPT-OSS"))
    assert report.spectra == 0 and "sinks" in " ".join(report.notes)
    refuses("sinks", lambda: inspect(model, inputs("GPT-OSS"), budget=Plan(1, 1, 1, 1)))


@cases(
    "ask",
    lambda model, x: readings_of({"sinks": model}, x, readings=["E3"]),
    lambda model, x: readings_of({"sinks": model}, x, readings=["E4 heads"]),
    lambda model, x: cycled_layers(model, x),
    lambda model, x: sign_flips(model, x),
    lambda model, x: ladder(model, list(x["input_ids"]), []),
    lambda model, x: reparameterise(model, "band").bound(x),
)
def test_what_is_of_rows_that_sum_to_1_is_not_said_of_sinks(ask):
    """Not of rows divided by their sums either, which no layer of the model has."""
    model = open_model(today("GPT-OSS"))
    refuses("learned sinks", lambda: ask(model, inputs("GPT-OSS", lengths=(6, 6))))


def test_the_eigenvalues_of_attention_with_sinks_are_those_of_its_operator():
    """Against I + H (x) A as a matrix, A the library's attention without padding."""
    model = open_model(today("GPT-OSS"))
    report = inspect(model, inputs("GPT-OSS"))
    attentions, _ = reference(model, inputs("GPT-OSS"))
    keep = inputs("GPT-OSS")["attention_mask"].bool()
    table = report.to_frame()
    for number, (layer, A) in enumerate(zip(model.layers, attentions, strict=True), 1):
        H = layer.heads.total().mT.contiguous()
        means = [A[k].double().mean(0)[kept][:, kept] for k, kept in enumerate(keep)]
        wholes = [torch.eye(len(H) * len(M)).double() + torch.kron(H, M) for M in means]
        radii = [float(torch.linalg.eigvals(whole).abs().max()) for whole in wholes]
        assert table["operator_radius"][number] == pytest.approx(sum(radii) / 2, rel=1e-4)
        own = sum(float(torch.linalg.eigvals(M).abs().max()) for M in means) / 2
        assert table["attention_radius"][number] == pytest.approx(own, rel=1e-4)
        total = sum(float(M.sum(1).mean()) for M in means) / 2
        assert table["row_sum"][number] == pytest.approx(total, rel=1e-4) and total < 0.99
    assert "consensus is no mode of it and no verdict is given" in report.summary()
    assert "row_sum" not in inspect(open_model(today("Qwen3")), inputs("Qwen3")).table


# --- a wrong reading is refused and an honest one accepted, in float32 and in bfloat16 ---


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_model_is_refused_and_its_layer_named(name, dtype):
    family, tamper = TAMPERED[name]
    wrong = tamper(opened(family, DTYPES[dtype]))
    assert wrong.dtype == DTYPES[dtype]
    if name == "layers in another order":
        refuses("1 of the 2 layers", extract, wrong, batch(family))
        return
    first = 0 if name == "causal where it is not" else WHERE
    # And how large the error is, as a number.
    said = rf"layers? .*\b{first}\b(.|\n)*\d\.\de[+-]\d\d"
    refuses(said, extract, wrong, batch(family))


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
        said = r"cannot be verified: .*may be \d\.\de-02 of it .* terms cancelling"
        refuses(said, extract, open_model(model), batch("llama"))


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
    module = built("ViT-MAE")
    ratio = module.config.mask_ratio
    first, again = (inspect(module, batch("vit"), name="mae") for _ in range(2))
    assert first.tokens == 1 + 16
    assert first.to_frame().equals(again.to_frame())
    assert module.config.mask_ratio == ratio == 0.75
    assert any("random mask" in note for note in first.notes)
