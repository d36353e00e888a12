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


class Build:
    """`kind`Config(**settings) -> `kind`Model, or the class `model`; part: of it that is read.

    inputs: what it reads, where no kind of input that the reader makes up fits.
    """

    def __init__(
        self, kind: str, model: str = "", part: str | None = None,
        inputs: dict[str, Tensor] | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.kind, self.model, self.part = kind, model or f"{kind}Model", part
        self.inputs, self.settings = inputs, settings


WINDOWS = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
           "sliding_window": 6}  # fmt: skip
FEW_FULL = ["linear_attention", "full_attention", "full_attention"]
# What each layer adds of a table of its own (Gemma 3n and 4).
BY_LAYER = WINDOWS | {"vocab_size_per_layer_input": 64, "hidden_size_per_layer_input": 8}
PATCHES = {"pixel_values": torch.randn(2, 16, 192, generator=torch.Generator().manual_seed(1)),
           "pixel_attention_mask": torch.ones(2, 16, dtype=torch.int64),
           "spatial_shapes": torch.full((2, 2), 4)}  # fmt: skip
# Rotary positions by time, row and column, and the tower that reads pictures.
MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}}
TOWER = SIZES | {"depth": 2, "num_heads": 4, "out_hidden_size": 32, "fullatt_block_indexes": [0],
                 "deepstack_visual_indexes": [0], "num_position_embeddings": 16}  # fmt: skip
FILMS = torch.randn(2, 4, 3, 32, 32, generator=torch.Generator().manual_seed(2))
BUILDS: dict[str, Build] = {
    "AST audio": Build("AST", max_length=64),
    "Bamba": Build("Bamba", mamba_n_heads=8, mamba_d_head=8, attn_layer_indices=[1]),
    "BART encoder": Build("Bart", part="encoder"),
    "BEiT": Build("Beit", use_relative_position_bias=True),
    "BERT MLM": Build("Bert", "BertForMaskedLM"),
    "BLIP vision": Build("BlipVision", "BlipVisionModel"),
    "BigBird": Build("BigBird", attention_type="original_full"),
    "ESM": Build("Esm", mask_token_id=3, position_embedding_type="rotary"),
    "CLIP text": Build("CLIPText", "CLIPTextModel"),
    "CLIP vision": Build("CLIPVision", "CLIPVisionModel"),
    "CLIP whole": Build("CLIP", text_config=SIZES, vision_config=SIZES, projection_dim=16),
    "Cohere2": Build("Cohere2", **WINDOWS),
    "DeBERTa": Build("Deberta", relative_attention=True, pos_att_type=["c2p", "p2c"],
                     type_vocab_size=0),
    "DeBERTa-v2": Build("DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"],
                        position_buckets=8, type_vocab_size=0),
    "DeepSeek-V3": Build("DeepseekV3", n_group=1, topk_group=1, kv_lora_rank=16, q_lora_rank=16,
                         qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, head_dim=4,
                         num_key_value_heads=4),
    "DeiT distilled": Build("DeiT", "DeiTForImageClassificationWithTeacher"),
    "DINOv3 ConvNext": Build("DINOv3ConvNext", hidden_sizes=[8, 8, 16, 16], depths=[1] * 4),
    "dots1": Build("Dots1", n_group=1, topk_group=1, n_shared_experts=1),
    "EXAONE 4": Build("Exaone4", **WINDOWS),
    "EXAONE 4 without windows": Build("Exaone4", layer_types=["full_attention"] * 3),
    "Gemma 2": Build("Gemma2", **WINDOWS),
    "Gemma 3": Build("Gemma3Text", "Gemma3TextModel", **WINDOWS),
    "Gemma 3n": Build("Gemma3nText", "Gemma3nTextModel", intermediate_size=[48] * 3,
                      activation_sparsity_pattern=[0.5, 0.0, 0.0], num_kv_shared_layers=1,
                      **BY_LAYER),
    "Gemma 4": Build("Gemma4Text", "Gemma4TextModel", per_layer_config={}, **BY_LAYER),
    "GLM-4 MoE": Build("Glm4Moe", n_group=1, topk_group=1),
    "GPT-2 scaled by layer": Build("GPT2", scale_attn_by_inverse_layer_idx=True),
    "GPT-Neo": Build("GPTNeo", attention_types=[[["global", "local"], 1], [["global"], 1]],
                     window_size=6),
    "GPT-OSS": Build("GptOss", **WINDOWS),
    "Granite MoE hybrid": Build("GraniteMoeHybrid", layer_types=["attention"] * 3,
                                shared_intermediate_size=24, mamba_n_heads=8, mamba_d_head=8),
    "InternVL vision": Build("InternVLVision", image_size=[32, 32], patch_size=[8, 8]),
    "Jamba": Build("Jamba", use_mamba_kernels=False, attn_layer_period=2, attn_layer_offset=1),
    "LeViT": Build("Levit", image_size=64, patch_size=16, hidden_sizes=[16] * 3,
                   num_attention_heads=[2] * 3, depths=[1] * 3, key_dim=[8] * 3),
    "Llama 4": Build("Llama4Text", "Llama4TextModel"),
    "Longformer": Build("Longformer", attention_window=4),
    "MiniMax": Build("MiniMax", layer_types=["full_attention"] * 3),
    "Ministral": Build("Ministral", **WINDOWS), "Mistral": Build("Mistral", sliding_window=6),
    "ModernBERT": Build("ModernBert", local_attention=6),
    "Moonshine encoder": Build("Moonshine", part="encoder"),
    "Nystromformer": Build("Nystromformer", num_landmarks=4, segment_means_seq_len=12),
    "OLMo 3": Build("Olmo3", **WINDOWS),
    "Pixtral vision": Build("PixtralVision", "PixtralVisionModel",
                            inputs={"pixel_values": FILMS[:1, 0]}),
    "PVT": Build("Pvt", image_size=64, hidden_sizes=[16] * 4, num_attention_heads=[2] * 4,
                 depths=[1] * 4, mlp_ratios=[2] * 4),
    "Qwen3-Next": Build("Qwen3Next", layer_types=FEW_FULL),
    "Qwen3.5": Build("Qwen3_5Text", "Qwen3_5TextModel", layer_types=FEW_FULL),
    "XLNet": Build("XLNet", d_inner=48, d_head=8), "RWKV": Build("Rwkv", attention_hidden_size=32),
    "SigLIP text": Build("SiglipText", "SiglipTextModel"),
    "SigLIP vision": Build("SiglipVision", "SiglipVisionModel"),
    "SigLIP whole": Build("Siglip", text_config=SIZES, vision_config=SIZES),
    "SigLIP 2 vision": Build("Siglip2Vision", "Siglip2VisionModel", inputs=PATCHES, num_patches=16),
    "Swin": Build("Swin", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2],
                  num_heads=[2, 4], window_size=4, part="encoder.layers.0"),
    "Swin v2": Build("Swinv2", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2],
                     num_heads=[2, 4], window_size=4, part="encoder.layers.0"),
    "T5 encoder": Build("T5", part="encoder"),
    "T5Gemma encoder": Build("T5Gemma", encoder=SIZES, decoder=SIZES),
    "V-JEPA 2": Build("VJEPA2", inputs={"pixel_values_videos": FILMS}, crop_size=32,
                      frames_per_clip=4, pred_hidden_size=32, pred_num_attention_heads=4,
                      pred_num_hidden_layers=2, num_pooler_layers=1),
    "VaultGemma": Build("VaultGemma", **WINDOWS),
    "ViT-MAE whole": Build("ViTMAE", "ViTMAEForPreTraining", decoder_hidden_size=32,
                           decoder_num_attention_heads=4, decoder_num_hidden_layers=2,
                           decoder_intermediate_size=48),
    "ViTDet": Build("VitDet", window_block_indices=[0], window_size=2),
    "Whisper encoder": Build("Whisper", part="encoder"), "XGLM": Build("XGLM", attention_heads=4),
    "YOLOS": Build("Yolos", image_size=[32, 32]),
    "Zamba2": Build("Zamba2", layers_block_type=["linear_attention", "hybrid", "linear_attention"],
                    hybrid_layer_ids=[1], mamba_headdim=8, n_mamba_heads=8, kv_channels=8,
                    attention_head_dim=16, attention_hidden_size=64, num_query_groups=4,
                    adapter_rank=4, chunk_size=4),
    # Of these nothing but the sizes is set.
    **{name: Build(kind) for name, kind in {
        "AFMoE": "Afmoe", "ALBERT": "Albert", "Apertus": "Apertus", "Arcee": "Arcee",
        "BEiT no bias": "Beit", "BERT": "Bert", "BioGPT": "BioGpt", "BitNet": "BitNet",
        "BLOOM": "Bloom", "CamemBERT": "Camembert", "CodeGen": "CodeGen", "Cohere": "Cohere",
        "Cohere2 MoE": "Cohere2Moe", "ConvBERT": "ConvBert", "CTRL": "CTRL", "CvT": "Cvt",
        "Data2Vec audio": "Data2VecAudio", "Data2Vec text": "Data2VecText",
        "Data2Vec vision": "Data2VecVision", "DeepSeek-V4": "DeepseekV4", "DeiT": "DeiT",
        "DiffLlama": "DiffLlama", "DINOv2": "Dinov2",
        "DINOv2 with registers": "Dinov2WithRegisters", "DINOv3 ViT": "DINOv3ViT",
        "DistilBERT": "DistilBert", "Doge": "Doge", "DPT": "DPT", "ELECTRA": "Electra",
        "ERNIE": "Ernie", "Ernie 4.5": "Ernie4_5", "Ernie 4.5 MoE": "Ernie4_5_Moe",
        "EuroBERT": "EuroBert", "EXAONE MoE": "ExaoneMoe", "Falcon": "Falcon",
        "Falcon Mamba": "FalconMamba", "Falcon-H1": "FalconH1", "FlexOlmo": "FlexOlmo",
        "FNet": "FNet", "FocalNet": "FocalNet", "Funnel": "Funnel", "Gemma": "Gemma", "GLM": "Glm",
        "GLM-4": "Glm4", "GLPN": "GLPN", "GPT-2": "GPT2", "GPT-BigCode": "GPTBigCode",
        "GPT-J": "GPTJ", "GPT-NeoX": "GPTNeoX", "GPT-NeoX Japanese": "GPTNeoXJapanese",
        "Granite": "Granite", "Granite MoE": "GraniteMoe", "Helium": "Helium", "HuBERT": "Hubert",
        "HunYuan dense": "HunYuanDenseV1", "HunYuan MoE": "HunYuanMoEV1", "I-JEPA": "IJepa",
        "ImageGPT": "ImageGPT", "Jais2": "Jais2", "JetMoE": "JetMoe", "Laguna": "Laguna",
        "LayoutLM": "LayoutLM", "LFM2": "Lfm2", "LFM3": "Lfm3", "Llama": "Llama", "Mamba": "Mamba",
        "MarkupLM": "MarkupLM", "Megatron-BERT": "MegatronBert", "MiniMax-M2": "MiniMaxM2",
        "Ministral 3": "Ministral3", "Mixtral": "Mixtral", "MobileBERT": "MobileBert",
        "MPNet": "MPNet", "MPT": "Mpt", "MRA": "Mra", "nanochat": "NanoChat",
        "Nemotron": "Nemotron", "Nemotron-H": "NemotronH", "NomicBERT": "NomicBert", "OLMo": "Olmo",
        "OLMo 2": "Olmo2", "OLMo hybrid": "OlmoHybrid", "OLMoE": "Olmoe", "OpenAI GPT": "OpenAIGPT",
        "OPT": "OPT", "Persimmon": "Persimmon", "Phi": "Phi", "Phi-3": "Phi3",
        "Phi-3.5 MoE": "Phimoe", "PVT v2": "PvtV2", "Qwen2": "Qwen2", "Qwen2 MoE": "Qwen2Moe",
        "Qwen3": "Qwen3", "Qwen3 MoE": "Qwen3Moe", "RecurrentGemma": "RecurrentGemma",
        "RemBERT": "RemBert", "RoBERTa": "Roberta", "RoBERTa-PreLayerNorm": "RobertaPreLayerNorm",
        "RoFormer": "RoFormer", "Seed-OSS": "SeedOss", "SegFormer": "Segformer", "SEW": "SEW",
        "SEW-D": "SEWD", "SmolLM3": "SmolLM3", "Solar Open": "SolarOpen", "Splinter": "Splinter",
        "StableLM": "StableLm", "StarCoder2": "Starcoder2", "SwiftFormer": "SwiftFormer",
        "T5 whole": "T5", "TAPAS": "Tapas", "UniSpeech": "UniSpeech", "VisualBERT": "VisualBert",
        "ViT": "ViT", "ViT-MAE": "ViTMAE", "ViT-MSN": "ViTMSN", "Wav2Vec2": "Wav2Vec2",
        "Wav2Vec2-BERT": "Wav2Vec2Bert", "Wav2Vec2-Conformer": "Wav2Vec2Conformer",
        "Whisper whole": "Whisper", "XLM-R": "XLMRoberta", "XLM-R XL": "XLMRobertaXL",
        "xLSTM": "xLSTM", "YOSO": "Yoso"}.items()},
    **{f"{name} encoder": Build(kind, part="encoder") for name, kind in {
        "BigBird-Pegasus": "BigBirdPegasus", "Blenderbot": "Blenderbot", "FSMT": "FSMT",
        "LED": "LED", "LongT5": "LongT5", "M2M-100": "M2M100", "Marian": "Marian",
        "mBART": "MBart", "mT5": "MT5", "MVP": "Mvp", "NLLB-MoE": "NllbMoe",
        "Pegasus": "Pegasus", "PEGASUS-X": "PegasusX", "PLBART": "PLBart",
        "Switch Transformers": "SwitchTransformers", "UMT5": "UMT5"}.items()},
    "MLCD vision": Build("MLCDVision", "MLCDVisionModel"),
    "Qwen2.5-VL text": Build("Qwen2_5_VL", text_config=SIZES | MROPE, vision_config=TOWER,
                             image_token_id=61, video_token_id=62),
    "Qwen3-VL text": Build("Qwen3VL", text_config=SIZES | MROPE, vision_config=TOWER,
                           image_token_id=61, video_token_id=62),
    "LLaVA text": Build("Llava", text_config=SIZES | {"model_type": "llama"},
                        vision_config=SIZES | {"model_type": "clip_vision_model"}),
    "PaliGemma text": Build("PaliGemma", text_config=SIZES | {"model_type": "gemma"},
                            vision_config=SIZES | {"model_type": "siglip_vision_model"}),
}  # fmt: skip


def small_config(kind: str, sizes: dict[str, Any], settings: dict[str, Any]) -> Any:
    """`kind`Config(**settings) with these sizes, of which it takes those that it has."""
    named = getattr(transformers, f"{kind}Config")
    held = named().to_dict()
    small = {
        key: [size] * len(held[key]) if isinstance(held[key], list) else size
        for key, size in sizes.items()
        if key in held
    }
    return named(**small | settings)


def drawn(
    model: str, config: Any, implementation: str = "eager", seed: int = 0, *, moved: float
) -> nn.Module:
    """The class `model` of a config, in evaluation mode, every weight moved by `moved` of a normal
    draw."""
    config._attn_implementation = implementation
    torch.manual_seed(seed)
    module: nn.Module = getattr(transformers, model)(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point():
                parameter.add_(moved * torch.randn_like(parameter))
    return module


def built(name: str, implementation: str = "eager") -> nn.Module:
    """The build, every weight moved by 0.3 of a normal draw."""
    of = BUILDS[name]
    config = small_config(of.kind, SIZES, of.settings)
    with torch.device("meta"):
        size = sum(p.numel() for p in getattr(transformers, of.model)(config).parameters())
    if size > MOST:
        raise InputError("its sizes are nested, and were not made small")
    return drawn(of.model, config, implementation, moved=0.3)


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
            model = describe(module, BUILDS[name].inputs, part=BUILDS[name].part)
        except SeveralStacksError as several:
            model = describe(module, BUILDS[name].inputs, part=several.parts[0])
            row["architecture"] = f"{name}, {several.parts[0]}"
        made = BUILDS[name].inputs
        batch = next(candidates(model.module, model.modality, model.prepare, made))
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
