"""The layers of a stack as tensors on a device, made as they are asked for (see `heads`)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.simulations.engine.inputs import row_tolerance
from oversmoothing.simulations.engine.problem import norm_bounds
from oversmoothing.simulations.heads.head_map import HeadMap
from oversmoothing.simulations.heads.layers import (
    ATTENTION_STREAM,
    WEIGHT_STREAM,
    Fixed,
    FromState,
    Rule,
    head_attention,
    weights_at,
)
from oversmoothing.simulations.heads.state_attention import SoftmaxHeads
from oversmoothing.theory.layer.input_checks import row_sum_tolerance
from oversmoothing.theory.spectra.head_weights import HeadWeights
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

# Bits of range that the layers between two rescalings may use, up or down.
RANGE_BITS = {torch.float64: 900, torch.float32: 96}
# Where cancellation could shrink a state by all its digits, a layer takes this part of them.
_CANCELLING = 4


@dataclass
class LinearLayer:
    """A layer with given attention: rows B'_h and g_h [N or 1, heads, n, n-1], and its weights.

    coupled: whether any g is not 0. bits: of range that it may use.
    """

    extended: Tensor
    map: HeadMap
    coupled: bool
    bits: float


@dataclass
class FollowingLayer:
    """A layer whose attention follows the state."""

    heads: SoftmaxHeads
    map: HeadMap


class Stack:
    """Layer l as tensors; what does not change with l is made once."""

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
    ) -> None:
        self.attention, self.weights, self.residual = attention, weights, residual
        self.batch, self.n, self.d = batch, n, d
        self.where, self.dtype = where, dtype
        self._made: dict[int, Any] = {}

    def at(self, layer: int) -> LinearLayer | FollowingLayer:
        weights, map_, size = self._once(self.weights, layer, WEIGHT_STREAM, self._weights)
        rows = self._once(
            self.attention, layer, ATTENTION_STREAM, partial(self._attention, weights.heads)
        )
        if isinstance(rows, SoftmaxHeads):
            return FollowingLayer(rows, map_)
        extended, coupled, norms = rows
        return LinearLayer(extended, map_, coupled, self._bits(norms * size))

    def _once(self, rule: Rule, layer: int, stream: int, make: Callable[[int], Any]) -> Any:
        """What is made for that layer; of a rule that is the same in all, for the first alone."""
        if stream not in self._made or not isinstance(rule, Fixed):
            self._made[stream] = make(layer)
        return self._made[stream]

    def _weights(self, layer: int) -> tuple[HeadWeights, HeadMap, Array]:
        weights = weights_at(self.weights, layer)
        if weights.d != self.d:
            raise InputError(f"the weights of layer {layer} have d = {weights.d}, not {self.d}")
        map_ = HeadMap(weights, self.where, self.dtype, scaled=not self.residual)
        size = norm_bounds(weights.Q)
        if weights.P is not None:
            size = size * norm_bounds(weights.P)
        size = size * 0.5**map_.shift if abs(map_.shift) < 1000 else np.ones_like(size) * self.d
        return weights, map_, size

    def _attention(self, heads: int, layer: int) -> SoftmaxHeads | tuple[Tensor, bool, Array]:
        asked = self.attention.at(layer, ATTENTION_STREAM)
        if isinstance(asked, FromState):
            return SoftmaxHeads(asked, heads, self.n, self.d, self.where, self.dtype)
        return self._extended(head_attention(asked, heads), row_tolerance(asked), layer)

    def _extended(
        self, A: Array, tolerance: float | None, layer: int
    ) -> tuple[Tensor, bool, Array]:
        n = A.shape[-1]
        if n != self.n:
            raise InputError(f"the attention of layer {layer} is for {n} tokens, not {self.n}")
        allowed = row_sum_tolerance(n) if tolerance is None else tolerance
        excess = A.sum(axis=-2) - 1.0
        excess = np.where(np.abs(excess).max(axis=-1, keepdims=True) <= allowed, 0.0, excess)
        g = excess[..., : n - 1] / n
        rows = A[..., : n - 1, : n - 1] - A[..., n - 1 :, : n - 1]
        extended = np.concatenate((rows, g[..., None, :]), axis=-2)
        batch = A.shape[:-3]
        if math.prod(batch) == 1:
            extended = extended.reshape(1, *extended.shape[-3:])
        else:
            try:
                extended = np.broadcast_to(extended, (*self.batch, *extended.shape[-3:]))
            except ValueError as error:
                raise InputError(
                    f"the attention of layer {layer} has batch dimensions {batch}, which do not "
                    f"broadcast to those of the states, {self.batch}"
                ) from error
            extended = extended.reshape(-1, *extended.shape[-3:])
        norms = norm_bounds(extended).reshape(-1, A.shape[-3]).max(axis=0)
        tensor = torch.as_tensor(np.ascontiguousarray(extended)).to(self.where, self.dtype)
        # The mean itself passes with weight 1.
        return tensor, bool(g.any()), np.maximum(norms, 1.0)

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
