"""Remedies that act on the branch: on its values, on its output, or on the weights W."""

import torch
from torch import Tensor, nn

from oversmoothing.experiments.forms.form import Form
from oversmoothing.experiments.forms.regions import parameterisation
from oversmoothing.experiments.remedies.remedy import FORCED, Remedy, mean_token, plus


class FeatScale(Remedy):
    """Y' = Y + J Y diag(s) + (I - J) Y diag(t); s, t [width] start at 0 (Wang et al. 2022)."""

    title = "FeatScale"
    paper = "arXiv 2203.05962"
    reading = "the place: the output of the branch, in front of the residual sum"

    def __init__(self, width: int, s: float = 0.0, t: float = 0.0) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.full((width,), float(s)))
        self.t = nn.Parameter(torch.full((width,), float(t)))

    def output(self, Y: Tensor, V: Tensor, first: Tensor) -> Tensor:
        low = mean_token(Y)
        return Y + low * self.s.to(Y) + (Y - low) * self.t.to(Y)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a diag(1 + t) H, and at consensus I + diag(1 + s) H."""
        own = j * self.s + (1 - j) * self.t
        return plus(1, a, (1 + own.detach().to(H))[:, None] * H)


class LayerScale(Remedy):
    """X' = X + Y diag(gamma), gamma [width] small at the start."""

    title = "LayerScale"
    paper = "LayerScale (CaiT, arXiv 2103.17239)"
    reading = "from memory"
    claim = "brings rho_C and rho_Q towards 1"

    def __init__(self, width: int, start: float = 0.1) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), float(start)))

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        return X + Y * self.gamma.to(Y)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a diag(gamma) H."""
        return plus(1, a, self.gamma.detach().to(H)[:, None] * H)


class NeuTRENO(Remedy):
    """Y' = A V + lam (V_0 - V), V_0 the values of the first layer: a fidelity term."""

    title = "NeuTRENO"
    paper = "arXiv 2312.00751"
    scope = FORCED

    def __init__(self, lam: float = 0.6) -> None:
        super().__init__()
        self.lam = float(lam)

    def output(self, Y: Tensor, V: Tensor, first: Tensor) -> Tensor:
        return Y + self.lam * (first - V)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + (a - lam) H; what V_0 adds is the same in every layer."""
        return plus(1, a - self.lam, H)


class ValueResidual(Remedy):
    """V' = first V_0 + own V: attention averages the first layer's values too."""

    title = "value residual"
    paper = "value residual learning (no paper of it at hand)"
    reading = "the whole formula, from memory"
    scope = FORCED

    def __init__(self, first: float = 0.5, own: float = 0.5) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([float(first), float(own)]))

    def values(self, V: Tensor, first: Tensor) -> Tensor:
        old, own = self.weights.to(V)
        mixed: Tensor = old * first + own * V
        return mixed

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + own a H; what V_0 adds is the same in every layer."""
        return plus(1, float(self.weights[1].detach()) * a, H)


class FormOfH(Remedy):
    """H is taken to the near point of a region, H' = Q diag(h) Q^T with h in it.

    In training the form's own parameters are what is trained (`oversmoothing.parameterisation`).
    """

    claim = "rho_Q > rho_C under every attention"

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.form = form

    def product(self, W: Tensor) -> Tensor:
        H = W.mT.reshape(-1, *W.shape[-2:])
        near = [self.form.product(*self.form.nearest(each.double())) for each in H]
        return torch.stack(near).to(W).reshape(W.shape).mT

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a H'."""
        return plus(1, a, self.product(H.mT).mT)


class ViTMinus(FormOfH):
    """H = Q diag(-psi^2) Q^T (arXiv 2401.04301 v1): eigenvalues at most 0, without a lower end."""

    title = "ViT-"
    paper = "arXiv 2401.04301 v1"

    def __init__(self) -> None:
        super().__init__(parameterisation("minus"))


class BandOfH(FormOfH):
    """H symmetric with its spectrum in [-q, -p] (T7b)."""

    title = "band"
    paper = "T7b of this project"

    def __init__(self, p: float = 0.5, q: float = 1.0) -> None:
        super().__init__(parameterisation("band", p=p, q=q))
