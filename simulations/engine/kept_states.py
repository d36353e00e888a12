"""What a method hands back: the states at the asked depths, and how exact they are."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from oversmoothing.simulations.engine.problem import Problem


@dataclass(frozen=True)
class States:
    """states [depths, N, n, d]: the rows of y and then c; exponents [depths, N, 2] of the two.

    error: a first-order estimate of the relative error at each depth, the worst of the batch.
    """

    states: Float[Tensor, "depths N n d"]
    exponents: Int64[Tensor, "depths N 2"]
    error: tuple[float, ...]


def start_of(
    problem: Problem, device: torch.device, dtype: torch.dtype
) -> tuple[Float[Tensor, "N n d"], Int64[Tensor, "N 2"]]:
    """(Z, exponents) of X_0: the rows of y and then c, [N, n, d], and their exponents [N, 2]."""
    hfc, hfc_exponent, c, c_exponent = problem.start
    y = hfc[..., :-1, :] - hfc[..., -1:, :]
    batch = problem.batch
    Z = np.concatenate(
        (
            np.broadcast_to(y, batch + y.shape[-2:]),
            np.broadcast_to(c, batch + c.shape[-1:])[..., None, :],
        ),
        axis=-2,
    )
    exponents = np.stack(
        (np.broadcast_to(hfc_exponent, batch), np.broadcast_to(c_exponent, batch)), axis=-1
    )
    return (
        torch.as_tensor(Z.reshape(problem.number, *Z.shape[-2:])).to(device, dtype).contiguous(),
        torch.as_tensor(exponents.reshape(problem.number, 2).astype(np.int64)).to(device),
    )
