"""The value-projection product H as a trainable module: free, smoothing or sharpening.

H = (W_V W_proj)^T acts on the features of a token: X' = X + A X H^T. arXiv 2401.04301 (first
version) replaces the product by H = Q diag(+-psi^2) Q^T with Q from the QR decomposition of a
free matrix Theta: ViT+ takes +psi^2 (T2: consensus wins for every A), ViT- takes -psi^2 (the
"sharpening" model). psi^2 is not bounded above, and -psi^2 < -1 may smooth (T2b), so that ViT- is
no guarantee by itself: the experiments count where it leaves the safe interval, nothing is clipped.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from oversmoothing.theory.support.errors import InputError


def orthogonal_factor(theta: Tensor) -> Tensor:
    """Q of theta = QR with the diagonal of R positive: the one smooth choice, [d, d] -> [d, d].

    LAPACK's Q carries signs that jump as theta moves; fixing them makes Q a smooth function of
    every invertible theta.
    """
    q, r = torch.linalg.qr(theta)
    fixed: Tensor = q * torch.where(r.diagonal() < 0, -1.0, 1.0).to(q)
    return fixed


class FreeProjection(nn.Module):
    """Any real d x d matrix: the ordinary model."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width))

    def forward(self) -> Tensor:
        return self.weight

    @torch.no_grad()
    def initialise(self, scale: float, generator: torch.Generator) -> None:
        """The spectrum of H lies within about `scale` of zero."""
        # A Gaussian matrix of variance scale^2 / d fills the disc of radius `scale` (circular law).
        width = len(self.weight)
        self.weight.copy_(torch.randn(width, width, generator=generator) * (scale / width**0.5))


class SignedProjection(nn.Module):
    """H = Q diag(sign psi^2) Q^T, Q = QR(Theta): symmetric, all eigenvalues of one sign."""

    def __init__(self, width: int, sign: int) -> None:
        super().__init__()
        self.sign = sign
        self.theta = nn.Parameter(torch.empty(width, width))
        self.psi = nn.Parameter(torch.empty(width))

    def eigenvalues(self) -> Tensor:
        """sign psi^2 [d], the eigenvalues of H in the order of the columns of Q."""
        return self.sign * self.psi.square()

    def forward(self) -> Tensor:
        q = orthogonal_factor(self.theta)
        h = (q * self.eigenvalues()) @ q.mT
        # The rounded product is not symmetric; the mean with its transpose is, exactly.
        return (h + h.mT) / 2

    @torch.no_grad()
    def initialise(self, scale: float, generator: torch.Generator) -> None:
        """psi^2 is uniform in [scale / 10, scale]: training is unstable when |eigenvalues| start
        too large, and psi = 0 has no gradient."""
        width = len(self.psi)
        self.theta.copy_(torch.randn(width, width, generator=generator))
        draw = torch.rand(width, generator=generator)
        self.psi.copy_((scale * (0.1 + 0.9 * draw)).sqrt())


# H [d, d] in the parameters' dtype, from `forward()`.
ValueProjection = FreeProjection | SignedProjection
FORMS: dict[str, Callable[[int], ValueProjection]] = {
    "free": FreeProjection,
    "plus": partial(SignedProjection, sign=+1),
    "minus": partial(SignedProjection, sign=-1),
}


def value_projection(form: str, width: int) -> ValueProjection:
    """The module of one form, its parameters not yet drawn (`initialise` draws them).

    Raises `InputError` for an unknown form.
    """
    if form not in FORMS:
        raise InputError(f"unknown form of H '{form}': choose one of {', '.join(FORMS)}")
    return FORMS[form](width)
