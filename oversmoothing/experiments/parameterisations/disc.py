"""T3c's disc: H = -(I - K)/2 with ||K||_2 < 1, wider than any symmetric form with h in [-1, 0).

[core; I] = [Q_1; Q_2] R (QR) and K = (1 - m) Q_1, m = `OPEN`. Since Q_1^T Q_1 = I - (R R^T)^-1,
||K||_2 < 1 - m for every core, and every such K is reached by exactly one core, smoothly: no clip,
no eigenvector, nothing that the optimiser must respect.
"""

import torch
from torch import Tensor

from oversmoothing.experiments.parameterisations.form import (
    OPEN,
    START,
    Form,
    Guarantee,
    orthogonal_factor,
)


class Disc(Form):
    """H = -(I - K)/2, ||K||_2 < 1: every eigenvalue in |h + 1/2| < 1/2, complex ones too."""

    parts = ("core",)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(
            "HFC/LFC does not tend to 0 for generic X_0: NON_SMOOTHING; not for weights that "
            "change by layer (T7b)",
            "tied",
            "every fixed positive A",
            "T3c",
        )

    def product(self, *free: Tensor) -> Tensor:
        (core,) = free
        identity = torch.eye(len(core), dtype=core.dtype, device=core.device)
        K = (1 - OPEN) * orthogonal_factor(torch.cat([core, identity]))[: len(core)]
        return (K - identity) / 2

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest H whose K has no singular value above 1 - `START`."""
        identity = torch.eye(len(H), dtype=H.dtype, device=H.device)
        U, sigma, Vt = torch.linalg.svd(identity + 2 * H)
        K = (U * sigma.clamp(max=1 - START)) @ Vt / (1 - OPEN)
        # R R^T = (I - K^T K)^-1 with R upper triangular: Cholesky with rows and columns in the
        # other order.
        gram = torch.linalg.inv(identity - K.mT @ K)
        R = torch.linalg.cholesky(gram.flip(0, 1)).flip(0, 1)
        return (K @ R,)

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Eigenvalues around -1/2, within about a quarter; `scale` is not used: the disc is."""
        return (torch.randn(width, width, generator=generator) * (0.5 / width**0.5),)

    def _excess(self, H: Tensor) -> tuple[float, float, float]:
        norm = float(torch.linalg.matrix_norm(torch.eye(len(H), dtype=H.dtype) + 2 * H, 2))
        return max(1.0, norm), 1.0, norm - 1
