"""Which Transformer a module in memory is, told by the parts it has, never by a library's version.

Known: ViT and DeiT (two generations of names), BERT and its kin (Post-LN), GPT-2, Llama-like
decoders (grouped key-value heads, RMSNorm, rotary positions), modules with timm's names, and the
project's own ViT. Whether a model that fits these names also computes what they say is checked by
`extract`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.digits.images import IMAGE_SIZE
from oversmoothing.experiments.digits.vit import ViT
from oversmoothing.experiments.models.describe import Ffn, describe
from oversmoothing.experiments.models.inputs import GreyImages, Images, Texts
from oversmoothing.experiments.models.model import Heads, Layer, Model, Placement
from oversmoothing.experiments.models.weights import check_finite, recognise_norm
from oversmoothing.theory.support.errors import InputError


def _feed_forward(block: nn.Module) -> Callable[[Tensor], Tensor]:
    """FFN of the older ViT and of BERT, whose last module would add the residual and normalise."""
    up, down = block.get_submodule("intermediate"), block.get_submodule("output.dense")
    return lambda X: down(up(X))


@dataclass(frozen=True)
class Family:
    """Names of the parts of a block; see `describe`."""

    label: str
    q: str
    k: str
    v: str
    out: str
    norm_attention: str
    norm_ffn: str
    ffn: Ffn
    attention: str
    placement: Placement = "pre"
    causal: bool = False
    modality: str = "vision"

    def fits(self, block: nn.Module) -> bool:
        """Whether the block has every part named."""
        names = {name for name, _ in block.named_modules()}
        wanted = {self.q, self.k, self.v, self.out, self.norm_attention, self.norm_ffn}
        ffn = {self.ffn} if isinstance(self.ffn, str) else {"intermediate", "output.dense"}
        return wanted | ffn | {self.attention} <= names


FAMILIES = (
    Family("ViT", "attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj",
           "layernorm_before", "layernorm_after", "mlp", "attention"),
    Family("ViT", "attention.attention.query", "attention.attention.key",
           "attention.attention.value", "attention.output.dense", "layernorm_before",
           "layernorm_after", _feed_forward, "attention"),
    Family("BERT", "attention.self.query", "attention.self.key", "attention.self.value",
           "attention.output.dense", "attention.output.LayerNorm", "output.LayerNorm",
           _feed_forward, "attention.self", placement="post", modality="text"),
    Family("GPT-2", "attn.c_attn", "attn.c_attn", "attn.c_attn", "attn.c_proj", "ln_1", "ln_2",
           "mlp", "attn", causal=True, modality="text"),
    Family("Llama", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
           "input_layernorm", "post_attention_layernorm", "mlp", "self_attn", causal=True,
           modality="text"),
    Family("timm", "attn.qkv", "attn.qkv", "attn.qkv", "attn.proj", "norm1", "norm2", "mlp",
           "attn"),
)  # fmt: skip


def from_module(module: nn.Module, name: str | None = None, **settings: Any) -> Model:
    """The `Model` of a module in memory. settings: mean, std, tokenizer; see `open_model`.

    Raises `InputError` for a module that no adapter knows.
    """
    if isinstance(module, ViT):
        return _own_vit(module, name)
    family, stack = _find(module)
    config = getattr(module, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{type(module).__name__} is an encoder-decoder: the theory has no cross attention; "
            "give its encoder alone (module.get_encoder())"
        )
    first = stack[0].get_submodule(family.attention)
    heads = _number(config, first, ("num_attention_heads", "n_head", "num_heads"))
    images = family.modality == "vision"
    tokenizer = settings.pop("tokenizer", None)
    notes = []
    if images and not {"mean", "std"} <= set(settings):
        notes.append("the source states no pixel statistics: mean and std 0.5 are used")
    names = {name: value for name, value in vars(family).items() if name != "label"}
    causal = getattr(first, "is_causal", getattr(config, "is_decoder", family.causal))
    return describe(
        module,
        blocks=stack,
        **names | {"causal": bool(causal)},
        heads=heads,
        kv_heads=_number(config, first, ("num_key_value_heads",), heads),
        scaling=lambda block: getattr(block.get_submodule(family.attention), "scaling", None),
        rotate=rotary,
        bias=attention_mask,
        cls=_has_cls(module) if images else not family.causal,
        run=module if config is None else _run(module, images, family.causal),
        prepare=Images.of(module, **settings) if images else Texts.of(module, tokenizer),
        name=name,
        notes=notes,
    )


def _find(module: nn.Module) -> tuple[Family, list[nn.Module]]:
    found = []
    for listed in module.modules():
        if isinstance(listed, nn.ModuleList | nn.Sequential) and len(listed):
            for family in FAMILIES:
                if all(family.fits(block) for block in listed):
                    found.append((family, list(listed)))
    if not found:
        known = ", ".join(dict.fromkeys(family.label for family in FAMILIES))
        raise InputError(
            f"no stack of Transformer blocks that the adapters know ({known}) was found in "
            f"{type(module).__name__}: a Transformer of another make can be described by the names "
            "of its parts, oversmoothing.experiments.models.describe(); a network without softmax "
            "attention cannot be read"
        )
    if len(found) > 1:
        raise InputError(
            f"{type(module).__name__} holds {len(found)} stacks of Transformer blocks: give the "
            "one of interest alone"
        )
    return found[0]


def _number(config: Any, attention: nn.Module, names: tuple[str, ...], default: int = 0) -> int:
    for name, place in product(names, (attention, config)):
        value = getattr(place, name, None)
        if isinstance(value, int):
            return value
    if default:
        return default
    raise InputError(
        f"the number of heads of {type(attention).__name__} is not stated in the module or its "
        "config: describe the model with heads="
    )


def _has_cls(module: nn.Module) -> bool:
    return any(name.endswith("cls_token") for name, _ in module.named_parameters())


def _run(module: nn.Module, images: bool, decoder: bool) -> Callable[[Any], Any]:
    # A cache of keys and values serves generation alone.
    extra = {"use_cache": False} if decoder else {}

    def run(batch: Any) -> Any:
        if not isinstance(batch, Mapping):
            batch = {"pixel_values" if images else "input_ids": batch}
        return module(**batch, **extra)

    return run


def rotary(q: Tensor, k: Tensor, call: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """q, k [b, heads, n, r] turned by the (cos, sin) [b, n, r'] that the attention was called with.

    Feature i < r'/2 turns with feature i + r'/2; features from r' on stay.
    """
    positions = call.get("position_embeddings")
    if positions is None:
        return q, k
    cos, sin = (each.to(q).unsqueeze(1) for each in positions)
    return _turn(q, cos, sin), _turn(k, cos, sin)


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    width = cos.shape[-1]
    part, rest = x[..., :width], x[..., width:]
    first, second = part.chunk(2, -1)
    turned = part * cos + torch.cat([-second, first], -1) * sin
    return torch.cat([turned, rest], -1) if rest.shape[-1] else turned


def attention_mask(call: Mapping[str, Any]) -> Tensor | None:
    """What the attention was called with as its mask [b, 1 or heads, n, n]: numbers to be added,
    or True where attention is allowed."""
    mask = call.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.ndim != 4:
        return None
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -torch.inf)
    return mask


def _own_vit(module: ViT, name: str | None) -> Model:
    """The project's own ViT: heads share one H and are averaged, so that each head of the sum has
    W_V = H^T / heads, W_O = 1 and r = d. H is float64, as its spectrum is taken."""
    check_finite(module)
    d, heads = module.config.width, module.config.heads
    layers = []
    for number, (layer, H) in enumerate(
        zip(module.stack(), module.value_projections(), strict=True)
    ):
        device = layer.query_key.weight.device
        both = layer.query_key.weight.detach().T.reshape(d, 2, heads, d // heads)
        W_Q, W_K = (both[:, i].transpose(0, 1).contiguous() for i in (0, 1))
        W_V = (H.mT / heads).expand(heads, d, d).to(device)
        W_O = torch.eye(d, dtype=H.dtype, device=device).expand(heads, d, d)
        layers.append(
            Layer(
                heads=Heads(W_Q, W_K, W_V, W_O),
                norm_attention=recognise_norm(layer.norm_attention, d, f"layer {number}"),
                norm_ffn=recognise_norm(layer.norm_ffn, d, f"layer {number}"),
                placement="pre",
                ffn=layer.ffn,
                block=layer,
                attention=layer,
                scaling=(d // heads) ** -0.5,
            )
        )
    return Model(
        name=name or "ViT",
        module=module,
        layers=tuple(layers),
        width=d,
        modality="vision",
        cls=True,
        causal=False,
        run=module,
        prepare=GreyImages(IMAGE_SIZE),
    )
