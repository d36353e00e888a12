"""Remedies that act on the branch: on its attention, its values, its output, or the weights W.

Those that put another matrix in the place of the attention A need A 1 = 1, and are polynomials in A
and J = 1 1^T/n. An eigenvector of A is one of J too: with J's eigenvalue 1 at consensus and 0
modulo consensus, so that there the same polynomial is of numbers, 1 x 1.
"""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from oversmoothing.experiments.forms.form import Form
from oversmoothing.experiments.forms.regions import parameterisation
from oversmoothing.experiments.remedies.remedy import FORCED, Remedy, mean_token, plus


class OnAttention(Remedy):
    """One that acts on A alone: modes I + a' H."""

    @abstractmethod
    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        """A' of A [..., n, n], the identity and J, [n, n]."""

    def attention(self, A: Tensor) -> Tensor:
        n = A.shape[-1]
        one = torch.eye(n, dtype=A.dtype, device=A.device)
        return self.polynomial(A, one, torch.full_like(one, 1 / n))

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a' H."""
        numbers = torch.tensor([a, 1.0, j], dtype=torch.complex128).view(3, 1, 1)
        return plus(1, complex(self.polynomial(*numbers).detach()), H)


class AttnScale(OnAttention):
    """A' = J + (1 + omega)(A - J), one omega a head, which starts at 0 (Wang et al. 2022).

    heads: A is [..., heads, n, n]; one omega for all where it is 1.
    """

    title = "AttnScale"
    paper = "arXiv 2203.05962"

    def __init__(self, omega: float = 0.0, heads: int = 1) -> None:
        super().__init__()
        self.omega = nn.Parameter(torch.full((heads, 1, 1), float(omega)))

    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        return A + (self.omega if len(self.omega) > 1 else self.omega[0]).to(A) * (A - J)


class GFSA(OnAttention):
    """A' = w_0 I + w_1 A + w_K (A + (K - 1)(A^2 - A)), which starts at A."""

    title = "GFSA"
    paper = "Graph convolutions enrich self-attention (GFSA)"
    reading = "the whole formula, from memory"

    def __init__(self, w_0: float = 0.0, w_1: float = 1.0, w_K: float = 0.0, K: int = 3) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([float(w_0), float(w_1), float(w_K)]))
        self.K = K

    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        w_0, w_1, w_K = self.weights.to(A).unbind()
        return w_0 * one + w_1 * A + w_K * (A + (self.K - 1) * (A @ A - A))


class OutlierRemoval(OnAttention):
    """A' = A - J: the outlying singular value of random attention is taken out."""

    title = "outlier removal"
    paper = "arXiv 2410.07799"

    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        return A - J


class CentredAttention(OnAttention):
    """A' = (I - J) A: the output is centred over the tokens."""

    title = "centred attention"
    paper = "centred attention (no paper of it at hand)"
    reading = "the whole formula; its spectrum is that of outlier removal"

    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        return A - J @ A


class ShapedAttention(OnAttention):
    """A' = alpha I + beta A - gamma J, which starts at alpha = beta = gamma = 1.

    J is what A is at logits of 0, so that the sublayer begins at the identity there.
    """

    title = "shaped attention"
    paper = "shaped attention (no paper of it at hand)"
    reading = "the whole formula, from memory"

    def __init__(self, alpha: float = 1.0, beta: float = 1.0, gamma: float = 1.0) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([float(alpha), float(beta), float(gamma)]))

    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        alpha, beta, gamma = self.weights.to(A).unbind()
        return alpha * one + beta * A - gamma * J


class LaplacianHead(OnAttention):
    """A' = I - A, the Laplacian of the attention graph."""

    title = "Laplacian head"
    paper = "arXiv 2602.09297"
    reading = "in every head; the paper has it in some"

    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        return one - A


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
        old, own = self.weights.to(V).unbind()
        return old * first + own * V

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
