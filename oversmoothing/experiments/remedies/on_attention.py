"""Remedies that put another matrix in the place of the attention A; each needs A 1 = 1.

All are polynomials in A and J = 1 1^T/n that keep 1 as an eigenvector, so that modulo consensus,
where J is 0, an eigenvalue a of A becomes one number (the same polynomial with J = 0).
"""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from oversmoothing.experiments.remedies.remedy import Remedy, plus


class OnAttention(Remedy):
    """One that acts on A alone: modes I + a' H."""

    @abstractmethod
    def eigenvalue(self, a: complex) -> complex:
        """What becomes of an eigenvalue a of A modulo consensus."""

    def at_consensus(self) -> float:
        """c with A' 1 = c 1."""
        return 1.0

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        return plus(1, self.at_consensus() if a is None else self.eigenvalue(a), H)


class AttnScale(OnAttention):
    """A' = J + (1 + omega)(A - J), one omega a head, which starts at 0 (Wang et al. 2022).

    heads: A is [..., heads, n, n]; one omega for all where it is 1.
    """

    title = "AttnScale"
    paper = "arXiv 2203.05962"

    def __init__(self, omega: float = 0.0, heads: int = 1) -> None:
        super().__init__()
        self.omega = nn.Parameter(torch.full((heads, 1, 1), float(omega)))

    def attention(self, A: Tensor) -> Tensor:
        # The rows of J: every entry is 1/n.
        high = A - 1 / A.shape[-1]
        return A + (self.omega if len(self.omega) > 1 else self.omega[0]).to(A) * high

    def eigenvalue(self, a: complex) -> complex:
        return (1 + float(self.omega.detach().ravel()[0])) * a


class GFSA(OnAttention):
    """A' = w_0 I + w_1 A + w_K (A + (K - 1)(A^2 - A)), which starts at A."""

    title = "GFSA"
    paper = "Graph convolutions enrich self-attention (GFSA)"
    reading = "the whole formula, from memory"

    def __init__(self, w_0: float = 0.0, w_1: float = 1.0, w_K: float = 0.0, K: int = 3) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([float(w_0), float(w_1), float(w_K)]))
        self.K = K

    def attention(self, A: Tensor) -> Tensor:
        w_0, w_1, w_K = self.weights.to(A)
        power = A + (self.K - 1) * (A @ A - A)
        identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        mixed: Tensor = w_0 * identity + w_1 * A + w_K * power
        return mixed

    def eigenvalue(self, a: complex) -> complex:
        w_0, w_1, w_K = self.weights.detach().tolist()
        return complex(w_0 + w_1 * a + w_K * (a + (self.K - 1) * (a * a - a)))

    def at_consensus(self) -> float:
        return self.eigenvalue(1.0).real


class OutlierRemoval(OnAttention):
    """A' = A - J: the outlying singular value of random attention is taken out."""

    title = "outlier removal"
    paper = "arXiv 2410.07799"

    def attention(self, A: Tensor) -> Tensor:
        return A - 1 / A.shape[-1]

    def eigenvalue(self, a: complex) -> complex:
        return a

    def at_consensus(self) -> float:
        return 0.0


class CentredAttention(OnAttention):
    """A' = (I - J) A: the output is centred over the tokens."""

    title = "centred attention"
    paper = "centred attention (no paper of it at hand)"
    reading = "the whole formula; its spectrum is that of outlier removal"

    def attention(self, A: Tensor) -> Tensor:
        return A - A.mean(-2, keepdim=True)

    def eigenvalue(self, a: complex) -> complex:
        return a

    def at_consensus(self) -> float:
        return 0.0


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

    def attention(self, A: Tensor) -> Tensor:
        alpha, beta, gamma = self.weights.to(A)
        n = A.shape[-1]
        identity = torch.eye(n, dtype=A.dtype, device=A.device)
        shaped: Tensor = alpha * identity + beta * A - gamma / n
        return shaped

    def eigenvalue(self, a: complex) -> complex:
        alpha, beta, _ = self.weights.detach().tolist()
        return complex(alpha + beta * a)

    def at_consensus(self) -> float:
        alpha, beta, gamma = self.weights.detach().tolist()
        return float(alpha + beta - gamma)


class LaplacianHead(OnAttention):
    """A' = I - A, the Laplacian of the attention graph."""

    title = "Laplacian head"
    paper = "arXiv 2602.09297"
    reading = "in every head; the paper has it in some"

    def attention(self, A: Tensor) -> Tensor:
        return torch.eye(A.shape[-1], dtype=A.dtype, device=A.device) - A

    def eigenvalue(self, a: complex) -> complex:
        return 1 - a

    def at_consensus(self) -> float:
        return 0.0
