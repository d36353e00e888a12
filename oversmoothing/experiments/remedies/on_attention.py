"""Remedies that put another matrix in the place of the attention A; each needs A 1 = 1.

All are polynomials in A and J = 1 1^T/n. An eigenvector of A is one of J too: with J's eigenvalue 1
at consensus and 0 modulo consensus, so that there the same polynomial is of numbers, 1 x 1.
"""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from oversmoothing.experiments.remedies.remedy import Remedy, plus


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
        w_0, w_1, w_K = self.weights.to(A)
        mixed: Tensor = w_0 * one + w_1 * A + w_K * (A + (self.K - 1) * (A @ A - A))
        return mixed


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
        alpha, beta, gamma = self.weights.to(A)
        shaped: Tensor = alpha * one + beta * A - gamma * J
        return shaped


class LaplacianHead(OnAttention):
    """A' = I - A, the Laplacian of the attention graph."""

    title = "Laplacian head"
    paper = "arXiv 2602.09297"
    reading = "in every head; the paper has it in some"

    def polynomial(self, A: Tensor, one: Tensor, J: Tensor) -> Tensor:
        return one - A
