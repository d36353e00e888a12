"""A stack of layers X' = X + sum_h A_h X W_h: attention and weights by layer, as tensors (T7).

Attention and weights are each the same in every layer (`Fixed`), given or computed layer by layer
(`PerLayer`), or drawn from a seed (`Drawn`: layer l's draw depends on the seed and l alone, so that
any layer can be drawn again). Attention may also follow the state: `FromState`.

sum_h A_h X W_h is three products over all heads at once. With W_h = P_h Q_h: one product
X [P_1 ... P_H], one batched product with the A_h, one product with [Q_1; ...; Q_H]. Dense W_h are
the case P_h = I, where the first product falls away.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from oversmoothing.simulations.engine.problem import as_numpy, row_tolerance
from oversmoothing.simulations.state import normalise
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.spectra.heads import HeadWeights, head_weights, side_by_side
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# The two streams of one seed: the same seed for A and W must not give the same numbers.
ATTENTION_STREAM, WEIGHT_STREAM = 0, 1


@dataclass(frozen=True)
class Fixed:
    """The same value in every layer."""

    value: Any

    def at(self, layer: int, stream: int) -> Any:
        return self.value


@dataclass(frozen=True)
class PerLayer:
    """A value for each layer: a sequence, or a function of the layer number 0, 1, 2, ...

    A function must give the same value each time it is asked for the same layer.
    """

    layers: Callable[[int], Any] | Sequence[Any]

    def at(self, layer: int, stream: int) -> Any:
        """Raises `InputError` past the end of a sequence."""
        if callable(self.layers):
            return self.layers(layer)
        if layer >= len(self.layers):
            raise InputError(
                f"layer {layer} is asked for but only {len(self.layers)} layers are given: "
                "lower the depth, or give a function of the layer number"
            )
        return self.layers[layer]


@dataclass(frozen=True)
class Drawn:
    """rule(generator), with a generator of its own for each layer, made from seed and layer."""

    rule: Callable[[np.random.Generator], Any]
    seed: int = 0

    def at(self, layer: int, stream: int) -> Any:
        """The draw of that layer; attention and weights of one seed come from other streams."""
        return self.rule(np.random.default_rng([self.seed, stream, layer]))


@dataclass(frozen=True)
class FromState:
    """A_h = softmax(X W_Q,h W_K,h^T X^T / sqrt(r) + bias_h), computed from X at each layer.

    W_Q, W_K [heads, d, r] or [d, r] for one head. bias: finite logits by position, [n, n] or
    [heads, n, n]. causal: token i sees the tokens up to i.
    """

    W_Q: Any
    W_K: Any
    bias: Any = None
    causal: bool = False


Rule = Fixed | PerLayer | Drawn


def as_rule(value: Any) -> Rule:
    """`value` if it says how it changes with the layer, else `Fixed(value)`."""
    return value if isinstance(value, Fixed | PerLayer | Drawn) else Fixed(value)


def weights_at(rule: Rule, layer: int) -> HeadWeights:
    """The weights of that layer. Raises `InputError` for what `head_weights` refuses."""
    value = rule.at(layer, WEIGHT_STREAM)
    return head_weights(
        tuple(map(as_numpy, value)) if isinstance(value, tuple) else as_numpy(value)
    )


class Made:
    """What is made for the layers: anew for each, of a rule that is the same in all only once."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def of(self, name: str, rule: Rule, make: Callable[[], Any]) -> Any:
        if name not in self._kept or not isinstance(rule, Fixed):
            self._kept[name] = make()
        return self._kept[name]


def prescribed_attention(rule: Rule, layer: int, heads: int, refusal: str) -> Array:
    """`head_attention` of that layer. Raises `InputError` where it follows the state."""
    asked = rule.at(layer, ATTENTION_STREAM)
    if isinstance(asked, FromState):
        raise InputError(f"attention that follows the state {refusal}: prescribe A")
    return head_attention(asked, heads)


def head_attention(value: Any, heads: int) -> Array:
    """The attention of one layer, float64 [*batch, heads, n, n], rows divided by their sums.

    [n, n] is one head, or the same for all heads. Raises `InputError` where it is not
    row-stochastic (within n eps of the precision it comes in) or the number of heads differs.
    """
    A = check_attention(as_numpy(value), tolerance=row_tolerance(value))
    if A.ndim == 2:
        return np.broadcast_to(A, (heads, *A.shape))
    if A.shape[-3] != heads:
        raise InputError(
            f"A has shape {list(A.shape)} but the weights have {heads} heads: A must be [n, n] or "
            f"[..., {heads}, n, n]"
        )
    return A


class HeadMap:
    """The weights of one layer on a device.

    shift: with scaled=True, W_h is 2^shift times what is kept, whose factors have their largest
    entries in [1/2, 1); else 0.
    """

    def __init__(
        self, weights: HeadWeights, where: torch.device, dtype: torch.dtype, scaled: bool = False
    ) -> None:
        self.heads, self.d = weights.heads, weights.d
        self.shift = 0

        def on_device(W: Array) -> Tensor:
            x = torch.as_tensor(W.copy())
            if scaled:
                x, shift = normalise(x, 2)
                self.shift += int(shift)
            return x.to(where, dtype)

        self.Q = on_device(weights.Q.reshape(-1, self.d))
        self.P = None if weights.P is None else on_device(side_by_side(weights.P))

    def enter(self, X: Float[Tensor, "N k d"]) -> Float[Tensor, "N k spread r"]:
        """X P_h: [N, k, d] -> [N, k, heads or 1, r] (one copy of X itself where W is dense)."""
        if self.P is None:
            return X.unsqueeze(2)
        N, k, d = X.shape
        return (X.reshape(N * k, d) @ self.P).view(N, k, self.heads, -1)

    def leave(self, T: Float[Tensor, "N k spread r"]) -> Float[Tensor, "N k d"]:
        """sum_h T_h Q_h: [N, k, heads, r] -> [N, k, d]; a missing head dimension is spread."""
        N, k = T.shape[:2]
        T = T.expand(N, k, self.heads, T.shape[-1])
        return (T.reshape(N * k, -1) @ self.Q).view(N, k, self.d)

    def total(self, m: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
        """m sum_h W_h for m [N, d]."""
        return self.leave(self.enter(m.unsqueeze(1))).squeeze(1)


def mix(
    A: Float[Tensor, "shared heads k n"], Z: Float[Tensor, "N n spread r"]
) -> Float[Tensor, "N k heads r"]:
    """A_h Z_h: A [N or 1, heads, k, n], Z [N, n, heads or 1, r] -> [N, k, heads, r]."""
    N, n, spread, r = Z.shape
    shared, heads, k = A.shape[0] == 1, A.shape[1], A.shape[2]
    if shared and spread == 1:
        # One product for all heads and states: their A_h stacked, the states side by side.
        side = Z.squeeze(2).transpose(0, 1).reshape(n, N * r)
        return (A[0].reshape(heads * k, n) @ side).view(heads, k, N, r).permute(2, 1, 0, 3)
    if shared:
        side = Z.permute(2, 1, 0, 3).reshape(heads, n, N * r)
        return torch.bmm(A[0], side).view(heads, k, N, r).permute(2, 1, 0, 3)
    Z = Z.expand(N, n, heads, r).transpose(1, 2)
    return (A @ Z).transpose(1, 2)
