"""Small random builds of a library's architectures, and what the reader makes of each.

    python -m tests.support.architectures docs/guide/architectures.csv   # writes the table of all
    python -m tests.support.architectures - AFMoE BERT                   # prints some

A build is the library's own class with every size in its config made small (`SIZES`) and every
weight moved, so that attention is far from uniform. What is read is held against what the model
itself gives when asked (`output_attentions`, `output_hidden_states`), where it does.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.describe import SeveralStacksError, candidates, describe
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.theory.support.errors import InputError

# Whatever a config calls a size: of those that a config has, these are set.
SIZES: dict[str, Any] = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32,
    "num_hidden_layers": 3, "num_layers": 3, "n_layer": 3, "n_layers": 3, "encoder_layers": 3,
    "decoder_layers": 2, "num_decoder_layers": 2,
    "num_attention_heads": 4, "num_heads": 4, "n_head": 4, "n_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48, "ffn_dim": 48,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "hidden_dim": 48, "d_ff": 48, "d_kv": 8,
    "n_inner": 48, "dff": 48, "ffn_hidden_size": 48, "vocab_size": 64, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
    "decoder_start_token_id": 1, "max_position_embeddings": 64, "n_positions": 64, "n_ctx": 64,
    "max_seq_len": 64, "image_size": 32, "patch_size": 8, "num_experts": 4, "num_local_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24, "moe_num_experts": 4, "moe_k": 2,
    "num_mel_bins": 16, "max_source_positions": 16, "embedding_size": 16, "type_vocab_size": 1,
    "word_embed_proj_dim": 32, "rotary_dim": 4,
}  # fmt: skip
MOST = 10**7


@dataclass(frozen=True)
class Build:
    """`kind`Config(**settings) -> `kind`Model, or the class `model`; part: of it that is read."""

    kind: str
    model: str = ""
    part: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()


def _build(kind: str, model: str = "", part: str | None = None, **settings: Any) -> Build:
    return Build(kind, model, part, tuple(settings.items()))


WINDOWS = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
           "sliding_window": 6}  # fmt: skip
BUILDS: dict[str, Build] = {
    "AFMoE": _build("Afmoe"), "ALBERT": _build("Albert"), "Apertus": _build("Apertus"),
    "Arcee": _build("Arcee"), "AST audio": _build("AST", max_length=64),
    "Bamba": _build("Bamba"), "BART encoder": _build("Bart", part="encoder"),
    "BEiT": _build("Beit", use_relative_position_bias=True),
    "BEiT no bias": _build("Beit"), "BERT": _build("Bert"),
    "BERT MLM": _build("Bert", "BertForMaskedLM"),
    "BigBird": _build("BigBird", attention_type="original_full"), "BioGPT": _build("BioGpt"),
    "ESM": _build("Esm", mask_token_id=3, position_embedding_type="rotary"),
    "BitNet": _build("BitNet"), "BLOOM": _build("Bloom"),
    "CLIP text": _build("CLIPText", "CLIPTextModel"),
    "CLIP vision": _build("CLIPVision", "CLIPVisionModel"), "CodeGen": _build("CodeGen"),
    "Cohere": _build("Cohere"), "Cohere2": _build("Cohere2", **WINDOWS), "CTRL": _build("CTRL"),
    "Data2Vec vision": _build("Data2VecVision"),
    "DeBERTa-v2": _build("DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"],
                         position_buckets=8, type_vocab_size=0),
    "DeepSeek-V3": _build("DeepseekV3", n_group=1, topk_group=1, kv_lora_rank=16, q_lora_rank=16,
                          qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8),
    "DeiT": _build("DeiT"), "DiffLlama": _build("DiffLlama"),
    "DINOv2": _build("Dinov2"), "DINOv2 with registers": _build("Dinov2WithRegisters"),
    "DINOv3 ViT": _build("DINOv3ViT"), "DistilBERT": _build("DistilBert"), "Doge": _build("Doge"),
    "dots1": _build("Dots1", n_group=1, topk_group=1), "ELECTRA": _build("Electra"),
    "Ernie 4.5": _build("Ernie4_5"), "Ernie 4.5 MoE": _build("Ernie4_5_Moe"),
    "EuroBERT": _build("EuroBert"), "EXAONE 4": _build("Exaone4", **WINDOWS),
    "Falcon": _build("Falcon"), "Falcon-H1": _build("FalconH1"), "FNet": _build("FNet"),
    "Gemma": _build("Gemma"), "Gemma 2": _build("Gemma2", **WINDOWS),
    "Gemma 3": _build("Gemma3Text", "Gemma3TextModel", **WINDOWS),
    "GLM": _build("Glm"), "GLM-4": _build("Glm4"),
    "GLM-4 MoE": _build("Glm4Moe", n_group=1, topk_group=1), "GPT-2": _build("GPT2"),
    "GPT-2 scaled by layer": _build("GPT2", scale_attn_by_inverse_layer_idx=True),
    "GPT-J": _build("GPTJ"),
    "GPT-Neo": _build("GPTNeo", attention_types=[[["global", "local"], 1], [["global"], 1]],
                      window_size=6),
    "GPT-NeoX": _build("GPTNeoX"), "GPT-BigCode": _build("GPTBigCode"),
    "GPT-OSS": _build("GptOss", **WINDOWS), "Granite": _build("Granite"),
    "Granite MoE hybrid": _build("GraniteMoeHybrid", layer_types=["attention"] * 3,
                                 shared_intermediate_size=24),
    "Helium": _build("Helium"),
    "HuBERT": _build("Hubert"), "HunYuan dense": _build("HunYuanDenseV1"),
    "I-JEPA": _build("IJepa"), "InternVL vision": _build("InternVLVision", image_size=[32, 32],
                                                         patch_size=[8, 8]),
    "Jais2": _build("Jais2"), "Jamba": _build("Jamba", use_mamba_kernels=False, attn_layer_period=2,
                                             attn_layer_offset=1),
    "LeViT": _build("Levit", image_size=64), "LFM2": _build("Lfm2"), "Llama": _build("Llama"),
    "Llama 4": _build("Llama4Text", "Llama4TextModel"),
    "Longformer": _build("Longformer", attention_window=4), "Mamba": _build("Mamba"),
    "MiniMax": _build("MiniMax", layer_types=["full_attention"] * 3),
    "Ministral": _build("Ministral", **WINDOWS), "Ministral 3": _build("Ministral3"),
    "Mistral": _build("Mistral", sliding_window=6), "Mixtral": _build("Mixtral"),
    "ModernBERT": _build("ModernBert", local_attention=6),
    "Moonshine encoder": _build("Moonshine", part="encoder"), "MPNet": _build("MPNet"),
    "MPT": _build("Mpt"), "nanochat": _build("NanoChat"), "Nemotron": _build("Nemotron"),
    "NomicBERT": _build("NomicBert"), "Nystromformer": _build("Nystromformer", num_landmarks=4,
                                                              segment_means_seq_len=16),
    "OLMo": _build("Olmo"), "OLMo 2": _build("Olmo2"), "OLMo 3": _build("Olmo3", **WINDOWS),
    "OLMoE": _build("Olmoe"), "OPT": _build("OPT"), "Persimmon": _build("Persimmon"),
    "Phi": _build("Phi"), "Phi-3.5 MoE": _build("Phimoe"), "Phi-3": _build("Phi3"),
    "Pixtral vision": _build("PixtralVision", "PixtralVisionModel"), "PVT": _build("Pvt"),
    "Qwen2": _build("Qwen2"), "Qwen2 MoE": _build("Qwen2Moe"), "Qwen3": _build("Qwen3"),
    "Qwen3 MoE": _build("Qwen3Moe"), "Qwen3-Next": _build("Qwen3Next"), "XLNet": _build("XLNet"),
    "RoBERTa": _build("Roberta"), "RoFormer": _build("RoFormer"),
    "RWKV": _build("Rwkv", attention_hidden_size=32), "Seed-OSS": _build("SeedOss"),
    "SegFormer": _build("Segformer"),
    "SigLIP text": _build("SiglipText", "SiglipTextModel"),
    "SigLIP vision": _build("SiglipVision", "SiglipVisionModel"), "SmolLM3": _build("SmolLM3"),
    "StableLM": _build("StableLm"), "StarCoder2": _build("Starcoder2"),
    "Swin": _build("Swin", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2],
                   num_heads=[2, 4], window_size=4, part="encoder.layers.0"),
    "Swin v2": _build("Swinv2", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2],
                      num_heads=[2, 4], window_size=4, part="encoder.layers.0"),
    "T5 encoder": _build("T5", part="encoder"),
    "VaultGemma": _build("VaultGemma", **WINDOWS), "ViT": _build("ViT"),
    "ViT-MAE": _build("ViTMAE"), "ViT-MSN": _build("ViTMSN"),
    "ViTDet": _build("VitDet", window_block_indices=[0], window_size=2),
    "Wav2Vec2": _build("Wav2Vec2"), "Whisper encoder": _build("Whisper", part="encoder"),
    "XGLM": _build("XGLM", attention_heads=4), "XLM-R": _build("XLMRoberta"),
    "YOLOS": _build("Yolos", image_size=[32, 32]), "Zamba2": _build("Zamba2"),
}  # fmt: skip


def _shell(of: Build, config: Any) -> nn.Module:
    """The build without memory for its weights."""
    with torch.device("meta"):
        shell: nn.Module = getattr(transformers, of.model or f"{of.kind}Model")(config)
    return shell


def built(name: str, implementation: str = "eager", seed: int = 0) -> nn.Module:
    """The build, in evaluation mode, every weight moved by 0.3 of a normal draw."""
    of = BUILDS[name]
    kind = getattr(transformers, f"{of.kind}Config")
    held = kind().to_dict()
    small = {
        key: [size] * len(held[key]) if isinstance(held[key], list) else size
        for key, size in SIZES.items()
        if key in held
    }
    config = kind(**small | dict(of.settings))
    if sum(p.numel() for p in _shell(of, config).parameters()) > MOST:
        raise InputError("its sizes are nested, and were not made small")
    config._attn_implementation = implementation
    torch.manual_seed(seed)
    module: nn.Module = getattr(transformers, of.model or f"{of.kind}Model")(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def against(model: Model, found: Extraction, batch: Any) -> tuple[float, float]:
    """The largest differences of attention and of streams from what the model gives when asked;
    NaN where it gives none of this form."""
    given = batch if isinstance(batch, dict) else {model.module.main_input_name: batch}
    with torch.no_grad():
        try:
            out = model.module(**given, output_attentions=True, output_hidden_states=True)
        except Exception:  # the library's models raise many kinds
            return float("nan"), float("nan")

    def largest(own: list[Tensor], theirs: Any) -> float:
        theirs = [each for each in theirs or () if isinstance(each, Tensor)]
        pairs = list(zip(own, theirs, strict=False))
        if len(theirs) < len(own) or any(x.shape != y.shape for x, y in pairs):
            return float("nan")
        return max(float((x - y).abs().max() / y.abs().max()) for x, y in pairs)

    maps = [trace.attention for trace in found.traces if trace.attention is not None]
    streams = [found.traces[0].before, *(trace.after_ffn for trace in found.traces[:-1])]
    return (
        largest(maps, getattr(out, "attentions", None)),
        largest(streams, getattr(out, "hidden_states", None)),
    )


def outcome(name: str) -> dict[str, Any]:
    """A row of the table: what was read of a build, or why it is refused."""
    row: dict[str, Any] = {"architecture": name}
    module = built(name)
    try:
        try:
            model = describe(module, part=BUILDS[name].part)
        except SeveralStacksError as several:
            model = describe(module, part=several.parts[0])
            row["architecture"] = f"{name}, {several.parts[0]}"
        batch = next(candidates(model.module, model.modality, model.prepare, None))
        found = extract(model, batch)
    except InputError as error:
        said = str(error)
        return row | {"read": "refused", "what": said.partition(" is not read: ")[2] or said}
    first = model.layers[0]
    kinds = ", ".join(dict.fromkeys((first.norm_attention.kind, first.norm_ffn.kind)))
    A, streams = against(model, found, batch)
    return row | {
        "read": "read",
        "what": f"{model.depth} layers, {first.placement}: {kinds}"
        + ("" if first.plain else "; logits are not q kᵀ alone")
        + ("; causal" if model.causal else ""),
        "output": f"{max(found.av_error):.0e}",
        "attention": f"{A:.0e}",
        "streams": f"{streams:.0e}",
    }


def rows(names: list[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        try:
            yield outcome(name)
        except Exception as error:  # a config that this library's version builds in another way
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:90]}"
            yield {"architecture": name, "read": "not built", "what": said}


def main(words: list[str]) -> None:
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    place, names = words[0], words[1:] or list(BUILDS)
    fields = ("architecture", "read", "what", "output", "attention", "streams")
    file = sys.stdout if place == "-" else open(place, "w", encoding="utf-8")  # noqa: SIM115
    writer = csv.DictWriter(file, fields, lineterminator="\n")
    writer.writeheader()
    for row in rows(names):
        writer.writerow(row)
        file.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
