"""Hyper-connections: s residual streams, which each layer reads, writes and mixes (T13).

    X_k' = sum_l R_kl X_l + p_k Y,    Y = A (sum_l q_l X_l) W,    k = 1 .. s

Row k of R says what stream k takes from the others (its transpose is the other convention). The
state is X [..., s, n, d]; `spread` makes it of tokens, `gather` tokens of it.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from oversmoothing.experiments.remedies.remedy import Remedy
from oversmoothing.theory.support.errors import InputError, whole_number

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
        self,
        streams: int = 4,
        mixing: Mixing = "plain",
        jitter: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
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

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        """R (x) I + a p q^T (x) H (T13a), features fastest."""
        R, p, q = (each.detach().to(torch.complex128) for each in (self.mixed(), self.p, self.q))
        identity = torch.eye(len(H), dtype=R.dtype)
        write = torch.outer(p, q) * (1 if a is None else a)
        return torch.kron(R, identity) + torch.kron(write, H.to(R.dtype).contiguous())


class DoublyStochasticConnections(HyperConnections):
    """The same with R doubly stochastic."""

    title = "hyper-connections, doubly stochastic"
    paper = "doubly stochastic mixing (T13b)"

    def __init__(
        self, streams: int = 4, jitter: float = 0.0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(streams, "doubly stochastic", jitter, generator)
