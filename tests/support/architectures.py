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
    """`kind`Config(**settings) -> `kind`Model, or the class `model`; part: of it that is read.

    inputs: what it reads, where no kind of input that the reader makes up fits.
    """

    kind: str
    model: str = ""
    part: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    inputs: dict[str, Tensor] | None = None


def _build(
    kind: str,
    model: str = "",
    part: str | None = None,
    inputs: dict[str, Tensor] | None = None,
    **settings: Any,
) -> Build:
    return Build(kind, model, part, tuple(settings.items()), inputs)


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
    "AFMoE": _build("Afmoe"), "ALBERT": _build("Albert"), "Apertus": _build("Apertus"),
    "Arcee": _build("Arcee"), "AST audio": _build("AST", max_length=64),
    "Bamba": _build("Bamba", mamba_n_heads=8, mamba_d_head=8, attn_layer_indices=[1]),
    "BART encoder": _build("Bart", part="encoder"),
    "BEiT": _build("Beit", use_relative_position_bias=True),
    "BEiT no bias": _build("Beit"), "BERT": _build("Bert"),
    "BERT MLM": _build("Bert", "BertForMaskedLM"),
    "BLIP vision": _build("BlipVision", "BlipVisionModel"),
    "BigBird": _build("BigBird", attention_type="original_full"), "BioGPT": _build("BioGpt"),
    "ESM": _build("Esm", mask_token_id=3, position_embedding_type="rotary"),
    "BitNet": _build("BitNet"), "BLOOM": _build("Bloom"),
    "CLIP text": _build("CLIPText", "CLIPTextModel"),
    "CLIP vision": _build("CLIPVision", "CLIPVisionModel"),
    "CLIP whole": _build("CLIP", text_config=SIZES, vision_config=SIZES, projection_dim=16),
    "CodeGen": _build("CodeGen"),
    "Cohere": _build("Cohere"), "Cohere2": _build("Cohere2", **WINDOWS), "CTRL": _build("CTRL"),
    "Data2Vec vision": _build("Data2VecVision"),
    "DeBERTa": _build("Deberta", relative_attention=True, pos_att_type=["c2p", "p2c"],
                      type_vocab_size=0),
    "DeBERTa-v2": _build("DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"],
                         position_buckets=8, type_vocab_size=0),
    "DeepSeek-V3": _build("DeepseekV3", n_group=1, topk_group=1, kv_lora_rank=16, q_lora_rank=16,
                          qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, head_dim=4,
                          num_key_value_heads=4),
    "DeiT": _build("DeiT"),
    "DeiT distilled": _build("DeiT", "DeiTForImageClassificationWithTeacher"),
    "DiffLlama": _build("DiffLlama"),
    "DINOv2": _build("Dinov2"), "DINOv2 with registers": _build("Dinov2WithRegisters"),
    "DINOv3 ConvNext": _build("DINOv3ConvNext", hidden_sizes=[8, 8, 16, 16], depths=[1] * 4),
    "DINOv3 ViT": _build("DINOv3ViT"), "DistilBERT": _build("DistilBert"), "Doge": _build("Doge"),
    "dots1": _build("Dots1", n_group=1, topk_group=1, n_shared_experts=1),
    "ELECTRA": _build("Electra"),
    "Ernie 4.5": _build("Ernie4_5"), "Ernie 4.5 MoE": _build("Ernie4_5_Moe"),
    "EuroBERT": _build("EuroBert"), "EXAONE 4": _build("Exaone4", **WINDOWS),
    "EXAONE 4 without windows": _build("Exaone4", layer_types=["full_attention"] * 3),
    "Falcon": _build("Falcon"), "Falcon-H1": _build("FalconH1"), "FNet": _build("FNet"),
    "Gemma": _build("Gemma"), "Gemma 2": _build("Gemma2", **WINDOWS),
    "Gemma 3": _build("Gemma3Text", "Gemma3TextModel", **WINDOWS),
    "Gemma 3n": _build("Gemma3nText", "Gemma3nTextModel", intermediate_size=[48] * 3,
                       activation_sparsity_pattern=[0.5, 0.0, 0.0], num_kv_shared_layers=1,
                       **BY_LAYER),
    "Gemma 4": _build("Gemma4Text", "Gemma4TextModel", per_layer_config={}, **BY_LAYER),
    "GLM": _build("Glm"), "GLM-4": _build("Glm4"),
    "GLM-4 MoE": _build("Glm4Moe", n_group=1, topk_group=1), "GPT-2": _build("GPT2"),
    "GPT-2 scaled by layer": _build("GPT2", scale_attn_by_inverse_layer_idx=True),
    "GPT-J": _build("GPTJ"),
    "GPT-Neo": _build("GPTNeo", attention_types=[[["global", "local"], 1], [["global"], 1]],
                      window_size=6),
    "GPT-NeoX": _build("GPTNeoX"), "GPT-BigCode": _build("GPTBigCode"),
    "GPT-OSS": _build("GptOss", **WINDOWS), "Granite": _build("Granite"),
    "Granite MoE hybrid": _build("GraniteMoeHybrid", layer_types=["attention"] * 3,
                                 shared_intermediate_size=24, mamba_n_heads=8, mamba_d_head=8),
    "Helium": _build("Helium"),
    "HuBERT": _build("Hubert"), "HunYuan dense": _build("HunYuanDenseV1"),
    "I-JEPA": _build("IJepa"), "InternVL vision": _build("InternVLVision", image_size=[32, 32],
                                                         patch_size=[8, 8]),
    "Jais2": _build("Jais2"), "Jamba": _build("Jamba", use_mamba_kernels=False, attn_layer_period=2,
                                             attn_layer_offset=1),
    "LeViT": _build("Levit", image_size=64, patch_size=16, hidden_sizes=[16] * 3,
                    num_attention_heads=[2] * 3, depths=[1] * 3, key_dim=[8] * 3),
    "LFM2": _build("Lfm2"), "Llama": _build("Llama"),
    "Llama 4": _build("Llama4Text", "Llama4TextModel"),
    "Longformer": _build("Longformer", attention_window=4), "Mamba": _build("Mamba"),
    "MiniMax": _build("MiniMax", layer_types=["full_attention"] * 3),
    "Ministral": _build("Ministral", **WINDOWS), "Ministral 3": _build("Ministral3"),
    "Mistral": _build("Mistral", sliding_window=6), "Mixtral": _build("Mixtral"),
    "ModernBERT": _build("ModernBert", local_attention=6),
    "Moonshine encoder": _build("Moonshine", part="encoder"), "MPNet": _build("MPNet"),
    "MPT": _build("Mpt"), "nanochat": _build("NanoChat"), "Nemotron": _build("Nemotron"),
    "NomicBERT": _build("NomicBert"), "Nystromformer": _build("Nystromformer", num_landmarks=4,
                                                              segment_means_seq_len=12),
    "OLMo": _build("Olmo"), "OLMo 2": _build("Olmo2"), "OLMo 3": _build("Olmo3", **WINDOWS),
    "OLMoE": _build("Olmoe"), "OPT": _build("OPT"), "Persimmon": _build("Persimmon"),
    "Phi": _build("Phi"), "Phi-3.5 MoE": _build("Phimoe"), "Phi-3": _build("Phi3"),
    "Pixtral vision": _build("PixtralVision", "PixtralVisionModel",
                             inputs={"pixel_values": FILMS[:1, 0]}),
    "PVT": _build("Pvt", image_size=64, hidden_sizes=[16] * 4, num_attention_heads=[2] * 4,
                  depths=[1] * 4, mlp_ratios=[2] * 4),
   
    "Qwen2": _build("Qwen2"), "Qwen2 MoE": _build("Qwen2Moe"), "Qwen3": _build("Qwen3"),
    "Qwen3 MoE": _build("Qwen3Moe"), "Qwen3-Next": _build("Qwen3Next", layer_types=FEW_FULL),
    "Qwen3.5": _build("Qwen3_5Text", "Qwen3_5TextModel", layer_types=FEW_FULL),
    "XLNet": _build("XLNet", d_inner=48, d_head=8),
    "RoBERTa": _build("Roberta"), "RoFormer": _build("RoFormer"),
    "RWKV": _build("Rwkv", attention_hidden_size=32), "Seed-OSS": _build("SeedOss"),
    "SegFormer": _build("Segformer"),
    "SigLIP text": _build("SiglipText", "SiglipTextModel"),
    "SigLIP vision": _build("SiglipVision", "SiglipVisionModel"),
    "SigLIP whole": _build("Siglip", text_config=SIZES, vision_config=SIZES),
    "SigLIP 2 vision": _build("Siglip2Vision", "Siglip2VisionModel", inputs=PATCHES,
                              num_patches=16),
    "SmolLM3": _build("SmolLM3"),
    "StableLM": _build("StableLm"), "StarCoder2": _build("Starcoder2"),
    "Swin": _build("Swin", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2],
                   num_heads=[2, 4], window_size=4, part="encoder.layers.0"),
    "Swin v2": _build("Swinv2", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2],
                      num_heads=[2, 4], window_size=4, part="encoder.layers.0"),
    "T5 encoder": _build("T5", part="encoder"), "T5 whole": _build("T5"),
    "T5Gemma encoder": _build("T5Gemma", encoder=SIZES, decoder=SIZES),
    "V-JEPA 2": _build("VJEPA2", inputs={"pixel_values_videos": FILMS}, crop_size=32,
                       frames_per_clip=4, pred_hidden_size=32, pred_num_attention_heads=4,
                       pred_num_hidden_layers=2, num_pooler_layers=1),
    "VaultGemma": _build("VaultGemma", **WINDOWS), "ViT": _build("ViT"),
    "ViT-MAE": _build("ViTMAE"),
    "ViT-MAE whole": _build("ViTMAE", "ViTMAEForPreTraining", decoder_hidden_size=32,
                            decoder_num_attention_heads=4, decoder_num_hidden_layers=2,
                            decoder_intermediate_size=48),
    "ViT-MSN": _build("ViTMSN"),
    "ViTDet": _build("VitDet", window_block_indices=[0], window_size=2),
    "Wav2Vec2": _build("Wav2Vec2"), "Whisper encoder": _build("Whisper", part="encoder"),
    "Whisper whole": _build("Whisper"),
    "XGLM": _build("XGLM", attention_heads=4), "XLM-R": _build("XLMRoberta"),
    "YOLOS": _build("Yolos", image_size=[32, 32]),
    "Zamba2": _build("Zamba2", layers_block_type=["linear_attention", "hybrid", "linear_attention"],
                     hybrid_layer_ids=[1], mamba_headdim=8, n_mamba_heads=8, kv_channels=8,
                     attention_head_dim=16, attention_hidden_size=64, num_query_groups=4,
                     adapter_rank=4, chunk_size=4),
    # Of these nothing but the sizes is set.
    **{name: _build(kind) for name, kind in {
        "CamemBERT": "Camembert", "Cohere2 MoE": "Cohere2Moe", "ConvBERT": "ConvBert",
        "CvT": "Cvt", "Data2Vec audio": "Data2VecAudio", "Data2Vec text": "Data2VecText",
        "DeepSeek-V4": "DeepseekV4", "DPT": "DPT", "Falcon Mamba": "FalconMamba",
        "FocalNet": "FocalNet", "Funnel": "Funnel", "GLPN": "GLPN",
        "JetMoE": "JetMoe", "Laguna": "Laguna", "LFM3": "Lfm3", "MobileBERT": "MobileBert",
        "MRA": "Mra", "Nemotron-H": "NemotronH", "OLMo hybrid": "OlmoHybrid", "PVT v2": "PvtV2",
        "RecurrentGemma": "RecurrentGemma", "SwiftFormer": "SwiftFormer",
        "Wav2Vec2-BERT": "Wav2Vec2Bert", "Wav2Vec2-Conformer": "Wav2Vec2Conformer",
        "xLSTM": "xLSTM", "YOSO": "Yoso",
        "ERNIE": "Ernie", "EXAONE MoE": "ExaoneMoe", "FlexOlmo": "FlexOlmo",
        "GPT-NeoX Japanese": "GPTNeoXJapanese", "Granite MoE": "GraniteMoe",
        "HunYuan MoE": "HunYuanMoEV1", "ImageGPT": "ImageGPT", "LayoutLM": "LayoutLM",
        "MarkupLM": "MarkupLM", "Megatron-BERT": "MegatronBert", "MiniMax-M2": "MiniMaxM2",
        "OpenAI GPT": "OpenAIGPT", "RemBERT": "RemBert",
        "RoBERTa-PreLayerNorm": "RobertaPreLayerNorm", "SEW": "SEW", "SEW-D": "SEWD",
        "Solar Open": "SolarOpen", "Splinter": "Splinter", "TAPAS": "Tapas",
        "UniSpeech": "UniSpeech", "VisualBERT": "VisualBert",
        "XLM-R XL": "XLMRobertaXL"}.items()},
    **{f"{name} encoder": _build(kind, part="encoder") for name, kind in {
        "BigBird-Pegasus": "BigBirdPegasus", "Blenderbot": "Blenderbot", "FSMT": "FSMT",
        "LED": "LED", "LongT5": "LongT5", "M2M-100": "M2M100", "Marian": "Marian",
        "mBART": "MBart", "mT5": "MT5", "MVP": "Mvp", "NLLB-MoE": "NllbMoe",
        "Pegasus": "Pegasus", "PEGASUS-X": "PegasusX", "PLBART": "PLBart",
        "Switch Transformers": "SwitchTransformers", "UMT5": "UMT5"}.items()},
    "MLCD vision": _build("MLCDVision", "MLCDVisionModel"),
    "Qwen2.5-VL text": _build("Qwen2_5_VL", text_config=SIZES | MROPE, vision_config=TOWER,
                              image_token_id=61, video_token_id=62),
    "Qwen3-VL text": _build("Qwen3VL", text_config=SIZES | MROPE, vision_config=TOWER,
                            image_token_id=61, video_token_id=62),
    "LLaVA text": _build("Llava", text_config=SIZES | {"model_type": "llama"},
                         vision_config=SIZES | {"model_type": "clip_vision_model"}),
    "PaliGemma text": _build("PaliGemma", text_config=SIZES | {"model_type": "gemma"},
                             vision_config=SIZES | {"model_type": "siglip_vision_model"}),
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
