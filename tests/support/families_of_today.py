"""Tiny random models of today's architectures, with weights that make attention far from uniform.

One line an architecture: the library's class, its tower where it has several, and what makes it
different from a plain Transformer. Whatever the library calls a size, `SIZES` knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import nn

WIDTH, HEADS, DEPTH, WORDS, LONGEST, MELS = 16, 4, 2, 40, 24, 8
TOKENS = {"vocab_size": WORDS, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
PLAIN = {
    "hidden_size": WIDTH, "num_hidden_layers": DEPTH, "num_attention_heads": HEADS,
    "intermediate_size": 24,
}  # fmt: skip
DECODER = PLAIN | TOKENS | {"max_position_embeddings": LONGEST}
GROUPED = DECODER | {"num_key_value_heads": 2, "head_dim": 8}
BERT = PLAIN | TOKENS | {"max_position_embeddings": LONGEST}
VISION = PLAIN | {"image_size": 16, "patch_size": 4}
WINDOW = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
ENCODER = TOKENS | {
    "d_model": WIDTH,
    "encoder_layers": DEPTH,
    "decoder_layers": 1,
    "encoder_ffn_dim": 24,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "decoder_ffn_dim": 24,
    "decoder_start_token_id": 1,
}
READS = ENCODER | {"max_position_embeddings": LONGEST}
TWO_TOWERS = {
    "text_config": PLAIN | TOKENS | {"max_position_embeddings": LONGEST}, "vision_config": VISION,
}  # fmt: skip


@dataclass(frozen=True)
class Today:
    """`kind`Config(**settings) -> `kind`Model, or the class `model`, and within it `part`."""

    kind: str
    settings: dict[str, Any]
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
    "RoBERTa": Today("Roberta", BERT | {"max_position_embeddings": LONGEST + 2}),
    "HunYuan": Today("HunYuanDenseV1", GROUPED),
    "Cohere 2": Today("Cohere2", DECODER | {"num_key_value_heads": 2} | WINDOW),
    "EXAONE 4": Today("Exaone4", DECODER | {"num_key_value_heads": 2} | WINDOW),
    "Gemma 2": Today("Gemma2", GROUPED | WINDOW | {"attn_logit_softcapping": 5.0}, fused=False),
    "Gemma 3": Today("Gemma3Text", GROUPED | WINDOW, model="Gemma3TextModel"),
    "DINOv2": Today("Dinov2", VISION, "images"),
    "DINOv2 with registers": Today(
        "Dinov2WithRegisters", VISION | {"num_register_tokens": 2}, "images"
    ),
    "DINOv3": Today("DINOv3ViT", VISION | {"num_register_tokens": 2}, "images"),
    "DINOv3 gated": Today("DINOv3ViT", VISION | {"use_gated_mlp": True}, "images"),
    "CLIP, images": Today("CLIP", TWO_TOWERS, "images", part="vision_model"),
    "CLIP, texts": Today("CLIP", TWO_TOWERS, part="text_model"),
    "SigLIP, images": Today("Siglip", TWO_TOWERS, "images", part="vision_model"),
    "SigLIP, texts": Today("Siglip", TWO_TOWERS, part="text_model"),
    "ModernBERT": Today(
        "ModernBert", BERT | {"local_attention": 4, "global_attn_every_n_layers": 2}
    ),
    "DistilBERT": Today(
        "DistilBert",
        TOKENS | {"dim": WIDTH, "n_layers": DEPTH, "n_heads": HEADS, "hidden_dim": 24,
                  "max_position_embeddings": LONGEST},
    ),
    "ALBERT": Today("Albert", BERT | {"embedding_size": 8, "num_hidden_layers": 4}),
    "ALBERT of two groups": Today(
        "Albert", BERT | {"embedding_size": 8, "num_hidden_layers": 4, "num_hidden_groups": 2}
    ),
    "DeBERTa-v2": Today(
        "DebertaV2",
        BERT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 4,
                "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0},
        fused=False,
    ),
    "MPNet": Today("MPNet", BERT, fused=False),
    "GPT-NeoX": Today("GPTNeoX", DECODER | {"rotary_pct": 0.5}),
    "GPT-NeoX in sequence": Today("GPTNeoX", DECODER | {"use_parallel_residual": False}),
    "Phi-3": Today("Phi3", DECODER | {"num_key_value_heads": 2}),
    "OPT": Today("OPT", DECODER | {"ffn_dim": 24, "word_embed_proj_dim": WIDTH}),
    "OPT, Post-LN": Today(
        "OPT",
        DECODER | {"ffn_dim": 24, "word_embed_proj_dim": WIDTH, "do_layer_norm_before": False},
    ),
    "XGLM": Today(
        "XGLM", TOKENS | {"d_model": WIDTH, "ffn_dim": 24, "num_layers": DEPTH,
                          "attention_heads": HEADS, "max_position_embeddings": LONGEST},
        fused=False,
    ),
    "BioGPT": Today("BioGpt", DECODER),
    "Falcon": Today("Falcon", DECODER | {"multi_query": True}),
    # Its fused attention is another one than its eager one.
    "Falcon, ALiBi": Today(
        "Falcon", DECODER | {"alibi": True, "multi_query": False}, fused=False
    ),
    "Falcon, grouped": Today(
        "Falcon", DECODER | {"new_decoder_architecture": True, "num_kv_heads": 2}
    ),
    "Falcon, in sequence": Today(
        "Falcon", DECODER | {"parallel_attn": False, "multi_query": False, "bias": True}
    ),
    "Cohere": Today("Cohere", DECODER | {"num_key_value_heads": 2, "use_qk_norm": True}),
    "OLMo": Today("Olmo", DECODER | {"num_key_value_heads": 2}),
    "OLMo 2": Today("Olmo2", DECODER | {"num_key_value_heads": 2}),
    "OLMo 3": Today("Olmo3", DECODER | {"num_key_value_heads": 2} | WINDOW),
    "GLM": Today("Glm", GROUPED),
    "GLM-4": Today("Glm4", GROUPED),
    "Helium": Today("Helium", GROUPED | {"head_dim": 4}),
    "SmolLM3": Today("SmolLM3", GROUPED | {"num_hidden_layers": 4}),
    "Granite": Today(
        "Granite",
        DECODER | {"num_key_value_heads": 2, "residual_multiplier": 0.3,
                   "attention_multiplier": 0.2, "embedding_multiplier": 3.0},
    ),
    "GPT-OSS": Today(
        "GptOss", GROUPED | WINDOW | {"num_local_experts": 4, "num_experts_per_tok": 2},
        fused=False,
    ),
    "BEiT": Today(
        "Beit", VISION | {"use_relative_position_bias": True, "layer_scale_init_value": 0.5},
        "images",
    ),
    "BEiT, one bias": Today(
        "Beit", VISION | {"use_shared_relative_position_bias": True}, "images"
    ),
    "Data2Vec, images": Today(
        "Data2VecVision", VISION | {"use_relative_position_bias": True}, "images"
    ),
    "Data2Vec, texts": Today("Data2VecText", BERT | {"max_position_embeddings": LONGEST + 2}),
    "Swin": Today(
        "Swin",
        {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4],
         "window_size": 4},
        "images",
    ),
    "Whisper": Today(
        "Whisper", ENCODER | {"num_mel_bins": MELS, "max_source_positions": 10},
        "features", part="encoder",
    ),
    "BART": Today("Bart", READS, part="encoder"),
    "mBART": Today("MBart", READS, part="encoder"),
    "Pegasus": Today("Pegasus", READS, part="encoder"),
    "Marian": Today("Marian", READS, part="encoder"),
    "T5": Today(
        "T5",
        TOKENS | {"d_model": WIDTH, "d_kv": 6, "d_ff": 24, "num_layers": DEPTH, "num_heads": HEADS,
                  "decoder_start_token_id": 0, "relative_attention_num_buckets": 8},
        part="encoder",
    ),
    "T5, gated": Today(
        "T5",
        TOKENS | {"d_model": WIDTH, "d_kv": 6, "d_ff": 24, "num_layers": DEPTH, "num_heads": HEADS,
                  "decoder_start_token_id": 0, "feed_forward_proj": "gated-gelu"},
        part="encoder",
    ),
}  # fmt: skip


def today(name: str, implementation: str = "eager", seed: int = 0) -> nn.Module:
    """The model in evaluation mode; every weight is moved far enough that attention is sharp."""
    chosen = TODAY[name]
    torch.manual_seed(seed)
    config = getattr(transformers, f"{chosen.kind}Config")(**chosen.settings)
    config._attn_implementation = implementation
    whole = getattr(transformers, chosen.model or f"{chosen.kind}Model")(config).eval()
    with torch.no_grad():
        for parameter in whole.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.4 * torch.randn_like(parameter))
    found: nn.Module = whole.get_submodule(chosen.part)
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
