"""A stack's layers as tensors, made as they are asked for; its equations are in `evolve_heads`."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from oversmoothing.simulations.engine.errors import Nudge, nudge_of
from oversmoothing.simulations.engine.problem import as_numpy, norm_bounds, row_tolerance
from oversmoothing.simulations.heads.layers import (
    ATTENTION_STREAM,
    WEIGHT_STREAM,
    FromState,
    HeadMap,
    Made,
    Rule,
    head_attention,
    weights_at,
)
from oversmoothing.simulations.heads.state_attention import SoftmaxHeads
from oversmoothing.theory.layer.layer import row_sum_tolerance
from oversmoothing.theory.spectra.heads import HeadWeights
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Bits of range that the layers between two rescalings may use, up or down.
RANGE_BITS = {torch.float64: 900, torch.float32: 96}
# Where cancellation could shrink a state by all its digits, a layer takes this part of them.
_CANCELLING = 4


# B' and g, whether any g is not 0, norms by head, and A where the tokens are iterated too.
_Given = tuple[Tensor, bool, Array, Tensor | None]


@dataclass
class LinearLayer:
    """A layer with given attention: rows B'_h and g_h [N or 1, heads, n, n-1], and its weights.

    coupled: whether any g is not 0. bits: of range that it may use. attention: A_h themselves
    [N or 1, heads, n, n], where the tokens are iterated too.
    """

    extended: Tensor
    map: HeadMap
    coupled: bool
    bits: float
    attention: Tensor | None


@dataclass
class FollowingLayer:
    """A layer whose attention follows the state."""

    heads: SoftmaxHeads
    map: HeadMap


class Stack:
    """Layer l as tensors; what does not change with l is made once.

    seed: of a twin, whose weights and attention are a few units of rounding away (see
    `simulations.engine.errors`); the same units at every layer. tokens: whether the tokens are
    iterated too, once layer 0 is made: its attention has zeros.
    """

    def __init__(
        self,
        attention: Rule,
        weights: Rule,
        residual: bool,
        batch: tuple[int, ...],
        n: int,
        d: int,
        where: torch.device,
        dtype: torch.dtype,
        seed: int | None = None,
    ) -> None:
        self.attention, self.weights, self.residual = attention, weights, residual
        self.batch, self.n, self.d = batch, n, d
        self.where, self.dtype = where, dtype
        self._made = Made()
        self._seed = seed
        self.tokens = False

    def at(self, layer: int) -> LinearLayer | FollowingLayer:
        weights, map_, size = self._made.of("weights", self.weights, lambda: self._weights(layer))
        rows = self._made.of(
            "attention", self.attention, lambda: self._attention(weights.heads, layer)
        )
        if isinstance(rows, SoftmaxHeads):
            return FollowingLayer(rows, map_)
        extended, coupled, norms, attention = rows
        return LinearLayer(extended, map_, coupled, self._bits(norms * size), attention)

    def _weights(self, layer: int) -> tuple[HeadWeights, HeadMap, Array]:
        weights = weights_at(self.weights, layer)
        if weights.d != self.d:
            raise InputError(f"the weights of layer {layer} have d = {weights.d}, not {self.d}")
        nudge = self._nudge(WEIGHT_STREAM)
        if nudge is not None:
            P = None if weights.P is None else nudge(weights.P)
            weights = HeadWeights(P, nudge(weights.Q))
        map_ = HeadMap(weights, self.where, self.dtype, scaled=not self.residual)
        size = norm_bounds(weights.Q)
        if weights.P is not None:
            size = size * norm_bounds(weights.P)
        size = size * 0.5**map_.shift if abs(map_.shift) < 1000 else np.ones_like(size) * self.d
        return weights, map_, size

    def _attention(self, heads: int, layer: int) -> SoftmaxHeads | _Given:
        asked = self.attention.at(layer, ATTENTION_STREAM)
        if isinstance(asked, FromState):
            nudge = self._nudge(ATTENTION_STREAM)
            if nudge is not None:
                W_Q, W_K = (nudge(np.asarray(as_numpy(W))) for W in (asked.W_Q, asked.W_K))
                asked = replace(asked, W_Q=W_Q, W_K=W_K)
            return SoftmaxHeads(asked, heads, self.n, self.d, self.where, self.dtype)
        return self._extended(head_attention(asked, heads), row_tolerance(asked), layer)

    def _extended(self, A: Array, tolerance: float | None, layer: int) -> _Given:
        n = A.shape[-1]
        if n != self.n:
            raise InputError(f"the attention of layer {layer} is for {n} tokens, not {self.n}")
        allowed = row_sum_tolerance(n) if tolerance is None else tolerance
        # Column sums less row sums, without the diagonal: of sharp attention it would hide them.
        others = np.where(np.eye(n, dtype=np.bool_), 0.0, A)
        into, out_of = others.sum(axis=-2), others.sum(axis=-1)
        excess = into - out_of
        balanced = (np.abs(excess) <= allowed * (into + out_of)).all(axis=-1, keepdims=True)
        excess = np.where(balanced, 0.0, excess)
        g = excess[..., : n - 1] / n
        rows = A[..., : n - 1, : n - 1] - A[..., n - 1 :, : n - 1]
        nudge = self._nudge(ATTENTION_STREAM)
        if nudge is not None:
            # Rows that do not sum to 1 exactly have been divided by their sums, which rounds.
            whole = A[..., : n - 1, : n - 1] + A[..., n - 1 :, : n - 1]
            inexact = (A.sum(axis=-1) != 1.0).any(axis=-1)[..., None, None]
            rows = rows + nudge.draw(rows.shape) * np.where(inexact, whole, rows)
            lost = (into + out_of)[..., : n - 1] / n
            # Also where all differences rounded to 0: a saturated A only looks doubly stochastic.
            g = g + np.where(balanced, 0.0, nudge.draw(g.shape) * lost)
        extended = np.concatenate((rows, g[..., None, :]), axis=-2)
        extended = self._over_batch(extended, layer)
        if layer == 0:
            self.tokens = bool((A == 0).any())
        own = self._over_batch(A if nudge is None else nudge(A), layer) if self.tokens else None
        norms = norm_bounds(extended).reshape(-1, A.shape[-3]).max(axis=0)
        # The mean itself passes with weight 1.
        norms = np.maximum(norms, 1.0)
        return (
            self._tensor(extended),
            bool(g.any()),
            norms,
            None if own is None else self._tensor(own),
        )

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
        return None if self._seed is None else nudge_of((self._seed, stream), self.dtype)

    def _bits(self, sizes: Array) -> float:
        """Range that a layer of heads with these norms ||A_h|| ||W_h|| may use, up or down."""
        x = float(sizes.sum())
        room = RANGE_BITS[self.dtype]
        growth = math.log2(1.0 + x) if self.residual else max(0.0, math.log2(x)) if x else 0.0
        if not growth < room / 2:
            raise InputError(
                f"the weights are too large for {self.dtype} (norms up to {x:.1e}): scale them"
            )
        if self.residual and x < 1.0:
            return -math.log2(1.0 - x)
        return max(growth, room / _CANCELLING)
