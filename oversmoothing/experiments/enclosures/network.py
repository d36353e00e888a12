"""A trained network as exact numbers: what a theorem about its forward pass is a theorem about.

Every weight is the binary64 number that holds it exactly (a float32 or float16 weight loses
nothing). The digest is over all of them and the form, so that a file can say which network it
speaks of. The form of a feed-forward sublayer is told by what it does: which linear maps it calls
is watched, which activation stands between them is tried out on random tokens, to float64 rounding.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.experiments.models.model import Layer, Model, Norm, called_within
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# The constants of torch and of the Hugging Face library, as binary64.
CUBIC = 0.044715
QUICK = 1.702
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "relu": functional.relu,
    "quick_gelu": lambda x: x * torch.sigmoid(QUICK * x),
}
# By their number: which of the linear maps, in the order of their calls, is the one in front of the
# activation, which the gate, which the last.
_ORDERS: dict[int, list[tuple[int, int | None, int]]] = {
    2: [(0, None, 1)],
    3: [(0, 1, 2), (1, 0, 2)],
}
# Relative, in float64 and float32: activations that differ, differ by more than 1e-5.
_SAME = {torch.float64: 1e-9, torch.float32: 1e-5}
_FIRST = ("cls_token", "class_embedding", "cls", "distillation_token")
_POSITIONS = (
    "position_embeddings", "pos_embed", "position", "position_embedding.weight"
)  # fmt: skip
_NORMS = ("norm_attention", "norm_ffn", "output_norm_attention", "output_norm_ffn")
SUPPORTED = (
    "Transformers of LayerNorm or RMSNorm in front of, behind or beside the sublayers, softmax "
    "attention with or without a causal mask, and a feed-forward of one activation can be enclosed"
)


@dataclass(frozen=True)
class FeedForward:
    """f(y W_in + b_in) W_out + b_out, or gated: (f(y W_in + b_in) * (y W_gate + b_gate)) W_out +
    b_out; y [d], W_in and W_gate [d, hidden], W_out [hidden, d]; biases None where there are none.
    """

    activation: str
    W_in: Array
    b_in: Array | None
    W_out: Array
    b_out: Array | None
    W_gate: Array | None = None
    b_gate: Array | None = None


def columns(module: Any) -> tuple[Tensor, Tensor | None]:
    """y = x W + b of a linear layer: nn.Linear, or a Conv1D, which already keeps W as [in, out]."""
    # A Conv1D of the Hugging Face library counts its outputs in nf.
    W = module.weight if hasattr(module, "nf") else module.weight.T
    return W.detach(), None if module.bias is None else module.bias.detach()


@torch.no_grad()
def feed_forward(layer: Layer, width: int, where: str) -> FeedForward | None:
    """The sublayer in float64, in whatever it runs."""
    if layer.ffn is None:
        return None
    draw = torch.randn(1, 8, width, generator=torch.Generator().manual_seed(0)).double() * 3
    called, answer = called_within(layer.ffn, draw)
    given = answer.double()
    weighed = (each for each in called if getattr(getattr(each, "weight", None), "ndim", 0) == 2)
    maps = [columns(each) for each in weighed]
    tokens = draw.to(given)
    orders = _ORDERS.get(len(maps), [])
    for (first, gate, last), (name, f) in product(orders, ACTIVATIONS.items()):
        try:
            hidden = f(_mapped(tokens, maps[first]))
            hidden = hidden if gate is None else hidden * _mapped(tokens, maps[gate])
            own = _mapped(hidden, maps[last])
            error = (own - given).abs().max() / given.abs().max()
        except RuntimeError:  # shapes that do not go together
            continue
        if error <= _SAME.get(maps[last][0].dtype, 0.0):
            more = (None, None) if gate is None else _arrays(maps[gate])
            return FeedForward(name, *_arrays(maps[first]), *_arrays(maps[last]), *more)
    raise InputError(
        f"{where}: its feed-forward sublayer is none that can be enclosed: two linear maps around "
        f"one of {', '.join(ACTIVATIONS)}, or three, one of them gated"
    )


def _mapped(x: Tensor, map: tuple[Tensor, Tensor | None]) -> Tensor:
    W, b = map
    y = x @ W.to(x)
    return y if b is None else y + b.to(x)


def _arrays(map: tuple[Tensor, Tensor | None]) -> tuple[Array, Array | None]:
    W, b = (None if each is None else each.detach().cpu().double().numpy() for each in map)
    assert W is not None
    return W, b


@dataclass(frozen=True)
class NormWeights:
    """y = gain (x - mean x) / sqrt(var x + eps) + shift ('layer'), the same without the mean
    ('rms'), or y = x ('none'); gain [d], shift [d] or None."""

    kind: str
    gain: Array
    shift: Array | None
    eps: float


@dataclass(frozen=True)
class HeadWeights:
    """One head, in X W form: W_Q, W_K, W_V [d, r], b_* [r] or None, W_O [r, d]."""

    W_Q: Array
    b_Q: Array | None
    W_K: Array
    b_K: Array | None
    W_V: Array
    b_V: Array | None
    W_O: Array


@dataclass(frozen=True)
class Block:
    """One layer as `experiments.models.model.Layer` describes it; b_O [d] or None."""

    placement: str
    norm_attention: NormWeights
    norm_ffn: NormWeights
    output_norm_attention: NormWeights
    output_norm_ffn: NormWeights
    heads: tuple[HeadWeights, ...]
    b_O: Array | None
    scaling: float
    causal: bool
    ffn: FeedForward | None


@dataclass(frozen=True)
class Patches:
    """Pixels [c, s, s] -> tokens [n, d]: `first` [k, d] (CLS), then the patches of side p, row by
    row, each as (channel, row, column) W + b; to all of them positions [n, d] are added."""

    side: int
    W: Array
    b: Array | None
    first: Array
    positions: Array

    def cut(self, pixels: Array) -> Array:
        """The patches of pixels [c, s, s] as rows [(s / p)^2, c p p]."""
        c, s, _ = pixels.shape
        p, many = self.side, s // self.side
        rows = pixels.reshape(c, many, p, many, p).transpose(1, 3, 0, 2, 4)
        return rows.reshape(many * many, c * p * p)


@dataclass(frozen=True)
class Network:
    """Embedding (None: X_0 is given) and blocks; cls: whether token 0 is a CLS token."""

    patches: Patches | None
    blocks: tuple[Block, ...]
    cls: bool

    @property
    def width(self) -> int:
        return len(self.blocks[0].norm_attention.gain)

    def digest(self) -> str:
        """SHA-256 of the form and every number."""
        running = hashlib.sha256()
        _feed(self, running)
        return running.hexdigest()


def _feed(value: Any, running: Any) -> None:
    if is_dataclass(value):
        running.update(type(value).__name__.encode() + b"{")
        for field in fields(value):
            running.update(field.name.encode() + b":")
            _feed(getattr(value, field.name), running)
        running.update(b"}")
    elif isinstance(value, tuple):
        running.update(b"(%d" % len(value))
        for each in value:
            _feed(each, running)
    elif isinstance(value, np.ndarray):
        running.update(json.dumps(value.shape).encode())
        # -0 and 0 are one number.
        running.update(np.ascontiguousarray(value + 0.0, dtype="<f8").tobytes())
    else:
        running.update((value.hex() if isinstance(value, float) else json.dumps(value)).encode())


def alike(heads: tuple[HeadWeights, ...]) -> list[list[HeadWeights]]:
    """The heads in groups that share their values: the digits models have one H for all."""
    groups: dict[bytes, list[HeadWeights]] = {}
    for head in heads:
        shift = b"" if head.b_V is None else head.b_V.tobytes()
        groups.setdefault(head.W_V.tobytes() + shift + head.W_O.tobytes(), []).append(head)
    return list(groups.values())


def network_of(model: Model) -> Network:
    """The network of a described model in float64 (`open_model(..., dtype=torch.float64)`); whether
    it computes what the model does is compared stream by stream where it runs
    (`enclosing.enclosed`). Raises `InputError` for parts that cannot be enclosed."""
    if model.dtype != torch.float64:
        raise InputError(f"the model '{model.name}' is in {model.dtype}: open it in float64")
    blocks = tuple(
        _block(layer, model, f"layer {number}") for number, layer in enumerate(model.layers, 1)
    )
    return Network(_patches(model), blocks, model.cls)


def _block(layer: Layer, model: Model, where: str) -> Block:
    if layer.sinks or not layer.plain:
        more = "sinks" if layer.sinks else "more than q k^T, masked, in its logits"
        raise InputError(f"{where} has {more}, which cannot be enclosed: {SUPPORTED}")
    h = layer.heads.double()
    taken = (getattr(h, name) for name in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O"))
    by_head: Any = [[None] * h.number if each is None else list(each.numpy()) for each in taken]
    return Block(
        placement=layer.placement,
        **{name: _norm(getattr(layer, name), model.width) for name in _NORMS},
        heads=tuple(HeadWeights(*parts) for parts in zip(*by_head, strict=True)),
        b_O=None if h.b_O is None else h.b_O.numpy(),
        scaling=float(h.W_Q.shape[-1] ** -0.5 if layer.scaling is None else layer.scaling),
        causal=model.causal,
        ffn=feed_forward(layer, model.width, where),
    )


def _norm(norm: Norm, width: int) -> NormWeights:
    gain = np.broadcast_to(norm.gain.detach().cpu().double().numpy(), (width,))
    shift = None if norm.shift is None else norm.shift.detach().cpu().double().numpy()
    return NormWeights(norm.kind, gain, shift, float(norm.eps))


def _patches(model: Model) -> Patches | None:
    """The embedding of a vision transformer of one convolution, or None where it is not found."""
    if model.modality != "vision":
        return None
    parts = [
        each for name, each in model.module.named_modules()
        if (isinstance(each, nn.Conv2d) and each.kernel_size == each.stride)
        or (name == "patches" and isinstance(each, nn.Linear))
    ]  # fmt: skip
    named = dict(model.module.named_parameters())
    first = [each for name, each in named.items() if name.rsplit(".")[-1] in _FIRST]
    positions = [each for name, each in named.items() if name.endswith(_POSITIONS)]
    if len(parts) != 1 or len(positions) != 1:
        return None
    weight = parts[0].weight.detach().cpu().double().numpy()
    d, bias = model.width, parts[0].bias
    side = round(weight[0].size ** 0.5) if weight.ndim == 2 else weight.shape[-1]
    patches = Patches(
        side=side,
        W=weight.reshape(d, -1).T,
        b=None if bias is None else bias.detach().cpu().double().numpy(),
        first=np.concatenate([np.zeros((0, d)), *(_tokens(each, d) for each in first)]),
        positions=_tokens(positions[0], d),
    )
    many = getattr(model.prepare, "size", 0) // side
    return patches if many * many + len(patches.first) == len(patches.positions) else None


def _tokens(each: torch.Tensor, width: int) -> Array:
    return np.asarray(each.detach().cpu().double().numpy().reshape(-1, width))
