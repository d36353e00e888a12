"""A stack's layers as tensors, made as they are asked for, and its state moved through them.

The equations stand in `evolve_heads`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.simulations.engine.inputs import row_tolerance
from oversmoothing.simulations.engine.plain import largest_of_parts
from oversmoothing.simulations.engine.problem import norm_bounds
from oversmoothing.simulations.heads.head_map import HeadMap, mix
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
from oversmoothing.simulations.states.scaled import exponent_of, normalised_sum, scale
from oversmoothing.simulations.states.split_state import from_differences, to_differences
from oversmoothing.theory.layer.input_checks import row_sum_tolerance
from oversmoothing.theory.spectra.head_weights import HeadWeights
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

# Bits of range that the layers between two rescalings may use, up or down.
RANGE_BITS = {torch.float64: 900, torch.float32: 96}
# Where cancellation could shrink a state by all its digits, a layer takes this part of them.
_CANCELLING = 4
# An HFC below 2^-(2^58) is kept as 0: it triples its digits with each layer (T9).
_SMALLEST_EXPONENT = -(1 << 58)


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


class StackIteration:
    """Z = [y; m] [N, n, d] and the exponents [N, 2] of its two parts, moved layer by layer."""

    def __init__(self, Z: Tensor, exponents: Tensor, stack: Stack) -> None:
        self.Z, self.exponents, self.stack = Z.contiguous(), exponents, stack
        self.layer = 0
        self.factor = torch.zeros(len(Z), dtype=Z.dtype, device=Z.device)
        self.room = float(RANGE_BITS[Z.dtype])
        self.smallest = 2.0 ** -RANGE_BITS[Z.dtype]

    def advance_to(self, target: int) -> None:
        """Layers self.layer ... target - 1, in blocks short enough for the range of the floats."""
        longest = target
        while self.layer < target:
            start, Z, exponents = self.layer, self.Z, self.exponents
            before = self._block(min(target, start + longest))
            lost = (before >= 0.25) & (largest_of_parts(self.Z) < self.smallest)
            longest = target
            if self.layer - start > 1 and bool(lost.any()):
                # Shrunk past the range of the floats within one block: again, one layer alone.
                self.layer, self.Z, self.exponents = start, Z, exponents
                longest = 1

    def _block(self, target: int) -> Tensor:
        """Layers up to target that need no rescaling between them; the sizes at their start."""
        layer = self.stack.at(self.layer)
        if isinstance(layer, FollowingLayer):
            before = self._rescale(align=False)
            self._follow(layer)
            self.layer += 1
            return before
        before = self._rescale(layer.coupled)
        aligned, used = layer.coupled, 0.0
        while isinstance(layer, LinearLayer) and (aligned or not layer.coupled):
            if used and used + layer.bits > self.room:
                break
            self._linear(layer)
            self.layer += 1
            used += layer.bits
            if self.layer == target:
                break
            layer = self.stack.at(self.layer)
        return before

    def _linear(self, layer: LinearLayer) -> None:
        Z, n = self.Z, self.Z.shape[-2]
        inside = layer.map.enter(Z)
        T = mix(layer.extended, inside[:, : n - 1])
        last = T[:, n - 1] * self.factor.view(-1, 1, 1) + inside[:, n - 1]
        T = torch.cat((T[:, : n - 1], last.unsqueeze(1)), dim=1) if n > 1 else last.unsqueeze(1)
        moved = layer.map.leave(T)
        self.Z = Z + moved if self.stack.residual else moved
        if layer.map.shift:
            self.exponents = self.exponents + layer.map.shift

    def _follow(self, layer: FollowingLayer) -> None:
        n = self.Z.shape[-2]
        y, m = self.Z[:, : n - 1], self.Z[:, n - 1]
        y_exponent, m_exponent = self.exponents.unbind(-1)
        E = from_differences(y)
        found = layer.heads.deviation(E, y_exponent, m, m_exponent)
        inside = layer.map.enter(E)
        moved = layer.map.leave(mix(found.D[0], inside))
        drive = layer.map.leave(mix(torch.cat((found.shared[0], found.rest[0]), dim=-2), inside))
        up = layer.map.shift
        y_terms = [(to_differences(moved), found.D[1] + y_exponent + up)]
        m_terms = [
            (layer.map.total(m), m_exponent + up),
            (drive[:, 0], found.shared[1] + y_exponent + up),
            (drive[:, 1], found.rest[1] + y_exponent + up),
        ]
        if self.stack.residual:
            y_terms.append((y, y_exponent))
            m_terms.append((m, m_exponent))
        y, y_exponent = normalised_sum(*y_terms, trailing=2)
        m, m_exponent = normalised_sum(*m_terms, trailing=1)
        # Its digits triple with each layer (T9): past int64 the spread is 0.
        gone = y_exponent < _SMALLEST_EXPONENT
        y = torch.where(gone.view(-1, 1, 1), 0.0, y)
        y_exponent = torch.where(gone, torch.zeros_like(y_exponent), y_exponent)
        self.Z = torch.cat((y, m.unsqueeze(1)), dim=1)
        self.exponents = torch.stack((y_exponent, m_exponent), dim=-1)

    def _rescale(self, align: bool) -> Tensor:
        """Largest entries to [1/2, 1), and their sizes. align: m at the exponent of a larger y."""
        n = self.Z.shape[-2]
        top = largest_of_parts(self.Z)
        change = exponent_of(top)
        exponents = self.exponents + change
        if align:
            y_exponent, m_exponent = exponents.unbind(-1)
            m_exponent = torch.where(top[:, 1] > 0, m_exponent, y_exponent)
            m_exponent = torch.where(
                top[:, 0] > 0, torch.maximum(m_exponent, y_exponent), m_exponent
            )
            exponents = torch.stack((y_exponent, m_exponent), dim=-1)
            one = torch.ones(len(top), dtype=self.Z.dtype, device=self.Z.device)
            lower = torch.where(
                top[:, 0] > 0, y_exponent - m_exponent, torch.zeros_like(y_exponent)
            )
            self.factor = scale(one, lower, 0)
        by = self.exponents - exponents
        y, m = scale(self.Z[:, : n - 1], by[:, 0], 2), scale(self.Z[:, n - 1], by[:, 1], 1)
        self.Z, self.exponents = torch.cat((y, m.unsqueeze(1)), dim=1), exponents
        return largest_of_parts(self.Z)
