"""T3b's interval: symmetric H with spectrum in (-s, 0), s measured on the attention at hand.

A real h loses at consensus under A iff -s < h < 0, s = max over i < n of 2 (1 - Re a_i) / (1 -
|a_i|^2) >= 1 (real spectra: 2 / (1 + a_1)). Where attention leaves more room than [-1, 0), the form
takes it. The price: the guarantee is for the attention that was measured, and for no other.
"""

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from oversmoothing.experiments.parameterisations.form import (
    OPEN,
    START,
    Form,
    Guarantee,
    orthogonal_factor,
    spectrum_within,
    symmetric,
)
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.formulas import safe_interval


class MeasuredInterval(Form):
    """H = Q diag(-s (m + (1 - 2m) sigmoid(psi))) Q^T, m = `OPEN`: spectrum within (-s, 0).

    s is a buffer, 1 until attention was measured: [-1, 0) is safe under every attention (T2d).
    """

    parts = ("theta", "psi")
    s: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("s", torch.ones((), dtype=torch.float64))

    @property
    def interval(self) -> tuple[float, float]:  # type: ignore[override]
        return -float(self.s), 0.0

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(
            "HFC/LFC does not tend to 0 for generic X_0: NON_SMOOTHING",
            "tied",
            f"that which was measured, held fixed (s = {float(self.s):.6g})",
            "T3b, T2d",
        )

    @torch.no_grad()
    def refresh(self, *attention: ArrayLike) -> float:
        """Take the smallest s of attention matrices [n, n], row-stochastic; H moves in proportion.

        Returns s. Raises `InputError` for no matrix, a single
        token, and where no s is finite.
        """
        return self.set_interval(self.measured(*attention))

    def measured(self, *attention: ArrayLike) -> float:
        """The smallest s of attention matrices [n, n]; 0 for none."""
        found = [safe_interval(attention_spectrum(np.asarray(A)).values) for A in attention]
        return min(found, default=0.0)

    @torch.no_grad()
    def set_interval(self, s: float) -> float:
        """Set s itself, the smallest that was measured; returns it."""
        if not (math.isfinite(s) and s > 0):
            raise InputError(
                f"no finite interval (-s, 0) was measured (s = {s}): give attention over at least "
                "two tokens whose eigenvalues other than 1 lie inside the unit circle"
            )
        # Rounding of the eigenvalues must not put an end of (-s, 0) outside.
        self.s.fill_(s * (1 - 2**-40))
        return float(self.s)

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        share = OPEN + (1 - 2 * OPEN) * psi.sigmoid()
        return symmetric(orthogonal_factor(theta), -self.s.to(psi) * share)

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        s = float(self.s)
        vectors, values = spectrum_within(H, -s * (1 - START), -s * START)
        return vectors, torch.logit((-values / s - OPEN) / (1 - 2 * OPEN))

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """|eigenvalues| uniform in [scale / 10, scale], within the interval."""
        theta = torch.randn(width, width, generator=generator)
        size = scale * (0.1 + 0.9 * torch.rand(width, generator=generator)) / float(self.s)
        return theta, torch.logit((size.clamp(START, 1 - START) - OPEN) / (1 - 2 * OPEN))
