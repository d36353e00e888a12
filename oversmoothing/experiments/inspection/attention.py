"""Attention and what it adds, from described weights: A_h = softmax(logits_h), sum_h A_h X W_V W_O.

Whatever kernel the module itself uses, these are the equations that its description stands for.
`value_rounding` and `logit_rounding` say how far rounding moves what they give.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from oversmoothing.experiments.models.model import Heads, Layer


class Attention(NamedTuple):
    """A [b, heads, n, n]: rows sum to 1 over the kept tokens (and, causal, the earlier ones), or
    with sinks to less; padding is 0. q, k [b, heads, n, r]: queries, times the scaling, and keys,
    as they are multiplied."""

    A: Tensor
    q: Tensor
    k: Tensor


def attention(
    X: Tensor, heads: Heads, layer: Layer, call: Mapping[str, Any], keep: Tensor, causal: bool
) -> Attention:
    """For attention inputs X [b, n, d]; call: the arguments of the module's own call, by name."""
    call = {**call, "module": layer.attention}
    q, k = projected(X, heads.W_Q, heads.b_Q), projected(X, heads.W_K, heads.b_K)
    q = q if layer.q_norm is None else layer.q_norm(q)
    k = k if layer.k_norm is None else layer.k_norm(k)
    if layer.rotate is not None:
        q, k = layer.rotate(q, k, call)
    scaling = q.shape[-1] ** -0.5 if layer.scaling is None else layer.scaling
    scaled = q * scaling
    logits = scaled @ k.mT
    if layer.softcap is not None:
        logits = layer.softcap * torch.tanh(logits / layer.softcap)
    if layer.bias is not None:
        added = layer.bias({**call, "query": q, "key": k})
        logits = logits if added is None else logits + added.to(logits)
    n = X.shape[1]
    whole = bool(keep.all())
    if causal or not whole:
        allowed = keep[:, None, None, :]
        if causal:
            allowed = allowed & torch.ones(n, n, dtype=torch.bool, device=X.device).tril()
        logits = logits.masked_fill(~allowed, -torch.inf)
    if layer.sinks is not None:
        sinks = layer.sinks.to(logits)[:, None, None].expand(*logits.shape[:-1], 1)
        A = torch.cat([logits, sinks], -1).softmax(-1)[..., :-1]
    else:
        A = logits.softmax(-1)
    if not whole:
        # A padding row may have nothing to attend to (NaN); nobody reads it.
        A = torch.where(keep[:, None, :, None], A, 0.0)
    return Attention(A, scaled, k)


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


def logit_rounding(found: Attention, V: Tensor, heads: Heads) -> Tensor:
    """By how many eps rounding queries and keys moves each token of the output: [b, n].

    A logit that moves by e moves the output by A_tj e (v_j - o_t), v_j the value of token j and o_t
    their mean by A_t, so that a head contributes at most |W_O| |q_t| sum_j A_tj |k_j| |v_j - o_t|.
    A sink that takes all the attention makes this small, however long its key is. Rounding q and k
    moves the logit of (t, j) by a few eps |q_t| |k_j|.
    """
    A, q, k = found
    spread = torch.cdist(A @ V, V) * A
    moved = _lengths(q) * (spread @ _lengths(k).unsqueeze(-1)).squeeze(-1) * _gain(heads)
    total: Tensor = moved.sum(1)
    return total


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
