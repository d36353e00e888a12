"""What a stack of layers X' = X + sum_h A_h X W_h is made of: attention and weights by layer (T7).

Attention and weights are each the same in every layer (`Fixed`), given or computed layer by layer
(`PerLayer`), or drawn from a seed (`Drawn`: layer l's draw depends on the seed and l alone, so that
any layer can be drawn again). Attention may also follow the state: `FromState`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oversmoothing.simulations.engine.inputs import as_numpy, row_tolerance
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.spectra.heads import HeadWeights, head_weights
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
