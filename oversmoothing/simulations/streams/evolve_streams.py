"""x_k' = sum_l R_kl x_l + p_k sum_h A_h (sum_l q_l x_l) W_h over s streams, to any depth (T13).

Tokens in the coordinates y_i = x_i - x_n and the plain mean m, as in `evolve_heads`; streams in
those of T13b, z_k = x_k - x_s for k < s beside z_s = x_s. Where R 1 = c 1 and p is a multiple of 1
the z_k, k < s, are autonomous, and carry powers of two of their own: streams that agree to 1e-3000
are told from streams that are equal. A layer costs s^2 n d + heads (n^2 d + n d^2); nothing of
size (s n d)^2 is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from oversmoothing.simulations.engine.inputs import as_numpy, check_depths, choose_device
from oversmoothing.simulations.engine.kept_states import States
from oversmoothing.simulations.engine.plain import progress_bar
from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.simulations.engine.twins import unknown
from oversmoothing.simulations.heads.layers import as_rule
from oversmoothing.simulations.streams.stream_iteration import StreamIteration
from oversmoothing.theory.layer.layer import check_states
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array


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
    kept = []
    with torch.inference_mode(), progress_bar(depths[-1], progress) as bar:
        for target in depths:
            bar.update(target - run.layer)
            run.advance_to(target)
            kept.append(run.read())
    stack, mean, spread, size = zip(*kept, strict=True)
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
    return Trajectory(
        depths,
        (),
        States(states, exponents, unknown),
        torch.zeros((1, n), dtype=torch.float64, device=states.device),
        method="streams",
        reason="streams are mixed: iterated layer by layer",
    )
