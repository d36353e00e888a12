"""A head in its core: W = P Q of rank r moves n x r numbers a layer instead of n x d.

    Z = X P,  G = Q P,  Z <- Z + A Z G,  X_L = X_0 + A (sum_l Z_l) Q     (exact for any L and any G)
and X_L = A Z_{L-1} Q without the residual. As in `plain`, what is iterated are the differences
between tokens and the pi-mean, apart (T11.9).
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from oversmoothing.simulations.engine.kept_states import start_of
from oversmoothing.simulations.engine.plain import (
    LayerIteration,
    PartScales,
    block_length,
    progress_bar,
)
from oversmoothing.simulations.engine.problem import Problem
from oversmoothing.simulations.state import normalise, normalised_sum, powers_of_two
from oversmoothing.theory.support.errors import InputError


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
