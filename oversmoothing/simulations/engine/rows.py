"""Tokens iterated themselves, each with its own power of two (T4b, T11.10).

Where A is reducible (a causal mask, several groups) a token depends on the tokens that it reaches
alone. It may then lose the mode that dominates the others, and no accuracy relative to their size
says where it points. Here token k is kept relative to the largest of the tokens that it reaches:
the zeros of A keep all larger ones out of it exactly.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from oversmoothing.simulations.engine.core import CoreIteration
from oversmoothing.simulations.engine.kept_states import Rows
from oversmoothing.simulations.engine.plain import (
    LayerIteration,
    PartScales,
    block_length,
    progress_bar,
)
from oversmoothing.simulations.engine.problem import Problem, norm_bound
from oversmoothing.simulations.state import (
    UNUSED,
    exponent_of,
    normalise,
    normalised_sum,
    powers_of_two,
    scale,
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
