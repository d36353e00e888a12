"""X' = [X +] sum_h A_h X W_h over many heads and changing layers, to any depth (T7, T8a-b, T9).

PA = PAP holds for every row-stochastic A, so y_i = x_i - x_n stays autonomous whatever the heads
and however they change: y' = y + sum_h B'_h y W_h with B'_ij = A_ij - A_nj (T1c). The pi-mean of
one fixed A is autonomous too, but different heads and layers have different pi; what all of them
have is the plain mean m over the tokens, which HFC drives:

    m' = m + m sum_h W_h + sum_h (g_h^T y) W_h,   g_hj = mean_i A_h,ij - 1/n   (j < n).

For doubly stochastic A_h the drive g_h is 0 exactly and m is autonomous. y and m carry a power of
two each: a spread of 1e-200 around a mean of 1 is as right as one of 1. The drive enters m at its
own scale; when it is far below m it is lost as any small summand of a float is, when it is far
above, m becomes it.

Per layer: one product with all P_h, one batched product with the B'_h (g_h its last row), one with
all Q_h (`head_map`). Attention that follows the state is in `state_attention`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.simulations.engine.inputs import (
    as_numpy,
    check_depths,
    choose_device,
    choose_precision,
)
from oversmoothing.simulations.engine.kept_states import Rows, States
from oversmoothing.simulations.engine.plain import progress_bar
from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.simulations.engine.twins import SEEDS, distances, nudged, unknown
from oversmoothing.simulations.heads.layers import (
    ATTENTION_STREAM,
    Drawn,
    Fixed,
    FromState,
    PerLayer,
    Rule,
    as_rule,
    head_attention,
    weights_at,
)
from oversmoothing.simulations.heads.stack import Stack
from oversmoothing.simulations.heads.stack_iteration import StackIteration
from oversmoothing.simulations.state import SplitState, split, to_differences
from oversmoothing.theory.layer.layer import check_states
from oversmoothing.theory.support.errors import InputError

__all__ = ["Drawn", "Fixed", "FromState", "PerLayer", "evolve_heads"]


def evolve_heads(
    *,
    X0: Any,
    attention: Any,
    weights: Any,
    depth: int | Sequence[int],
    residual: bool = True,
    dtype: torch.dtype | None = None,
    device: str = "auto",
    progress: bool = False,
) -> Trajectory:
    """Run X' = X + sum_h A_h X W_h (without X + where residual is False), keep the asked depths.

    X0 [*batch, n, d], or a `SplitState` such as `trajectory.state(i)`, which holds a spread that no
    array of floats around its mean could. attention: A [n, n] (for all heads), [heads, n, n] or
    [*batch, heads, n, n], row-stochastic; or a `FromState`; or `PerLayer` or `Drawn` giving either
    for each layer.
    weights: W [heads, d, d] or [d, d], or factors (W_V [heads, d, r], W_O [heads, r, d]), the same
    for the whole batch; or `PerLayer` or `Drawn` giving these. depth: one depth (0 is kept too,
    unless asked alone) or an increasing sequence. dtype: torch.float32 or torch.float64, by default
    that of X0 if it is one of these, else float64. device: 'auto', 'cpu' or any torch device.

    The result is a `Trajectory` whose second coordinate is the plain mean (its offset is 0). An A
    whose columns sum to 1 within n eps, relative to what stands off the diagonal, counts as doubly
    stochastic. Where the first attention has zeros and no layer follows the state, the tokens are
    iterated too (see `evolve`). A state that becomes exactly 0
    stays 0, its metrics NaN; without residual an HFC below 2^-(2^58) counts as 0.

    Raises `InputError` for NaN, shapes that do not fit, A not row-stochastic, bad depths or
    devices, and weights too large for the dtype.
    """
    depths = check_depths(depth)
    where = choose_device(device)
    precision = choose_precision(X0, dtype)
    attention, weights = as_rule(attention), as_rule(weights)
    first = weights_at(weights, 0)
    batch, Z, exponents, X, X_exponents = _start(X0, first.d, attention, first.heads)
    n = Z.shape[-2]
    Z, exponents = Z.to(where, precision), exponents.to(where)
    X, X_exponents = X.to(where, precision), X_exponents.to(where)

    def run(seed: int | None) -> States:
        stack = Stack(attention, weights, residual, batch, n, first.d, where, precision, seed)
        start, tokens = (Z, X) if seed is None else (nudged(Z, seed), nudged(X, seed))
        return _run(
            StackIteration(start, exponents, stack, (tokens, X_exponents)), depths, progress
        )

    found = run(None)
    return Trajectory(
        depths,
        batch,
        replace(found, errors=lambda: distances(found, [run(seed) for seed in SEEDS], precision)),
        torch.zeros(Z.shape[:-1], dtype=torch.float64, device=where),
        method="layers",
        reason="heads and changing layers have no common eigenbasis: iterated layer by layer",
    )


def _run(iteration: StackIteration, depths: tuple[int, ...], progress: bool) -> States:
    kept: list[tuple[Tensor, Tensor]] = []
    tokens: list[tuple[Tensor, Tensor]] = []
    with torch.inference_mode(), progress_bar(depths[-1], progress) as bar:
        for target in depths:
            bar.update(target - iteration.layer)
            iteration.advance_to(target)
            kept.append((iteration.Z.clone(), iteration.exponents.clone()))
            if iteration.tokens is not None:
                tokens.append(iteration.tokens)
    rows = None
    if len(tokens) == len(depths):
        rows = Rows(torch.stack([X for X, _ in tokens]), torch.stack([e for _, e in tokens]))
    return States(
        torch.stack([Z for Z, _ in kept]), torch.stack([e for _, e in kept]), unknown, rows
    )


def _start(
    X0: Any, d: int, attention: Rule, heads: int
) -> tuple[tuple[int, ...], Tensor, Tensor, Tensor, Tensor]:
    """The batch shape with that of A; [y; m] [N, n, d] and the tokens, with their exponents."""
    given = X0 if isinstance(X0, SplitState) else None
    array = as_numpy(X0 if given is None else given.hfc)
    asked = attention.at(0, ATTENTION_STREAM)
    more: tuple[int, ...] = ()
    if isinstance(asked, FromState):
        shape = np.shape(array)
        if len(shape) < 2 or shape[-2] < 1:
            raise InputError(f"X0 has shape {list(shape)}; it must be [..., n, {d}] with n >= 1")
        n = shape[-2]
    else:
        A = head_attention(asked, heads)
        n, more = A.shape[-1], A.shape[:-3]
    checked = check_states(array, n, d)
    try:
        batch = np.broadcast_shapes(more, checked.shape[:-2])
    except ValueError as error:
        raise InputError(
            f"the batch dimensions of A {more} and X0 {checked.shape[:-2]} do not broadcast"
        ) from error
    state = split(torch.as_tensor(checked)) if given is None else given
    hfc = state.hfc.cpu().expand(*batch, n, d).reshape(-1, n, d)
    mean = state.mean.cpu().expand(*batch, d).reshape(-1, 1, d)
    exponents = torch.stack((state.hfc_exponent, state.mean_exponent), dim=-1).cpu()
    Z = torch.cat((to_differences(hfc), mean), dim=-2)
    rows = state.rows.cpu().expand(*batch, n, d).reshape(-1, n, d)
    row_exponents = state.row_exponent.cpu().expand(*batch, n).reshape(-1, n)
    return batch, Z, exponents.expand(*batch, 2).reshape(-1, 2), rows, row_exponents
