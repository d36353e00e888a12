"""X' = [X +] sum_h A_h X W_h over many heads and changing layers, to any depth (T7, T8a-b, T9).

PA = PAP holds for every row-stochastic A, so y_i = x_i - x_n stays autonomous whatever the heads
and however they change: y' = y + sum_h B'_h y W_h with B'_ij = A_ij - A_nj (T1c). The pi-mean of
one fixed A is autonomous too, but different heads and layers have different pi; what all of them
have is the plain mean m over the tokens, which HFC drives:

    m' = m + m sum_h W_h + sum_h (g_h^T y) W_h,   g_hj = mean_i A_h,ij - 1/n   (j < n).

For doubly stochastic A_h the drive g_h is 0 exactly and m is autonomous. y and m carry a power of
two each; the drive enters m at its own scale. The products of a layer are those of `layers`, with
the g_h below the B'_h. Attention that follows the state is in `state_attention`.

Where attention has zeros the tokens are iterated themselves too (T4b, T11.10; why: `iteration`),
each brought to the scale of those that it sees at each layer anew: these may change.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from oversmoothing.simulations import state
from oversmoothing.simulations.engine import iteration, layers
from oversmoothing.simulations.engine.errors import SEEDS, States, distances, nudged
from oversmoothing.simulations.engine.layers import ATTENTION_STREAM, Drawn, Fixed, PerLayer
from oversmoothing.simulations.engine.problem import (
    broadcast_batches,
    check_depths,
    choose_precision,
)
from oversmoothing.simulations.engine.state_attention import FromState, SoftmaxHeads
from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.simulations.running import Bar
from oversmoothing.theory.layer.layer import check_states
from oversmoothing.theory.numbers.exact import plain
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import MatrixLike, WeightLike

__all__ = ["Drawn", "Fixed", "FromState", "PerLayer", "evolve_heads"]


# An HFC below 2^-(2^58) is kept as 0: it triples its digits with each layer (T9).
_SMALLEST_EXPONENT = -(1 << 58)


class Heads(iteration.Iteration):
    """The layers of a stack on Z = [y; m] with a power of two for each.

    beside: X [N, n, d] and the exponents [N, n] of its tokens, while the layers are linear and the
    first has zeros in its attention; else None.
    """

    def __init__(
        self, Z: Tensor, exponents: Tensor, stack: layers.Stack, tokens: state.Scaled
    ) -> None:
        linear = isinstance(stack.at(0)[0], layers.Given) and stack.tokens
        super().__init__(Z, exponents, (stack.n - 1, 1), tokens if linear else None)
        self.stack = stack
        self._driven = torch.ones((2, 2), dtype=torch.bool, device=stack.where).tril()

    def reach(self, layer: int) -> Tensor | None:
        """m at the exponent of a larger y that feeds it."""
        asked = self.stack.at(layer)[0]
        return self._driven if isinstance(asked, layers.Given) and asked.coupled else None

    def block(self, Z: Tensor, exponents: Tensor, most: int) -> iteration.Moved:
        """Layers that need no rescaling between them."""
        (given, weights, norm), dtype = self.stack.at(self.layer), Z.dtype
        tokens = self.beside
        if not isinstance(given, layers.Given):
            return *self._follow(given, weights, self.stack.carried(Z), exponents), 1, None
        factor = state.powers_of_two((exponents[:, 0] - exponents[:, 1]).clamp_max(0), dtype)
        coupled, used, number = given.coupled, 0.0, 0
        while isinstance(given, layers.Given) and (coupled or not given.coupled):
            Z = self.stack.carried(Z)
            size = Z.shape[-1] * Z.shape[-2]
            used += iteration.range_bits(norm, size, dtype, self.stack.residual)
            if number and used > iteration.GROWTH_BITS[dtype]:
                break
            moved = given.branch(Z, factor, weights)
            Z = Z + moved if self.stack.residual else moved
            exponents = exponents + weights.shift
            if tokens is not None and given.attention is not None:
                X, over = self.stack.carried(tokens[0]), tokens[1]
                tokens = next_tokens(X, over, given.attention, weights, self.stack.residual)
            number += 1
            if number == most:
                break
            given, weights, norm = self.stack.at(self.layer + number)
        return Z, exponents, number, tokens

    def _follow(
        self, heads: SoftmaxHeads, weights: layers.HeadMap, Z: Tensor, exponents: Tensor
    ) -> state.Scaled:
        n = Z.shape[-2]
        y, m = Z[:, : n - 1], Z[:, n - 1]
        y_exponent, m_exponent = exponents.unbind(-1)
        E = state.from_differences(y)
        parts = heads.deviation(E, y_exponent, m, m_exponent)
        inside = weights.enter(E)
        moved = weights.leave(layers.mix(parts.D[0], inside))
        drive = weights.leave(
            layers.mix(torch.cat((parts.shared[0], parts.rest[0]), dim=-2), inside)
        )
        total, up = weights.leave(weights.enter(m.unsqueeze(1)))[:, 0], weights.shift
        y_terms = [(state.to_differences(moved), parts.D[1] + y_exponent + up)]
        m_terms = [
            (total, m_exponent + up),
            (drive[:, 0], parts.shared[1] + y_exponent + up),
            (drive[:, 1], parts.rest[1] + y_exponent + up),
        ]
        if self.stack.residual:
            y_terms.append((y, y_exponent))
            m_terms.append((m, m_exponent))
        y, y_exponent = state.normalised_sum(*y_terms, trailing=2)
        m, m_exponent = state.normalised_sum(*m_terms, trailing=1)
        # Its digits triple with each layer (T9): past int64 the spread is 0.
        gone = y_exponent < _SMALLEST_EXPONENT
        y = torch.where(gone.view(-1, 1, 1), 0.0, y)
        y_exponent = torch.where(gone, torch.zeros_like(y_exponent), y_exponent)
        return torch.cat((y, m.unsqueeze(1)), dim=1), torch.stack((y_exponent, m_exponent), dim=-1)


def next_tokens(
    X: Float[Tensor, "N n d"],
    exponents: Int64[Tensor, "N n"],
    attention: Float[Tensor, "K heads n n"],
    weights: layers.HeadMap,
    residual: bool,
) -> tuple[Float[Tensor, "N n d"], Int64[Tensor, "N n"]]:
    """The tokens after a layer with these A_h, K = N or 1, and their exponents."""
    used = torch.where((X != 0).any(-1), exponents, state.UNUSED)
    top = torch.where((attention != 0).any(1), used.unsqueeze(-2), state.UNUSED).amax(-1)
    if residual:
        top = torch.maximum(top, used)
    top = torch.where(top == state.UNUSED, torch.zeros_like(top), top)
    step = (used.unsqueeze(-2) - top.unsqueeze(-1)).clamp_max(0)
    scaled = attention * state.powers_of_two(step, X.dtype).unsqueeze(1)
    moved = weights.leave(layers.mix(scaled, weights.enter(X)))
    if residual:
        return state.normalise(state.scale(X, exponents - top, 1) + moved, 1, top)
    return state.normalise(moved, 1, top + weights.shift)


@state.undisturbed()
def evolve_heads(
    *,
    X0: "MatrixLike | Tensor | state.SplitState",
    attention: "MatrixLike | Tensor | FromState | Fixed | PerLayer | Drawn",
    weights: "WeightLike | Tensor | Fixed | PerLayer | Drawn",
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

    >>> import numpy as np, oversmoothing
    >>> A = np.array([[[0.75, 0.25], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> W = np.array([[[0.5]], [[-0.25]]])
    >>> run = oversmoothing.evolve_heads(X0=[[1.0], [2.0]], attention=A, weights=W, depth=2)
    >>> run.metrics()["hfc_lfc"].round(4).tolist()
    [0.3333, 0.3333]
    """
    depths = check_depths(depth)
    where = state.choose_device(device)
    precision = choose_precision(X0, dtype)
    attention, weights = layers.as_rule(attention), layers.as_rule(weights)
    first = layers.weights_at(weights, 0)
    batch, Z, exponents, X, X_exponents = _start(X0, first.d, attention, first.heads)
    n = Z.shape[-2]
    Z, exponents = Z.to(where, precision), exponents.to(where)
    X, X_exponents = X.to(where, precision), X_exponents.to(where)

    offset = torch.zeros(Z.shape[:-1], dtype=torch.float64, device=where)

    def run(seed: int | None) -> States:
        stack = layers.Stack(
            attention, weights, residual, batch, n, first.d, where, precision, seed
        )
        start, tokens = (Z, X) if seed is None else (nudged(Z, seed), nudged(X, seed))
        heads = Heads(start, exponents, stack, (tokens, X_exponents))

        def state_at(depth: int, bar: Bar) -> tuple[state.Scaled, state.Scaled | None]:
            heads.advance_to(depth, bar)
            return heads.rescaled(), heads.beside

        kept, rows = zip(*iteration.kept_at(depths, progress, state_at), strict=True)
        known = None if None in rows else iteration.stacked(rows)
        return States(*iteration.stacked(kept), offset, rows=known)

    states = run(None)
    return Trajectory(
        depths,
        batch,
        replace(states, errors=lambda: distances(states, [run(seed) for seed in SEEDS], precision)),
        method="layers",
        reason="heads and changing layers have no common eigenbasis: iterated layer by layer",
    )


def _start(
    X0: Any, d: int, attention: layers.Rule, heads: int
) -> tuple[tuple[int, ...], Tensor, Tensor, Tensor, Tensor]:
    """The batch shape with that of A; [y; m] [N, n, d] and the tokens, with their exponents."""
    given = X0 if isinstance(X0, state.SplitState) else None
    array = plain(X0 if given is None else given.hfc, "X0")
    asked = attention.at(0, ATTENTION_STREAM)
    more: tuple[int, ...] = ()
    if isinstance(asked, FromState):
        shape = np.shape(array)
        if len(shape) < 2 or shape[-2] < 1:
            raise InputError(f"X0 has shape {list(shape)}; it must be [..., n, {d}] with n >= 1")
        n = shape[-2]
    else:
        A = layers.head_attention(asked, heads)
        n, more = A.shape[-1], A.shape[:-3]
    checked = check_states(array, n, d)
    batch = broadcast_batches(A=more, X0=checked.shape[:-2])
    parts = state.split(torch.as_tensor(checked)) if given is None else given

    def flat(x: Tensor, *shape: int) -> Tensor:
        return x.cpu().expand(*batch, *shape).reshape(-1, *shape)

    y, mean = state.to_differences(flat(parts.hfc, n, d)), flat(parts.mean.unsqueeze(-2), 1, d)
    exponents = flat(torch.stack((parts.hfc_exponent, parts.mean_exponent), dim=-1), 2)
    tokens = flat(parts.rows, n, d), flat(parts.row_exponent, n)
    return batch, torch.cat((y, mean), dim=-2), exponents, *tokens
