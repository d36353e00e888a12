"""ViT+ and ViT- of arXiv 2401.04301 (first version): H = Q diag(+-psi^2) Q^T, Q = QR(Theta).

ViT+ takes +psi^2 (T2: consensus wins for every A), ViT- takes -psi^2 (the "sharpening" model).
psi^2 is not bounded above, and -psi^2 < -1 may smooth (T2b), so that ViT- is no guarantee by
itself: the experiments count where it leaves the safe interval, nothing is clipped.
"""

from typing import Literal

import torch
from torch import Tensor

from oversmoothing.experiments.parameterisations.form import (
    START,
    Form,
    Guarantee,
    orthogonal_factor,
    spectrum_within,
    symmetric,
)


class Signed(Form):
    """H = Q diag(sign psi^2) Q^T: symmetric, all eigenvalues of one sign."""

    parts = ("theta", "psi")

    def __init__(self, sign: Literal[-1, 1]) -> None:
        super().__init__()
        self.sign = sign
        self.interval = (0.0, float("inf")) if sign > 0 else (-float("inf"), 0.0)

    @property
    def guarantee(self) -> Guarantee:
        if self.sign > 0:
            return Guarantee(
                "HFC/LFC -> 0 for generic X_0 where some psi is not 0: SMOOTHING",
                "tied",
                "every fixed positive A",
                "T2b, T3",
            )
        return Guarantee(
            "-psi^2 is not bounded below: below -1 it smooths under some attention, at -2 / (1 + "
            "a_1) and below under this one; the log of a training shows it (outside_share)",
            "none",
            "none",
            "T2b",
        )

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        return symmetric(orthogonal_factor(theta), self.sign * psi.square())

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest symmetric matrix of this sign, no psi at 0, where it has no gradient."""
        vectors, values = spectrum_within(self.sign * H, -float("inf"), float("inf"))
        floor = START * float(values.abs().max()) or START
        return vectors, values.clamp(min=floor).sqrt()

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """psi^2 is uniform in [scale / 10, scale]: training is unstable when |eigenvalues| start
        too large, and psi = 0 has no gradient."""
        theta = torch.randn(width, width, generator=generator)
        uniform = torch.rand(width, generator=generator)
        return theta, (scale * (0.1 + 0.9 * uniform)).sqrt()
