"""The layer X' = X + A X W run to any depth without losing the spread or the scale (T1c-d, T11).

What is iterated is not X but the two decoupled systems behind it,
    y' = y + B' y W   (y_i = x_i - x_n, B'_ij = A_ij - A_nj)   and   c' = c + c W   (c = pi^T X),
each with its own power of two. Iterating X itself, HFC / LFC saturates at the rounding of A 1 = 1:
1.2e-7 in float32, 1.8e-16 in float64; here a million layers and a ratio of 1e-100000 are measured.
(The orthonormal B = Q^T A Q would do as well, but its square roots cost the exact zeros: with
h = -2 and A = [[3/4, 1/4], [1/4, 3/4]] the ratio is 0 after one layer.)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from simulations.inputs import (
    as_numpy,
    check_depths,
    choose_device,
    choose_precision,
    row_tolerance,
)
from simulations.split_state import add_scaled, normalise, split, to_differences
from simulations.trajectory import Trajectory
from theory.checks import (
    check_attention,
    check_square,
    check_states,
    one_of,
)
from theory.errors import InputError
from theory.perron import stationary_distribution

Array = NDArray[np.float64]

# Bits of range that one block of layers may use, up or down: what is left covers the digits.
_RANGE_BITS = {torch.float64: 900, torch.float32: 96}
# Blocks are this short where cancellation could shrink a state by all its digits in one layer.
_SHORT_BLOCK = {torch.float64: 16, torch.float32: 3}


def evolve(
    *,
    X0: Any,
    A: Any,
    W: Any = None,
    H: Any = None,
    depth: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: str = "auto",
    progress: bool = False,
) -> Trajectory:
    """Run X' = X + A X W from X_0 and keep the states at the asked depths.

    A [*batch, n, n] row-stochastic, exactly one of W and H = W^T [*batch, d, d], X0 [*batch, n, d]:
    arrays or tensors; batch dimensions broadcast. depth: one depth (0 is kept too, unless asked
    alone) or an increasing sequence of depths >= 0. dtype: torch.float32 or torch.float64, by
    default that of X0 if it is one of these, else float64. device: 'auto' (cuda if there is one,
    else cpu) or a torch device.

    pi and B' are formed in float64 on the CPU; the iteration runs on `device` in `dtype` and costs
    two matrix products a layer. A whose columns sum to 1 within n eps counts as doubly stochastic,
    pi = 1/n. Where the eigenvalue 1 of A repeats, any stationary pi keeps c' = c + c W exact.
    A state that becomes exactly 0 stays 0, and its metrics are undefined (NaN).

    Raises `InputError` for NaN, wrong shapes, A not row-stochastic, bad depths or devices.
    """
    depths = check_depths(depth)
    where = choose_device(device)
    precision = choose_precision(X0, dtype)
    attention = check_attention(as_numpy(A), tolerance=row_tolerance(A))
    name = one_of(H, W)
    weights = check_square(as_numpy(H if W is None else W), name=name)
    weights = weights if name == "W" else np.swapaxes(weights, -1, -2)
    n, d = attention.shape[-1], weights.shape[-1]
    start = check_states(as_numpy(X0), n, d)
    try:
        batch = np.broadcast_shapes(attention.shape[:-2], weights.shape[:-2], start.shape[:-2])
    except ValueError as error:
        raise InputError(
            f"the batch dimensions of A {attention.shape[:-2]}, {name} {weights.shape[:-2]} and "
            f"X0 {start.shape[:-2]} do not broadcast"
        ) from error
    number = math.prod(batch)

    offset = _mean_offset(attention)  # 1/n - pi, so that mean = c + offset^T HFC (T1d)
    extended = np.zeros_like(attention)  # B' and a 1 for the row c: one product serves both systems
    extended[..., : n - 1, : n - 1] = (
        attention[..., : n - 1, : n - 1] - attention[..., n - 1 :, : n - 1]
    )
    extended[..., n - 1, n - 1] = 1.0
    block = _block_length(extended, weights, precision)

    def flat(x: Array, trailing: int, *to: Any) -> Tensor:
        shape = x.shape[x.ndim - trailing :]
        if x.size == math.prod(shape):  # shared by the whole batch: one copy
            return torch.as_tensor(x.reshape(1, *shape).copy()).to(*to).expand(number, *shape)
        x = np.broadcast_to(x, batch + shape).reshape(number, *shape)
        return torch.as_tensor(x.copy()).to(*to)

    state = split(flat(start, 2, torch.float64))
    gap = flat(offset, 1, torch.float64)
    Y, Y_exponent = normalise(to_differences(state.hfc), 2)
    Y_exponent = Y_exponent + state.hfc_exponent
    # c = mean - offset^T HFC, with both parts brought to the larger exponent.
    c, c_exponent = add_scaled(
        state.mean,
        state.mean_exponent,
        -(gap.unsqueeze(-2) @ state.hfc).squeeze(-2),
        state.hfc_exponent,
    )
    Z = torch.cat((Y, c.unsqueeze(-2)), dim=-2).to(where, precision).contiguous()
    exponents = torch.stack((Y_exponent, c_exponent), dim=-1).to(where)

    iteration = _Iteration(
        Z,
        exponents,
        flat(extended, 2, where, precision),
        flat(weights, 2, where, precision),
        block,
    )
    kept: list[tuple[Tensor, Tensor]] = []
    with (
        torch.inference_mode(),
        tqdm(
            total=depths[-1], disable=None if progress else True, file=sys.stderr, unit="layer"
        ) as bar,
    ):
        done = 0
        for target in depths:
            iteration.advance(target - done, bar)
            done = target
            kept.append((iteration.Z.clone(), iteration.exponents.clone()))
    return Trajectory(
        depths=depths,
        batch=batch,
        states=torch.stack([Z for Z, _ in kept]),
        exponents=torch.stack([e for _, e in kept]),
        offset=gap.to(where),
    )


class _Iteration:
    """Z = [Y; c] [N, n, d] and the exponents [N, 2] of its two parts, moved layer by layer."""

    def __init__(self, Z: Tensor, exponents: Tensor, A: Tensor, W: Tensor, block: int) -> None:
        self.Z, self.exponents, self.A, self.block = Z, exponents, A, block
        self.shared = W[0] if W.stride(0) == 0 or len(W) == 1 else None
        self.W = W
        self.T = torch.empty_like(Z)
        self.saved = torch.empty_like(Z)
        n = Z.shape[-2]
        self.part = torch.tensor([0] * (n - 1) + [1], device=Z.device)
        self.smallest = 2.0 ** -_RANGE_BITS[Z.dtype]

    def advance(self, layers: int, bar: Any) -> None:
        alive = self._largest() > 0
        while layers > 0:
            block = min(self.block, layers)
            self.saved.copy_(self.Z)
            self._layers(block)
            largest = self._largest()
            if block > 1 and bool(((largest < self.smallest) & alive).any()):
                # Shrunk past the range of the floats within one block: again, in shorter blocks.
                self.Z.copy_(self.saved)
                self.block = max(1, block // 2)
                continue
            self._rescale(largest)
            alive = largest > 0
            layers -= block
            bar.update(block)

    def _layers(self, number: int) -> None:
        Z, T, A = self.Z, self.T, self.A
        if self.shared is not None:
            W = self.shared
            Z_rows, T_rows = Z.view(-1, Z.shape[-1]), T.view(-1, Z.shape[-1])
            for _ in range(number):
                torch.mm(Z_rows, W, out=T_rows)
                Z.baddbmm_(A, T)
        else:
            W = self.W
            for _ in range(number):
                torch.bmm(Z, W, out=T)
                Z.baddbmm_(A, T)

    def _largest(self) -> Tensor:
        """The largest entries of Y and of c, [N, 2]."""
        rows = torch.linalg.vector_norm(self.Z, ord=math.inf, dim=-1)
        if rows.shape[-1] == 1:
            return torch.cat((torch.zeros_like(rows), rows), dim=-1)
        return torch.stack((rows[:, :-1].amax(-1), rows[:, -1]), dim=-1)

    def _rescale(self, largest: Tensor) -> None:
        # A subnormal needs two steps to come back to [1/2, 1); the second is the next block's.
        limit = 1022 if self.Z.dtype == torch.float64 else 126
        shift = torch.frexp(largest).exponent.to(torch.int64).clamp(-limit, limit)
        self.exponents += shift
        if self.Z.dtype == torch.float64:
            factor = ((1023 - shift) << 52).view(torch.float64)
        else:
            factor = ((127 - shift) << 23).to(torch.int32).view(torch.float32)
        self.Z.mul_(factor[:, self.part].unsqueeze(-1))


def _mean_offset(A: Array) -> Array:
    """1/n - pi [..., n]."""
    result = np.zeros(A.shape[:-1])
    for place in np.ndindex(*A.shape[:-2]):
        result[place] = 1.0 / A.shape[-1] - stationary_distribution(A[place])
    return result


def _block_length(A: Array, W: Array, dtype: torch.dtype) -> int:
    """How many layers may pass between two rescalings without over- or underflow.

    With x >= ||A|| ||W||, A the block-diagonal (B', 1), one layer multiplies a norm by at most
    1 + x and, where x < 1, at least by 1 - x.
    """
    bits = _RANGE_BITS[dtype] - math.log2(A.shape[-1] * W.shape[-1])
    x = _norm_bound(W) * _norm_bound(A)
    if math.log2(1.0 + x) > bits:
        raise InputError(f"the weights are too large for {dtype} (norm up to {x:.1e}): scale them")
    if x < 2.0**-20:
        return 1 << 20
    if x < 1.0:
        return max(1, int(bits / -math.log2(1.0 - x)))
    return max(1, min(int(bits / math.log2(1.0 + x)), _SHORT_BLOCK[dtype]))


def _norm_bound(M: Array) -> float:
    """An upper bound on every spectral norm in the batch, in O(size)."""
    size = np.abs(M)
    top = float(size.max())
    if top == 0.0:
        return 0.0
    size = size / top
    frobenius = np.sqrt((size * size).sum(axis=(-2, -1)))
    mixed = np.sqrt(size.sum(axis=-1).max(axis=-1) * size.sum(axis=-2).max(axis=-1))
    return top * float(np.minimum(frobenius, mixed).max())
