"""The `Model` of any module in memory, by watching one pass of it: `describe(module)`.

The pass runs on inputs that are made up (what the module says it reads, or tensors that it takes),
or on the first of those given. What `experiments.models.reader` finds is held against that pass,
and against passes on real inputs in `extract`. What of a token's role the numbers do not tell is
told here: which is CLS, how many are registers.

Models that hide a random part of their input from themselves (masked autoencoders) are shown whole:
a random mask would be another one in every pass, and a quarter of the patches is no image.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.checkpoints import in_float32
from oversmoothing.experiments.models.heads import Reading
from oversmoothing.experiments.models.inputs import Texts, images_of, stacked, timm_settings
from oversmoothing.experiments.models.layers import layers_of
from oversmoothing.experiments.models.model import (
    DescribesItself,
    Heads,
    Modality,
    Model,
    evaluating,
    without_autocast,
)
from oversmoothing.experiments.models.pass_graph import Graph, watch
from oversmoothing.experiments.models.pictures import CHANNELS
from oversmoothing.experiments.models.reader import read, told
from oversmoothing.simulations.state import one_thread, undisturbed
from oversmoothing.theory.support.errors import InputError

# Inputs of the watched pass, and their tokens where those can be chosen: enough to tell norms.
FEW, TOKENS = 2, 12
_CLS = ("cls_token", "class_token", "class_embedding")
_REGISTERS = ("register_tokens", "reg_token")
# What a model of the Hugging Face library calls its inputs.
_MODALITIES: dict[str, Modality] = {"pixel_values": "vision", "input_ids": "text"}
SHOWN = "the random mask of its training is off: every patch is shown, in its place"
SINKS = (
    "learned sinks take a part of the attention: its rows sum to less than 1, and its spectra give "
    "no verdict"
)
BEHIND = "norms stand behind the attention sublayers: their H is read without"


@undisturbed()
def describe(
    module: nn.Module, inputs: Tensor | Mapping[str, Tensor] | None = None, **settings: Any
) -> Model:
    """The `Model` of a module, found by watching one pass of it; print it to see what was found.

    inputs: a batch as the module takes it, of which the first two are used (default: made up).
    part: of a module with several stacks of blocks the one of interest, by its name. cls, registers
    (of the tokens behind it) and modality: as in `Model`, where what the module says of itself
    (its config, names of its parameters) does not tell. run: batch -> output (default: the module
    called on it). prepare: inputs -> batch. settings: mean, std, tokenizer, folder, of inputs that
    are images or texts. A module that `DescribesItself` is asked.

    The module stays as it is; it runs in evaluation mode, half precision in float32. Raises
    `InputError`, by layer and cause, for what is no stack X + sum_h A_h N(X) W_V,h W_O,h with FFNs,
    for weights that are not finite, and where no input can be made up.

    >>> import torch, oversmoothing
    >>> class Block(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
    ...     def forward(self, x):
    ...         parts = self.qkv(x).chunk(3, -1)
    ...         q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in parts)
    ...         y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    ...         return x + self.out(y.transpose(1, 2).flatten(2))
    >>> stack = torch.nn.Sequential(Block(), Block()).eval()
    >>> oversmoothing.describe(stack)
    Model('Sequential', 2 layers, width 8, 2 heads, features, not causal)
    """
    if isinstance(module, DescribesItself):
        return module.described(settings.get("name"))
    return watched_model(module, inputs, **settings)


@one_thread()
def watched_model(
    module: nn.Module,
    inputs: Any = None,
    *,
    part: str | None = None,
    cls: bool | None = None,
    registers: int | None = None,
    modality: Modality | None = None,
    run: Callable[[Any], Any] | None = None,
    prepare: Callable[[list[Any]], Any] | None = None,
    name: str | None = None,
    notes: Sequence[str] = (),
    **settings: Any,
) -> Model:
    """`describe`, of any module."""
    check_finite(module)
    within = ""
    if part is not None:
        chosen = part_of(module, part, module.named_children())
        # A part that is a model of its own is run alone, another one within the whole.
        alone = hasattr(chosen, "main_input_name")
        module, within = (chosen, "") if alone else (module, part)
    reads = getattr(module, "main_input_name", None)
    reads = reads[0] if isinstance(reads, list) else reads
    if modality is None:
        size = getattr(module, "image_size", None)
        sized = isinstance(size, int) or (isinstance(size, tuple) and len(size) == 2)
        pictured = reads is None and (sized or timm_settings(module))
        modality = "vision" if pictured else _MODALITIES.get(reads or "", "features")
    unprepared = None
    if prepare is None:
        tokenizer, prepare = settings.pop("tokenizer", None), tensors
        try:
            if modality == "vision":
                # Of a video the pixels of its pictures, together, are one input.
                other = hasattr(getattr(module, "config", None), "tubelet_size")
                channels = (m.in_channels for m in module.modules() if isinstance(m, nn.Conv2d))
                other = other or next(channels, CHANNELS) != CHANNELS
                prepare = tensors if other else images_of(module, **settings)
            elif modality == "text":
                prepare = Texts.of(module, tokenizer)
        except InputError as error:  # said where the module is read, and only its images are not
            unprepared = error if reads and inputs is None else None
            prepare = None if unprepared else tensors
    said = [*notes, *getattr(prepare, "notes", ())]
    run = run or _run(module, reads)
    noisy = "noise" in inspect.signature(module.forward).parameters
    if noisy and getattr(getattr(module, "config", None), "mask_ratio", False):
        run = partial(_shown_whole, module, run)  # it draws which patches it sees
        said.append(SHOWN)
    with evaluating(module), in_float32(module), without_autocast():
        graph, count = _watched(module, run, candidates(module, modality, prepare, inputs))
        try:
            readings = _stack(module, graph, read(graph, module, count), within)
            layers = layers_of(graph, module, readings)
        except SeveralStacksError:
            raise
        except InputError as error:
            kind = name or type(module).__name__
            bare = Model(kind, module, (), 0, modality, False, False, run, prepare or tensors)
            raise NotReadError(str(error), bare) from error
    if prepare is None:
        assert unprepared is not None
        raise unprepared
    said += [SINKS] * any(layer.sinks for layer in layers)
    said += [BEHIND] * any(layer.output_norm_attention.kind != "none" for layer in layers)
    causal = all(r.causal for r in readings)
    learned = dict(module.named_parameters())
    if registers is None:
        # Learned tokens [1, number, d] behind CLS (DINOv2 with registers, DINOv3).
        held = [p.shape[-2] for x, p in learned.items() if x.endswith(_REGISTERS)]
        registers = held[0] if held and modality == "vision" else 0
    if cls is None:
        cls = _has_cls(module, learned, modality, causal)
    return Model(
        name=name or type(module).__name__, module=module, layers=layers,
        width=layers[0].heads.W_V.shape[1], modality=modality, cls=cls, registers=registers,
        causal=causal, run=run, prepare=prepare, run_notes=tuple(said),
    )  # fmt: skip


def with_own_heads(
    read: Model, heads: Callable[[int], Heads], cos_start: Sequence[float] | None
) -> Model:
    """Each layer with its heads as the network itself gives them, at any time.

    cos_start: the cosine of each layer's H to where its training began.
    """
    starts = [None] * read.depth if cos_start is None else cos_start
    layers = []
    for number, (layer, start) in enumerate(zip(read.layers, starts, strict=True)):
        now, own = heads(number), partial(heads, number)
        layer = replace(layer, number=now.number, width=now.width, live=True, cos_start=start)
        layers.append(replace(layer, read=own))
    return replace(read, layers=tuple(layers))


class NotReadError(InputError):
    """A module that runs and is not read.

    model: without layers, for what its passes still show (`inspection.inspect.seen`).
    """

    def __init__(self, message: str, model: Model) -> None:
        self.model = model
        super().__init__(message)


class NotMadeUpError(InputError):
    """No inputs could be made up on which the module runs."""


class SeveralStacksError(InputError):
    """A module with several stacks, whose names are `parts`.

    stages: whether they follow one another, the children of one list (Swin).
    """

    def __init__(self, kind: str, parts: list[str]) -> None:
        first = parts[0].rpartition(".")[0]
        self.parts = parts
        self.stages = parts == [f"{first}.{k}" for k in range(len(parts))]
        super().__init__(
            f"{kind} holds {len(parts)} stacks of Transformer blocks: give the one of interest "
            f"alone, part={' or part='.join(map(repr, parts))}"
            + (", or all of them to inspect_stages" if self.stages else "")
        )


def _stack(module: nn.Module, g: Graph, reads: list[Reading], within: str) -> list[Reading]:
    """The readings of the one stack within; raises `InputError` for none, several, and lacks."""
    kind = type(module).__name__
    stacks: list[list[Reading]] = []
    for r in reads:
        name = g.block(r.product.out, max(r.end, r.total)).name
        inside = not within or f"{name}.".startswith(f"{within}.")
        if r.kind != "self" or not inside or (r.placed and r.end < 0 and not r.lacks and within):
            continue
        last = stacks[-1][-1].notes if stacks else ["a stack ends here"]
        ends = {"a stack ends here", CROSSED} & {*last}
        if ends and not (CROSSED in last and CROSSED in r.notes):
            stacks.append([])
        stacks[-1].append(r)
    if len(stacks) > 1:
        firsts = (each[0] for each in stacks)
        names = (g.block(r.product.out, max(r.end, r.total)).name for r in firsts)
        parts = _parts([name.rpartition(".")[0] for name in names])
        if len({*parts}) == len(parts) and all(parts):
            raise SeveralStacksError(kind, parts)
        # Layers of no module of their own: one stack, which ends in the middle.
        for r in (each[-1] for each in stacks[:-1]):
            r.lacks = r.lacks or ["a stack ends here, and no module holds it alone"]
    stack = [r for each in stacks for r in each]
    if not stack or any(r.lacks for r in stack):
        raise InputError(f"{kind} is not read: {told(stack or reads)}")
    if any(r.end < 0 for r in stack):
        raise InputError(f"{kind} is not read: cross-attention stands in its layers")
    return stack


CROSSED = "cross-attention follows"


def _parts(places: list[str]) -> list[str]:
    """The shortest beginnings of these paths that tell them apart."""
    split = [place.split(".") for place in places]
    depth = 1
    while len({tuple(path[:depth]) for path in split}) < len({*places}):
        depth += 1
    return [".".join(path[:depth]) for path in split]


def part_of(module: nn.Module, part: str, named: Iterable[tuple[str, nn.Module]]) -> nn.Module:
    """The submodule of that name; `InputError` with the names of others where there is none."""
    try:
        return module.get_submodule(part)
    except AttributeError as error:
        held = ", ".join(name for name, _ in named if name)
        raise InputError(
            f"{type(module).__name__} has no part '{part}'; its parts are: {held}"
        ) from error


def check_finite(module: nn.Module) -> None:
    """Raises `InputError` naming the first parameter with NaN or infinity in it."""
    for name, parameter in module.named_parameters():
        if parameter.is_meta:
            raise InputError(f"the weight '{name}' is not loaded (meta device): load it first")
        if not parameter.is_floating_point() or not parameter.numel():
            continue
        # In place of a copy of the weight for each step of the question.
        if not bool(torch.isfinite(torch.stack(torch.aminmax(parameter.detach()))).all()):
            bad = int((~torch.isfinite(parameter)).sum())
            raise InputError(
                f"the weight '{name}' has {bad} entries that are NaN or infinite: the checkpoint "
                "is damaged or the training diverged; take another"
            )


# ------------------------------------------------------------------------ what the module reads


def tensors(inputs: list[Any]) -> Tensor:
    """A list of tensors of one shape as a batch. Raises `InputError` for anything else."""
    if not inputs or not all(isinstance(each, Tensor) for each in inputs):
        raise InputError(
            "this model reads tensors: give a list of tensors, a batch, or describe it with "
            "prepare=, a function from your inputs to a batch"
        )
    return stacked(inputs)


def _has_cls(
    module: nn.Module, learned: Mapping[str, Tensor], modality: Modality, causal: bool
) -> bool:
    """Whether token 0 is CLS.

    Of images and features, one is learned. Encoders of texts that stand alone have one; those that
    feed a decoder, or are compared with another tower, have none.
    """
    if modality != "text":
        return any(each.endswith(_CLS) for each in learned)
    config = getattr(module, "config", None)
    beside = getattr(config, "is_encoder_decoder", False) or hasattr(config, "projection_size")
    return not causal and not beside


def _watched(
    module: nn.Module, run: Callable[[Any], Any], candidates: Iterator[Any]
) -> tuple[Graph, int]:
    """The graph of a pass on the first candidate that the module takes, and its inputs."""
    errors = []
    for batch in candidates:
        try:
            with torch.no_grad(), torch.compiler.set_stance("force_eager"):  # as it is watched
                run(batch)
        except Exception as error:  # the module is anybody's
            errors.append(f"{type(error).__name__}: {' '.join(str(error).split())[:120]}")
            continue
        first = next(iter(batch.values())) if isinstance(batch, Mapping) else batch
        return watch(run, module, batch), len(first)
    named = module.named_children()
    models = [(name, each) for name, each in named if hasattr(each, "main_input_name")]
    towers = [name for name, each in models if any(True for _ in each.parameters())]
    if len(towers) > 1:
        raise SeveralStacksError(type(module).__name__, towers)
    raise NotMadeUpError(
        f"{type(module).__name__} does not run on inputs that are made up "
        f"({errors[0] if errors else 'none is known'}): give some, describe(module, inputs)"
    )


def candidates(module: nn.Module, modality: Modality, prepare: Any, inputs: Any) -> Iterator[Any]:
    """Batches of a few inputs on which the module may run."""
    first = next(module.parameters(), torch.zeros(()))
    dtype = torch.promote_types(first.dtype, torch.float32)
    if inputs is not None:
        yield _few(inputs, first.device, dtype)
        return
    draw = torch.Generator().manual_seed(0)
    config: Any = getattr(module, "config", None)

    def normal(*shape: int) -> Tensor:
        return torch.randn(FEW, *shape, generator=draw).to(first.device, dtype)

    def ids(words: int, longest: int | None) -> dict[str, Tensor]:
        tokens = min(TOKENS, longest or TOKENS)
        low = min(3, words - 1)
        drawn = torch.randint(low, words, (FEW, tokens), generator=draw).to(first.device)
        return {"input_ids": drawn, "attention_mask": torch.ones_like(drawn)}

    if modality == "vision":
        side = getattr(config, "image_size", None) or 64
        sides = (side, side) if isinstance(side, int) else tuple(side)[-2:]
        shape = getattr(prepare, "shape", (3, *sides))
        yield normal(*shape)
        yield normal(getattr(config, "num_channels", 1), *shape[-2:])
        yield normal(getattr(config, "num_frames", None) or 1, *shape)  # of a video
    if modality == "text":
        tables = (len(p) for p in module.parameters() if p.ndim == 2)
        # A model of pictures and texts keeps the size in the config of its text.
        text = config.get_text_config() if hasattr(config, "get_text_config") else config
        words = getattr(text, "vocab_size", None) or next(tables, 1)
        batch = ids(words, getattr(prepare, "longest", None))
        yield batch
        yield {"input_ids": batch["input_ids"]}
        yield batch["input_ids"]
        return
    mels = getattr(config, "num_mel_bins", None)
    if mels is not None:
        longest = getattr(config, "max_source_positions", None)
        long = getattr(config, "max_length", TOKENS)
        yield normal(mels, 2 * longest) if longest else normal(long, mels)
    if hasattr(module, "main_input_name"):
        yield normal(8000)
    widths = (side for p in module.parameters() for side in (*p.shape[-1:], *p.shape[:-1]))
    for width in list(dict.fromkeys(widths))[:8]:
        yield normal(TOKENS, width)
    if first.ndim == 2:
        yield ids(len(first), None)["input_ids"]


def _few(batch: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """The first inputs of a batch."""
    if isinstance(batch, Mapping):
        return {name: _few(value, device, dtype) for name, value in batch.items()}
    if isinstance(batch, Tensor):
        return batch[:FEW].to(device, dtype if batch.is_floating_point() else None)
    if isinstance(batch, Iterable) and not isinstance(batch, str):
        return _few(stacked(list(batch)[:FEW]), device, dtype)
    return batch


def _run(module: nn.Module, reads: str | None) -> Callable[[Any], Any]:
    # A cache of keys and values serves generation alone.
    taken = inspect.signature(module.forward).parameters
    extra = {"use_cache": False} if "use_cache" in taken else {}

    def run(batch: Any) -> Any:
        if isinstance(batch, Mapping):
            return module(**batch, **extra)
        return module(batch) if reads is None else module(**{reads: batch}, **extra)

    return run


def _shown_whole(module: nn.Module, run: Callable[[Any], Any], batch: Any) -> Any:
    """`run`, with every patch shown; the module's config is as it was after each call."""
    config: Any = module.config
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
