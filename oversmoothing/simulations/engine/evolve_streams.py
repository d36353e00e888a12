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
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from oversmoothing.simulations import state
from oversmoothing.simulations.engine.errors import SEEDS, Nudge, States, distances, nudged
from oversmoothing.simulations.engine.iteration import (
    GROWTH_BITS,
    Iteration,
    Moved,
    kept_at,
    range_bits,
    stacked,
)
from oversmoothing.simulations.engine.layers import Given, HeadMap, Rule, Stack, as_rule
from oversmoothing.simulations.engine.problem import check_depths
from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.simulations.running import Bar
from oversmoothing.theory.layer.layer import (
    check_square,
    check_states,
    real_array,
    row_sum_tolerance,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

if TYPE_CHECKING:
    import pandas as pd

# The stream of draws that mixings come from, beside those of attention and weights.
MIXING_STREAM = 3
# What feeds what at a lower power of two: the differences the last stream, and Y the mean.
_FROM, _TO = [0, 2, 1], [1, 3, 3]


class _Mixed(NamedTuple):
    """R over q [s + 1, s], and p [s], in the coordinates z. alone: the differences feel no branch
    and no x_s. size: of R and of p q together."""

    both: Tensor
    p: Tensor
    alone: bool
    size: float


class Streams(Iteration):
    """Layers of s streams on Z [1, s n, d]: the rows of Y [s, n-1, d] and then M [s, d].

    Both in the coordinates z, differences of streams first. Four parts have a power of two each:
    the differences and the last stream in Y, both in M.
    """

    def __init__(self, X0: Array, mixing: tuple[Rule, Array, Array], stack: Stack) -> None:
        self.rule, self.p, self.q = mixing
        self.s, self.stack = len(self.p), stack
        kinds = [(alone, coupled) for alone in (False, True) for coupled in (False, True)]
        self._fed = {kind: _fed(*kind).to(stack.where) for kind in kinds}
        self._over = self._fed[True, False]
        X = torch.tensor(X0).to(stack.where)
        Z = torch.cat((X[:-1] - X[-1:], X[-1:]))
        Z = _joined(Z[:, :-1] - Z[:, -1:], Z.mean(1))
        Z = Z if stack.seed is None else nudged(Z, stack.seed)
        none = torch.zeros((1, 4), dtype=torch.int64, device=Z.device)
        k = stack.n - 1
        super().__init__(Z, none, ((self.s - 1) * k, k, self.s - 1, 1))

    def apart(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Y [s, n-1, d] and M [s, d]."""
        s, n, d = self.s, self.stack.n, self.stack.d
        return Z[0, : s * (n - 1)].view(s, n - 1, d), Z[0, s * (n - 1) :]

    def reach(self, layer: int) -> Tensor:
        """The differences feed the last stream, and it them where they are not alone; a drive of
        the mean comes from Y."""
        self._over = self._fed[self._kind(layer)]
        return self._over

    def block(self, Z: Tensor, exponents: Tensor, most: int) -> Moved:
        k, d, dtype, size = self.stack.n - 1, self.stack.d, Z.dtype, Z[0].numel()
        lower = exponents[0, _FROM] - exponents[0, _TO]
        y_down, m_down, drive = state.powers_of_two(lower.clamp_max(0), dtype).unsqueeze(-1)
        (Y, M), number, used, kind = self.apart(Z), 0, 0.0, self._kind(self.layer)
        Y, before = Y.reshape(self.s, k * d), None
        while number < most:
            if self.stack.seed is not None:
                Y, M = self.apart(self.stack.carried(_joined(Y, M)))
                Y = Y.reshape(self.s, k * d)
            now = self.layer + number
            mixed, (given, weights, norm) = self._mixed(now), self._linear(now)
            used += range_bits(mixed.size * (1.0 + norm), size, dtype, residual=False)
            if number and (used > GROWTH_BITS[dtype] or kind != (mixed.alone, given.coupled)):
                break
            if mixed is not before:
                before, of_Y, of_M = mixed, *(_lowered(mixed.both, x) for x in (y_down, m_down))
            Y, M = of_Y @ Y, of_M @ M
            read = torch.cat((Y[-1].view(1, k, d), M[-1].view(1, 1, d)), dim=1)
            moved = given.branch(read, drive, weights)[0]
            Y = torch.addr(Y[:-1], mixed.p, moved[:k].reshape(-1))
            M = torch.addr(M[:-1], mixed.p, moved[k])
            number += 1
        return _joined(Y, M), exponents, number, None

    def _linear(self, layer: int) -> tuple[Given, HeadMap, float]:
        given, weights, norm = self.stack.at(layer)
        if not isinstance(given, Given):
            raise InputError(
                "attention that follows the state is not run over streams: prescribe A"
            )
        return given, weights, norm

    def _kind(self, layer: int) -> tuple[bool, bool]:
        return self._mixed(layer).alone, self._linear(layer)[0].coupled

    def _mixed(self, layer: int) -> _Mixed:
        return self.stack.made("mixing", self.rule, layer, self._mixing)

    def _mixing(self, layer: int) -> _Mixed:
        R = check_square(self.rule.at(layer, MIXING_STREAM), name="R")
        if R.shape != (self.s, self.s):
            raise InputError(
                f"R has shape {list(R.shape)} in layer {layer}; X0 has {self.s} streams"
            )
        sums = R.sum(1)
        # What is meant to be row-stochastic has rows that sum to 1 within rounding.
        if (R >= 0).all() and (np.abs(sums - 1) <= row_sum_tolerance(self.s)).all():
            R = R / sums[:, None]
            sums = np.ones(self.s)
        coordinates = np.concatenate((R[:-1] - R[-1:], R[-1:]))
        coordinates[:, -1] = np.append(sums[:-1] - sums[-1], sums[-1])
        p = np.append(self.p[:-1] - self.p[-1], self.p[-1])
        q = np.append(self.q[:-1], self.q.sum())
        alone = not coordinates[:-1, -1].any() and not p[:-1].any()
        if self.stack.seed is not None:
            nudge = Nudge((self.stack.seed, MIXING_STREAM), self.stack.dtype)
            coordinates, p, q = nudge(coordinates), nudge(p), nudge(q)
        size = float(np.abs(R).sum(1).max() + np.abs(self.p).max() * np.abs(self.q).sum())
        both = np.concatenate((coordinates, q[None]))
        R_q, p_z = (torch.tensor(x).to(self.stack.where) for x in (both, p))
        return _Mixed(R_q, p_z, alone, size)

    def read(self) -> tuple[state.Scaled, state.Scaled, float, float]:
        """The stack and the mean over streams as (y and m, exponents), log spread, log size."""
        Z, exponents = self.rescaled(self._over)
        D, E = self.apart(Z)
        down = state.powers_of_two((exponents[0, ::2] - exponents[0, 1::2]).clamp_max(0))
        yd, yl, md, ml = exponents[0]
        Y = torch.cat((D[:-1] * down[0] + D[-1:], D[-1:]))
        M = torch.cat((E[:-1] * down[1] + E[-1:], E[-1:]))
        stack = torch.cat((Y.transpose(0, 1).flatten(1), M.reshape(1, -1)))
        mean = torch.cat((Y.mean(0), M.mean(0).unsqueeze(0)))
        size = float(_log_norms(Y, M, yl, ml).max())
        spread = -math.inf
        if self.s > 1:
            D, E = (torch.cat((x[:-1], torch.zeros_like(x[-1:]))) for x in (D, E))
            k, j = torch.triu_indices(self.s, self.s, 1, device=D.device)
            spread = float(_log_norms(D[k] - D[j], E[k] - E[j], yd, md).max())
        over = exponents[0, 1::2]
        return (stack, over), (mean, over), spread, size


def _fed(alone: bool, coupled: bool) -> Tensor:
    """Which of the four parts feeds which, [4, 4]."""
    streams = torch.tensor([[1, not alone], [1, 1]])
    return torch.kron(torch.tensor([[1, 0], [coupled, 1]]), streams) > 0


def _lowered(both: Tensor, down: Tensor) -> Tensor:
    """`_Mixed.both` where x_s and what is read take the differences times `down`."""
    return torch.cat((both[:-2], torch.cat((both[-2:, :-1] * down, both[-2:, -1:]), dim=1)))


def _joined(Y: Tensor, M: Tensor) -> Tensor:
    """[s, n-1, d] and [s, d] as the rows of one state."""
    return torch.cat((Y.reshape(-1, M.shape[-1]), M)).unsqueeze(0)


def _log_norms(Y: Tensor, M: Tensor, y_exponent: Tensor, m_exponent: Tensor) -> Tensor:
    """log of the Frobenius norms of states from their token differences and means."""
    hfc = state.log_norm(state.from_differences(Y), y_exponent, 2)
    lfc = state.log_norm(M, m_exponent, 1) + math.log(Y.shape[-2] + 1) / 2
    return torch.logaddexp(2 * hfc, 2 * lfc) / 2


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


@state.undisturbed()
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
    where = state.choose_device(device)
    states = real_array(X0, "X0")
    if states.ndim != 3 or 0 in states.shape:
        raise InputError(f"X0 has shape {list(states.shape)}; it must be [s, n, d]: streams first")
    s, n, d = states.shape
    check_states(states, n, d)
    mixed = as_rule(mixing), _vector(p, "p", np.ones(s)), _vector(q, "q", np.full(s, 1 / s))
    rules = as_rule(attention), as_rule(weights)

    def run(seed: int | None) -> tuple[list[States], Any, Any]:
        stack = Stack(*rules, True, (), n, d, where, torch.float64, seed)
        layers = Streams(states, mixed, stack)

        def state_at(depth: int, bar: Bar) -> tuple[state.Scaled, state.Scaled, float, float]:
            layers.advance_to(depth, bar)
            return layers.read()

        *kept, spread, size = zip(*kept_at(depths, progress, state_at), strict=True)
        return [_states(part, n) for part in kept], spread, size

    (stack, mean), spread, size = run(None)
    # Made once, when the first of the two errors is asked for.
    twins = cache(lambda: [run(seed)[0] for seed in SEEDS])

    def trajectory(own: States, place: int) -> Trajectory:
        errors = lambda: distances(own, [twin[place] for twin in twins()], torch.float64)  # noqa: E731
        why = "streams are mixed: iterated layer by layer"
        return Trajectory(depths, (), replace(own, errors=errors), "streams", why)

    return StreamTrajectory(trajectory(stack, 0), trajectory(mean, 1), spread, size)


def _vector(value: Any, name: str, default: Array) -> Array:
    s = len(default)
    vector = default if value is None else real_array(value, name)
    if vector.shape != (s,) or not np.isfinite(vector).all():
        raise InputError(f"{name} must be {s} finite numbers, one a stream of X0")
    return vector


def _states(kept: Sequence[state.Scaled], n: int) -> States:
    states, exponents = (x.unsqueeze(1) for x in stacked(kept))
    return States(states, exponents, torch.zeros((1, n), dtype=torch.float64, device=states.device))
