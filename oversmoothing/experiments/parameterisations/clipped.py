"""H = V diag(clip psi) V^-1 of arXiv 2401.04301 (third version), and a smooth alternative.

V is any invertible matrix, so that H need not be symmetric; its spectrum is real and lies in
[-1, 0] (sharpening) or [0, 1] (smoothing). Outside the interval clip has no gradient: a psi that
starts or steps there stays there for ever, but for the optimiser's momentum. `Sigmoid` has the same
spectra without the dead zone, and without the end 0, where strictness is lost (T2e).
"""

from typing import Literal

import torch
from torch import Tensor

from oversmoothing.experiments.parameterisations.form import (
    OPEN,
    START,
    Form,
    Guarantee,
    orthogonal_factor,
    spectrum_within,
)

_UNTIED = (
    "not for weights that change by layer (the rotating weights of T7b smooth with every "
    "spectrum in [-1, 0])"
)


class Clipped(Form):
    """H = V diag(clip(psi, low, high)) V^-1, [low, high] = [-1, 0] or [0, 1]."""

    parts = ("theta", "psi")

    def __init__(self, sign: Literal[-1, 1]) -> None:
        super().__init__()
        self.sign = sign
        self.interval = (0.0, 1.0) if sign > 0 else (-1.0, 0.0)

    @property
    def guarantee(self) -> Guarantee:
        if self.sign > 0:
            return Guarantee(
                "HFC/LFC -> 0 for generic X_0 where some psi > 0: SMOOTHING (at psi <= 0 "
                "throughout, H = 0)",
                "tied",
                "every fixed positive A",
                "T2b, T3",
            )
        return Guarantee(
            "HFC/LFC does not tend to 0 for generic X_0: NON_SMOOTHING, or where some eigenvalue "
            f"is 0 a TIE; {_UNTIED}",
            "tied",
            "every fixed positive A",
            "T2e, T3d",
        )

    def eigenvalues(self, psi: Tensor) -> Tensor:
        """clip(psi) [d]."""
        assert self.interval is not None
        return psi.clamp(*self.interval)

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        # V D V^-1 = (V^-T (V D)^T)^T: one solve, no inverse.
        H: Tensor = torch.linalg.solve(theta.mT, (theta * self.eigenvalues(psi)).mT).mT
        return H

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest symmetric matrix with its spectrum inside, START from the ends."""
        assert self.interval is not None
        low, high = self.interval
        vectors, values = spectrum_within(H, low + START, high - START)
        return vectors, self.inverse(values)

    def inverse(self, eigenvalues: Tensor) -> Tensor:
        """psi of eigenvalues inside the interval."""
        return eigenvalues

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """V orthogonal, |eigenvalues| uniform in [scale / 10, scale], within the interval."""
        V = orthogonal_factor(torch.randn(width, width, generator=generator))
        size = scale * (0.1 + 0.9 * torch.rand(width, generator=generator))
        return V, self.inverse(self.sign * size.clamp(START, 1 - START))

    def condition(self, *free: Tensor) -> float:
        return float(torch.linalg.cond(free[0].detach().double()))


class Sigmoid(Clipped):
    """H = V diag(+-(m + (1 - m) sigmoid(psi))) V^-1 with m = `OPEN`: |h| in [m, 1], never 0."""

    @property
    def guarantee(self) -> Guarantee:
        if self.sign > 0:
            return Guarantee(
                "HFC/LFC -> 0 for generic X_0: SMOOTHING", "tied", "every fixed positive A",
                "T2b, T3",
            )  # fmt: skip
        return Guarantee(
            f"HFC/LFC does not tend to 0 for generic X_0: NON_SMOOTHING; {_UNTIED}",
            "tied",
            "every fixed positive A",
            "T2e, T3d",
        )

    def eigenvalues(self, psi: Tensor) -> Tensor:
        """+-(m + (1 - m) sigmoid(psi)) [d]."""
        return self.sign * (OPEN + (1 - OPEN) * psi.sigmoid())

    def inverse(self, eigenvalues: Tensor) -> Tensor:
        return torch.logit((self.sign * eigenvalues - OPEN) / (1 - OPEN))
