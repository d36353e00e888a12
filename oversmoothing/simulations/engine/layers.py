"""A stack of layers X' = X + sum_h A_h X W_h: attention and weights by layer, as tensors (T7).

Attention and weights are each the same in every layer (`Fixed`), given or computed layer by layer
(`PerLayer`), or drawn from a seed (`Drawn`: layer l's draw depends on the seed and l alone, so that
any layer can be drawn again). Attention may also follow the state: `FromState`.

sum_h A_h X W_h is three products over all heads at once. With W_h = P_h Q_h: one product
X [P_1 ... P_H], one batched product with the A_h, one product with [Q_1; ...; Q_H]. Dense W_h are
the case P_h = I, where the first product falls away. The equations of the coordinates are in
`evolve_heads`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from oversmoothing.simulations.engine.errors import Nudge
from oversmoothing.simulations.engine.problem import (
    given_attention,
    norm_bounds,
    row_tolerance,
    token_differences,
)
from oversmoothing.simulations.engine.state_attention import FromState, SoftmaxHeads
from oversmoothing.simulations.state import normalise
from oversmoothing.theory.layer.layer import real_array, row_sum_tolerance
from oversmoothing.theory.spectra.heads import HeadWeights, head_weights, side_by_side
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

Made = TypeVar("Made")
# The two streams of one seed: the same seed for A and W must not give the same numbers.
ATTENTION_STREAM, WEIGHT_STREAM = 0, 1


@dataclass(frozen=True)
class Fixed:
    """The same value in every layer.

    >>> import oversmoothing
    >>> oversmoothing.Fixed([[0.5]]).at(7, 0)
    [[0.5]]
    """

    value: Any

    def at(self, layer: int, stream: int) -> Any:
        return self.value


@dataclass(frozen=True)
class PerLayer:
    """A value for each layer: a sequence, or a function of the layer number 0, 1, 2, ...

    A function must give the same value each time it is asked for the same layer.

    >>> import numpy as np, oversmoothing
    >>> weights = oversmoothing.PerLayer(lambda layer: np.array([[0.5 / (layer + 1)]]))
    >>> weights.at(1, 0)
    array([[0.25]])
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
    """rule(generator), with a generator of its own for each layer, made from seed and layer.

    >>> import oversmoothing
    >>> attention = oversmoothing.Drawn(lambda rng: rng.dirichlet([1.0, 1.0], size=2), seed=1)
    >>> attention.at(3, 0).sum(axis=1).round(9).tolist()
    [1.0, 1.0]
    """

    rule: Callable[[np.random.Generator], Any]
    seed: int = 0

    def at(self, layer: int, stream: int) -> Any:
        """The draw of that layer; attention and weights of one seed come from other streams."""
        return self.rule(np.random.default_rng([self.seed, stream, layer]))


Rule = Fixed | PerLayer | Drawn


def as_rule(value: Any) -> Rule:
    """`value` if it says how it changes with the layer, else `Fixed(value)`."""
    return value if isinstance(value, Fixed | PerLayer | Drawn) else Fixed(value)


def weights_at(rule: Rule, layer: int) -> HeadWeights:
    """The weights of that layer. Raises `InputError` for what `head_weights` refuses."""
    return head_weights(rule.at(layer, WEIGHT_STREAM))


def head_attention(value: Any, heads: int) -> Array:
    """The attention of one layer, float64 [*batch, heads, n, n].

    [n, n] is one head, or the same for all heads; else as in `given_attention`. Raises `InputError`
    where the number of heads differs.
    """
    A = given_attention(value)
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

    size [heads]: bounds of ||W_h||. shift: with scaled=True, W_h is 2^shift times what is kept,
    whose factors have their largest entries in [1/2, 1); else 0.
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
        size = norm_bounds(weights.Q)
        if weights.P is not None:
            size = size * norm_bounds(weights.P)
        inside = abs(self.shift) < 1000
        self.size = size * 0.5**self.shift if inside else np.ones_like(size) * self.d

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


def mix(
    A: Float[Tensor, "shared heads k n"], Z: Float[Tensor, "N n spread r"]
) -> Float[Tensor, "N k heads r"]:
    """A_h Z_h: A [N or 1, heads, k, n], Z [N, n, heads or 1, r] -> [N, k, heads, r]."""
    N, n, spread, r = Z.shape
    shared, heads, k = A.shape[0] == 1, A.shape[1], A.shape[2]
    if shared and spread == 1:
        # One product for all heads and states: their A_h stacked, the states side by side.
        side = Z[0, :, 0] if N == 1 else Z.squeeze(2).transpose(0, 1).reshape(n, N * r)
        return (A[0].reshape(heads * k, n) @ side).view(heads, k, N, r).permute(2, 1, 0, 3)
    if shared:
        side = Z.permute(2, 1, 0, 3).reshape(heads, n, N * r)
        return torch.bmm(A[0], side).view(heads, k, N, r).permute(2, 1, 0, 3)
    Z = Z.expand(N, n, heads, r).transpose(1, 2)
    return (A @ Z).transpose(1, 2)


@dataclass
class Given:
    """Attention that is given: rows B'_h and g_h [N or 1, heads, n, n-1] of a layer.

    coupled: whether any g is not 0. norms [heads]: bounds of theirs, at least 1. attention: A_h
    themselves [N or 1, heads, n, n], where the tokens are iterated too.
    """

    rows: Tensor
    coupled: bool
    norms: Array
    attention: Tensor | None

    def branch(
        self, Z: Float[Tensor, "N n d"], factor: Float[Tensor, " N"], weights: HeadMap
    ) -> Float[Tensor, "N n d"]:
        """What the heads add to Z = [y; m]: sum_h B'_h y W_h and sum_h (m + factor g_h^T y) W_h."""
        k = Z.shape[-2] - 1
        inside = weights.enter(Z)
        T = mix(self.rows, inside[:, :k])
        last = T[:, k] * factor.view(-1, 1, 1) + inside[:, k]
        return weights.leave(torch.cat((T[:, :k], last.unsqueeze(1)), dim=1))


@dataclass
class Stack:
    """Layer l as tensors; what does not change with l is made once.

    seed: of a twin, whose weights and attention are a few units of rounding away (see
    `simulations.engine.errors`); the same units at every layer. tokens: whether the tokens are
    iterated too, once layer 0 is made: its attention has zeros.
    """

    attention: Rule
    weights: Rule
    residual: bool
    batch: tuple[int, ...]
    n: int
    d: int
    where: torch.device
    dtype: torch.dtype
    seed: int | None = None
    tokens: bool = field(default=False, init=False)
    _made: dict[str, tuple[int, Any]] = field(default_factory=dict, init=False)
    _carry: Tensor | None = field(default=None, init=False)

    def at(self, layer: int) -> tuple[Given | SoftmaxHeads, HeadMap, float]:
        """Attention and weights of the layer; of what is given, sum_h ||A_h|| ||W_h|| at most."""
        changing = self.weights if isinstance(self.attention, Fixed) else self.attention
        return self.made("layer", changing, layer, self._at)

    def _at(self, layer: int) -> tuple[Given | SoftmaxHeads, HeadMap, float]:
        weights = self.made("weights", self.weights, layer, self._weights)
        attention = self.made("attention", self.attention, layer, self._attention)
        if not isinstance(attention, Given):
            return attention, weights, 0.0
        return attention, weights, float((attention.norms * weights.size).sum())

    def made(self, name: str, rule: Rule, layer: int, make: Callable[[int], Made]) -> Made:
        """make(layer): anew for each layer, of a rule that is the same in all only once."""
        kept = self._made.get(name)
        if kept is None or (kept[0] != layer and not isinstance(rule, Fixed)):
            kept = self._made[name] = layer, make(layer)
        result: Made = kept[1]
        return result

    def _weights(self, layer: int) -> HeadMap:
        weights = weights_at(self.weights, layer)
        if weights.d != self.d:
            raise InputError(f"the weights of layer {layer} have d = {weights.d}, X0 has {self.d}")
        nudge = self._nudge(WEIGHT_STREAM)
        if nudge is not None:
            P = None if weights.P is None else nudge(weights.P)
            weights = HeadWeights(P, nudge(weights.Q))
        return HeadMap(weights, self.where, self.dtype, scaled=not self.residual)

    def _attention(self, layer: int) -> SoftmaxHeads | Given:
        asked = self.attention.at(layer, ATTENTION_STREAM)
        heads = self.made("weights", self.weights, layer, self._weights).heads
        if not isinstance(asked, FromState):
            return self._given(head_attention(asked, heads), row_tolerance(asked), layer)
        nudge = self._nudge(ATTENTION_STREAM)
        if nudge is not None:
            W_Q, W_K = (nudge(real_array(W, "W_Q and W_K")) for W in (asked.W_Q, asked.W_K))
            asked = replace(asked, W_Q=W_Q, W_K=W_K)
        return SoftmaxHeads(asked, heads, self.n, self.d, self.where, self.dtype)

    def _given(self, A: Array, tolerance: float | None, layer: int) -> Given:
        n = A.shape[-1]
        if n != self.n:
            raise InputError(f"the attention of layer {layer} is for {n} tokens, X0 has {self.n}")
        allowed = row_sum_tolerance(n) if tolerance is None else tolerance
        # Column sums less row sums, without the diagonal: of sharp attention it would hide them.
        others = np.where(np.eye(n, dtype=np.bool_), 0.0, A)
        into, out_of = others.sum(axis=-2), others.sum(axis=-1)
        excess = into - out_of
        balanced = (np.abs(excess) <= allowed * (into + out_of)).all(axis=-1, keepdims=True)
        excess = np.where(balanced, 0.0, excess)
        g = excess[..., :-1] / n
        rows, nudge = token_differences(A), self._nudge(ATTENTION_STREAM)
        if nudge is not None:
            rows = nudge(rows)
            lost = (into + out_of)[..., :-1] / n
            # Also where all differences rounded to 0: a saturated A only looks doubly stochastic.
            g = g + np.where(balanced, 0.0, nudge.draw(g.shape) * lost)
        extended = np.concatenate((rows, g[..., None, :]), axis=-2)
        extended = self._over_batch(extended, layer)
        if layer == 0:
            self.tokens = bool((A == 0).any())
        own = self._over_batch(A if nudge is None else nudge(A), layer) if self.tokens else None
        # The mean itself passes with weight 1.
        norms = np.maximum(norm_bounds(extended).reshape(-1, A.shape[-3]).max(axis=0), 1.0)
        kept = None if own is None else self._tensor(own)
        return Given(self._tensor(extended), bool(g.any()), norms, kept)

    def carried(self, state: Float[Tensor, "N n d"]) -> Float[Tensor, "N n d"]:
        """The state that a layer starts from: of a twin, off by a rounding in each."""
        if self.seed is None:
            return state
        if self._carry is None:
            self._carry = Nudge(self.seed, self.dtype).carry(state)
        return state * self._carry

    def _tensor(self, x: Array) -> Tensor:
        return torch.as_tensor(np.array(x)).to(self.where, self.dtype)

    def _over_batch(self, x: Array, layer: int) -> Array:
        """x [*any, heads, k, n] as [N or 1, heads, k, n]."""
        batch = x.shape[:-3]
        if math.prod(batch) == 1:
            return x.reshape(1, *x.shape[-3:])
        try:
            x = np.broadcast_to(x, (*self.batch, *x.shape[-3:]))
        except ValueError as error:
            raise InputError(
                f"the attention of layer {layer} has batch dimensions {batch}, which do not "
                f"broadcast to those of the states, {self.batch}"
            ) from error
        return x.reshape(-1, *x.shape[-3:])

    def _nudge(self, stream: int) -> Nudge | None:
        return None if self.seed is None else Nudge((self.seed, stream), self.dtype)
