"""Attention and what it adds, from described weights: A_h = softmax(logits_h), sum_h A_h X W_V W_O.

Whatever kernel the module itself uses, these are the equations that its description stands for.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from oversmoothing.experiments.models.model import Heads, Layer


def attention(
    X: Tensor, heads: Heads, layer: Layer, call: Mapping[str, Any], keep: Tensor, causal: bool
) -> tuple[Tensor, float]:
    """(A [b, heads, n, n], max |q| |k| scaling) for attention inputs X [b, n, d].

    Rows sum to 1 over the kept tokens (and, causal, the earlier ones), or with sinks to less;
    padding is 0.
    """
    q, k = projected(X, heads.W_Q, heads.b_Q), projected(X, heads.W_K, heads.b_K)
    q = q if layer.q_norm is None else layer.q_norm(q)
    k = k if layer.k_norm is None else layer.k_norm(k)
    if layer.rotate is not None:
        q, k = layer.rotate(q, k, call)
    scaling = q.shape[-1] ** -0.5 if layer.scaling is None else layer.scaling
    logits = (q * scaling) @ k.mT
    sizes = [float(torch.linalg.vector_norm(each, dim=-1).amax()) for each in (q, k)]
    if layer.softcap is not None:
        logits = layer.softcap * torch.tanh(logits / layer.softcap)
    if layer.bias is not None:
        added = layer.bias({**call, "module": layer.attention, "query": q, "key": k})
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
    return A, abs(scaling) * sizes[0] * sizes[1]


def attention_output(A: Tensor, X: Tensor, heads: Heads) -> Tensor:
    """sum_h A_h X W_V,h W_O,h + biases, [b, n, d]."""
    values = A @ projected(X, heads.W_V, heads.b_V)
    out: Tensor = values.transpose(1, 2).flatten(2) @ heads.W_O.flatten(0, 1)
    return out if heads.b_O is None else out + heads.b_O


def projected(X: Tensor, W: Tensor, bias: Tensor | None) -> Tensor:
    """X [b, n, d] by W [heads, d, r]: [b, heads, n, r]."""
    (b, n, _), (heads, _, r) = X.shape, W.shape
    out = (X @ W.transpose(0, 1).flatten(1)).view(b, n, heads, r).transpose(1, 2)
    return out if bias is None else out + bias.unsqueeze(1)
