"""The operator of a layer, and the same on a device: X + sum_h A_h X W_h of states (T1a).

torch loads when a device is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oversmoothing.theory.operator import KroneckerOperator
from oversmoothing.theory.spectra.heads import head_weights, stacked
from oversmoothing.theory.support.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


class Operator(KroneckerOperator):
    """I + H (x) A, or I + sum_h H_h (x) A_h, never built; see `KroneckerOperator`."""

    __doc__ = KroneckerOperator.__doc__

    def torch(self, device: str = "auto", dtype: Any = None) -> TorchOperator:
        """The same on a device: a function of states X [*batch, n, d], tensors or arrays.

        dtype: of torch, float64 unless given. Raises `InputError` where the device is not there.
        """
        import torch

        from oversmoothing.simulations.state import choose_device

        where = choose_device(device)
        A, W = (
            torch.from_numpy(np.ascontiguousarray(M)).to(where, dtype or torch.float64)
            for M in (stacked(self.layer.A), head_weights(self.layer).dense())
        )
        return TorchOperator(A, W)


class TorchOperator:
    """I + sum_h H_h (x) A_h, never built: `op(X)` for states [*batch, n, d], `op @ x` for vec(X)
    [*batch, n d] (columns stacked), `op.T` for the transpose."""

    def __init__(self, A: Tensor, W: Tensor) -> None:
        self.A, self.W = A, W
        self.n, self.d = A.shape[-1], W.shape[-1]

    def _tensor(self, x: Any) -> Tensor:
        import torch

        return torch.as_tensor(x, dtype=self.A.dtype, device=self.A.device)

    def __call__(self, X: Any) -> Tensor:
        state = self._tensor(X)
        if state.shape[-2:] != (self.n, self.d):
            raise InputError(
                f"X has shape {list(state.shape)}; it must be [..., {self.n}, {self.d}]"
            )
        return state + (self.A @ (state.unsqueeze(-3) @ self.W)).sum(-3)

    def __matmul__(self, x: Any) -> Tensor:
        vector = self._tensor(x)
        return self(vector.reshape(*vector.shape[:-1], self.d, self.n).mT).mT.flatten(-2)

    @property
    def T(self) -> TorchOperator:
        return TorchOperator(self.A.mT, self.W.mT)

    def __repr__(self) -> str:
        return f"<I + H (x) A: {self.n} tokens, {self.d} features, on {self.A.device}>"
