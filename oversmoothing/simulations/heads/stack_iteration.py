"""The state of a stack of heads, layer by layer within the range of the floats."""

import torch
from torch import Tensor

from oversmoothing.simulations.engine.plain import largest_of_parts
from oversmoothing.simulations.heads.head_map import mix
from oversmoothing.simulations.heads.stack import RANGE_BITS, FollowingLayer, LinearLayer, Stack
from oversmoothing.simulations.heads.tokens import next_tokens
from oversmoothing.simulations.state import (
    exponent_of,
    from_differences,
    normalised_sum,
    scale,
    to_differences,
)

# An HFC below 2^-(2^58) is kept as 0: it triples its digits with each layer (T9).
_SMALLEST_EXPONENT = -(1 << 58)


class StackIteration:
    """Z = [y; m] [N, n, d] and the exponents [N, 2] of its two parts, moved layer by layer.

    tokens: X [N, n, d] and the exponents [N, n] of its tokens, while the layers are linear and the
    first has zeros in its attention; else None.
    """

    def __init__(
        self, Z: Tensor, exponents: Tensor, stack: Stack, tokens: tuple[Tensor, Tensor]
    ) -> None:
        self.Z, self.exponents, self.stack = Z.contiguous(), exponents, stack
        self.layer = 0
        self.factor = torch.zeros(len(Z), dtype=Z.dtype, device=Z.device)
        self.room = float(RANGE_BITS[Z.dtype])
        self.smallest = 2.0 ** -RANGE_BITS[Z.dtype]
        linear = isinstance(stack.at(0), LinearLayer)
        self.tokens = tokens if linear and stack.tokens else None

    def advance_to(self, target: int) -> None:
        """Layers self.layer ... target - 1, in blocks short enough for the range of the floats."""
        longest = target
        while self.layer < target:
            start, Z, exponents, tokens = self.layer, self.Z, self.exponents, self.tokens
            before = self._block(min(target, start + longest))
            lost = (before >= 0.25) & (largest_of_parts(self.Z) < self.smallest)
            longest = target
            if self.layer - start > 1 and bool(lost.any()):
                # Shrunk past the range of the floats within one block: again, one layer alone.
                self.layer, self.Z, self.exponents, self.tokens = start, Z, exponents, tokens
                longest = 1

    def _block(self, target: int) -> Tensor:
        """Layers up to target that need no rescaling between them; the sizes at their start."""
        layer = self.stack.at(self.layer)
        if isinstance(layer, FollowingLayer):
            before = self._rescale(align=False)
            self._follow(layer)
            self.tokens = None
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
        if self.tokens is not None and layer.attention is not None:
            self.tokens = next_tokens(*self.tokens, layer.attention, layer.map, self.stack.residual)

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
