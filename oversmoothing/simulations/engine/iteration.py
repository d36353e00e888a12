"""Layer by layer: Z = [y; c] <- Z + [B', 1] Z W, rescaled by powers of two (T1c-d, T11).

Iterating X itself, HFC / LFC saturates at the rounding of A 1 = 1: 1.2e-7 in float32, 1.8e-16 in
float64; here a ratio of 1e-100000 is measured. (The orthonormal B = Q^T A Q would do as well, but
its square roots cost the exact zeros: with h = -2 and A = [[3/4, 1/4], [1/4, 3/4]] the ratio is 0
after one layer.) Two products a layer, in place: at 197 x 768 the speed of a large square product.

A head in its core: W = P Q of rank r moves n x r numbers a layer instead of n x d.

    Z = X P,  G = Q P,  Z <- Z + A Z G,  X_L = X_0 + A (sum_l Z_l) Q     (exact for any L and any G)
and X_L = A Z_{L-1} Q without the residual.

Where A is reducible (a causal mask, several groups) a token depends on the tokens that it reaches
alone. It may then lose the mode that dominates the others, and no accuracy relative to their size
says where it points. So the tokens are iterated themselves too (T4b, T11.10), token k relative to
the largest of the tokens that it reaches: the zeros of A keep all larger ones out of it exactly.
"""

import math
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from tqdm import tqdm

from oversmoothing.simulations.engine.errors import Rows, States, start_of, unknown
from oversmoothing.simulations.engine.problem import Problem, norm_bound
from oversmoothing.simulations.state import (
    HALF,
    UNUSED,
    exponent_of,
    normalise,
    normalised_sum,
    powers_of_two,
    scale,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

State = TypeVar("State")
# Values [N, n, d] and the powers of two of their parts or rows [N, parts].
Kept = tuple[Tensor, Tensor]

# One layer may grow a state by so many bits ...
_RANGE_BITS = {torch.float64: 900, torch.float32: 96}
# ... a block of layers by so many, and may end no further below 1 than the next: then no state was
# lost to underflow on the way, for it could not have come back.
_GROWTH_BITS = {torch.float64: 450, torch.float32: 56}
_SHRINK_BITS = {torch.float64: 500, torch.float32: 64}
_LONGEST = 1 << 20


class PartScales:
    """One power of two for the rows of y and one for c: Z [N, n, d], exponents [N, 2]."""

    def __init__(self, Z: Tensor) -> None:
        self.part = torch.tensor([0] * (Z.shape[-2] - 1) + [1], device=Z.device)
        self.smallest = 2.0 ** -_SHRINK_BITS[Z.dtype]

    def largest(self, Z: Tensor) -> Tensor:
        """The largest |entry| of each part, [N, parts]."""
        return largest_of_parts(Z)

    def lost(self, before: Tensor, after: Tensor) -> Tensor:
        """Which parts shrank past the range of the floats, from their largest entries."""
        return (after < self.smallest) & (before > 0)

    def rescale(self, Z: Tensor, exponents: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
        """Divides Z by powers of two, in place; (exponents, largest entries that count now)."""
        half = HALF[Z.dtype]
        # A subnormal needs two steps.
        shift = exponent_of(largest).clamp(-half, half)
        Z.mul_(powers_of_two(-shift, Z.dtype)[:, self.part].unsqueeze(-1))
        return exponents + shift, largest

    def matrix(self, A: Tensor, exponents: Tensor) -> Tensor:
        """A for what stands over these powers of two: the two parts do not mix."""
        return A

    def kept(self, Z: Tensor, exponents: Tensor, start: Kept | None = None) -> Kept:
        """What is kept of 2^exponents Z, or of its sum with the start."""
        if start is None:
            return Z.clone(), exponents
        X, X_exponents = start
        sums = []
        for index, rows in enumerate((slice(0, -1), slice(-1, None))):
            x, z = X[:, rows].to(torch.float64), Z[:, rows].to(torch.float64)
            if not x.numel():
                sums.append((x, X_exponents[:, index]))
                continue
            terms = (x, X_exponents[:, index]), normalise(z, 2, exponents[:, index])
            sums.append(normalised_sum(*terms, trailing=2))
        values, found = zip(*sums, strict=True)
        return torch.cat(values, dim=-2).to(X.dtype), torch.stack(found, dim=-1)


class RowScales(PartScales):
    """One power of two for each token: Z [N, n, d], exponents [N, n].

    reach [N, n, n]: whether token k depends on token j, itself included.
    """

    def __init__(self, Z: Float[Tensor, "N n d"], reach: Bool[Tensor, "N n n"]) -> None:
        super().__init__(Z)
        self.part = torch.arange(Z.shape[-2], device=Z.device)
        self.reach = reach

    def largest(self, Z: Tensor) -> Tensor:
        return torch.maximum(Z.amax(-1), -Z.amin(-1))

    def lost(self, before: Tensor, after: Tensor) -> Tensor:
        # A token far below those that it reaches is none that shrank.
        return (after < self.smallest) & (before >= 0.25)

    def rescale(self, Z: Tensor, exponents: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
        own = torch.where(largest > 0, exponents + exponent_of(largest), UNUSED)
        new = torch.where(self.reach, own.unsqueeze(-2), UNUSED).amax(-1)
        new = torch.where(new == UNUSED, torch.zeros_like(new), new)
        Z.copy_(scale(Z, exponents - new, 1))
        return new, self.largest(Z)

    def matrix(self, A: Tensor, exponents: Tensor) -> Tensor:
        """2^(e_j - e_k) A_kj; e_j <= e_k wherever k reaches j."""
        step = exponents.unsqueeze(-2) - exponents.unsqueeze(-1)
        return A * powers_of_two(step.clamp_max(0), A.dtype)

    def kept(self, Z: Tensor, exponents: Tensor, start: Kept | None = None) -> Kept:
        term = normalise(Z.to(torch.float64), 1, exponents)
        return term if start is None else normalised_sum(term, start, trailing=1)


class LayerIteration:
    """Z = [Y; c] [N, n, d] and the exponents [N, 2] of its two parts, moved layer by layer.

    scales: what shares a power of two, where it is not these parts. summed: with the residual, the
    sum of all Z before, `total`, is kept too, with its exponents.
    """

    def __init__(
        self,
        Z: Float[Tensor, "N n d"],
        exponents: Int64[Tensor, "N parts"],
        A: Float[Tensor, "N n n"],
        W: Float[Tensor, "N d d"],
        block: int,
        residual: bool = True,
        scales: PartScales | None = None,
        summed: bool = False,
    ) -> None:
        self.Z, self.exponents, self.block, self.layer = Z, exponents, block, 0
        self.scales = PartScales(Z) if scales is None else scales
        self.unscaled = A
        self.A = self.scales.matrix(A, exponents)
        self.shared = W[0] if len(W) and (W.stride(0) == 0 or len(W) == 1) else None
        self.W, self.residual, self.summed = W, residual, summed and residual
        self.T = torch.empty_like(Z)
        self.saved = torch.empty_like(Z)
        if self.summed:
            self.sum = torch.zeros_like(Z)
            self.total = torch.zeros_like(Z)
            self.total_exponents = torch.full_like(exponents, -(1 << 40))
            self._rescale(self.scales.largest(Z))

    def advance_to(self, target: int, bar: tqdm) -> None:
        """Move the state on to the layer `target`."""
        before = self.scales.largest(self.Z)
        while self.layer < target:
            block = min(self.block, target - self.layer)
            self.saved.copy_(self.Z)
            self._layers(block)
            largest = self.scales.largest(self.Z)
            if block > 1 and bool(self.scales.lost(before, largest).any()):
                # Shrunk past the range of the floats within one block: again, in shorter blocks.
                self.Z.copy_(self.saved)
                self.block = max(1, block // 2)
                continue
            before = self._rescale(largest)
            self.layer += block
            bar.update(block)

    def _layers(self, number: int) -> None:
        """So many layers, without rescaling: T = Z W, then Z = Z + A T."""
        if self.summed:
            self.sum.zero_()
        for _ in range(number):
            if self.summed:
                self.sum.add_(self.Z)
            if self.shared is not None:
                rows = self.Z.shape[-1]
                torch.mm(self.Z.view(-1, rows), self.shared, out=self.T.view(-1, rows))
            else:
                torch.bmm(self.Z, self.W, out=self.T)
            if self.residual:
                self.Z.baddbmm_(self.A, self.T)
            else:
                torch.bmm(self.A, self.T, out=self.Z)

    def _rescale(self, largest: Tensor) -> Tensor:
        """What now counts as the largest entries, after Z has been divided by powers of two."""
        if self.summed:
            # total += the sum over the block, on the larger of the two scales.
            common = torch.maximum(self.total_exponents, self.exponents)
            old = powers_of_two(self.total_exponents - common, self.Z.dtype)
            new = powers_of_two(self.exponents - common, self.Z.dtype)
            self.total.mul_(old[:, self.scales.part].unsqueeze(-1))
            self.total.addcmul_(self.sum, new[:, self.scales.part].unsqueeze(-1))
            self.total_exponents = common
        self.exponents, largest = self.scales.rescale(self.Z, self.exponents, largest)
        self.A = self.scales.matrix(self.unscaled, self.exponents)
        return largest


def largest_of_parts(Z: Tensor) -> Tensor:
    """The largest |entries| of the first n - 1 rows and of the last, [N, 2]."""
    # Ten times faster than the norm of order inf.
    rows = torch.maximum(Z.amax(-1), -Z.amin(-1))
    if rows.shape[-1] == 1:
        return torch.cat((torch.zeros_like(rows), rows), dim=-1)
    return torch.stack((rows[:, :-1].amax(-1), rows[:, -1]), dim=-1)


def block_length(x: float, size: int, dtype: torch.dtype, residual: bool) -> int:
    """How many layers may pass between two rescalings, for x >= ||B'|| ||W||.

    One layer multiplies a norm by at most 1 + x and, with the residual and x < 1, at least by
    1 - x. Otherwise cancellation may shrink a state without bound: a block that ends below the
    range is repeated in shorter ones, and grows too little to hide a loss on the way.
    Raises `InputError` where one layer alone may overflow.
    """
    bits = _RANGE_BITS[dtype] - math.log2(size)
    if not math.log2(1.0 + x) <= bits:
        raise InputError(f"the weights are too large for {dtype} (norm up to {x:.1e}): scale them")
    if residual and x < 2.0**-20:
        return _LONGEST
    if residual and x < 0.5:
        return max(1, int(_GROWTH_BITS[dtype] / -math.log2(1.0 - x)))
    return max(1, int(_GROWTH_BITS[dtype] / math.log2(1.0 + max(x, 1.0))))


def kept_at(
    depths: tuple[int, ...], progress: bool, state_at: Callable[[int, tqdm], State]
) -> list[State]:
    """The states at the depths, with a bar of layers on stderr: on a terminal, or if asked for."""
    hidden = None if progress else True
    bar = tqdm(total=depths[-1], disable=hidden, file=sys.stderr, unit="layer")
    with torch.inference_mode(), bar:
        return [state_at(depth, bar) for depth in depths]


def stacked(kept: Iterable[Kept]) -> Kept:
    """Values and exponents over the depths."""
    values, exponents = zip(*kept, strict=True)
    return torch.stack(values), torch.stack(exponents)


def iterated(
    problem: Problem,
    depths: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    progress: bool,
    in_core: bool,
) -> States:
    """The states at the depths, one layer after the other, and where A is reducible the tokens.

    O(n d (n + d)) a layer; in the core of a head O(n r (n + r)), and O(n r d) for each depth kept.
    Raises `InputError` in the core of a W that is not given by its factors.
    """
    # The draws of a twin come in this order.
    of_parts = start_of(problem, device, dtype)
    W = problem.dense_weights
    P = Q = None
    if in_core:
        if problem.P is None or problem.Q is None:
            raise InputError(
                "method 'core' needs the factors of W: give W=(W_V, W_proj), or use 'plain'"
            )
        P, Q = (problem.flat(M, 2, device, dtype) for M in (problem.P, problem.Q))
        W = problem.Q @ problem.P
    weights = problem.flat(W, 2, device, dtype)

    def run(A: Array, norm: float, start: Kept, reach: Tensor | None) -> Kept:
        X, exponents = start
        Z = X.to(dtype) if P is None else X.to(dtype) @ P
        Z = Z.contiguous().clone()
        scales = PartScales(Z) if reach is None else RowScales(Z, reach)
        over = exponents
        if reach is not None:
            over, _ = scales.rescale(Z, exponents, scales.largest(Z))
        block = block_length(norm, problem.n * problem.d, dtype, problem.residual)
        matrix = problem.flat(A, 2, device, dtype)
        iteration = LayerIteration(
            Z, over, matrix, weights, block, problem.residual, scales, in_core
        )

        def state_at(depth: int, bar: tqdm) -> Kept:
            # X_L = A Z_{L-1} Q without the residual.
            behind = in_core and not problem.residual
            iteration.advance_to(max(depth - behind, 0), bar)
            if depth == 0:
                return start
            if Q is None:
                return scales.kept(iteration.Z, iteration.exponents)
            Y, exponents = iteration.Z, iteration.exponents
            if problem.residual:
                Y, exponents = iteration.total, iteration.total_exponents
            moved = (scales.matrix(matrix, exponents) @ Y) @ Q
            return scales.kept(moved, exponents, start if problem.residual else None)

        return stacked(kept_at(depths, progress, state_at))

    found = run(problem.quotient, problem.norm, of_parts, None)
    offset = problem.flat_offset(device)
    if problem.reach is None:
        return States(*found, offset, unknown)
    # The tokens' scales only shrink the entries of A.
    norm = norm_bound(W) * norm_bound(problem.A)
    tokens = normalise(problem.flat(problem.X0, 2, device), 1)
    reach = problem.flat(problem.reach, 2, device)
    return States(*found, offset, unknown, Rows(*run(problem.A, norm, tokens, reach)))
