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
from oversmoothing.theory.layer.input_checks import _real_array, check_attention, check_square
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

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


@dataclass(frozen=True)
class HeadWeights:
    """W_h = P_h Q_h for each head: P [heads, d, r] and Q [heads, r, d]; P None: W_h = Q_h dense."""

    P: Array | None
    Q: Array

    @property
    def heads(self) -> int:
        return len(self.Q)

    @property
    def d(self) -> int:
        return int(self.Q.shape[-1])

    def dense(self) -> Array:
        """W_h [heads, d, d]."""
        result: Array = self.Q if self.P is None else self.P @ self.Q
        return result


def head_weights(value: Any) -> HeadWeights:
    """The weights of one layer: W [heads, d, d] or [d, d], or the pair (W_V, W_O).

    W_V [heads, d, r] and W_O [heads, r, d] (W_proj cut into heads), or [d, r] and [r, d].
    Raises `InputError` on other shapes, NaN or infinite entries.
    """
    if isinstance(value, HeadWeights):
        return value
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InputError(f"weights as factors are a pair (W_V, W_O), not {len(value)} arrays")
        P, Q = (_three(_real_array(as_numpy(x), s)) for x, s in zip(value, "VO", strict=True))
        if P.ndim != 3 or Q.shape != (P.shape[0], P.shape[2], P.shape[1]) or 0 in P.shape:
            raise InputError(
                f"W_V {list(P.shape)} and W_O {list(Q.shape)} do not belong together: they must "
                "be [heads, d, r] and [heads, r, d]"
            )
        return HeadWeights(P, Q)
    W = _three(check_square(as_numpy(value), name="W"))
    if W.ndim != 3 or W.shape[0] == 0:
        raise InputError(f"W has shape {list(W.shape)}; it must be [d, d] or [heads, d, d]")
    return HeadWeights(None, W)


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


@dataclass(frozen=True)
class SoftmaxWeights:
    """`FromState` as arrays: W_Q, W_K [heads, d, r]; bias [heads, n, n] or None."""

    W_Q: Array
    W_K: Array
    bias: Array | None
    causal: bool


def softmax_weights(value: FromState, heads: int, n: int, d: int) -> SoftmaxWeights:
    """Raises `InputError` for shapes that do not fit and for biases that are not finite."""
    W_Q = _three(_real_array(as_numpy(value.W_Q), "W_Q"))
    W_K = _three(_real_array(as_numpy(value.W_K), "W_K"))
    if W_Q.shape != W_K.shape or W_Q.shape[:-1] != (heads, d) or W_Q.shape[-1] == 0:
        raise InputError(
            f"W_Q {list(W_Q.shape)} and W_K {list(W_K.shape)} must both be [{heads}, {d}, r]"
        )
    bias = None
    if value.bias is not None:
        bias = _real_array(as_numpy(value.bias), "bias")
        if bias.shape not in ((n, n), (heads, n, n)):
            raise InputError(
                f"bias has shape {list(bias.shape)}; it must be [{n}, {n}] or [{heads}, {n}, {n}]"
            )
        bias = np.broadcast_to(bias, (heads, n, n))
    return SoftmaxWeights(W_Q, W_K, bias, value.causal)


def _three(x: Array) -> Array:
    """A single head as a stack of one."""
    return x[None] if x.ndim == 2 else x
