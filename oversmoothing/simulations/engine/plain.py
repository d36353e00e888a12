"""Layer by layer: Z = [y; c] <- Z + [B', 1] Z W, rescaled by powers of two (T1c-d, T11).

Iterating X itself, HFC / LFC saturates at the rounding of A 1 = 1: 1.2e-7 in float32, 1.8e-16 in
float64; here a ratio of 1e-100000 is measured. (The orthonormal B = Q^T A Q would do as well, but
its square roots cost the exact zeros: with h = -2 and A = [[3/4, 1/4], [1/4, 3/4]] the ratio is 0
after one layer.) Two products a layer, in place: at 197 x 768 the speed of a large square product.
"""

import math
import sys

import torch
from torch import Tensor
from tqdm import tqdm

from oversmoothing.simulations.engine.kept_states import start_of
from oversmoothing.simulations.engine.problem import Problem
from oversmoothing.simulations.state import HALF, exponent_of, powers_of_two
from oversmoothing.theory.support.errors import InputError

# One layer may grow a state by so many bits ...
_RANGE_BITS = {torch.float64: 900, torch.float32: 96}
# ... a block of layers by so many, and may end no further below 1 than the next: then no state was
# lost to underflow on the way, for it could not have come back.
_GROWTH_BITS = {torch.float64: 450, torch.float32: 56}
_SHRINK_BITS = {torch.float64: 500, torch.float32: 64}
_LONGEST = 1 << 20


def plain(
    problem: Problem,
    depths: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    progress: bool,
) -> tuple[Tensor, Tensor]:
    """(Z [depths, N, n, d], exponents [depths, N, 2]), one layer after the other; O(n d (n + d))
    a layer."""
    Z, exponents = start_of(problem, device, dtype)
    iteration = LayerIteration(
        Z,
        exponents,
        problem.flat(problem.quotient, 2, device, dtype),
        problem.flat(problem.dense_weights, 2, device, dtype),
        block_length(problem.norm, problem.n * problem.d, dtype, problem.residual),
        problem.residual,
    )
    kept: list[tuple[Tensor, Tensor]] = []
    with torch.inference_mode(), progress_bar(depths[-1], progress) as bar:
        done = 0
        for target in depths:
            iteration.advance(target - done, bar)
            done = target
            kept.append((iteration.Z.clone(), iteration.exponents.clone()))
    return torch.stack([Z for Z, _ in kept]), torch.stack([e for _, e in kept])


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


class LayerIteration:
    """Z = [Y; c] [N, n, d] and the exponents [N, 2] of its two parts, moved layer by layer.

    scales: what shares a power of two, where it is not these parts.
    """

    def __init__(
        self,
        Z: Tensor,
        exponents: Tensor,
        A: Tensor,
        W: Tensor,
        block: int,
        residual: bool = True,
        scales: PartScales | None = None,
    ) -> None:
        self.Z, self.exponents, self.A, self.block = Z, exponents, A, block
        self.scales = PartScales(Z) if scales is None else scales
        self.unscaled = A
        self.A = self.scales.matrix(A, exponents)
        self.shared = W[0] if len(W) and (W.stride(0) == 0 or len(W) == 1) else None
        self.W, self.residual = W, residual
        self.T = torch.empty_like(Z)
        self.saved = torch.empty_like(Z)

    def advance(self, layers: int, bar: tqdm) -> None:
        """Move the state on by so many layers."""
        before = self.scales.largest(self.Z)
        while layers > 0:
            block = min(self.block, layers)
            self.saved.copy_(self.Z)
            self.layers(block)
            largest = self.scales.largest(self.Z)
            if block > 1 and bool(self.scales.lost(before, largest).any()):
                # Shrunk past the range of the floats within one block: again, in shorter blocks.
                self.Z.copy_(self.saved)
                self.block = max(1, block // 2)
                continue
            before = self._rescale(largest)
            layers -= block
            bar.update(block)

    def layers(self, number: int) -> None:
        """So many layers, without rescaling."""
        for _ in range(number):
            self._project()
            self._attend()

    def _project(self) -> None:
        """T = Z W."""
        if self.shared is not None:
            rows = self.Z.shape[-1]
            torch.mm(self.Z.view(-1, rows), self.shared, out=self.T.view(-1, rows))
        else:
            torch.bmm(self.Z, self.W, out=self.T)

    def _attend(self) -> None:
        """Z = Z + A T."""
        if self.residual:
            self.Z.baddbmm_(self.A, self.T)
        else:
            torch.bmm(self.A, self.T, out=self.Z)

    def _rescale(self, largest: Tensor) -> Tensor:
        """What now counts as the largest entries, after Z has been divided by powers of two."""
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


def progress_bar(total: int, progress: bool) -> tqdm:
    """A bar of layers on stderr: on a terminal, or where it is asked for."""
    return tqdm(total=total, disable=None if progress else True, file=sys.stderr, unit="layer")
