"""What a trained model does to its inputs, layer by layer: attention and residual streams.

Hooks look at the forward pass; the attention is computed anew from the described weights,
A_h = softmax(scaling q_h k_h^T + bias), so that a fused kernel cannot hide it, and
sum_h A_h N(X) W_V,h W_O,h + bias is compared with what the module itself gave (`av_error`). Every
part of every layer is held against the description on the first batch of a stream, on each with
longer inputs than any before, and on the first with padding (`verify`); a model in half precision
runs once more in float32 for it.

Tensors are detached and copied when they are seen, so that a module that works in place spoils
nothing; hooks are removed whatever happens. One block may stand for several layers (a model that
uses it many times): a call belongs to the next layer of the description.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from oversmoothing.experiments.inspection.attention import attention, mixed_values, projected
from oversmoothing.experiments.inspection.stream_hooks import (
    after_hook,
    before_hook,
    call_arguments,
)
from oversmoothing.experiments.inspection.verify import (
    NORMS,
    Seen,
    Verifier,
    in_float32,
    unrounded_products,
)
from oversmoothing.experiments.models.inputs import Images
from oversmoothing.experiments.models.model import (
    Extraction,
    Heads,
    Layer,
    Model,
    Trace,
    evaluating,
)
from oversmoothing.experiments.models.pictures import Pictures
from oversmoothing.theory.support.errors import InputError, whole_number

BATCH = 16
# Whole numbers of as many bytes as a float; an odd factor that spreads positions over 64 bits.
_WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}
_SPREAD = 0x1E3779B97F4A7C15


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
    every layer against the description (`experiments.inspection.verify`).

    Raises `InputError` where a part is not what the description says, with its layer and by how
    much, where a block is given what the one before did not give, and where numbers are not finite.
    """
    with _ready(model) as weights:
        return _extracted(
            model, weights, prepared_and_moved(model, batch), attention, dtype, verify
        )


def stream(
    model: Model,
    inputs: Iterable[Any],
    *,
    batch_size: int = BATCH,
    attention: bool = True,
    dtype: torch.dtype | None = None,
    progress: bool = False,
    see: See | None = None,
) -> Iterator[Extraction]:
    """`extract` batch by batch, in bounded memory: only one batch is held at a time.

    inputs: images, strings or tensors, one an input, from any iterable; or a whole tensor or
    dictionary of tensors, whose first dimension counts. see: told of every layer while the pass
    is in it; then no trace is kept, and one layer's attention is in memory at a time. Raises
    `InputError` as `extract` does, and for no inputs at all.
    """
    batch_size = whole_number("batch_size", batch_size, 1)
    check_inputs(inputs)
    with _ready(model) as weights:
        quiet = None if progress else True
        checked = Checked()
        with tqdm(total=count(inputs), unit="input", file=sys.stderr, disable=quiet) as bar:
            for batch in batches(inputs, batch_size):
                read = prepared_and_moved(model, batch)
                new = checked.new(read)
                found = _extracted(model, weights, read, attention, dtype, new, see)
                bar.update(len(found.keep))
                yield found
                del found  # or two batches would be held at a time
        if not checked.batches:
            raise InputError("there are no inputs: give at least one image or text")


def check_inputs(inputs: Any) -> None:
    """Raises `InputError` for what holds no inputs, and for a single text."""
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
        kind = "a single text" if isinstance(inputs, str | bytes) else type(inputs).__name__
        raise InputError(f"the inputs are {kind}: give a list of images or texts, or a tensor")


def batches(inputs: Iterable[Any], size: int) -> Iterator[Any]:
    """Pieces of at most `size` inputs; tensors and dictionaries of tensors are cut as they are."""
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


@contextmanager
def _ready(model: Model) -> Iterator[Weights]:
    """The model in evaluation mode, its heads' weights converted once; as it was on leaving."""

    @cache
    def weights(number: int, dtype: torch.dtype) -> Heads:
        return model.layers[number].heads.to(model.device, dtype)

    with evaluating(model.module):
        yield weights


@dataclass
class Checked:
    """What kinds of batches a stream has seen: a description may hold of short inputs, or of whole
    ones, and fail of long or of padded ones (windows, masks)."""

    batches: int = 0
    longest: int = 0
    padded: bool = False

    def new(self, batch: Any) -> bool:
        """Whether a batch is the first, longer than any before or the first with padding."""
        keep = _keep(batch)
        first = batch if keep is None else keep
        length = first.shape[1] if isinstance(first, Tensor) and first.ndim > 1 else 0
        padded = keep is not None and not bool(keep.all())
        found = not self.batches or length > self.longest or (padded and not self.padded)
        self.batches += 1
        self.longest, self.padded = max(self.longest, length), self.padded or padded
        return found


def prepared_and_moved(model: Model, batch: Any) -> Any:
    """`prepared`, where the model lies and in its dtype."""
    return _moved(prepared(model, batch), model.device, model.dtype)


@torch.no_grad()
def _extracted(
    model: Model, weights: Weights, batch: Any, attention: bool, dtype: torch.dtype | None,
    verify: bool, see: See | None = None,
) -> Extraction:  # fmt: skip
    wide = torch.promote_types(model.dtype, torch.float32)
    keep = _keep(batch)
    errors: tuple[float, ...] = ()
    try:
        with unrounded_products():
            if verify and model.dtype != wide:
                with in_float32(model.module):
                    given = _moved(batch, model.device, wide)
                    checked = Watch(model, weights, keep, attention, wide, True, _forget)
                    errors, verify = checked.run(given).av_error, False
            found = Watch(model, weights, keep, attention, dtype or wide, verify, see).run(batch)
        return replace(found, av_error=errors) if errors else found
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
        return batch.to(device, dtype if batch.is_floating_point() else None)
    return batch


def _keep(batch: Any) -> Tensor | None:
    """The library's mask says which tokens are kept, PyTorch's which are not."""
    if not isinstance(batch, Mapping):
        return None
    mask: Tensor | None = batch.get("attention_mask")
    padding: Tensor | None = batch.get("src_key_padding_mask")
    if mask is not None:
        return mask.bool()
    return None if padding is None else ~padding.bool()


# (number of a layer from 0, what it did to the batch, keep [b, n] on the CPU, whether the layer is
# held against its description in this pass): what is measured of a layer while it is there. Of the
# layer itself, its norms and value maps, `Model.layers` tells.
See = Callable[[int, Trace, Tensor, bool], None]


def _forget(number: int, trace: Trace, keep: Tensor, verified: bool) -> None:
    pass


# (number of a layer, dtype) -> its heads' weights where the model lies.
Weights = Callable[[int, torch.dtype], Heads]


class Watch:
    """One forward pass, watched.

    attention: compute it; dtype: in which it is computed and everything kept; verify: hold every
    layer against its description (`verify`), in a pass in float32 or float64. see: told of each
    layer in place of keeping its trace.
    """

    def __init__(
        self, model: Model, weights: Weights, keep: Tensor | None, attention: bool,
        dtype: torch.dtype, verify: bool, see: See | None,
    ) -> None:  # fmt: skip
        self.model, self.weights, self.keep = model, weights, keep
        self.attention, self.dtype, self.verify, self.see = attention, dtype, verify, see
        self.traces: list[Trace] = []
        # Of what each block was given; the stream as the last one gave it, as traces have it.
        self.marks: list[int] = []
        self.stored = dtype
        self.stream: Tensor | None = None
        self.errors: list[float] = []
        self.seen: dict[str, Any] = {}
        # The last block's output as the module gave it, its version, and our copy of it.
        self.last: tuple[Tensor, int, Tensor] | None = None

    def run(self, batch: Any) -> Extraction:
        """Raises `InputError` where the pass does not go through every layer once, in order, each
        on what the one before gave."""
        with ExitStack() as hooks:
            for layer in {id(layer.block): layer for layer in self.model.layers}.values():
                for handle in self._watch(layer):
                    hooks.callback(handle.remove)
            output = self.model.run(batch)
        if len(self.marks) != self.model.depth:
            raise InputError(
                f"the forward pass went through {len(self.marks)} of the {self.model.depth} layers"
                " described: describe those that run, in their order, each as often as it runs"
            )
        assert self.keep is not None
        self._hold_against(getattr(output, "hidden_states", None))
        return Extraction(tuple(self.traces), self.keep.cpu(), tuple(self.errors))

    def _watch(self, layer: Layer) -> list[Any]:
        def note(name: str) -> Callable[[Tensor], None]:
            def remember(X: Tensor) -> None:
                self.seen[name] = X.detach().clone()

            return remember

        def call(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.seen["call"] = call_arguments(module, args, kwargs)

        handles = [before_hook(layer.block, lambda X: self._start(layer, X))]
        handles.append(layer.attention.register_forward_pre_hook(call, with_kwargs=True))
        if layer.attention is not layer.block:
            handles.append(before_hook(layer.attention, note("inputs")))
        for name in NORMS:
            norm = getattr(layer, name).module
            if norm is not None:
                handles.append(before_hook(norm, note(f"{name} input"), flat=True))
                handles.append(after_hook(norm, note(f"{name} output"), flat=True))
        if layer.out is not None:
            handles.append(after_hook(layer.out, note("output")))
        handles.append(after_hook(layer.block, self._end))
        return handles

    def _start(self, layer: Layer, X: Tensor) -> None:
        if "before" in self.seen:
            raise self._nested()
        number = len(self.marks)
        if number == self.model.depth or self.model.layers[number].block is not layer.block:
            raise InputError(
                f"the forward pass does not go through the blocks as described: what runs after "
                f"{number} of the {self.model.depth} is another; describe those that run, in "
                "their order, each as often as it runs"
            )
        self.seen = {}
        last = self.last
        if last is not None and X is last[0] and X._version == last[1]:
            self.seen["before"] = last[2]
            return
        self.seen["before"] = before = X.detach().clone()
        if last is not None:
            _continues(number, last[2], before, self._kept(before))

    def _end(self, X: Tensor) -> None:
        if "before" not in self.seen:
            raise self._nested()
        copy = X.detach().clone()
        self._finish(len(self.marks), self.seen, copy)
        self.last = (X, X._version, copy)
        self.seen = {}

    def _nested(self) -> InputError:
        return InputError(
            f"layer {len(self.marks)}: its block holds another block of the description, or runs "
            "within one: describe blocks that follow one another"
        )

    def _kept(self, X: Tensor) -> Tensor:
        if self.keep is None:
            self.keep = torch.ones(X.shape[:2], dtype=torch.bool, device=X.device)
        return self.keep

    def _finish(self, number: int, noted: dict[str, Any], after: Tensor) -> None:
        layer = self.model.layers[number]
        keep = self._kept(after)
        if not bool(torch.isfinite(after[keep]).all()):
            raise InputError(
                f"layer {number} gives numbers that are NaN or infinite on these inputs: "
                f"{_precision(after.dtype)}, or look for them in the inputs"
            )
        seen = Seen.of(noted, after, layer)
        output, middle = seen.added(layer), seen.between(layer)
        if middle is None:
            if output is None:
                raise InputError(
                    f"layer {number}: neither the output of its attention nor the input of its FFN "
                    "can be seen: name out=, or norm_ffn="
                )
            middle = layer.after_attention(seen.before, output)
        verifier = Verifier(number, layer, keep)
        A, mixed, error = None, None, 0.0
        if self.attention:
            X = seen.attended(layer).to(self.dtype)
            heads = self.weights(number, self.dtype)
            found = attention(X, heads, layer, seen.call, keep, self.model.causal)
            A, V = found.A, projected(X, heads.W_V, heads.b_V)
            mixed, reach = mixed_values(A, V)
            # In half precision rounding hides any error: there the pass in float32 judges.
            if after.dtype.itemsize >= 4:
                error = verifier.attention(found, V, mixed, reach, heads, seen)
            del found, V, reach
        if self.verify and output is not None:
            verifier.sublayers(seen, middle, output)
        before = seen.before
        shared = self.last is not None and self.last[2] is before
        start = self.stream if shared and self.stream is not None else before.to("cpu", self.dtype)
        self.stream = after.to("cpu", self.dtype)
        A, mixed = (None if each is None else each.cpu() for each in (A, mixed))
        mixed = None if self.see is None else mixed
        trace = Trace(A, start, middle.to("cpu", self.dtype), self.stream, mixed)
        self.marks.append(_mark(before, keep))
        self.stored = before.dtype
        self.errors.append(error)
        if self.see is None:
            self.traces.append(trace)
        else:
            self.see(number, trace, keep.cpu(), self.verify)

    def _hold_against(self, states: Any) -> None:
        """The hidden states that the model itself gives are what each block was given."""
        if not isinstance(states, tuple) or len(states) != self.model.depth + 1:
            return
        assert self.keep is not None
        for number, (mark, state) in enumerate(zip(self.marks, states[:-1], strict=True)):
            same = state.shape[:2] == self.keep.shape
            if not same or mark != _mark(state.to(self.stored), self.keep):
                raise InputError(
                    f"layer {number}: what its block is given is not the model's own hidden state "
                    f"{number}: describe the blocks of the stack that gives it"
                )


def _mark(X: Tensor, keep: Tensor) -> int:
    """A number of the bits of the first input's kept tokens in X, by exact arithmetic."""
    bits = X.detach()[0][keep[0]].contiguous().view(_WHOLE[X.dtype.itemsize]).to(torch.int64)
    odd = 2 * torch.arange(bits.numel(), device=X.device).view_as(bits) + 1
    return int((bits * (odd * _SPREAD)).sum())  # modulo 2^64


def _continues(number: int, gave: Tensor, given: Tensor, keep: Tensor) -> None:
    """Raises `InputError` where a block is given what the one before did not give."""
    if gave.shape != given.shape:
        raise InputError(
            f"between layers {number - 1} and {number} the stream changes its shape, "
            f"{tuple(gave.shape)} to {tuple(given.shape)}: only stacks of one width and length are "
            "understood"
        )
    gave, given = gave[keep], given[keep]
    if not torch.equal(gave, given):
        lengths = (torch.linalg.vector_norm(x.double(), dim=-1) for x in (given - gave, gave))
        size = float(torch.div(*lengths).max())
        raise InputError(
            f"between layers {number - 1} and {number} the stream changes, by {size:.1e} of it at "
            "a token: positions, a norm or a second branch between the blocks are not understood, "
            "since no layer's account would hold them"
        )


def _precision(dtype: torch.dtype) -> str:
    return "open it with dtype=torch.float32" if dtype.itemsize < 4 else "use float64"
