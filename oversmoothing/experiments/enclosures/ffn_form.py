"""The feed-forward sublayer of a layer as exact numbers: its form is told by what it does.

Which linear maps it calls is watched, and which activation stands between them is tried out: what
a description computes on random tokens must be what the module gives, to float64 rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.experiments.models.model import Layer
from oversmoothing.experiments.models.weights import columns
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
# Relative, in float64: activations that differ, differ by more than 1e-5.
_SAME = 1e-9


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


@torch.no_grad()
def feed_forward(layer: Layer, width: int, where: str) -> FeedForward | None:
    """The sublayer in float64. Raises `InputError` where it has another form than `FeedForward`."""
    if layer.ffn is None:
        return None
    draw = torch.randn(1, 8, width, generator=torch.Generator().manual_seed(0)).double() * 3
    called, given = _watched(layer.ffn, draw)
    maps = [columns(each, where) for each in called]
    tokens = draw.to(given)
    orders = _ORDERS.get(len(maps), [])
    for (first, gate, last), (name, f) in product(orders, ACTIVATIONS.items()):
        try:
            hidden = f(_affine(tokens, maps[first]))
            hidden = hidden if gate is None else hidden * _affine(tokens, maps[gate])
            own = _affine(hidden, maps[last])
            error = (own - given).abs().max() / given.abs().max()
        except RuntimeError:  # shapes that do not go together
            continue
        if error <= _SAME:
            parts = [_arrays(maps[k]) for k in (first, last)]
            more = (None, None) if gate is None else _arrays(maps[gate])
            return FeedForward(name, *parts[0], *parts[1], *more)
    raise InputError(
        f"{where}: its feed-forward sublayer is none that can be enclosed: two linear maps around "
        f"one of {', '.join(ACTIVATIONS)}, or three, one of them gated"
    )


def _watched(ffn: Callable[[Tensor], Tensor], tokens: Tensor) -> tuple[list[nn.Module], Tensor]:
    """(the linear maps that ffn calls, in their order; what it gives in float64)."""
    called: list[nn.Module] = []

    def see(module: nn.Module, *_: Any) -> None:
        weight = getattr(module, "weight", None)
        if isinstance(weight, Tensor) and weight.ndim == 2:
            called.append(module)

    hook = nn.modules.module.register_module_forward_hook(see)
    try:
        given = ffn(tokens)
    finally:
        hook.remove()
    return called, given.double()


def _affine(x: Tensor, map: tuple[Tensor, Tensor | None]) -> Tensor:
    W, b = map
    y = x @ W.to(x)
    return y if b is None else y + b.to(x)


def _arrays(map: tuple[Tensor, Tensor | None]) -> tuple[Array, Array | None]:
    W, b = (None if each is None else each.detach().cpu().double().numpy() for each in map)
    assert W is not None
    return W, b
