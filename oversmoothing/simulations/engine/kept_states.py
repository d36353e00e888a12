"""What a method hands back: the states at the asked depths, and how exact they are."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from oversmoothing.simulations.engine.problem import Problem


@dataclass(frozen=True)
class Rows:
    """The tokens themselves, each with its own power of two: values [depths, N, n, d], exponents
    [depths, N, n]."""

    values: Float[Tensor, "depths N n d"]
    exponents: Int64[Tensor, "depths N n"]


@dataclass(frozen=True)
class Errors:
    """Estimated relative errors: of y and c [depths, N, 2], and of `Rows` [depths, N, n] where
    there are any."""

    parts: Float64[Tensor, "depths N 2"]
    rows: Float64[Tensor, "depths N n"] | None = None


@dataclass(frozen=True)
class States:
    """states [depths, N, n, d]: the rows of y and then c; exponents [depths, N, 2] of the two.

    errors: what estimates their errors, asked for when needed: it may cost as much as the states.
    rows: the tokens, where they are known better than from y and c. offset [N, n]: mean = c +
    offset^T HFC, where it is not the problem's.
    """

    states: Float[Tensor, "depths N n d"]
    exponents: Int64[Tensor, "depths N 2"]
    errors: Callable[[], Errors]
    rows: Rows | None = None
    offset: Float64[Tensor, "N n"] | None = None


def start_of(
    problem: Problem, device: torch.device, dtype: torch.dtype
) -> tuple[Float[Tensor, "N n d"], Int64[Tensor, "N 2"]]:
    """(Z, exponents) of X_0: the rows of y and then c, [N, n, d], and their exponents [N, 2]."""
    Z, exponents = problem.start_rows
    return (
        torch.tensor(Z.reshape(problem.number, *Z.shape[-2:])).to(device, dtype).contiguous(),
        torch.tensor(exponents.reshape(problem.number, 2)).to(device),
    )
