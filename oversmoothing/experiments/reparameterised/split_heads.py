"""One H for the heads of a layer: W_V = Q, W_O = Q^T H^T, as parametrisations of its two weights.

How heads combine is our choice (the papers have one head, or do not say): the values of a layer
are an orthonormal basis Q [d, m] of the features, of which each head takes its own columns Q_h, so
that W_V,h W_O,h = P_h H^T with P_h = Q_h Q_h^T and sum_h P_h = 1: heads attend, each within its own
share of the features, and one H acts behind all of them:

    X' = X + (sum_h A_h X P_h) H^T.

Where all A_h are equal this is vec(X') = (I + H (x) A) vec(X), exactly. Heads that share keys and
values share Q_h and are averaged: their mean attention is row-stochastic again. Where the values
have fewer features than tokens, m < d, W_O = H^T Q^T with H [m, m]: the layer's product is Q H Q^T,
with d - m eigenvalues 0. Where they have more, Q has orthonormal rows, and all holds as for m = d.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from oversmoothing.experiments.models.model import ValueParts
from oversmoothing.experiments.parameterisations.form import Form, orthogonal_factor


def in_by_out(module: nn.Module, weight: Tensor) -> Tensor:
    """A weight as W of y = x W, or such a W as the weight: nn.Linear keeps the transpose."""
    return weight if hasattr(module, "nf") else weight.mT


def values(parts: ValueParts, weight: Tensor | None = None) -> Tensor:
    """W_V [d, m] of all groups, of a weight of `parts.value` (None: the one that it has)."""
    own: Tensor = getattr(parts.value, parts.name) if weight is None else weight
    W = in_by_out(parts.value, own)
    return W if parts.columns is None else W[:, parts.columns.to(W.device)]


def outputs(parts: ValueParts) -> Tensor:
    """W_O [heads, r, d] of `parts.out` as it is."""
    own: Any = parts.out.weight
    W = in_by_out(parts.out, own)
    return W.reshape(parts.heads, -1, W.shape[1])


class OrthonormalValues(nn.Module):
    """W_V -> Q: orthonormal columns, or rows where there are more columns than rows."""

    def __init__(self, parts: ValueParts) -> None:
        super().__init__()
        # Held but not registered: it holds this parametrisation.
        object.__setattr__(self, "split", parts)
        self.split: ValueParts

    def forward(self, weight: Tensor) -> Tensor:
        """The weight with Q in place of W_V."""
        W = values(self.split, weight)
        wide = W.to(torch.promote_types(W.dtype, torch.float32))
        with torch.autocast(W.device.type, enabled=False):
            short = wide.shape[0] < wide.shape[1]
            Q = orthogonal_factor(wide.mT).mT if short else orthogonal_factor(wide)
        return self._with(weight, Q.to(W.dtype))

    @torch.no_grad()
    def right_inverse(self, weight: Tensor) -> Tensor:
        """W_V's polar factor, the orthonormal matrix nearest to it."""
        U, _, Vt = torch.linalg.svd(values(self.split, weight).double(), full_matrices=False)
        return self._with(weight, (U @ Vt).to(weight)).contiguous()

    def _with(self, weight: Tensor, W_V: Tensor) -> Tensor:
        columns = self.split.columns
        if columns is None:
            return in_by_out(self.split.value, W_V)
        whole = in_by_out(self.split.value, weight)
        placed = whole.index_copy(1, columns.to(whole.device), W_V)
        return in_by_out(self.split.value, placed)


class SplitOutputs(nn.Module):
    """The free tensors of a form -> W_O = Q^T H^T (m >= d) or H^T Q^T (m < d), Q the values."""

    def __init__(self, parts: ValueParts, form: Form) -> None:
        super().__init__()
        self.form = form
        object.__setattr__(self, "split", parts)
        self.split: ValueParts

    def forward(self, *free: Tensor) -> Tensor:
        """The weight of the output projection."""
        H = self.form(*free)
        Q = values(self.split)
        with torch.autocast(Q.device.type, enabled=False):
            W_O = Q.mT @ H.mT if Q.shape[0] <= Q.shape[1] else H.mT @ Q.mT
        groups, repeats = self.split.kv_heads, self.split.heads // self.split.kv_heads
        if repeats > 1:
            W_O = W_O.view(groups, -1, W_O.shape[1]).repeat_interleave(repeats, 0).flatten(0, 1)
            W_O = W_O / repeats
        return in_by_out(self.split.out, W_O)

    @torch.no_grad()
    def right_inverse(self, weight: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The free tensors whose W_O is near this one, given the values as they are."""
        W = in_by_out(self.split.out, weight).double()
        groups, repeats = self.split.kv_heads, self.split.heads // self.split.kv_heads
        summed = W.reshape(groups, repeats, -1, W.shape[1]).sum(1).flatten(0, 1)
        Q = values(self.split).double()
        # The least squares solution of Q^T H^T = W_O, of H^T Q^T = W_O.
        H = (Q @ summed if Q.shape[0] <= Q.shape[1] else summed @ Q).mT
        return self.form.right_inverse(H.to(weight))


@torch.no_grad()
def impose(parts: ValueParts, form: Form) -> None:
    """Register both parametrisations; they start from the weights that stand there.

    Q starts at the orthonormal matrix nearest to W_V, H at the region's point near the one that
    fits every W_V,h W_O,h best given Q, H^T = sum_h P_h W_V,h W_O,h.
    """
    W_V = values(parts).double()
    groups, repeats = parts.kv_heads, parts.heads // parts.kv_heads
    by_group = W_V.view(len(W_V), groups, -1).transpose(0, 1)
    products = by_group.repeat_interleave(repeats, 0) @ outputs(parts).double()
    parametrize.register_parametrization(parts.value, parts.name, OrthonormalValues(parts))
    Q = values(parts).double().view(len(W_V), groups, -1).transpose(0, 1)
    W_O = (Q.mT.repeat_interleave(repeats, 0) @ products).flatten(0, 1)
    weight: Any = parts.out.weight
    weight.copy_(in_by_out(parts.out, W_O))
    parametrize.register_parametrization(parts.out, "weight", SplitOutputs(parts, form))


def imposed(parts: ValueParts) -> bool:
    """Whether these weights are parametrised already, by this or by anything else."""
    return parametrize.is_parametrized(parts.value, parts.name) or parametrize.is_parametrized(
        parts.out, "weight"
    )
