"""The operator of a layer with a way to a device: torch loads when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oversmoothing.theory.operator import KroneckerOperator

if TYPE_CHECKING:
    from oversmoothing.simulations.engine.torch_operator import TorchOperator


class Operator(KroneckerOperator):
    """I + H (x) A, or I + sum_h H_h (x) A_h, never built; see `KroneckerOperator`."""

    __doc__ = KroneckerOperator.__doc__

    def torch(self, device: str = "auto", dtype: Any = None) -> TorchOperator:
        """The same on a device: a function of states X [*batch, n, d], tensors or arrays.

        dtype: of torch, float64 unless given. Raises `InputError` where the device is not there.
        """
        import torch

        from oversmoothing.simulations.engine.torch_operator import TorchOperator

        return TorchOperator.of(self.layer, device, dtype or torch.float64)
