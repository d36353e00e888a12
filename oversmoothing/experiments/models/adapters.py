"""The `Model` of a module in memory, its stack of blocks found by the families' names of parts."""

import inspect
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import torch
from torch import nn

from oversmoothing.experiments.models.describe import describe, tensors
from oversmoothing.experiments.models.evaluation import evaluating
from oversmoothing.experiments.models.families import (
    CROSS,
    FAMILIES,
    Family,
    further_parts,
    has,
    scaling_of,
)
from oversmoothing.experiments.models.inputs import Texts
from oversmoothing.experiments.models.model import DescribesItself, Modality, Model
from oversmoothing.experiments.models.positions import logit_bias, rotary
from oversmoothing.experiments.models.preprocessing import images_of
from oversmoothing.experiments.models.random_masks import SHOWN, hides_at_random, shown_whole
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
        causal = modality == "text" and _sees_no_later(module, run)
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
    cls = {"vision": _has_cls(module), "text": family.cls and not causal, "features": False}
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
        registers=_registers(module) if modality == "vision" else 0,
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


def _has_cls(module: nn.Module) -> bool:
    return any(name.endswith(_CLS) for name, _ in module.named_parameters())


def _registers(module: nn.Module) -> int:
    """Of learned tokens [1, number, d] behind CLS (DINOv2 with registers, DINOv3)."""
    named = [each for name, each in module.named_parameters() if name.endswith("register_tokens")]
    return named[0].shape[-2] if named else 0


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
def _sees_no_later(module: nn.Module, run: Callable[[Any], Any]) -> bool:
    """Whether another second token leaves the output at the first one as it is."""
    device = next(module.parameters()).device
    texts = torch.tensor([[1, 0], [1, 1]], device=device)
    with evaluating(module):
        first, other = run(texts)[0][:, 0]
    return bool(torch.equal(first, other))
