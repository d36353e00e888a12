"""What a trained model does to its inputs, layer by layer: attention and residual streams.

Hooks look at the forward pass; the attention is computed anew from the described weights,
A_h = softmax(scaling q_h k_h^T + bias), so that a fused kernel cannot hide it, and
sum_h A_h N(X) W_V,h W_O,h + bias is compared with what the module itself gave (`av_error`). Every
part of every layer is held against the description on the first batch of a stream, on each with
longer inputs than any before, and on the first with padding (`verify`); a model in half precision
runs once more in float32 for it.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from oversmoothing.experiments.inspection.float32_pass import in_float32, unrounded_products
from oversmoothing.experiments.inspection.watch import Watch, Weights
from oversmoothing.experiments.models.evaluation import evaluating
from oversmoothing.experiments.models.inputs import Images
from oversmoothing.experiments.models.model import Extraction, Heads, Model
from oversmoothing.experiments.models.pictures import Pictures
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
    every layer against the description (`experiments.inspection.verify`).

    Raises `InputError` where a part is not what the description says, with its layer and by how
    much, where a block is given what the one before did not give, and where numbers are not finite.
    """
    with _ready(model) as weights:
        return _extracted(model, weights, _read(model, batch), attention, dtype, verify)


def stream(
    model: Model,
    inputs: Iterable[Any],
    *,
    batch_size: int = BATCH,
    attention: bool = True,
    dtype: torch.dtype | None = None,
    progress: bool = False,
) -> Iterator[Extraction]:
    """`extract` batch by batch, in bounded memory: only one batch is held at a time.

    inputs: images, strings or tensors, one an input, from any iterable; or a whole tensor or
    dictionary of tensors, whose first dimension counts. Raises `InputError` as `extract` does, and
    for no inputs at all.
    """
    batch_size = whole_number("batch_size", batch_size, 1)
    check_inputs(inputs)
    with _ready(model) as weights:
        quiet = None if progress else True
        checked = Checked()
        with tqdm(total=_count(inputs), unit="input", file=sys.stderr, disable=quiet) as bar:
            for batch in batches(inputs, batch_size):
                read = _read(model, batch)
                new = checked.new(read)
                found = _extracted(model, weights, read, attention, dtype, verify=new)
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
        for start in range(0, _count(inputs) or 0, size):
            yield {name: value[start : start + size] for name, value in inputs.items()}
    elif isinstance(inputs, Pictures):
        yield from (inputs[start : start + size] for start in range(0, len(inputs), size))
    else:
        iterator = iter(inputs)
        while part := list(islice(iterator, size)):
            yield part


def _count(inputs: Any) -> int | None:
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


def _read(model: Model, batch: Any) -> Any:
    return _moved(prepared(model, batch), model.device, model.dtype)


@torch.no_grad()
def _extracted(
    model: Model, weights: Weights, batch: Any, attention: bool, dtype: torch.dtype | None,
    verify: bool,
) -> Extraction:  # fmt: skip
    wide = torch.promote_types(model.dtype, torch.float32)
    keep = _keep(batch)
    errors: tuple[float, ...] = ()
    try:
        with unrounded_products():
            if verify and model.dtype != wide:
                with in_float32(model.module):
                    given = _moved(batch, model.device, wide)
                    checked = Watch(model, weights, keep, attention, wide, True).run(given)
                errors, verify = checked.av_error, False
                del checked  # or two extractions would be held at a time
            found = Watch(model, weights, keep, attention, dtype or wide, verify).run(batch)
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
