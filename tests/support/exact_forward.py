"""A forward pass and its metrics in mpmath, at 60 digits and more: the oracle of the enclosures.

Written from the formulas alone; it shares the network's numbers with the project and nothing else.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from oversmoothing.experiments.enclosures.network import (
    Block,
    FeedForward,
    HeadWeights,
    Network,
    NormWeights,
)
from tests.support.high_precision import metrics_at_high_precision

mp = mpmath.mp.clone()
mp.dps = 80

ACTIVATIONS: dict[str, Any] = {
    "gelu": lambda x: x * mp.ncdf(x),
    "gelu_tanh": lambda x: (
        x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x**3)))
    ),
    "silu": lambda x: x / (1 + mp.exp(-x)),
    "relu": lambda x: max(x, mp.mpf(0)),
    "quick_gelu": lambda x: x / (1 + mp.exp(-mp.mpf(1.702) * x)),
}


def each(function: Any, values: Any) -> Any:
    """A function of every entry, as an array of objects."""
    return np.vectorize(function, otypes=[object])(values)


def m(values: Any) -> Any:
    return each(lambda x: mp.mpf(float(x)), values)


def affine(X: Any, W: Any, b: Any) -> Any:
    return X @ m(W) + (0 if b is None else m(b))


def norm(weights: NormWeights, X: Any) -> Any:
    if weights.kind == "none":
        return X
    d = X.shape[1]
    X = X - X.sum(axis=1, keepdims=True) / d if weights.kind == "layer" else X
    root = each(mp.sqrt, (X**2).sum(axis=1, keepdims=True) / d + mp.mpf(weights.eps))
    return X / root * m(weights.gain) + (0 if weights.shift is None else m(weights.shift))


def attention(head: HeadWeights, X: Any, block: Block) -> Any:
    logits = affine(X, head.W_Q, head.b_Q) @ affine(X, head.W_K, head.b_K).T
    powers = each(mp.exp, mp.mpf(block.scaling) * logits)
    powers = np.tril(powers) if block.causal else powers
    return powers / powers.sum(axis=1, keepdims=True)


def attended(block: Block, X: Any) -> Any:
    heads = (
        attention(head, X, block) @ affine(X, head.W_V, head.b_V) @ m(head.W_O)
        for head in block.heads
    )
    return sum(heads, start=0 if block.b_O is None else m(block.b_O))


def fed_forward(ffn: FeedForward, X: Any) -> Any:
    hidden = each(ACTIVATIONS[ffn.activation], affine(X, ffn.W_in, ffn.b_in))
    if ffn.W_gate is not None:
        hidden = hidden * affine(X, ffn.W_gate, ffn.b_gate)
    return affine(hidden, ffn.W_out, ffn.b_out)


def after(block: Block, X: Any) -> Any:
    if block.placement == "post":
        Y = norm(block.norm_attention, X + norm(block.output_norm_attention, attended(block, X)))
        if block.ffn is None:
            return Y
        return norm(block.norm_ffn, Y + norm(block.output_norm_ffn, fed_forward(block.ffn, Y)))
    N = norm(block.norm_attention, X)
    Y = X + norm(block.output_norm_attention, attended(block, N))
    if block.ffn is None:
        return Y
    seen = norm(block.norm_ffn, X if block.placement == "parallel" else Y)
    return Y + norm(block.output_norm_ffn, fed_forward(block.ffn, seen))


def embedded(network: Network, pixels: Any) -> Any:
    patches = network.patches
    assert patches is not None
    p = patches.side
    flat = [
        pixels[:, top : top + p, left : left + p].ravel()
        for top in range(0, pixels.shape[1], p)
        for left in range(0, pixels.shape[2], p)
    ]
    tokens = m(patches.first), affine(m(flat), patches.W, patches.b)
    return np.concatenate(tokens) + m(patches.positions)


def exact_streams(network: Network, given: Any) -> list[Any]:
    found = [m(given) if network.patches is None else embedded(network, given)]
    for block in network.blocks:
        found.append(after(block, found[-1]))
    return found


def exact_metrics(X: Any) -> dict[str, Any]:
    found = metrics_at_high_precision(X.tolist(), digits=200)
    return found | {"log_hfc_lfc": mp.log(found["hfc_lfc"])}
