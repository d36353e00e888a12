"""x_k' = sum_l R_kl x_l + p_k sum_h A_h (sum_l q_l x_l) W_h over s streams, to any depth (T13).

Tokens in the coordinates y_i = x_i - x_n and the plain mean m, as in `evolve_heads`; streams in
those of T13b, z_k = x_k - x_s for k < s beside z_s = x_s. Where R 1 = c 1 and p is a multiple of 1
the z_k, k < s, are autonomous, and carry powers of two of their own: streams that agree to 1e-3000
are told from streams that are equal. A layer costs s^2 n d + heads (n^2 d + n d^2); nothing of
size (s n d)^2 is formed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from oversmoothing.simulations.engine.errors import States, unknown
from oversmoothing.simulations.engine.iteration import kept_at
from oversmoothing.simulations.engine.layers import (
    Made,
    Rule,
    as_rule,
    prescribed_attention,
    weights_at,
)
from oversmoothing.simulations.engine.problem import as_numpy, check_depths, choose_device
from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.simulations.state import from_differences
from oversmoothing.theory.layer.layer import check_square, check_states, row_sum_tolerance
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
        self._made = Made()
        self._look = 0
        X = torch.tensor(X0).to(where)
        self.s, self.n, self.d = X.shape
        Z = torch.cat((X[:-1] - X[-1:], X[-1:]))
        self.M = Z.mean(1)
        self.Y = Z[:, :-1] - Z[:, -1:]
        self.exponents = [0, 0, 0, 0]
        self._rescale(alone=True, coupled=False)

    def advance_to(self, target: int, bar: tqdm) -> None:
        bar.update(target - self.layer)
        while self.layer < target:
            self._step()
            self.layer += 1

    def _step(self) -> None:
        mixed = self._made.of("mixing", self.rule, self._mixing)
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
        W, total, size = self._made.of("weights", self.weights, self._weights)
        extended, coupled = self._made.of(
            "attention", self.attention, lambda: self._attention(len(W))
        )
        return extended, W, total, size, coupled

    def _weights(self) -> tuple[Tensor, Tensor, float]:
        W = weights_at(self.weights, self.layer).dense()
        if W.shape[-1] != self.d:
            raise InputError(f"the weights have d = {W.shape[-1]}, X0 has {self.d}")
        size = float(np.abs(W).sum((-2, -1)).sum())
        made = torch.tensor(np.ascontiguousarray(W)).to(self.where)
        return made, made.sum(0), size

    def _attention(self, heads: int) -> tuple[Tensor, bool]:
        A = prescribed_attention(self.attention, self.layer, heads, "is not run over streams")
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


@dataclass(frozen=True)
class StreamTrajectory:
    """States at chosen depths. stack: all streams side by side as the features of one, [n, s d].

    mean: their mean over the streams, [n, d]. log_spread: log max_{k,l} ||x_k - x_l||_F at each
    depth, -inf where the streams are equal; log_size: log max_k ||x_k||_F.
    """

    stack: Trajectory
    mean: Trajectory
    log_spread: tuple[float, ...]
    log_size: tuple[float, ...]

    @property
    def depths(self) -> tuple[int, ...]:
        return self.stack.depths

    def metrics(self) -> pd.DataFrame:
        """A row a depth: the metrics of the stack, and of the streams.

        log_disagreement: of max ||x_k - x_l|| / max ||x_k||; log_hfc_lfc_mean: of the mean stream.
        """
        table = self.stack.metrics()
        table["log_hfc_lfc_mean"] = self.mean.metrics()["log_hfc_lfc"]
        table["log_spread"] = self.log_spread
        with np.errstate(invalid="ignore"):
            table["log_disagreement"] = np.subtract(self.log_spread, self.log_size)
        return table


def evolve_streams(
    *,
    X0: Any,
    mixing: Any,
    attention: Any,
    weights: Any,
    depth: int | Sequence[int],
    p: Any = None,
    q: Any = None,
    device: str = "auto",
    progress: bool = False,
) -> StreamTrajectory:
    """Run s streams, keep the asked depths. In float64.

    X0 [s, n, d]. mixing: R [s, s], or `PerLayer` or `Drawn` giving one for each layer; p, q [s]
    (default 1 and 1/s). attention: A [n, n] or [heads, n, n], weights: W [d, d], [heads, d, d] or
    factors, both as for `evolve_heads`, attention prescribed. depth: one depth (0 is kept too) or
    an increasing sequence. An R >= 0 whose rows sum to 1 within rounding counts as such.

    Raises `InputError` for shapes that do not fit, NaN, attention that follows the state, and bad
    depths or devices.
    """
    depths = check_depths(depth)
    where = choose_device(device)
    states = np.asarray(as_numpy(X0), dtype=np.float64)
    if states.ndim != 3 or 0 in states.shape:
        raise InputError(f"X0 has shape {list(states.shape)}; it must be [s, n, d]: streams first")
    s, n, d = states.shape
    check_states(states, n, d)
    run = StreamIteration(
        states, (as_rule(mixing), _vector(p, "p", np.ones(s)), _vector(q, "q", np.full(s, 1 / s))),
        as_rule(attention), as_rule(weights), where,
    )  # fmt: skip

    def state_at(depth: int, bar: tqdm) -> tuple[Any, Any, float, float]:
        run.advance_to(depth, bar)
        return run.read()

    stack, mean, spread, size = zip(*kept_at(depths, progress, state_at), strict=True)
    return StreamTrajectory(
        _trajectory(depths, stack, n), _trajectory(depths, mean, n), spread, size
    )


def _vector(value: Any, name: str, default: Array) -> Array:
    s = len(default)
    found = default if value is None else np.asarray(as_numpy(value), dtype=np.float64)
    if found.shape != (s,) or not np.isfinite(found).all():
        raise InputError(f"{name} must be {s} finite numbers, one a stream of X0")
    return found


def _trajectory(depths: tuple[int, ...], kept: Sequence[Any], n: int) -> Trajectory:
    states = torch.stack([Z for Z, _ in kept]).unsqueeze(1)
    exponents = torch.tensor([list(e) for _, e in kept], device=states.device).unsqueeze(1)
    offset = torch.zeros((1, n), dtype=torch.float64, device=states.device)
    return Trajectory(
        depths,
        (),
        States(states, exponents, offset, unknown),
        method="streams",
        reason="streams are mixed: iterated layer by layer",
    )
