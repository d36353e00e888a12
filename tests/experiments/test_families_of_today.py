"""Today's architectures, each against its own attentions and hidden states.

The reference is a few lines: the library's eager attention with output_attentions and
output_hidden_states, and the blocks' inputs and outputs as they pass.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.models.swin import modeling_swin as swin

from oversmoothing import (
    InputError,
    inspect,
    ladder,
    metrics,
    open_model,
    readings_of,
    reparameterise,
)
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.experiments.repeated.blocks import cycled_layers
from oversmoothing.experiments.repeated.flips import sign_flips
from tests.support.cases import cases
from tests.support.families_of_today import TODAY, inputs, today, whole
from tests.support.refusals import refuses
from tests.support.tiny_transformers import FAMILIES, TEXT, pixels, tiny, tokens

OF_TEXT = [*TEXT, *(name for name, each in TODAY.items() if each.reads == "text")]


def built(name: str, implementation: str = "eager") -> nn.Module:
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
    eager = open_model(built(name))
    fused = name in FAMILIES or TODAY[name].fused
    models = [eager, open_model(built(name, "sdpa"))] if fused else [eager]
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
    for block in (layer.block for layer in model.layers):
        hooks.append(
            block.attention.register_forward_hook(lambda _, __, out: weights.append(out[1]))
        )
        hooks.append(
            block.register_forward_hook(lambda _, args, out: streams.extend([args[0], out[0]]))
        )
    with torch.no_grad():
        module(**batch, output_attentions=True)
    for hook in hooks:
        hook.remove()
    side = 8 // 2**stage
    maps = []
    for given, block in zip(weights, (layer.block for layer in model.layers), strict=True):
        w = block.window_size
        tokens = block.cyclic_shift(torch.arange(side * side).view(1, side, side, 1))
        tokens = swin.window_partition(tokens, w).view(-1, w * w)
        A = torch.zeros(2, given.shape[1], side * side, side * side)
        for k, part in enumerate(given.view(2, -1, *given.shape[1:]).transpose(0, 1)):
            A[:, :, tokens[k][:, None], tokens[k]] = part
        maps.append(A)
    compare(extract(model, batch), maps, [streams[0], *streams[1::2]])
    assert [layer.block.shift_size for layer in model.layers] == [0, 2 * (1 - stage)]


def test_a_grid_that_swin_pads_is_refused():
    module = today("Swin")
    module.config.image_size = 20
    with pytest.raises(InputError, match="tokens are moved"):
        extract(
            open_model(module, part="encoder.layers.0"), {"pixel_values": torch.randn(1, 3, 20, 20)}
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


def test_where_norms_stand_is_told_by_what_is_added():
    """BART and mBART have the same parts, in another order."""
    found = {name: open_model(today(name)).layers[0] for name in ("BART", "mBART", "Marian")}
    assert {name: layer.placement for name, layer in found.items()} == {
        "BART": "post", "mBART": "pre", "Marian": "post",
    }  # fmt: skip


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
