"""The ordinary model: H is any real d x d matrix, and nothing is promised."""

import torch
from torch import Tensor

from oversmoothing.experiments.parameterisations.form import Form, Guarantee


class Free(Form):
    """H = weight [d, d]."""

    parts = ("weight",)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("H is any matrix", "none", "none", "T2d, T3 decide case by case")

    def product(self, *free: Tensor) -> Tensor:
        return free[0]

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        return (H.clone(),)

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The spectrum of H lies within about `scale` of zero."""
        # A Gaussian matrix of variance scale^2 / d fills the disc of radius `scale` (circular law).
        return (torch.randn(width, width, generator=generator) * (scale / width**0.5),)

    def _excess(self, H: Tensor) -> tuple[float, float, float]:
        return 1.0, float("inf"), -float("inf")
