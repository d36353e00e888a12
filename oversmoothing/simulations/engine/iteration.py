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

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from tqdm import tqdm

from oversmoothing.simulations.engine.errors import Rows, start_of
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


def core(
    problem: Problem,
    depths: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    progress: bool,
) -> tuple[Float[Tensor, "depths N n d"], Int64[Tensor, "depths N 2"]]:
    """(Z, exponents) at the depths; O(n r (n + r)) a layer, and O(n r d) for each depth kept.

    Raises `InputError` for a W that is not given by its factors.
    """
    if problem.P is None or problem.Q is None:
        raise InputError(
            "method 'core' needs the factors of W: give W=(W_V, W_proj), or use 'plain'"
        )
    X, exponents = start_of(problem, device, dtype)
    P = problem.flat(problem.P, 2, device, dtype)
    Q = problem.flat(problem.Q, 2, device, dtype)
    A = problem.flat(problem.quotient, 2, device, dtype)
    G = problem.flat(problem.Q @ problem.P, 2, device, dtype)
    block = block_length(problem.norm, problem.n * problem.d, dtype, problem.residual)
    kept = []
    with torch.inference_mode(), progress_bar(depths[-1], progress) as bar:
        iteration = CoreIteration(
            (X @ P).contiguous(), exponents.clone(), A, G, block, problem.residual
        )
        done = 0
        for target in depths:
            steps = target if problem.residual else max(target - 1, 0)
            iteration.advance(steps - done, bar)
            done = steps
            if target == 0:
                kept.append((X, exponents))
                continue
            if problem.residual:
                moved, moved_exponents = (A @ iteration.total) @ Q, iteration.total_exponents
            else:
                moved, moved_exponents = (A @ iteration.Z) @ Q, iteration.exponents
            kept.append(
                _sum_of_parts(X, exponents, moved, moved_exponents)
                if problem.residual
                else (moved, moved_exponents.clone())
            )
    return torch.stack([Z for Z, _ in kept]), torch.stack([e for _, e in kept])


class CoreIteration(LayerIteration):
    """Z [N, n, r] and the running sum of all Z before it, `total`, each with its exponents."""

    def __init__(
        self,
        Z: Float[Tensor, "N n r"],
        exponents: Int64[Tensor, "N parts"],
        A: Float[Tensor, "N n n"],
        G: Float[Tensor, "N r r"],
        block: int,
        residual: bool = True,
        scales: PartScales | None = None,
    ) -> None:
        super().__init__(Z, exponents, A, G, block, residual, scales)
        self.sum = torch.zeros_like(Z)
        self.total = torch.zeros_like(Z)
        self.total_exponents = torch.full_like(exponents, -(1 << 40))
        if residual:
            self._rescale(self.scales.largest(Z))

    def layers(self, number: int) -> None:
        if not self.residual:
            super().layers(number)
            return
        self.sum.zero_()
        for _ in range(number):
            self.sum.add_(self.Z)
            self._project()
            self._attend()

    def _rescale(self, largest: Tensor) -> Tensor:
        if self.residual:
            self._fold()
        return super()._rescale(largest)

    def _fold(self) -> None:
        """total += the sum over the block, on the larger of the two scales."""
        common = torch.maximum(self.total_exponents, self.exponents)
        old = powers_of_two(self.total_exponents - common, self.Z.dtype)
        new = powers_of_two(self.exponents - common, self.Z.dtype)
        self.total.mul_(old[:, self.scales.part].unsqueeze(-1))
        self.total.addcmul_(self.sum, new[:, self.scales.part].unsqueeze(-1))
        self.total_exponents = common


def _sum_of_parts(
    a: Float[Tensor, "N n d"],
    a_exponents: Int64[Tensor, "N 2"],
    b: Float[Tensor, "N n d"],
    b_exponents: Int64[Tensor, "N 2"],
) -> tuple[Float[Tensor, "N n d"], Int64[Tensor, "N 2"]]:
    """2^a_exponents a + 2^b_exponents b, row by row, and the exponents [N, 2] of the sum."""
    sums = []
    for index, rows in ((0, slice(0, a.shape[-2] - 1)), (1, slice(a.shape[-2] - 1, None))):
        x, y = a[:, rows].to(torch.float64), b[:, rows].to(torch.float64)
        if not x.numel():
            sums.append((x, a_exponents[:, index]))
            continue
        terms = (x, a_exponents[:, index]), normalise(y, 2, b_exponents[:, index])
        sums.append(normalised_sum(*terms, trailing=2))
    return (
        torch.cat([x for x, _ in sums], dim=-2).to(a.dtype),
        torch.stack([e for _, e in sums], dim=-1),
    )


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


def rows_of(
    problem: Problem,
    depths: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    progress: bool,
    in_core: bool,
) -> Rows | None:
    """The tokens at the depths where A is reducible, None where HFC and mean give them as well."""
    if problem.reach is None:
        return None
    X, exponents = normalise(problem.flat(problem.X0, 2, device), 1)
    A = problem.flat(problem.A, 2, device, dtype)
    P = Q = None
    W, Z, Z_exponents = problem.dense_weights, X.to(dtype), exponents
    if in_core:
        assert problem.P is not None and problem.Q is not None
        P, Q = (problem.flat(M, 2, device, dtype) for M in (problem.P, problem.Q))
        W = problem.Q @ problem.P
        Z, Z_exponents = normalise(Z @ P, 1, exponents)
    # The tokens' scales only shrink the entries of A.
    norm = norm_bound(W) * norm_bound(problem.A)
    block = block_length(norm, problem.n * problem.d, dtype, problem.residual)
    scales = RowScales(Z, problem.flat(problem.reach, 2, device))
    Z = Z.contiguous().clone()
    Z_exponents, _ = scales.rescale(Z, Z_exponents, scales.largest(Z))
    weights = problem.flat(W, 2, device, dtype)
    kind = CoreIteration if in_core else LayerIteration
    values, found = [], []
    with torch.inference_mode(), progress_bar(depths[-1], progress) as bar:
        iteration = kind(Z, Z_exponents, A, weights, block, problem.residual, scales)
        done = 0
        for target in depths:
            steps = max(target - 1, 0) if in_core and not problem.residual else target
            iteration.advance(steps - done, bar)
            done = steps
            if target == 0:
                value, exponent = X, exponents
            elif Q is None:
                value, exponent = normalise(iteration.Z.to(torch.float64), 1, iteration.exponents)
            else:
                Y, over = iteration.Z, iteration.exponents
                if isinstance(iteration, CoreIteration) and problem.residual:
                    Y, over = iteration.total, iteration.total_exponents
                moved = ((scales.matrix(A, over) @ Y) @ Q).to(torch.float64)
                terms = [normalise(moved, 1, over)]
                if problem.residual:
                    terms.append((X, exponents))
                value, exponent = normalised_sum(*terms, trailing=1)
            values.append(value)
            found.append(exponent)
    return Rows(torch.stack(values), torch.stack(found))
