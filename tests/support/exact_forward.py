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


def m(values: Any) -> Any:
    return mp.matrix([[mp.mpf(float(x)) for x in row] for row in np.atleast_2d(values)])


def affine(X: Any, W: Any, b: Any) -> Any:
    Y = X * m(W)
    if b is not None:
        for i in range(Y.rows):
            for j in range(Y.cols):
                Y[i, j] += mp.mpf(float(b[j]))
    return Y


def norm(weights: NormWeights, X: Any) -> Any:
    if weights.kind == "none":
        return X
    Y = X.copy()
    for i in range(X.rows):
        x = [X[i, j] for j in range(X.cols)]
        mean = mp.fsum(x) / X.cols if weights.kind == "layer" else mp.mpf(0)
        root = mp.sqrt(mp.fsum((e - mean) ** 2 for e in x) / X.cols + mp.mpf(weights.eps))
        for j, e in enumerate(x):
            shift = 0 if weights.shift is None else mp.mpf(float(weights.shift[j]))
            Y[i, j] = (e - mean) / root * mp.mpf(float(weights.gain[j])) + shift
    return Y


def attention(head: HeadWeights, X: Any, block: Block) -> Any:
    logits = affine(X, head.W_Q, head.b_Q) * affine(X, head.W_K, head.b_K).T
    A = mp.zeros(X.rows)
    for i in range(X.rows):
        seen = range(i + 1) if block.causal else range(X.rows)
        powers = [mp.exp(mp.mpf(block.scaling) * logits[i, j]) for j in seen]
        for j, power in zip(seen, powers, strict=True):
            A[i, j] = power / mp.fsum(powers)
    return A


def attended(block: Block, X: Any) -> Any:
    total = mp.zeros(X.rows, X.cols)
    for head in block.heads:
        total += attention(head, X, block) * affine(X, head.W_V, head.b_V) * m(head.W_O)
    return total if block.b_O is None else affine(total, np.eye(X.cols), block.b_O)


def fed_forward(ffn: FeedForward, X: Any) -> Any:
    hidden = affine(X, ffn.W_in, ffn.b_in).apply(ACTIVATIONS[ffn.activation])
    if ffn.W_gate is not None:
        gate = affine(X, ffn.W_gate, ffn.b_gate)
        for i in range(hidden.rows):
            for j in range(hidden.cols):
                hidden[i, j] *= gate[i, j]
    return affine(hidden, ffn.W_out, ffn.b_out)


def after(block: Block, X: Any) -> Any:
    if block.placement == "post":
        Y = norm(block.norm_attention, X + norm(block.output_norm_attention, attended(block, X)))
        if block.ffn is None:
            return Y
        Z = Y + norm(block.output_norm_ffn, fed_forward(block.ffn, Y))
        return norm(block.norm_ffn, Z)
    N = norm(block.norm_attention, X)
    Y = X + norm(block.output_norm_attention, attended(block, N))
    if block.ffn is None:
        return Y
    seen = norm(block.norm_ffn, X if block.placement == "parallel" else Y)
    return Y + norm(block.output_norm_ffn, fed_forward(block.ffn, seen))


def embedded(network: Network, pixels: Any) -> Any:
    patches = network.patches
    assert patches is not None
    p, tokens = patches.side, [list(row) for row in patches.first]
    found = [[mp.mpf(float(x)) for x in row] for row in tokens]
    for top in range(0, pixels.shape[1], p):
        for left in range(0, pixels.shape[2], p):
            flat = pixels[:, top : top + p, left : left + p].reshape(1, -1)
            found.append(list(affine(m(flat), patches.W, patches.b)))
    return mp.matrix(found) + m(patches.positions)


def exact_streams(network: Network, given: Any) -> list[Any]:
    found = [m(given) if network.patches is None else embedded(network, given)]
    for block in network.blocks:
        found.append(after(block, found[-1]))
    return found


def exact_metrics(X: Any) -> dict[str, Any]:
    n, d = X.rows, X.cols
    mean = [mp.fsum(X[i, j] for i in range(n)) / n for j in range(d)]
    hfc = mp.sqrt(mp.fsum((X[i, j] - mean[j]) ** 2 for i in range(n) for j in range(d)))
    ratio = hfc / mp.sqrt(n * mp.fsum(x**2 for x in mean))
    cosines = []
    for i in range(n):
        for k in range(i):
            inner = mp.fsum(X[i, j] * X[k, j] for j in range(d))
            size = mp.fsum(X[i, j] ** 2 for j in range(d)) * mp.fsum(X[k, j] ** 2 for j in range(d))
            cosines.append(inner / mp.sqrt(size))
    sigma = sorted(mp.svd_r(X, compute_uv=False), reverse=True)
    p = [s / mp.fsum(sigma) for s in sigma]
    return {
        "hfc_lfc": ratio,
        "log_hfc_lfc": mp.log(ratio),
        "cos_mean": mp.fsum(cosines) / len(cosines),
        "cos_min": min(cosines),
        "cos_abs_mean": mp.fsum(abs(c) for c in cosines) / len(cosines),
        "cos_abs_min": min(abs(c) for c in cosines),
        "effective_rank": mp.exp(-mp.fsum(x * mp.log(x) for x in p if x > 0)),
        "sigma2_sigma1": sigma[1] / sigma[0] if len(sigma) > 1 else mp.mpf(0),
    }
