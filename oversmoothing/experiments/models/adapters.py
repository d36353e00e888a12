"""The `Model` of a module in memory, its stack of blocks found by the families' names of parts.

Models that hide a random part of their input from themselves (masked autoencoders) are shown whole:
a random mask would be another one in every pass, and a quarter of the patches is no image.

A vision transformer with timm's parameter names is built from a checkpoint's shapes alone: such
checkpoints are one file without a config. Everything but the number of heads follows from the
shapes; heads of width 64 are the rule of these models, and heads= overrides it.
"""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import product
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.experiments.models.describe import describe, tensors
from oversmoothing.experiments.models.families import (
    CROSS,
    FAMILIES,
    Family,
    further_parts,
    has,
    scaling_of,
)
from oversmoothing.experiments.models.inputs import Texts, images_of
from oversmoothing.experiments.models.model import DescribesItself, Modality, Model, evaluating
from oversmoothing.experiments.models.positions import logit_bias, rotary
from oversmoothing.theory.support.errors import InputError

_CLS = ("cls_token", "class_embedding")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads")
# What a model of the Hugging Face library calls its inputs.
_MODALITIES: dict[str, Modality] = {"pixel_values": "vision", "input_ids": "text"}
# What a part makes of the readings, by its argument of describe().
_NOTES = {
    "sinks": "learned sinks take a part of the attention: its rows sum to less than 1, and "
    "its spectra give no verdict",
    "output_norm_attention": "norms stand behind the attention sublayers: their H is read without",
}
# Fields of a family that describe() does not take.
_OF_FAMILIES = ("label", "cls", "causal", "modality", "marks")
SHOWN = "the random mask of its training is off: every patch is shown, in its place"
# Of models with timm's names.
HEAD_WIDTH, EPS = 64, 1e-6
_MARKS = ("blocks.0.attn.qkv.weight", "patch_embed.proj.weight", "pos_embed")


def from_module(
    module: nn.Module, name: str | None = None, *, part: str | None = None, **settings: Any
) -> Model:
    """The `Model` of a module in memory. settings: mean, std, tokenizer; folder, whose settings of
    pictures hold; part: see `open_model`. A module that `DescribesItself` is asked.

    Raises `InputError` for a module that no adapter knows.
    """
    if isinstance(module, DescribesItself):
        return module.described(name)
    within = module
    if part is not None:
        try:
            within = module.get_submodule(part)
        except AttributeError as error:
            held = ", ".join(child for child, _ in module.named_children())
            raise InputError(
                f"{type(module).__name__} has no part '{part}'; its parts are: {held}"
            ) from error
        # A part that is a model of its own is run alone, another one within the whole.
        module = within if hasattr(within, "main_input_name") else module
    family, stack = _find(within)
    config = getattr(module, "config", None)
    first = stack[0].get_submodule(family.attention)
    holder = stack[0].get_submodule(family.q.rpartition(".")[0])
    places = (first, holder, getattr(holder, "config", None), config)
    heads = _number(places, _HEADS)
    reads = getattr(module, "main_input_name", None)
    modality: Modality = family.modality if reads is None else _MODALITIES.get(reads, "features")
    run = _run(module, reads)
    causal = getattr(first, "is_causal", getattr(config, "is_decoder", family.causal))
    if family.causal is None:
        causal = modality == "text" and _sees_no_later(module, stack[0], run)
    tokenizer = settings.pop("tokenizer", None)
    prepares: dict[Modality, Callable[[], Callable[[list[Any]], Any]]] = {
        "vision": lambda: images_of(module, **settings),
        "text": lambda: Texts.of(module, tokenizer),
        "features": lambda: tensors,
    }
    prepare = prepares[modality]()
    notes = list(getattr(prepare, "notes", ()))
    if hides_at_random(module):
        run = shown_whole(module, run)
        notes.append(SHOWN)
    further = further_parts(family, stack[0])
    notes += [
        said for part, said in _NOTES.items() if part in further or getattr(family, part, None)
    ]
    learned = dict(module.named_parameters())
    cls = {
        "vision": any(each.endswith(_CLS) for each in learned),
        "text": family.cls and not causal,
        "features": False,
    }
    # Learned tokens [1, number, d] behind CLS (DINOv2 with registers, DINOv3).
    registers = [each.shape[-2] for x, each in learned.items() if x.endswith("register_tokens")]
    names: dict[str, Any] = {
        name: value for name, value in vars(family).items() if name not in _OF_FAMILIES
    }
    return describe(
        module,
        blocks=stack,
        **names | further,
        heads=heads,
        kv_heads=_number(places, _KV_HEADS, heads),
        scaling=lambda block: scaling_of(block.get_submodule(family.attention)),
        rotate=rotary,
        bias=logit_bias,
        causal=bool(causal),
        cls=cls[modality],
        registers=registers[0] if registers and modality == "vision" else 0,
        modality=modality,
        run=run,
        prepare=prepare,
        name=name,
        notes=notes,
    )


def _find(module: nn.Module) -> tuple[Family, list[nn.Module]]:
    """The one stack of blocks within, and its family."""
    matches = []
    crossed = False
    for name, listed in module.named_modules():
        if isinstance(listed, nn.ModuleList | nn.Sequential) and len(listed):
            blocks = list(listed)
            crossed |= any(
                has(block, part) or has(block, f"layer.1.{part}")
                for part in CROSS
                for block in blocks
            )
            fitting = [family for family in FAMILIES if all(map(family.fits, blocks))]
            if fitting:
                matches.append((name, max(fitting, key=lambda family: len(family.parts)), blocks))
    groups = [each for each in matches if each[0].endswith("albert_layers")]
    if groups:
        return groups[0][1], _repeated(module, [blocks for _, _, blocks in groups])
    if crossed:
        raise InputError(
            f"{type(module).__name__} is an encoder-decoder: the theory has no cross attention; "
            "give its encoder alone (module.get_encoder(), or part='encoder')"
        )
    if not matches:
        known = ", ".join(dict.fromkeys(family.label for family in FAMILIES))
        raise InputError(
            f"no stack of Transformer blocks that the adapters know ({known}) was found in "
            f"{type(module).__name__}: a Transformer of another make can be described by the names "
            "of its parts, oversmoothing.experiments.models.describe(); a network without softmax "
            "attention cannot be read"
        )
    if len(matches) > 1:
        raise SeveralStacksError(type(module).__name__, _parts([name for name, _, _ in matches]))
    return matches[0][1:]


class SeveralStacksError(InputError):
    """A module with several stacks; parts: their names. stages: whether they are the children of
    one list, and so follow one another (Swin)."""

    def __init__(self, kind: str, parts: list[str]) -> None:
        first = parts[0].rpartition(".")[0]
        self.parts = parts
        self.stages = parts == [f"{first}.{k}" for k in range(len(parts))]
        super().__init__(
            f"{kind} holds {len(parts)} stacks of Transformer blocks: give the one of interest "
            f"alone, part={' or part='.join(map(repr, parts))}"
            + (", or all of them to inspect_stages" if self.stages else "")
        )


def _parts(places: list[str]) -> list[str]:
    """The shortest beginnings of these paths that tell them apart."""
    split = [place.split(".") for place in places]
    depth = 1
    while len({tuple(path[:depth]) for path in split}) < len(split):
        depth += 1
    return [".".join(path[:depth]) for path in split]


def _repeated(module: nn.Module, groups: list[list[nn.Module]]) -> list[nn.Module]:
    """ALBERT's layers: each group of blocks is run several times in turn."""
    config: Any = module.config
    depth = config.num_hidden_layers
    return [block for k in range(depth) for block in groups[k * len(groups) // depth]]


def _number(places: tuple[Any, ...], names: tuple[str, ...], default: int = 0) -> int:
    for name, place in product(names, places):
        value = getattr(place, name, None)
        if isinstance(value, int):
            return value
    if default:
        return default
    raise InputError(
        f"the number of heads of {type(places[0]).__name__} is not stated in the module or its "
        "config: describe the model with heads="
    )


def _run(module: nn.Module, reads: str | None) -> Callable[[Any], Any]:
    # A cache of keys and values serves generation alone.
    taken = inspect.signature(module.forward).parameters
    extra = {"use_cache": False} if "use_cache" in taken else {}

    def run(batch: Any) -> Any:
        if isinstance(batch, Mapping):
            return module(**batch, **extra)
        return module(batch) if reads is None else module(**{reads: batch}, **extra)

    return run


@torch.no_grad()
def _sees_no_later(module: nn.Module, block: nn.Module, run: Callable[[Any], Any]) -> bool:
    """Whether another second token leaves what the block makes of the first one as it is."""
    made: list[Any] = []
    texts = torch.tensor([[1, 0], [1, 1]], device=next(module.parameters()).device)
    hook = block.register_forward_hook(lambda _, __, out: made.append(out))
    try:
        with evaluating(module):
            run(texts)
    except Exception as error:  # the module is anybody's
        raise InputError(
            f"whether a token of {type(module).__name__} sees later ones cannot be told: it does "
            f"not run on two tokens ({type(error).__name__}); describe the model with causal="
        ) from error
    finally:
        hook.remove()
    first, other = (made[0] if isinstance(made[0], Tensor) else made[0][0])[:, 0]
    return bool(torch.equal(first, other))


def hides_at_random(module: nn.Module) -> bool:
    """Whether the module draws which patches it sees."""
    config = getattr(module, "config", None)
    return "noise" in inspect.signature(module.forward).parameters and bool(
        getattr(config, "mask_ratio", 0)
    )


def shown_whole(module: nn.Module, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`run`, with every patch shown; the module's config is as it was after each call."""
    config: Any = module.config

    def show(batch: Any) -> Any:
        given = dict(batch) if isinstance(batch, Mapping) else {"pixel_values": batch}
        pixels = given["pixel_values"]
        patches = (pixels.shape[-1] // config.patch_size) ** 2
        # Patches are kept in the order of their noise.
        order = torch.arange(float(patches), device=pixels.device).expand(len(pixels), -1)
        ratio, config.mask_ratio = config.mask_ratio, 0.0
        try:
            return run({"noise": order, **given})
        finally:
            config.mask_ratio = ratio

    return show


class TimmAttention(nn.Module):
    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.num_heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        answer: Tensor = self.proj(mixed.transpose(1, 2).reshape(b, n, d))
        return answer


class TimmBlock(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=EPS) for _ in range(2))
        self.attn = TimmAttention(width, heads, bias)
        parts = {"fc1": nn.Linear(width, hidden), "act": nn.GELU(), "fc2": nn.Linear(hidden, width)}
        self.mlp = nn.Sequential(OrderedDict(parts))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        answer: Tensor = x + self.mlp(self.norm2(x))
        return answer


class TimmViT(nn.Module):
    """Class scores [b, classes] of pixels [b, 3, s, s], or tokens [b, n, d] without a head."""

    def __init__(
        self, *, width: int, depth: int, heads: int, patch: int, image_size: int, hidden: int,
        classes: int, bias: bool = True, channels: int = 3,
    ) -> None:  # fmt: skip
        super().__init__()
        self.image_size = image_size
        tokens = (image_size // patch) ** 2 + 1
        cut = {"proj": nn.Conv2d(channels, width, patch, patch), "flat": nn.Flatten(2)}
        self.patch_embed = nn.Sequential(OrderedDict(cut))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, width))
        self.blocks = nn.ModuleList(TimmBlock(width, heads, hidden, bias) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.head = nn.Linear(width, classes) if classes else nn.Identity()

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patch_embed(pixels).mT
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        answer: Tensor = self.head(x[:, 0]) if isinstance(self.head, nn.Linear) else x
        return answer


def has_timm_names(weights: Mapping[str, Tensor]) -> bool:
    return all(name in weights for name in _MARKS)


def timm_vit(weights: Mapping[str, Tensor], heads: int | None, where: str) -> TimmViT:
    """The model of a checkpoint with timm's names, in the checkpoint's dtype.

    Raises `InputError` for missing or surplus weights (layer scale, norms on queries and keys, a
    distillation token and the like are other models), and a width that is no multiple of 64
    without heads=.
    """
    patches = weights["patch_embed.proj.weight"]
    width, channels, patch = patches.shape[0], patches.shape[1], patches.shape[-1]
    tokens = weights["pos_embed"].shape[1]
    side = isqrt(tokens - 1)
    if side * side != tokens - 1:
        raise InputError(
            f"'{where}' has {tokens} position embeddings, not one CLS token and a square of "
            "patches: distilled models and models without CLS are not understood"
        )
    if heads is None:
        if width % HEAD_WIDTH:
            raise InputError(
                f"'{where}': the number of heads does not follow from the width {width}: say it, "
                "open_model(..., heads=)"
            )
        heads = width // HEAD_WIDTH
    blocks = {name.split(".")[1] for name in weights if name.startswith("blocks.")}
    depth = 1 + max(int(number) for number in blocks if number.isdecimal() and len(number) < 9)
    if depth > len(blocks):
        raise InputError(f"'{where}' holds {len(blocks)} blocks, numbered to {depth - 1}")
    with torch.device("meta"):
        model = TimmViT(
            width=width,
            depth=depth,
            heads=heads,
            patch=patch,
            image_size=side * patch,
            hidden=weights.get("blocks.0.mlp.fc1.weight", torch.empty(0)).shape[0],
            classes=weights["head.weight"].shape[0] if "head.weight" in weights else 0,
            bias="blocks.0.attn.qkv.bias" in weights,
            channels=channels,
        )
    expected = set(model.state_dict())
    missing, surplus = sorted(expected - set(weights)), sorted(set(weights) - expected)
    if missing or surplus:
        raise InputError(
            f"'{where}' is not a plain vision transformer with timm's names: missing "
            f"{missing[:3] or 'nothing'}, not understood {surplus[:3] or 'nothing'}; load it with "
            "its own code and give the module to describe()"
        )
    try:
        model.load_state_dict(dict(weights), assign=True)
    except RuntimeError as error:
        raise InputError(f"the shapes in '{where}' do not go together: {error}") from error
    return model
