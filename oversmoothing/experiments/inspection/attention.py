"""What attention adds, from described weights: sum_h A_h X W_V,h W_O,h + biases.

`value_rounding` says how far rounding moves it.
"""

import torch
from torch import Tensor

from oversmoothing.experiments.models.model import Heads


def attention_output(A: Tensor, X: Tensor, heads: Heads) -> Tensor:
    """sum_h A_h X W_V,h W_O,h + biases, [b, n, d]."""
    return projected_out(A @ projected(X, heads.W_V, heads.b_V), heads)


def projected_out(mixed: Tensor, heads: Heads) -> Tensor:
    """sum_h Z_h W_O,h + bias, [b, n, d], of Z = A_h V_h [b, heads, n, r]."""
    out: Tensor = mixed.transpose(1, 2).flatten(2) @ heads.W_O.flatten(0, 1)
    return out if heads.b_O is None else out + heads.b_O


def mixed_values(A: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """(A_h V_h [b, heads, n, r], sum_j A_tj |v_j| [b, heads, n]) by one product."""
    both = A @ torch.cat([V, _lengths(V).unsqueeze(-1)], -1)
    return both[..., :-1], both[..., -1]


def value_rounding(reach: Tensor, heads: Heads) -> Tensor:
    """By how many eps rounding values, their sum and the softmax moves each token of the output, to
    first order: [b, n], sum_h |W_O,h| sum_j A_tj |v_j| and the bias's length, |W_O| spectral.
    reach: of `mixed_values`."""
    total: Tensor = (reach * _gain(heads)).sum(1)
    return total if heads.b_O is None else total + torch.linalg.vector_norm(heads.b_O)


def _gain(heads: Heads) -> Tensor:
    """|W_O,h|, [heads, 1]."""
    square = torch.linalg.eigvalsh(heads.W_O @ heads.W_O.mT)[:, -1]
    gain: Tensor = square.clamp_min(0.0).sqrt()
    return gain.unsqueeze(-1)


def projected(X: Tensor, W: Tensor, bias: Tensor | None) -> Tensor:
    """X [b, n, d] by W [heads, d, r]: [b, heads, n, r]."""
    (b, n, _), (heads, _, r) = X.shape, W.shape
    out = (X @ W.transpose(0, 1).flatten(1)).view(b, n, heads, r).transpose(1, 2)
    return out if bias is None else out + bias.unsqueeze(1)


def _lengths(each: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(each, dim=-1)
    return lengths
