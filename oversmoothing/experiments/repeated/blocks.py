"""A trained model's own blocks as maps of the stream, X -> f(X), with their derivatives (jvp).

A block is called as the model itself called it on a batch, its other arguments (masks, rotary
angles) held; nothing of it is computed anew. Derivatives are those of forward mode,
torch.func.jvp, through softmax attention in its plain form: fused kernels have none.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from oversmoothing.experiments.inspection.extract import batches, call_arguments, extract, prepared
from oversmoothing.experiments.models.layers import attention_of
from oversmoothing.experiments.models.model import Layer, Model, check_stochastic, evaluating
from oversmoothing.experiments.study.atlas import factors
from oversmoothing.simulations.engine.layers import PerLayer
from oversmoothing.simulations.spectra.head_values import normalised
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Inputs of one batch, where they have one length.
BATCH = 20


@dataclass(frozen=True)
class BlockMap:
    """Layer `number` (from 1) on one batch: f(X) for X [b, n, d] as the model's block computes it.

    call: the arguments of its attention's own call, by name; root: the whole module.
    """

    number: int
    layer: Layer
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    call: dict[str, Any]
    root: nn.Module

    def __call__(self, X: Tensor) -> Tensor:
        """The stream behind the block. Raises `InputError` where its shape is another."""
        # Copied, since a block may work in place.
        X = X.clone()
        place = next((k for k, each in enumerate(self.args) if _is_stream(each)), None)
        args, kwargs = list(self.args), dict(self.kwargs)
        if place is not None:
            args[place] = X
        else:
            kwargs[next(name for name, each in kwargs.items() if _is_stream(each))] = X
        output = self.layer.block(*args, **kwargs)
        given = output if isinstance(output, tuple | list) else (output,)
        Y: Tensor | None = next((each for each in given if _is_stream(each)), None)
        if Y is None or Y.shape != X.shape:
            shape = "no tokens" if Y is None else tuple(Y.shape)
            raise InputError(
                f"layer {self.number} takes a stream {tuple(X.shape)} and gives {shape}: a block "
                "that changes the number or the width of its tokens has no growth to measure"
            )
        return Y

    def given_as_long_as(self, n: int) -> bool:
        """Whether the block is called with something of n tokens beside the stream."""
        given = [*self.args, *self.kwargs.values(), *self.call.values()]
        beside = [each for each in given if isinstance(each, Tensor) and each.ndim != 3]
        return any(n in each.shape for each in beside)

    def first(self) -> "BlockMap":
        """The block as it is called on the first input of the batch alone."""

        def cut(each: Any) -> Any:
            if isinstance(each, tuple | list):
                return tuple(cut(x) for x in each)
            return each[:1] if isinstance(each, Tensor) and each.ndim >= 3 else each

        kwargs = {name: cut(each) for name, each in self.kwargs.items()}
        return replace(self, args=cut(self.args), kwargs=kwargs)

    @torch.no_grad()
    def attention(self, X: Tensor) -> Tensor:
        """A [b, heads, n, n] of the block on a stream X [b, n, d]."""
        return attention_of(self.root, self.layer, lambda: self(X), X)


def own_blocks(model: Model) -> list[tuple[int, ...]]:
    """Each block by itself, by its layer's number from 1; one that serves several layers once."""
    first: dict[int, int] = {}
    for number, layer in enumerate(model.layers, 1):
        first.setdefault(id(layer.block), number)
    return [(number,) for number in first.values()]


@dataclass(frozen=True)
class Recorded:
    """The blocks of a model on one batch, and the streams [layers + 1][b, n, d] that it ran on."""

    blocks: tuple[BlockMap, ...]
    states: tuple[Tensor, ...]


class _Unrounded(TorchFunctionMode):
    """A softmax of float64 stays one: the library's eager attention asks for float32, whose rows
    sum to 1 to 1e-7 alone, so that equal tokens would not stay equal."""

    def __torch_function__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        softmax = getattr(call, "__name__", "") == "softmax"
        if softmax and given.get("dtype") == torch.float32 and args[0].dtype == torch.float64:
            del given["dtype"]
        return call(*args, **given)


@contextmanager
def plain_attention(module: nn.Module) -> Iterator[None]:
    """Evaluation mode, and attention by its formula: fused kernels have no forward mode."""
    with evaluating(module), sdpa_kernel(SDPBackend.MATH), _Unrounded():
        yield


def recorded(model: Model, batch: Any) -> Recorded:
    """The blocks as they are called on a batch of inputs of one length, and its streams.

    Every part is held against the model's description (`extract`).
    """
    if model.dtype.itemsize < 4:
        raise InputError(
            f"the model '{model.name}' is in {model.dtype}, in which differences drown: open it "
            "with dtype=torch.float64"
        )
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    attended: list[dict[str, Any]] = []
    sees: Any = (
        lambda _, args, kwargs: calls.append((args, dict(kwargs))),
        lambda module, args, kwargs: attended.append(call_arguments(module, args, kwargs)),
    )
    with ExitStack() as hooks:
        for layer in {id(layer.block): layer for layer in model.layers}.values():
            for module, see in zip((layer.block, layer.attention), sees, strict=True):
                hooks.enter_context(module.register_forward_pre_hook(see, with_kwargs=True))
        extracted = extract(model, batch, attention=False, dtype=model.dtype)
    if not bool(extracted.keep.all()):
        raise InputError(
            "the inputs have different lengths: give them one at a time, or of one number of tokens"
        )
    blocks = tuple(
        BlockMap(number, layer, args, kwargs, call, model.module)
        for number, (layer, (args, kwargs), call) in enumerate(
            zip(model.layers, calls, attended, strict=True), 1
        )
    )
    states = (extracted.traces[0].before, *(trace.after_ffn for trace in extracted.traces))
    return Recorded(blocks, tuple(X.to(model.device) for X in states))


def runs(model: Model, inputs: Iterable[Any], size: int = BATCH) -> Iterator[tuple[Any, Recorded]]:
    """(batch, what is `recorded` of it) for so many inputs at a time, texts one by one. Raises
    `InputError` for no inputs, and as `recorded` does."""
    for one in batches(inputs, 1 if model.modality == "text" else size):
        batch = prepared(model, one)
        yield batch, recorded(model, batch)


def jvp(f: BlockMap, X: Tensor, D: Tensor) -> Tensor:
    """The derivative of a block at X [b, n, d] in the direction D [b, n, d]."""
    try:
        moved: Tensor = torch.func.jvp(f, (X,), (D,))[1]
    except RuntimeError as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"layer {f.number} has no forward-mode derivative ({said}): give its autograd function "
            "a jvp, or its operation one that torch.func.jvp can follow"
        ) from error
    return moved


def at_consensus(X: Tensor) -> Tensor:
    """1 m^T for the mean m over the tokens of X [b, n, d]."""
    return X.mean(1, keepdim=True).expand_as(X).contiguous()


def check_consensus(f: BlockMap, X: Tensor) -> None:
    """Raises `InputError` where the block makes equal tokens different, beyond sqrt(eps) of the
    token: then no set of equal tokens is left in itself, and growth along it and across it are not
    apart."""
    Y = f(at_consensus(X))
    centred = torch.linalg.vector_norm(Y - Y.mean(1, keepdim=True), dim=-1).amax(-1)
    off = float((centred / torch.linalg.vector_norm(Y, dim=-1).amax(-1)).max())
    if not off <= torch.finfo(X.dtype).eps ** 0.5:
        raise InputError(
            f"layer {f.number} makes equal tokens different, by {off:.1e} of their length: it has "
            "no invariant consensus (attention whose rows do not sum to 1, positions added within "
            "the block), and there is nothing to linearise at"
        )


def _is_stream(each: Any) -> bool:
    return isinstance(each, Tensor) and each.ndim == 3 and each.is_floating_point()


def cycled_layers(model: Model, batch: Any, scale: float = 1.0) -> tuple[PerLayer, PerLayer, Array]:
    """The layers as linear operators, over and over (T7a): attention on one input and weights by
    layer, without norms, biases and FFNs, and the X_0 that the first block was given, [n, d].

    batch: one input, as `extract` takes it. scale: multiplies every W_V W_O. Raises `InputError`
    for learned sinks.
    """
    check_stochastic(model)
    extracted = extract(model, batch)
    attention = [
        normalised(trace.attention[0].numpy())
        for trace in extracted.traces
        if trace.attention is not None
    ]
    weights = [
        (scale * W_V, W_O) for W_V, W_O in (factors(layer, "unfolded") for layer in model.layers)
    ]
    X0 = extracted.traces[0].before[0].double().numpy()
    period = len(attention)
    return (
        PerLayer(lambda layer: attention[layer % period]),
        PerLayer(lambda layer: weights[layer % period]),
        X0,
    )
