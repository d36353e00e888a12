"""P7 with reduced FFNs: landmark tokens go through the model's attention and `ReducedFfn`s.

FFN(N) = W_2 sigma(W_1 N + b_1) + b_2 becomes N M + c + sigma(N W_1[:, kept] + b_1[kept]) V. The
units are those that explain most of the true output beside the affine part, chosen one by one; M, c
and V are fitted by ridge to a target, which need not be the FFN's own output: fitted to what is
missing in front of the next state, they correct what earlier layers got wrong. It costs d^2 + 2 K d
multiply-adds a token, where the true FFN costs 2 d times all of its hidden units.

Three stages for a square grid of patches (layers of a model of 12). A (layer 1): every second patch
in both directions, and CLS, with the environment of `Landmarks`' first stage. B (layers 2 to 7):
the same tokens, attending to one another alone, each patch for four. C (layers 8 to 12): few of
them, the context being the patches of B. What is saved on the FFNs pays for more layers on the
finer grid. The changes of log HFC/LFC are regressed as for `Landmarks`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.enclosures.network import ACTIVATIONS, feed_forward
from oversmoothing.experiments.models.model import Layer
from oversmoothing.theory.support.errors import InputError

PENALTY = 1e-3  # of each feature's mean square
FLOOR = 1e-6  # of that mean square, and of the largest unit's variance
RIDGE = 1e-4  # of the affine part, while units are chosen
ENDS = (1 / 12, 7 / 12)  # of stages A and B, in the model's depth


@dataclass(frozen=True)
class HiddenUnits:
    """The FFN as W_2 sigma(W_1 N + b_1) + b_2: W_1 [d, h], b_1 [h], W_2 [h, d], float32."""

    W_1: Tensor
    b_1: Tensor
    W_2: Tensor
    activation: Callable[[Tensor], Tensor]

    def __call__(self, N: Tensor) -> Tensor:
        """The hidden units [..., h] of normalised tokens N [..., d]."""
        return self.activation(N @ self.W_1 + self.b_1)

    def __len__(self) -> int:
        return len(self.W_2)

    @classmethod
    def of(cls, layer: Layer, name: str) -> "HiddenUnits":
        """Those of a layer, called `name` in messages; found by watching the FFN run."""
        if layer.ffn is None:
            raise InputError(f"{name} has no FFN: there are no hidden units to keep")
        unknown = InputError(
            f"the FFN of {name} is not two linear layers with one of {', '.join(ACTIVATIONS)} "
            "between them: only of such an FFN are hidden units kept; leave the reduced FFN out"
        )
        try:
            ffn = feed_forward(layer, layer.heads.W_Q.shape[1], name)
        except InputError:
            raise unknown from None
        if ffn is None or ffn.W_gate is not None:
            raise unknown
        b_in = np.zeros(ffn.W_in.shape[1]) if ffn.b_in is None else ffn.b_in
        W_1, b_1, W_2 = (torch.from_numpy(x).float() for x in (ffn.W_in, b_in, ffn.W_out))
        return cls(W_1, b_1, W_2, ACTIVATIONS[ffn.activation])


class ReducedFfn:
    """M [d, d], c [d], and the K kept units, with V [K, d] in the place of their W_2, fitted to
    normalised tokens N [m, d] and what the FFN is to give for them [m, d]; at most `kept` units."""

    def __init__(
        self, units: HiddenUnits, N: Tensor, target: Tensor, kept: int, penalty: float = PENALTY
    ) -> None:
        d = N.shape[1]
        one = torch.cat([torch.ones(len(N), 1), N], dim=1)
        hidden = units(N)
        chosen = _chosen(one, hidden, units.W_2, kept)
        F = torch.cat([one, hidden[:, chosen]], dim=1).double()
        gram = F.T @ F / len(F)
        gram += penalty * torch.diag(gram.diagonal().clamp_min(FLOOR))
        C: Tensor = torch.linalg.solve(gram, F.T @ target.double() / len(F)).float()
        W_1, b_1 = units.W_1[:, chosen], units.b_1[chosen]
        self.M, self.c = C[1 : d + 1], C[0]
        self.units = replace(units, W_1=W_1, b_1=b_1, W_2=C[d + 1 :])

    def __call__(self, N: Tensor) -> Tensor:
        """The output [..., d] for normalised tokens N [..., d]."""
        affine = N @ self.M + self.c
        return affine + self.units(N) @ self.units.W_2 if len(self.units) else affine

    def cost(self) -> int:
        """Multiply-adds a token: d^2 + 2 K d."""
        return self.M.numel() + self.units.W_1.numel() + self.units.W_2.numel()


def _chosen(one: Tensor, hidden: Tensor, W_2: Tensor, kept: int) -> Tensor:
    """Numbers of the units, greedily: each explains most of the output that the affine part and
    those before it leave (pivoted elimination of the residuals' covariance)."""
    m = len(one)
    gram = (one.T @ one / m).double()
    gram += RIDGE * torch.eye(len(gram), dtype=torch.float64)
    affine = torch.linalg.solve(gram, (one.T @ hidden / m).double()).float()
    left = hidden - one @ affine
    R = (left.T @ left / m).double()
    D = R @ W_2.double()
    least = FLOOR * float(R.diagonal().max())
    chosen: list[int] = []
    for _ in range(min(kept, len(R))):
        variance = R.diagonal()
        gain = D.square().sum(1) / variance.clamp_min(1e-12)
        gain = torch.where(variance > least, gain, 0.0)
        gain[chosen] = -1.0
        best = int(gain.argmax())
        chosen.append(best)
        if variance[best] > least:
            column = R[:, best] / variance[best]
            D = D - torch.outer(column, D[best])
            R = R - torch.outer(column, R[best])
    return torch.tensor(chosen, dtype=torch.long)


def stage_layers(depth: int) -> tuple[range, range, range]:
    """The layers of the three stages; B may be empty. Raises `InputError` for fewer than two."""
    if depth < 2:
        raise InputError("a model of one layer has no stages: leave the reduced landmarks out")
    first = max(1, round(ENDS[0] * depth))
    second = min(max(first, round(ENDS[1] * depth)), depth - 1)
    return range(first), range(first, second), range(second, depth)
