"""Tiny random models of today's architectures, with weights that make attention far from uniform.

One line an architecture: the library's class, its tower where it has several, and what makes it
different from a plain Transformer. Whatever the library calls a size, `SIZES` knows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn

from tests.support.architectures import drawn, small_config

WIDTH, HEADS, DEPTH, WORDS, LONGEST, MELS = 16, 4, 2, 40, 24, 8
SIZES = {
    "vocab_size": WORDS, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "max_position_embeddings": LONGEST, "max_source_positions": 10,
    "num_mel_bins": MELS, "image_size": 16, "patch_size": 4,
    **dict.fromkeys(("hidden_size", "d_model", "dim", "word_embed_proj_dim"), WIDTH),
    **dict.fromkeys(("num_hidden_layers", "n_layers", "num_layers", "encoder_layers"), DEPTH),
    "decoder_layers": 1,
    **dict.fromkeys(("num_attention_heads", "n_heads", "num_heads", "attention_heads",
                     "encoder_attention_heads", "decoder_attention_heads"), HEADS),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "ffn_dim", "encoder_ffn_dim",
                     "decoder_ffn_dim", "d_ff"), 24),
    "d_kv": 6, "embedding_size": 8,
}  # fmt: skip
TWO = {"num_key_value_heads": 2}
GROUPED = TWO | {"head_dim": 8}
WINDOW = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
OFFSET = {"max_position_embeddings": LONGEST + 2}
BIASED = {"use_relative_position_bias": True}
TOWERS = {"text_config": SIZES, "vision_config": SIZES}


class Today(NamedTuple):
    """`kind`Config(**settings) -> `kind`Model, or the class `model`, and within it `part`."""

    kind: str
    settings: dict[str, Any] | None = None
    reads: str = "text"
    model: str = ""
    part: str = ""
    fused: bool = True


TODAY: dict[str, Today] = {
    "Qwen3": Today("Qwen3", GROUPED),
    "Qwen3-MoE": Today("Qwen3Moe", GROUPED | EXPERTS),
    # A sliding window; gains stored as their difference from 1; norms behind the rotation; layers
    # of full attention without positions, which no part of them says.
    "Qwen2": Today("Qwen2", GROUPED),
    "Mistral": Today("Mistral", GROUPED | {"sliding_window": 3}),
    "Gemma": Today("Gemma", GROUPED),
    "RoBERTa": Today("Roberta", OFFSET),
    "HunYuan": Today("HunYuanDenseV1", GROUPED),
    "Cohere 2": Today("Cohere2", TWO | WINDOW),
    "EXAONE 4": Today("Exaone4", TWO | WINDOW),
    "Gemma 2": Today("Gemma2", GROUPED | WINDOW | {"attn_logit_softcapping": 5.0}, fused=False),
    "Gemma 3": Today("Gemma3Text", GROUPED | WINDOW, model="Gemma3TextModel"),
    "DINOv2": Today("Dinov2", reads="images"),
    "DINOv2 with registers": Today("Dinov2WithRegisters", {"num_register_tokens": 2}, "images"),
    "DINOv3": Today("DINOv3ViT", {"num_register_tokens": 2}, "images"),
    "DINOv3 gated": Today("DINOv3ViT", {"use_gated_mlp": True}, "images"),
    "CLIP, images": Today("CLIP", TOWERS, "images", part="vision_model"),
    "CLIP, texts": Today("CLIP", TOWERS, part="text_model"),
    "SigLIP, images": Today("Siglip", TOWERS, "images", part="vision_model"),
    "SigLIP, texts": Today("Siglip", TOWERS, part="text_model"),
    "ModernBERT": Today("ModernBert", {"local_attention": 4, "global_attn_every_n_layers": 2}),
    "DistilBERT": Today("DistilBert"),
    "ALBERT": Today("Albert", {"num_hidden_layers": 4}),
    "ALBERT of two groups": Today("Albert", {"num_hidden_layers": 4, "num_hidden_groups": 2}),
    "DeBERTa-v2": Today(
        "DebertaV2",
        {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 4,
         "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0},
        fused=False,
    ),
    "MPNet": Today("MPNet", fused=False),
    "GPT-NeoX": Today("GPTNeoX", {"rotary_pct": 0.5}),
    "GPT-NeoX in sequence": Today("GPTNeoX", {"use_parallel_residual": False}),
    "Phi-3": Today("Phi3", TWO),
    "OPT": Today("OPT"),
    "OPT, Post-LN": Today("OPT", {"do_layer_norm_before": False}),
    "XGLM": Today("XGLM", fused=False),
    "BioGPT": Today("BioGpt"),
    "Falcon": Today("Falcon", {"multi_query": True}),
    # Its fused attention is another one than its eager one.
    "Falcon, ALiBi": Today("Falcon", {"alibi": True, "multi_query": False}, fused=False),
    "Falcon, grouped": Today("Falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "Falcon, in sequence": Today(
        "Falcon", {"parallel_attn": False, "multi_query": False, "bias": True}
    ),
    "Cohere": Today("Cohere", TWO | {"use_qk_norm": True}),
    "OLMo": Today("Olmo", TWO),
    "OLMo 2": Today("Olmo2", TWO),
    "OLMo 3": Today("Olmo3", TWO | WINDOW),
    "GLM": Today("Glm", GROUPED),
    "GLM-4": Today("Glm4", GROUPED),
    "Helium": Today("Helium", TWO | {"head_dim": 4}),
    "SmolLM3": Today("SmolLM3", GROUPED | {"num_hidden_layers": 4}),
    "Granite": Today("Granite", TWO | {
        "residual_multiplier": 0.3, "attention_multiplier": 0.2, "embedding_multiplier": 3.0}),
    "GPT-OSS": Today("GptOss", GROUPED | WINDOW | {
        "num_local_experts": 4, "num_experts_per_tok": 2}, fused=False),
    "BEiT": Today("Beit", BIASED | {"layer_scale_init_value": 0.5}, "images"),
    "BEiT, one bias": Today("Beit", {"use_shared_relative_position_bias": True}, "images"),
    "Data2Vec, images": Today("Data2VecVision", BIASED, "images"),
    "Data2Vec, texts": Today("Data2VecText", OFFSET),
    "Swin": Today("Swin", {
        "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4],
        "window_size": 4}, "images"),
    "Whisper": Today("Whisper", reads="features", part="encoder"),
    **{name: Today(kind, part="encoder") for name, kind in {
        "BART": "Bart", "mBART": "MBart", "Pegasus": "Pegasus", "Marian": "Marian"}.items()},
    "T5": Today("T5", {"decoder_start_token_id": 0, "relative_attention_num_buckets": 8},
                part="encoder"),
    "T5, gated": Today("T5", {"decoder_start_token_id": 0, "feed_forward_proj": "gated-gelu"},
                       part="encoder"),
}  # fmt: skip


def whole(name: str, implementation: str = "eager", **settings: Any) -> nn.Module:
    """The model in evaluation mode; every weight is moved far enough that attention is sharp."""
    of = TODAY[name]
    config = small_config(of.kind, SIZES, (of.settings or {}) | settings)
    return drawn(of.model or f"{of.kind}Model", config, implementation, moved=0.4)


def today(name: str, implementation: str = "eager") -> nn.Module:
    """What is read of it."""
    found: nn.Module = whole(name, implementation).get_submodule(TODAY[name].part)
    return found


def inputs(name: str, side: str = "right", lengths: tuple[int, ...] = (9, 6)) -> Any:
    """What the model reads: pixels, features, or token ids padded on that side."""
    generator = torch.Generator().manual_seed(1)
    reads = TODAY[name].reads
    if reads == "images":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
    if reads == "features":
        return {"input_features": torch.randn(2, MELS, 20, generator=generator)}
    longest = max(lengths)
    ids = torch.randint(3, WORDS, (len(lengths), longest), generator=generator)
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    mask = mask if side == "right" else mask.flip(-1)
    return {"input_ids": ids * mask, "attention_mask": mask}
