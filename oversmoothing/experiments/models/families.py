"""Which Transformer a block is, told by the parts it has, never by a library's version.

One entry a set of names: the parts that a block must have. What a block may have besides (norms on
queries and keys, layer scale, sinks and the like) is found by its name, whatever the family. Among
the families that fit, the one that names most parts is meant. Whether a model that fits these names
also computes what they say is checked by `extract`.
"""

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch import nn

from oversmoothing.experiments.models.describe import Fused
from oversmoothing.experiments.models.model import Modality, Placement, evaluating
from oversmoothing.theory.support.errors import InputError

# Inside a block: attention to another sequence, which the theory does not have.
CROSS = ("encoder_attn", "layer.1.EncDecAttention", "crossattention", "multihead_attn")


@dataclass(frozen=True)
class Family:
    """Names of the parts of a block; see `describe`. cls: of a text model that sees both ways,
    whether its first token is a CLS token. causal None: what the module and its config say
    of it cannot be relied on, so that it is tried out. marks: further parts that tell it apart."""

    label: str
    q: str
    k: str
    v: str
    out: str
    norm_attention: str | None
    norm_ffn: str | None
    ffn: str | tuple[str, ...]
    attention: str
    placement: Placement | Callable[[nn.Module], Placement] = "pre"
    causal: bool | None = False
    modality: Modality = "text"
    fused: Fused = "qkv"
    output_norm_attention: str | None = None
    output_norm_ffn: str | None = None
    cls: bool = True
    marks: tuple[str, ...] = ()

    @property
    def parts(self) -> set[str]:
        """The names that a block must have."""
        ffn = (self.ffn,) if isinstance(self.ffn, str) else self.ffn
        norms = (self.norm_attention, self.norm_ffn)
        behind = (self.output_norm_attention, self.output_norm_ffn)
        named = (self.q, self.k, self.v, self.out, self.attention, *ffn, *norms, *behind)
        return {name for name in (*named, *self.marks) if name}

    def fits(self, block: nn.Module) -> bool:
        """Whether the block has every part named."""
        return all(has(block, name) for name in self.parts)


def has(block: nn.Module, name: str) -> bool:
    """Whether a block has a part or value of that name (dots allowed) that is not None."""
    try:
        return attrgetter(name)(block) is not None
    except AttributeError:
        return False


def _qkv(prefix: str, names: str = "q_proj k_proj v_proj o_proj") -> tuple[str, str, str, str]:
    q, k, v, out = (f"{prefix}.{name}" for name in names.split())
    return q, k, v, out


def _fused(qkv: str, out: str) -> tuple[str, str, str, str]:
    return qkv, qkv, qkv, out


def _first_called(norm: str, attention: str) -> Callable[[nn.Module], Placement]:
    """Of blocks alike in their parts: Pre-LN where a block's norm is called before its attention,
    told by its flag (OPT), or else by one token that it is given (BART, mBART and their kin)."""

    @torch.no_grad()
    def placement(block: nn.Module) -> Placement:
        if hasattr(block, "do_layer_norm_before"):
            return "pre" if block.do_layer_norm_before else "post"
        called: list[str] = []
        given: Any = block.get_submodule(norm)
        taken = list(inspect.signature(block.forward).parameters.values())[1:]
        rest = [None for each in taken if each.default is each.empty and each.kind < 2]
        with ExitStack() as hooks, evaluating(block):
            for name in (norm, attention):
                see = partial(lambda name, *_: called.append(name), name)
                hook = block.get_submodule(name).register_forward_pre_hook(see)
                hooks.callback(hook.remove)
            try:
                block(given.weight.new_zeros(1, 1, *given.weight.shape), *rest)
            except Exception as error:  # the block is anybody's
                raise InputError(
                    f"whether the norms of {type(block).__name__} stand in front of its attention "
                    f"or behind cannot be told: it does not run alone ({type(error).__name__}); "
                    "describe the model with placement="
                ) from error
        return "pre" if called and called[0] == norm else "post"

    return placement


def _flag(name: str, yes: Placement, no: Placement) -> Callable[[nn.Module], Placement]:
    """The placement of a block that says it in an attribute; without one, `yes`."""
    return lambda block: yes if getattr(block, name, True) else no


LLAMA = _qkv("self_attn")
OUT = _qkv("self_attn", "q_proj k_proj v_proj out_proj")
FALCON = _fused("self_attention.query_key_value", "self_attention.dense")
BERT_FFN = ("intermediate", "output.dense")
_OLD = _qkv("attention", "attention.query attention.key attention.value output.dense")

FAMILIES = (
    Family("ViT", *_qkv("attention"), "layernorm_before", "layernorm_after", "mlp", "attention",
           modality="vision"),
    Family("ViT", *_OLD, "layernorm_before", "layernorm_after", BERT_FFN, "attention",
           modality="vision"),
    Family("Swin", *_qkv("attention"), "layernorm_before", "layernorm_after", "mlp", "",
           modality="vision", marks=("shift_size", "attention.relative_position_bias")),
    Family("DINOv2", *_qkv("attention"), "norm1", "norm2", "mlp", "attention", modality="vision"),
    Family("DINOv2", *_OLD, "norm1", "norm2", "mlp", "attention", modality="vision"),
    Family("timm", *_fused("attn.qkv", "attn.proj"), "norm1", "norm2", "mlp", "attn",
           modality="vision"),
    Family("CLIP", *OUT, "layer_norm1", "layer_norm2", "mlp", "self_attn", causal=None, cls=False),
    Family("BERT", *_qkv("attention", "self.query self.key self.value output.dense"),
           "attention.output.LayerNorm", "output.LayerNorm", BERT_FFN, "attention.self",
           placement="post"),
    Family("DeBERTa", *_qkv("attention",
           "self.query_proj self.key_proj self.value_proj output.dense"),
           "attention.output.LayerNorm", "output.LayerNorm", BERT_FFN, "attention.self",
           placement="post"),
    Family("MPNet", *_qkv("attention.attn", "q k v o"), "attention.LayerNorm", "output.LayerNorm",
           BERT_FFN, "attention.attn", placement="post"),
    Family("DistilBERT", *_qkv("attention", "q_lin k_lin v_lin out_lin"), "sa_layer_norm",
           "output_layer_norm", "ffn", "attention", placement="post"),
    Family("ALBERT", *_qkv("attention", "query key value dense"), "attention.LayerNorm",
           "full_layer_layer_norm", ("ffn", "activation", "ffn_output"), "attention",
           placement="post"),
    Family("ModernBERT", *_fused("attn.Wqkv", "attn.Wo"), "attn_norm", "mlp_norm", "mlp", "attn"),
    Family("T5", *_qkv("layer.0.SelfAttention", "q k v o"), "layer.0.layer_norm",
           "layer.1.layer_norm", "layer.1.DenseReluDense", "layer.0.SelfAttention", cls=False),
    Family("GPT-2", *_fused("attn.c_attn", "attn.c_proj"), "ln_1", "ln_2", "mlp", "attn",
           causal=True),
    Family("GPT-NeoX", *_fused("attention.query_key_value", "attention.dense"), "input_layernorm",
           "post_attention_layernorm", "mlp", "attention", causal=True, fused="heads",
           placement=_flag("use_parallel_residual", "parallel", "pre")),
    Family("OPT", *OUT, "self_attn_layer_norm", "final_layer_norm", ("fc1", "activation_fn", "fc2"),
           "self_attn", placement=_first_called("self_attn_layer_norm", "self_attn"), causal=None,
           cls=False),
    Family("Llama", *LLAMA, "input_layernorm", "post_attention_layernorm", "mlp", "self_attn",
           causal=True),
    Family("Phi-3", *_fused("self_attn.qkv_proj", "self_attn.o_proj"), "input_layernorm",
           "post_attention_layernorm", "mlp", "self_attn", causal=True),
    Family("Cohere", *LLAMA, "input_layernorm", "input_layernorm", "mlp", "self_attn",
           causal=True, placement="parallel"),
    Family("Gemma", *LLAMA, "input_layernorm", "pre_feedforward_layernorm", "mlp", "self_attn",
           causal=True, output_norm_attention="post_attention_layernorm",
           output_norm_ffn="post_feedforward_layernorm"),
    Family("GLM-4", *LLAMA, "input_layernorm", "post_attention_layernorm", "mlp", "self_attn",
           causal=True, output_norm_attention="post_self_attn_layernorm",
           output_norm_ffn="post_mlp_layernorm"),
    Family("OLMo 2", *LLAMA, None, None, "mlp", "self_attn", causal=True,
           output_norm_attention="post_attention_layernorm",
           output_norm_ffn="post_feedforward_layernorm"),
    Family("Falcon", *FALCON, "input_layernorm", "post_attention_layernorm", "mlp",
           "self_attention", causal=True, fused="heads"),
    Family("Falcon", *FALCON, "input_layernorm", "input_layernorm", "mlp", "self_attention",
           causal=True, fused="heads", placement="parallel"),
    Family("Falcon", *FALCON, "ln_attn", "ln_mlp", "mlp", "self_attention", causal=True,
           fused="heads", placement="parallel"),
    Family("nn.TransformerEncoder", *_fused("self_attn", "self_attn.out_proj"), "norm1", "norm2",
           ("linear1", "activation", "linear2"), "self_attn", modality="features",
           placement=_flag("norm_first", "pre", "post")),
)  # fmt: skip

# Further parts by the argument of `describe`: within the attention module, and within the block.
_WITHIN_ATTENTION: dict[str, tuple[str, ...]] = {
    "q_norm": ("q_norm", "q_layernorm"),
    "k_norm": ("k_norm", "k_layernorm"),
    "softcap": ("attn_logit_softcapping",),
    "sinks": ("sinks",),
}
_WITHIN_BLOCK: dict[str, tuple[str, ...]] = {
    "scale_attention": ("layer_scale1.lambda1", "ls1.gamma", "lambda_1", "residual_multiplier"),
    "scale_ffn": ("layer_scale2.lambda1", "ls2.gamma", "lambda_2", "residual_multiplier"),
}


def further_parts(family: Family, block: nn.Module) -> dict[str, str]:
    """Names of the parts that the block has beside its family's, as `describe` takes them."""
    named = dict(_WITHIN_BLOCK)
    for name, parts in _WITHIN_ATTENTION.items():
        named[name] = tuple(f"{family.attention}.{part}" for part in parts)
    return {name: part for name, parts in named.items() for part in parts if has(block, part)}


def scaling_of(attention: nn.Module) -> float | None:
    """What q k^T is multiplied by, where the attention module says it (None: r^-1/2)."""
    terms = getattr(attention, "pos_att_type", None)
    if terms is not None:  # position terms of DeBERTa share the scale
        r: Any = attention.attention_head_size
        return float((r * (1 + ("c2p" in terms) + ("p2c" in terms))) ** -0.5)
    return getattr(attention, "scaling", None)
