"""The tokens of a stack iterated themselves, each with its own power of two (T4b, T11.10).

Where attention has zeros (a causal mask, several groups) a token may lose the mode that dominates
the others; see `simulations.engine.rows`. Here attention may change with the layer, so that a token
is brought to the scale of those that it sees at each layer anew.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from oversmoothing.simulations.heads.head_map import HeadMap, mix
from oversmoothing.simulations.state import UNUSED, normalise, powers_of_two, scale


def next_tokens(
    X: Float[Tensor, "N n d"],
    exponents: Int64[Tensor, "N n"],
    attention: Float[Tensor, "K heads n n"],
    weights: HeadMap,
    residual: bool,
) -> tuple[Float[Tensor, "N n d"], Int64[Tensor, "N n"]]:
    """The tokens after a layer with these A_h, K = N or 1, and their exponents."""
    used = torch.where((X != 0).any(-1), exponents, UNUSED)
    sees = (attention != 0).any(1)
    top = torch.where(sees, used.unsqueeze(-2), UNUSED).amax(-1)
    if residual:
        top = torch.maximum(top, used)
    top = torch.where(top == UNUSED, torch.zeros_like(top), top)
    step = (used.unsqueeze(-2) - top.unsqueeze(-1)).clamp_max(0)
    scaled = attention * powers_of_two(step, X.dtype).unsqueeze(1)
    moved = weights.leave(mix(scaled, weights.enter(X)))
    if residual:
        return normalise(scale(X, exponents - top, 1) + moved, 1, top)
    return normalise(moved, 1, top + weights.shift)
