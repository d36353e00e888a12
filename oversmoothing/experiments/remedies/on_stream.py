"""Remedies that act on the residual stream: on what is read from it, added to it, or left of it.

Hyper-connections have s residual streams, which each layer reads, writes and mixes (T13):

    X_k' = sum_l R_kl X_l + p_k Y,    Y = A (sum_l q_l X_l) W,    k = 1 .. s

Row k of R says what stream k takes from the others (its transpose is the other convention). The
state is X [..., s, n, d]; `spread` makes it of tokens, `gather` tokens of it.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from oversmoothing.experiments.remedies.remedy import (
    AT_CONSENSUS,
    ONE_LAYER,
    Remedy,
    mean_token,
    norm_derivative,
    plus,
)
from oversmoothing.theory.support.errors import InputError, whole_number


class DeEscalation(Remedy):
    """(I - tau J) behind the layer: tau of the mean over the tokens is taken out."""

    title = "de-escalation"
    paper = "arXiv 2312.06182"
    reading = "the place: behind the residual sum of every layer"

    def __init__(self, tau: float = 1.0) -> None:
        super().__init__()
        self.tau = float(tau)

    def finish(self, X: Tensor) -> Tensor:
        return X - self.tau * mean_token(X)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a H, and at consensus (1 - tau)(I + H)."""
        return (1 - j * self.tau) * plus(1, a, H)


class ContraNorm(Remedy):
    """X - s softmax(X X^T/temperature) X behind the layer.

    Where all tokens are equal the softmax is J, and its change adds nothing, since rows of it sum
    to 1 whatever they are: there the remedy is I - s J, which is de-escalation. cosine: the scores
    are those of tokens of length 1, as in the authors' code.
    """

    title = "ContraNorm"
    paper = "arXiv 2303.06562"
    reading = "without the LayerNorm behind it; the place: behind the residual sum"
    scope = AT_CONSENSUS

    def __init__(self, s: float = 0.1, temperature: float = 1.0, cosine: bool = False) -> None:
        super().__init__()
        if not temperature > 0:
            raise InputError(f"ContraNorm's temperature is {temperature}: it divides, give one > 0")
        self.s, self.temperature = float(s), float(temperature)
        self.cosine = bool(cosine)

    def finish(self, X: Tensor) -> Tensor:
        U = X
        if self.cosine:
            length = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
            U = X / torch.where(length > 0, length, 1)
        alike = (U @ U.mT / self.temperature).softmax(-1)
        return X - self.s * (alike @ X)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a H, and at consensus (1 - s)(I + H)."""
        return (1 - j * self.s) * plus(1, a, H)


class ResidualScaling(Remedy):
    """X' = X + alpha Y; alpha = 1/sqrt(depth) keeps tokens apart at the start (Noci et al.)."""

    title = "residual scaling"
    paper = "arXiv 2206.03126"
    claim = "brings rho_C and rho_Q towards 1"

    def __init__(self, depth: int = 12) -> None:
        super().__init__()
        self.alpha = 1 / math.sqrt(whole_number("depth", depth, 1))

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        return X + self.alpha * Y

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + alpha a H."""
        return plus(1, self.alpha * a, H)


class LambdaSkip(Remedy):
    """X' = lam X + Y: the residual connection has a weight of its own."""

    title = "lambda-skip"
    paper = "arXiv 2410.10609"
    reading = "without the LayerNorm of the paper's layer"

    def __init__(self, lam: float = 2.0) -> None:
        super().__init__()
        self.lam = nn.Parameter(torch.tensor(float(lam)))

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        return self.lam.to(X) * X + Y

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """lam I + a H."""
        return plus(float(self.lam.detach()), a, H)


class DeepNorm(Remedy):
    """X' = LN(alpha X + Y), alpha = (2 depth)^(1/4); W_V, W_proj start smaller, by `beta`.

    LN is without gain and shift. It keeps no consensus state, so that no rate over layers is
    defined: `mode` is one layer's, at 1 x^T.
    """

    title = "DeepNorm"
    paper = "DeepNet (arXiv 2203.00555)"
    reading = "the constants of an encoder, from memory"
    claim = "brings rho_C and rho_Q towards 1"
    scope = ONE_LAYER
    norm = "behind"

    def __init__(self, depth: int = 12) -> None:
        super().__init__()
        layers = whole_number("depth", depth, 1)
        self.alpha = (2 * layers) ** 0.25
        self.beta = (8 * layers) ** -0.25

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        joined: Tensor = self.alpha * X + Y
        return joined

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """D (alpha I + a H), D the derivative of LN at alpha x + H x."""
        D = norm_derivative(self.alpha * x + H @ x).to(torch.complex128)
        return D @ plus(self.alpha, a, H)


class LNScaling(Remedy):
    """X' = X + A (LN(X)/sqrt(number)) W in layer `number`, from 1.

    LN is without gain and shift. The factor changes by layer, so that no rate over layers is
    defined: `mode` is that layer's, at 1 x^T. Held against Pre-LN without the factor (number 1).
    """

    title = "LN-Scaling"
    paper = "arXiv 2502.05795"
    claim = "brings rho_C and rho_Q towards 1"
    scope = ONE_LAYER
    norm = "in front"

    def __init__(self, number: int = 12) -> None:
        super().__init__()
        self.number = whole_number("the number of the layer", number, 1)

    def normed(self, X: Tensor) -> Tensor:
        return X / math.sqrt(self.number)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a H D/sqrt(number), D the derivative of LN at x."""
        scaled = H @ norm_derivative(x) / math.sqrt(self.number)
        return plus(1, a, scaled)


Mixing = Literal["plain", "doubly stochastic"]
# Sinkhorn's error falls by the square of R's second singular value a round.
ROUNDS = 1000


class HyperConnections(Remedy):
    """s streams with weights R [s, s], p [s], q [s]; `doubly stochastic`: R by Sinkhorn.

    The start: R the identity (plain), or close to it; p = 1 and q = 1/s, so that equal streams are
    the plain layer. jitter draws all of it around that, from `generator`.
    """

    title = "hyper-connections"
    paper = "hyper-connections (T13)"
    reading = "weights that do not depend on the state"
    claim = "none on tokens: rho_C and rho_Q are those of R + a h p q^T (T13a)"

    def __init__(
        self, streams: int = 4, mixing: Mixing = "plain", jitter: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if mixing not in ("plain", "doubly stochastic"):
            raise InputError(f"mixing is '{mixing}': choose plain or doubly stochastic")
        s = whole_number("streams", streams, 1)
        self.mixing = mixing
        self._known: tuple[Tensor, Tensor] | None = None
        # Logits of 3 on the diagonal: R is within 0.15 of the identity for four streams.
        start = torch.eye(s) * (1.0 if mixing == "plain" else 3.0)
        draw = generator or torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(start + jitter * torch.randn(s, s, generator=draw))
        self.p = nn.Parameter(torch.ones(s) + jitter * torch.randn(s, generator=draw))
        self.q = nn.Parameter((torch.ones(s) + jitter * torch.randn(s, generator=draw)) / s)

    def mixed(self) -> Tensor:
        """R [s, s] in the dtype of the parameters."""
        if self.mixing == "plain":
            return self.weight
        if torch.is_grad_enabled():
            return self._projected()
        # A forward pass asks for it at every layer. Compared by value: no change goes unseen.
        weight = self.weight.detach()
        if self._known is not None:
            before, R = self._known
            alike = before.dtype == weight.dtype and before.device == weight.device
            if alike and torch.equal(before, weight):
                return R
        R = self._projected()
        self._known = weight.clone(), R
        return R

    def _projected(self) -> Tensor:
        # Sinkhorn in logarithms: rows, then columns, so that columns sum to 1 within rounding.
        log: Tensor = self.weight
        enough = 8 * len(self.p) * torch.finfo(self.weight.dtype).eps
        for _ in range(ROUNDS):
            log = log - log.logsumexp(1, keepdim=True)
            log = log - log.logsumexp(0, keepdim=True)
            if float(log.detach().logsumexp(1).abs().max()) <= enough:
                return log.exp()
        raise InputError(
            f"Sinkhorn's iteration did not end in {ROUNDS} rounds: the logits of the mixing are "
            f"too far apart (up to {float(self.weight.detach().abs().max()):.3g})"
        )

    def spread(self, X: Tensor) -> Tensor:
        """[..., n, d] -> [..., s, n, d]: the same tokens in every stream."""
        return X.unsqueeze(-3).expand(*X.shape[:-2], len(self.p), *X.shape[-2:])

    def gather(self, X: Tensor) -> Tensor:
        """[..., s, n, d] -> [..., n, d]: the mean over the streams."""
        return X.mean(-3)

    def read(self, X: Tensor) -> Tensor:
        """What the branch reads: sum_l q_l X_l [..., n, d]."""
        return torch.einsum("l,...lnd->...nd", self.q.to(X), X)

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        """All streams [..., s, n, d] of those before and the branch's output [..., n, d]."""
        mixed = torch.einsum("kl,...lnd->...knd", self.mixed().to(X), X)
        return mixed + self.p.to(X)[:, None, None] * Y.unsqueeze(-3)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """R (x) I + a p q^T (x) H (T13a), features fastest."""
        R, p, q = (each.detach().to(torch.complex128) for each in (self.mixed(), self.p, self.q))
        identity = torch.eye(len(H), dtype=R.dtype)
        return torch.kron(R, identity) + torch.kron(
            a * torch.outer(p, q), H.to(R.dtype).contiguous()
        )


class DoublyStochasticConnections(HyperConnections):
    """The same with R doubly stochastic."""

    title = "hyper-connections, doubly stochastic"
    paper = "doubly stochastic mixing (T13b)"

    def __init__(
        self, streams: int = 4, jitter: float = 0.0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(streams, "doubly stochastic", jitter, generator)
