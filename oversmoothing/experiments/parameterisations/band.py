"""T7b's band: symmetric H with spectrum in [-q, -p], 0 < p <= q <= 1.

The one form whose guarantee stands when weights differ by layer and attention is computed from the
state: while the Dobrushin coefficient tau of every attention matrix stays below p/q, HFC/LFC keeps
a floor, for every X_0 with two different tokens. See `lasting_bound.py`.
"""

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
from oversmoothing.theory.support.errors import InputError


class Band(Form):
    """H = Q diag(-(p + (q - p) sigmoid(psi))) Q^T, Q = QR(Theta)."""

    parts = ("theta", "psi")

    def __init__(self, p: float = 0.5, q: float = 1.0) -> None:
        super().__init__()
        if not 0 < p < q <= 1:
            raise InputError(
                f"p = {p} and q = {q}: the band [-q, -p] needs 0 < p < q <= 1 (T7b; without "
                "q <= 1 it is false)"
            )
        self.p, self.q = float(p), float(q)
        self.interval = (-self.q, -self.p)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(
            "HFC/LFC >= min(1/u_0, (p - tau q)/q) / sqrt(2n) after every layer, u_0 = ||mean||_2 / "
            "diameter of the tokens at the start, for every X_0 whose tokens are not all equal; "
            f"void where tau reaches p/q = {self.p / self.q:.6g}",
            "untied",
            "any, computed from the state too, with Dobrushin coefficient <= tau < "
            f"p/q = {self.p / self.q:.6g}",
            "T7b",
        )

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        return symmetric(orthogonal_factor(theta), -(self.p + (self.q - self.p) * psi.sigmoid()))

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest symmetric matrix with its spectrum in the band, START from the ends."""
        width = self.q - self.p
        vectors, values = spectrum_within(H, -self.q + START * width, -self.p - START * width)
        return vectors, torch.logit((-values - self.p) / width)

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Eigenvalues uniform in the band, START from its ends; `scale` is not used."""
        theta = torch.randn(width, width, generator=generator)
        uniform = torch.rand(width, generator=generator)
        return theta, torch.logit(START + (1 - 2 * START) * uniform)
