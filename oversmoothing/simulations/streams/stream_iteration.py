"""The state of several streams, layer by layer within the range of the floats (T13).

Its equations and coordinates are in `evolve_streams`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.simulations.engine.inputs import as_numpy
from oversmoothing.simulations.heads.layers import (
    ATTENTION_STREAM,
    Fixed,
    FromState,
    Rule,
    head_attention,
    weights_at,
)
from oversmoothing.simulations.state import from_differences
from oversmoothing.theory.layer.layer import check_square, row_sum_tolerance
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# The stream of draws that mixings come from, beside those of attention and weights.
MIXING_STREAM = 3
# Layers between two looks at the range, fewer where a layer may use more bits than these allow.
_LAYERS, _BITS = 8, 400.0


@dataclass
class _Mixed:
    """R, p and q in the coordinates z; alone: the differences feel no branch and no x_s."""

    R: Tensor
    p: Tensor
    q: Tensor
    alone: bool
    size: float


class StreamIteration:
    """Y [s, n-1, d] and M [s, d] in the coordinates z, and four powers of two.

    exponents: of the differences of streams in Y, of the last stream in Y, and both in M.
    """

    def __init__(
        self,
        X0: Array,
        mixing: tuple[Rule, Array, Array],
        attention: Rule,
        weights: Rule,
        where: torch.device,
    ) -> None:
        self.rule, self.p, self.q = mixing
        self.attention, self.weights, self.where = attention, weights, where
        self.layer = 0
        self._made: dict[str, Any] = {}
        self._look = 0
        X = torch.tensor(X0).to(where)
        self.s, self.n, self.d = X.shape
        Z = torch.cat((X[:-1] - X[-1:], X[-1:]))
        self.M = Z.mean(1)
        self.Y = Z[:, :-1] - Z[:, -1:]
        self.exponents = [0, 0, 0, 0]
        self._rescale(alone=True, coupled=False)

    def advance_to(self, target: int) -> None:
        while self.layer < target:
            self._step()
            self.layer += 1

    def _step(self) -> None:
        mixed = self._once("mixing", self.rule, self._mixing)
        extended, W, total, size, coupled = self._branch()
        if self._look == 0:
            self._rescale(mixed.alone, coupled)
            bits = math.log2(2.0 + mixed.size * (1.0 + size))
            self._look = max(1, min(_LAYERS, int(_BITS / bits)))
        self._look -= 1
        yd, yl, md, ml = self.exponents
        y_down, m_down, drive = (_power(k) for k in (yd - yl, md - ml, yl - ml))
        y_q, m_q = self._read(self.Y, mixed.q, y_down), self._read(self.M, mixed.q, m_down)
        k = self.n - 1
        inside = extended @ y_q  # [heads, n, d]
        moved = (inside @ W).sum(0)
        to_y, to_m = moved[:k], m_q @ total + drive * moved[k]
        self.Y = self._mix(self.Y, mixed, to_y, y_down)
        self.M = self._mix(self.M, mixed, to_m, m_down)

    def _read(self, Z: Tensor, q: Tensor, down: float) -> Tensor:
        """sum_l q_l x_l at the exponent of the last stream."""
        found = q[-1] * Z[-1]
        if self.s > 1:
            found = found + down * torch.tensordot(q[:-1], Z[:-1], 1)
        return found

    def _mix(self, Z: Tensor, mixed: _Mixed, moved: Tensor, down: float) -> Tensor:
        flat = Z.reshape(self.s, -1)
        branch = moved.reshape(-1)
        last = mixed.R[-1, -1] * flat[-1] + mixed.p[-1] * branch
        if self.s == 1:
            return last.reshape(Z.shape)
        last = last + down * (mixed.R[-1, :-1] @ flat[:-1])
        rest = mixed.R[:-1, :-1] @ flat[:-1]
        if not mixed.alone:  # all at one exponent
            rest = (
                rest + torch.outer(mixed.R[:-1, -1], flat[-1]) + torch.outer(mixed.p[:-1], branch)
            )
        return torch.cat((rest, last.unsqueeze(0))).reshape(Z.shape)

    # ------------------------------------------------------------------------- what a layer is

    def _once(self, name: str, rule: Rule, make: Any) -> Any:
        if name not in self._made or not isinstance(rule, Fixed):
            self._made[name] = make()
        return self._made[name]

    def _mixing(self) -> _Mixed:
        R = check_square(as_numpy(self.rule.at(self.layer, MIXING_STREAM)), name="R")
        if R.shape != (self.s, self.s):
            raise InputError(
                f"R has shape {list(R.shape)} in layer {self.layer}; X0 has {self.s} streams"
            )
        sums = R.sum(1)
        # What is meant to be row-stochastic has rows that sum to 1 within rounding.
        if (R >= 0).all() and (np.abs(sums - 1) <= row_sum_tolerance(self.s)).all():
            R = R / sums[:, None]
            sums = np.ones(self.s)
        turned = R - R[-1:]
        coordinates = np.empty_like(R)
        coordinates[:-1, :-1] = turned[:-1, :-1]
        coordinates[:-1, -1] = sums[:-1] - sums[-1]
        coordinates[-1] = R[-1]
        coordinates[-1, -1] = sums[-1]
        p = np.append(self.p[:-1] - self.p[-1], self.p[-1])
        q = np.append(self.q[:-1], self.q.sum())
        alone = not coordinates[:-1, -1].any() and not p[:-1].any()
        size = float(np.abs(R).sum(1).max() + np.abs(self.p).max() * np.abs(self.q).sum())
        R_z, p_z, q_z = (torch.tensor(x).to(self.where) for x in (coordinates, p, q))
        return _Mixed(R_z, p_z, q_z, alone, size)

    def _branch(self) -> tuple[Tensor, Tensor, Tensor, float, bool]:
        """B'_h with g_h below [heads, n, n-1], W_h [heads, d, d], their sum, a size, any g."""
        W, total, size = self._once("weights", self.weights, self._weights)
        extended, coupled = self._once("attention", self.attention, lambda: self._attention(len(W)))
        return extended, W, total, size, coupled

    def _weights(self) -> tuple[Tensor, Tensor, float]:
        W = weights_at(self.weights, self.layer).dense()
        if W.shape[-1] != self.d:
            raise InputError(f"the weights have d = {W.shape[-1]}, X0 has {self.d}")
        size = float(np.abs(W).sum((-2, -1)).sum())
        made = torch.tensor(np.ascontiguousarray(W)).to(self.where)
        return made, made.sum(0), size

    def _attention(self, heads: int) -> tuple[Tensor, bool]:
        asked = self.attention.at(self.layer, ATTENTION_STREAM)
        if isinstance(asked, FromState):
            raise InputError(
                "attention that follows the state is not run over streams: prescribe A"
            )
        A = head_attention(asked, heads)
        if A.ndim != 3 or A.shape[-1] != self.n:
            raise InputError(f"A has shape {list(A.shape)}; X0 has {self.n} tokens and no batch")
        B = A[:, :-1, :-1] - A[:, -1:, :-1]
        g = A[:, :, :-1].mean(1) - 1.0 / self.n
        # Columns that sum to 1 within rounding are meant to: the mean is then autonomous.
        if (np.abs(g) <= row_sum_tolerance(self.n)).all():
            g = np.zeros_like(g)
        extended = np.concatenate((B, g[:, None, :]), axis=1)
        return torch.tensor(extended).to(self.where), bool(g.any())

    # ------------------------------------------------------------------------- scales, readings

    def _rescale(self, alone: bool, coupled: bool) -> None:
        """Powers of two out of the four parts; what feeds another is at most at its exponent."""
        parts = [self.Y[:-1], self.Y[-1:], self.M[:-1], self.M[-1:]]
        tops = [float(part.abs().max()) if part.numel() else 0.0 for part in parts]
        wanted: list[int | None] = [
            None if top == 0 else e + math.frexp(top)[1]
            for top, e in zip(tops, self.exponents, strict=True)
        ]
        yd, yl, md, ml = wanted
        yl, ml = _at_least(yl, yd), _at_least(ml, md)
        if coupled:
            ml = _at_least(ml, yl)
        if not alone:
            yd, md = yl, ml
        chosen = [yd, yl, md, ml]
        # Of what is 0 the exponent means nothing: that of its neighbour, so that no factor is inf.
        known = [k for k in chosen if k is not None]
        top = max(known, default=0)
        yl, ml = (top if x is None else x for x in (yl, ml))
        yd, md = (low if x is None else x for x, low in ((yd, yl), (md, ml)))
        new = [yd, yl, md, ml]
        factors = [_power(old - e) for old, e in zip(self.exponents, new, strict=True)]
        parts = [part * factor for part, factor in zip(parts, factors, strict=True)]
        self.Y, self.M = torch.cat(parts[:2]), torch.cat(parts[2:])
        self.exponents = new

    def read(self) -> tuple[tuple[Tensor, Any], tuple[Tensor, Any], float, float]:
        """The stack and the mean over streams as (y and m, exponents), log spread, log size."""
        self._rescale(alone=True, coupled=False)
        self._look = 0
        yd, yl, md, ml = self.exponents
        Y = torch.cat((self.Y[:-1] * _power(yd - yl) + self.Y[-1:], self.Y[-1:]))
        M = torch.cat((self.M[:-1] * _power(md - ml) + self.M[-1:], self.M[-1:]))
        stack = torch.cat((_beside(Y), M.reshape(1, -1)))
        mean = torch.cat((Y.mean(0), M.mean(0).unsqueeze(0)))
        size = max(_log_norm(y, m, yl, ml) for y, m in zip(Y, M, strict=True))
        D = torch.cat((self.Y[:-1], torch.zeros_like(self.Y[-1:])))
        E = torch.cat((self.M[:-1], torch.zeros_like(self.M[-1:])))
        spread = max(
            (_log_norm(D[k] - D[j], E[k] - E[j], yd, md) for k in range(self.s) for j in range(k)),
            default=-math.inf,
        )
        return (stack, (yl, ml)), (mean, (yl, ml)), spread, size


def _at_least(x: int | None, low: int | None) -> int | None:
    return low if x is None else x if low is None else max(x, low)


def _power(k: int) -> float:
    """2^k; 0 or inf beyond the floats."""
    return math.ldexp(1.0, k) if k < 1024 else math.inf


def _beside(Y: Tensor) -> Tensor:
    """[s, n-1, d] as [n-1, s d]."""
    return Y.transpose(0, 1).reshape(Y.shape[1], Y.shape[0] * Y.shape[2])


def _log_norm(y: Tensor, m: Tensor, y_exponent: int, m_exponent: int) -> float:
    """log of the Frobenius norm of a state from its token differences and its mean."""
    n = len(y) + 1
    parts = [
        (float(torch.linalg.norm(from_differences(y))), y_exponent),
        (float(torch.linalg.norm(m)) * math.sqrt(n), m_exponent),
    ]
    logs = [math.log(x) + e * math.log(2.0) for x, e in parts if x > 0]
    if not logs:
        return -math.inf
    top = max(logs)
    return top + math.log(sum(math.exp(2 * (x - top)) for x in logs)) / 2
