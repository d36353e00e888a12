"""What a trained model does to its inputs, layer by layer: attention and residual streams.

Hooks look at the forward pass; the attention is computed anew from the described weights,
A_h = softmax(scaling q_h k_h^T + bias), so that a fused kernel cannot hide it, and
sum_h A_h N(X) W_V,h W_O,h + bias is compared with what the module itself gave (`av_error`). On the
first batch of a stream the sublayers are also put together again and compared with the block.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from oversmoothing.experiments.inspection.watch import Watch, Weights
from oversmoothing.experiments.models.evaluation import evaluating
from oversmoothing.experiments.models.inputs import Images
from oversmoothing.experiments.models.model import Extraction, Heads, Model
from oversmoothing.experiments.models.pictures import Pictures
from oversmoothing.theory.support.errors import InputError

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
    returned in it (default: float32, or float64 for a float64 model). verify: put the sublayers
    together again.

    Raises `InputError` where attention times values is not the module's own output, where the
    sublayers do not add up to the block, and where numbers are not finite.
    """
    with _ready(model) as weights:
        return _extracted(model, weights, batch, attention, dtype, verify)


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
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}: it must be at least 1")
    with _ready(model) as weights:
        quiet = None if progress else True
        first = True
        with tqdm(total=_count(inputs), unit="input", file=sys.stderr, disable=quiet) as bar:
            for batch in batches(inputs, batch_size):
                found = _extracted(model, weights, batch, attention, dtype, verify=first)
                first = False
                bar.update(len(found.keep))
                yield found
                del found  # or two batches would be held at a time
        if first:
            raise InputError("there are no inputs: give at least one image or text")


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


@torch.no_grad()
def _extracted(
    model: Model, weights: Weights, batch: Any, attention: bool, dtype: torch.dtype | None,
    verify: bool,
) -> Extraction:  # fmt: skip
    batch = _moved(prepared(model, batch), model.device, model.dtype)
    dtype = dtype or torch.promote_types(model.dtype, torch.float32)
    try:
        return Watch(model, weights, _keep(batch), attention, dtype, verify).run(batch)
    except InputError:
        raise
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
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
    mask = batch.get("attention_mask") if isinstance(batch, Mapping) else None
    return None if mask is None else mask.bool()
