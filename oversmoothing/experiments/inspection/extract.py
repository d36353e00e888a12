"""What a trained model does to its inputs, layer by layer: attention and residual streams.

The forward pass is watched (`experiments.models.layers`): attention and streams are those that the
model itself computes, whatever kernel it names. Every part of every layer is held against the
description (`verify`) on the first batch of a stream, on each with longer inputs than any before,
and on the first with padding; a model in half precision runs once more in float32 for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from oversmoothing.experiments.inspection.verify import Questions, Verifier, unrounded_products
from oversmoothing.experiments.models.checkpoints import in_float32
from oversmoothing.experiments.models.inputs import Images
from oversmoothing.experiments.models.layers import Caught, Light
from oversmoothing.experiments.models.model import (
    Extraction,
    Heads,
    Layer,
    Model,
    Trace,
    evaluating,
    projected,
)
from oversmoothing.experiments.models.pictures import Pictures
from oversmoothing.experiments.models.tape import leaves, running
from oversmoothing.simulations.running import Bar
from oversmoothing.theory.support.errors import InputError, whole_number

BATCH = 16


def extract(
    model: Model,
    batch: Any,
    *,
    attention: bool = True,
    dtype: torch.dtype | None = None,
    verify: bool = True,
) -> Extraction:
    """One batch as `model.prepare` makes it (raw inputs are prepared first).

    attention=False: residual streams alone. dtype: the attention is computed and everything
    returned in it (default: float32, or float64 for a float64 model). verify: hold every part of
    every layer against the description, `InputError` where one differs (`verify`). Raises it too
    where a block is given what the one before did not give, and for numbers that are not finite.
    """
    with evaluating(model.module):
        return _extracted(model, prepared_and_moved(model, batch), attention, dtype, verify)


def stream(
    model: Model,
    inputs: Iterable[Any],
    *,
    batch_size: int = BATCH,
    attention: bool = True,
    progress: bool = False,
    see: See | None = None,
    ask: Ask | None = None,
) -> Iterator[Extraction]:
    """`extract` batch by batch, in bounded memory: only one batch is held at a time.

    inputs: images, strings or tensors, one an input, from any iterable; or a whole tensor or
    dictionary of tensors, whose first dimension counts. see: told of every layer while the pass
    is in it; then no trace is kept, and one attention is in memory at a time. ask: asks in front of
    it for more of the layer, in the same wait for an accelerator. Raises `InputError` as `extract`
    does, and for no inputs at all.
    """
    batch_size = whole_number("batch_size", batch_size, 1)
    with evaluating(model.module):
        checked, size = Checked(), 1
        with Bar(count(inputs), "input", progress) as shown:

            def layer_seen(*layer: Any) -> None:
                # A batch may take minutes: a layer of it is a part of its inputs.
                (see or _forget)(*layer)
                shown.update(size / model.depth)

            told = None if see is None else layer_seen
            for batch in batches(inputs, batch_size):
                read = prepared_and_moved(model, batch)
                size = count(read) or 1
                new = checked.new(read)
                extracted = _extracted(model, read, attention, None, new, told, ask)
                if see is None:
                    shown.update(len(extracted.keep))
                yield extracted
                del extracted  # or two batches would be held at a time


def check_inputs(inputs: Any) -> None:
    """Raises `InputError` for what holds no inputs, and for a single text."""
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
        kind = "a single text" if isinstance(inputs, str | bytes) else type(inputs).__name__
        raise InputError(f"the inputs are {kind}: give a list of images or texts, or a tensor")


def call_arguments(module: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """The call's arguments by name, those swallowed by **kwargs among them."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs)
    except TypeError:
        return dict(kwargs)
    named = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            named |= named.pop(name, {})
    return named


def tokens_of(values: Any, module: nn.Module) -> Tensor:
    """The tokens: the first tensor [b, n, d] among arguments or results."""
    for value in values if isinstance(values, tuple | list) else (values,):
        if isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point():
            return value
    raise InputError(
        f"no tokens [b, n, d] are seen at {type(module).__name__}: its blocks must take and give "
        "them as the first tensor"
    )


def eager_pass(module: nn.Module, args: Any, kwargs: Any, inputs: int) -> None:
    """module(*args, **kwargs) on the first inputs, in evaluation mode, without a gradient; random
    generators and the module are as before: the pass that follows is the same to the bit."""
    tensors = leaves((args, kwargs))
    sizes = [len(each) for each in tensors if each.ndim > 1] or [0]

    def cut(value: Any) -> Any:
        batch = isinstance(value, Tensor) and value.ndim > 0 and len(value) == sizes[0]
        return value[:inputs] if batch else value

    devices = sorted({each.get_device() for each in tensors if each.is_cuda})
    args, kwargs = tree_map(cut, (args, kwargs))
    with evaluating(module), torch.no_grad(), torch.random.fork_rng(devices):
        module(*args, **kwargs)


def batches(inputs: Iterable[Any], size: int) -> Iterator[Any]:
    """Pieces of at most `size` inputs; tensors and dictionaries of tensors are cut as they are.
    Raises `InputError` for no inputs."""
    check_inputs(inputs)
    piece = None
    for piece in _cut(inputs, size):
        yield piece
    if piece is None:
        raise InputError("there are no inputs: give at least one image or text")


def _cut(inputs: Iterable[Any], size: int) -> Iterator[Any]:
    if isinstance(inputs, Tensor):
        yield from torch.split(inputs, size) if len(inputs) else ()
    elif isinstance(inputs, Mapping):
        for start in range(0, count(inputs) or 0, size):
            yield {name: value[start : start + size] for name, value in inputs.items()}
    elif isinstance(inputs, Pictures):
        yield from (inputs[start : start + size] for start in range(0, len(inputs), size))
    else:
        iterator = iter(inputs)
        while part := list(islice(iterator, size)):
            yield part


def count(inputs: Any) -> int | None:
    """How many inputs there are; None of an iterator."""
    if isinstance(inputs, Mapping):
        return len(next(iter(inputs.values()))) if inputs else 0
    return len(inputs) if hasattr(inputs, "__len__") else None


class Checked:
    """What kinds of batches a stream has seen: a description may hold of short inputs, or of whole
    ones, and fail of long or of padded ones (windows, masks)."""

    longest, padded = -1, False

    def new(self, batch: Any) -> bool:
        """Whether a batch is the first, longer than any before or the first with padding."""
        keep = kept_tokens(batch)
        first = batch if keep is None else keep
        length = first.shape[1] if isinstance(first, Tensor) and first.ndim > 1 else 0
        padded = keep is not None and not bool(keep.all())
        other = length > self.longest or padded > self.padded
        self.longest, self.padded = max(self.longest, length), self.padded or padded
        return other


def prepared_and_moved(model: Model, batch: Any) -> Any:
    """`prepared`, where the model lies and in its dtype."""
    return _moved(prepared(model, batch), model.device, model.dtype)


@torch.no_grad()
def _extracted(
    model: Model, batch: Any, attention: bool, dtype: torch.dtype | None, verify: bool,
    see: See | None = None, ask: Ask | None = None,
) -> Extraction:  # fmt: skip
    wide = torch.promote_types(model.dtype, torch.float32)
    keep = kept_tokens(batch)
    errors: tuple[float, ...] = ()
    try:
        with unrounded_products():
            if verify and model.dtype != wide:
                with in_float32(model.module):
                    given = _moved(batch, model.device, wide)
                    checked = Watch(model, keep, attention, wide, True, _forget)
                    errors, verify = checked.run(given).av_error, False
            extracted = Watch(model, keep, attention, dtype or wide, verify, see, ask).run(batch)
        return replace(extracted, av_error=errors) if errors else extracted
    except InputError:
        raise
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"the model '{model.name}' cannot run on this batch ({error}): see that its shape and "
            "kind are those that the model reads"
        ) from error


def prepared(model: Model, inputs: Any) -> Any:
    """A batch as it is, its shape checked where the model says which; raw inputs are prepared."""
    if isinstance(inputs, Mapping | Tensor):
        check = getattr(model.prepare, "check", None)
        return inputs if check is None else check(inputs)
    prepare = model.prepare
    if isinstance(prepare, Images) and isinstance(inputs, Pictures):
        return prepare(inputs)
    return prepare(list(inputs))


def _moved(batch: Any, device: torch.device, dtype: torch.dtype) -> Any:
    if isinstance(batch, Mapping):
        return {name: _moved(value, device, dtype) for name, value in batch.items()}
    if isinstance(batch, Tensor):
        wanted = dtype if batch.is_floating_point() else None
        return batch.to(device, wanted, non_blocking=batch.is_cpu)
    return batch


# What says which tokens are padding, as the library's models and PyTorch's call it.
MASKS = ("attention_mask", "src_key_padding_mask", "tgt_key_padding_mask")


def kept_tokens(batch: Any) -> Tensor | None:
    """The library's mask says which tokens are kept, PyTorch's which are not."""
    if not isinstance(batch, Mapping):
        return None
    for name in MASKS:
        if (mask := batch.get(name)) is not None:
            kept: Tensor = mask.bool()
            return kept if name == "attention_mask" else ~kept
    return None


# (number of a layer from 0, what it did to the batch, keep [b, n] on the CPU, whether the layer is
# held against its description in this pass): what is measured of a layer while it is there.
See = Callable[[int, Trace, Tensor, bool], None]
# In front of it, of a trace that lies where the model does; and what answers, with its copy.
Ask = Callable[[int, Trace, Tensor, bool, Questions], None]


def _forget(number: int, trace: Trace, keep: Tensor, verified: bool) -> None:
    pass


@dataclass
class Watch:
    """One forward pass, watched. attention, verify, ask: as of `stream`; dtype: in which everything
    is kept; see: told of each layer in place of keeping its trace."""

    model: Model
    keep: Tensor | None
    attention: bool
    dtype: torch.dtype
    verify: bool
    see: See | None
    ask: Ask | None = None
    traces: list[Trace] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    stream: Tensor | None = None  # as the last layer gave it, and as traces have it
    kept: Tensor | None = None  # `keep` on the CPU, where it says what to do next

    def run(self, batch: Any) -> Extraction:
        """Raises `InputError` where the pass does not go through every layer once, in order."""
        model, dtype = self.model, self.dtype if self.attention else None
        self.kept = None if self.keep is None else self.keep.cpu()
        light = Light(model.module, model.layers, batch, dtype, self._finish, self.verify)
        with running(light):
            model.run(batch)
        if light.seen != model.depth:
            raise InputError(
                f"the forward pass went through {light.seen} of the {model.depth} layers that were "
                "read: on these inputs the model runs in another way"
            )
        assert self.kept is not None
        return Extraction(tuple(self.traces), self.kept, tuple(self.errors))

    def _values(self, layer: Layer, heads: Heads, caught: Caught) -> Tensor:
        """V [b, heads, n, r] of a layer, from its weights."""
        N = caught.normed
        if N is None:
            X = caught.before
            N = X if layer.placement == "post" else layer.norm_attention(X)
        return projected(N.to(self.dtype), heads.W_V, heads.b_V)

    def _finish(self, number: int, caught: Caught) -> None:
        layer, shape = self.model.layers[number], caught.end.shape[:2]
        if self.keep is None or self.kept is None:
            self.keep = torch.ones(shape, dtype=torch.bool, device=caught.end.device)
            self.kept = torch.ones(shape, dtype=torch.bool)
        keep, kept = self.keep, self.kept
        heads = cache(lambda: layer.heads.to(self.model.device, self.dtype))
        questions, size = Questions(), caught.end.dtype.itemsize

        def infinite(_: float) -> None:
            advice = (
                "pad the texts on the right" if not bool(kept[:, 0].all())
                else "open it with dtype=torch.float32" if size < 4
                else "use float64" if size < 8 else "look for them in its weights"
            )  # fmt: skip
            raise InputError(
                f"layer {number} gives numbers that are NaN or infinite on these inputs: "
                f"{advice}, or look for them in the inputs"
            )

        questions.ask((keep & ~torch.isfinite(caught.end).all(-1)).any(), infinite)
        middle = caught.after
        if middle is None:
            middle = layer.after_attention(caught.before, caught.output)
        A = None if caught.A is None else caught.A.to(self.dtype)
        if A is not None and not bool(kept.all()):
            # A padding row may have nothing to attend to (NaN); nobody reads it.
            A = torch.where(keep[:, None, :, None], A, 0.0)
        self.errors.append(0.0)
        if self.verify:
            verifier = Verifier(number, layer, kept, int(kept.sum(-1).argmin()), questions)
            if A is not None and self.model.causal:

                def later(most: float) -> None:
                    raise InputError(
                        f"layer {number}: a token attends to later ones, by {most:.1e}, and the "
                        "model was read as one in which none does"
                    )

                questions.ask(A.triu(1).amax(), later)
            if A is not None:
                V = self._values(layer, heads(), caught)
                verifier.attention(A, V, caught, heads(), partial(self.errors.__setitem__, number))
            verifier.sublayers(caught, middle)
        earlier = self.model.layers[number - 1].places if number else None
        same = earlier and layer.places and layer.places.before == earlier.end
        held = {"after_attention": middle, "after_ffn": caught.end}
        held |= {} if same else {"before": caught.before}
        if self.see is not None and A is not None:
            mixed = caught.mixed
            held["mixed"] = A @ self._values(layer, heads(), caught) if mixed is None else mixed
        held = {name: each.to(self.dtype) for name, each in held.items()}
        if self.ask is not None:
            there = Trace(A, **({"before": caught.before.to(self.dtype)} | held))
            self.ask(number, there, kept, self.verify, questions)
        held |= {} if A is None else {"attention": A}
        copies = dict(zip(held, questions.answered(list(held.values())), strict=True))
        start = copies.pop("before", self.stream)
        assert start is not None
        trace = Trace(copies.pop("attention", None), start, **copies)
        self.stream = trace.after_ffn
        if self.see is None:
            self.traces.append(trace)
        else:
            self.see(number, trace, kept, self.verify)
