"""The forward pass of a network, on balls (one input) or on zonotopes (a box of inputs).

What a layer curves is taken by tangents, and softmax to first order at the centre of its box; what
that leaves out is bounded (`zonotope`). Balls enclose every function as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import TypeVar

import flint

from oversmoothing.experiments.enclosures.balls import Balls, Curve
from oversmoothing.experiments.enclosures.network import (
    CUBIC,
    QUICK,
    Block,
    FeedForward,
    HeadWeights,
    Network,
    NormWeights,
    alike,
)
from oversmoothing.experiments.enclosures.zonotope import (
    GELU,
    LOG,
    ROOT_INVERSE,
    Symbols,
    Zonotope,
    squares,
)
from oversmoothing.theory.support.sizes import Array

Number = TypeVar("Number", Balls, Zonotope)
ACTIVATIONS = {
    "gelu": GELU,
    "gelu_tanh": Curve(
        lambda x: x * (1 + ((2 / flint.arb.pi()).sqrt() * (x + CUBIC * x * x * x)).tanh()) / 2
    ),
    "silu": Curve(lambda x: x / (1 + (-x).exp())),
    "relu": Curve(lambda x: x.max(flint.arb(0))),
    "quick_gelu": Curve(lambda x: x / (1 + (-QUICK * x).exp())),
}


def streams(network: Network, given: Array, known: Callable[[Array], Number]) -> Iterator[Number]:
    """The streams [n, d] in front of the first block and behind each.

    given: pixels [c, s, s], or X_0 [n, d] of a network without patches; known: what is known of
    exact numbers, a matrix of them. Raises `LeftDomainError` where a box is too large for what
    stands in a layer.
    """
    patches = network.patches
    if patches is None:
        X = known(given)
    else:
        tokens = known(patches.cut(given)).mapped(patches.W, patches.b)
        X = tokens.below(patches.first).times(1.0, patches.positions)
    yield X
    for block in network.blocks:
        X = _after(block, X)
        yield X


def box_ratios(network: Network, pixels: Array, eps: float) -> Iterator[Zonotope]:
    """ln HFC/LFC [1, 1] in front of the first block and behind each, of every input that differs
    from pixels [c, s, s] by at most eps in every pixel. Raises as `streams`."""
    symbols = Symbols()
    return map(_log_ratio, streams(network, pixels, lambda x: symbols.box(x, eps)))


def _after(block: Block, X: Number) -> Number:
    post = block.placement == "post"
    given = X if post else _normed(block.norm_attention, X)
    Y = X + _normed(block.output_norm_attention, _attended(block, given)).own()
    Y = _normed(block.norm_attention, Y) if post else Y
    if block.ffn is None:
        return Y
    seen = {"pre": Y, "parallel": X, "post": Y}[block.placement]
    N = seen if post else _normed(block.norm_ffn, seen)
    Z = (Y + _normed(block.output_norm_ffn, _fed_forward(block.ffn, N))).own()
    return _normed(block.norm_ffn, Z) if post else Z


def _normed(norm: NormWeights, X: Number) -> Number:
    """N(X), token by token."""
    if norm.kind == "none":
        return X
    Y = X - X.mean() if norm.kind == "layer" else X
    scale = Y.squares().times(1.0, norm.eps).tangent(ROOT_INVERSE)
    return Y.multiplied(scale).times(norm.gain, 0.0 if norm.shift is None else norm.shift).own()


def _attended(block: Block, X: Number) -> Number:
    """sum_h A_h X W_V,h W_O,h + biases of normalised tokens X."""
    parts = []
    for heads in alike(block.heads):
        A = reduce(add, (_attention(head, X, block).own() for head in heads))
        parts.append(A.matmul(X.mapped(heads[0].W_V, heads[0].b_V)).mapped(heads[0].W_O))
    out = reduce(add, parts)
    return out if block.b_O is None else out.times(1.0, block.b_O)


def _attention(head: HeadWeights, X: Number, block: Block) -> Number:
    """softmax(scaling q k^T)."""
    q, k = X.mapped(head.W_Q, head.b_Q), X.mapped(head.W_K, head.b_K)
    return q.matmul(k.swapped()).times(block.scaling).softmax(block.causal)


def _fed_forward(ffn: FeedForward, X: Number) -> Number:
    """FFN(X), token by token."""
    hidden = X.mapped(ffn.W_in, ffn.b_in).tangent(ACTIVATIONS[ffn.activation]).own()
    if ffn.W_gate is not None:
        hidden = hidden.multiplied(X.mapped(ffn.W_gate, ffn.b_gate))
    return hidden.mapped(ffn.W_out, ffn.b_out)


def _log_ratio(X: Zonotope) -> Zonotope:
    """ln HFC/LFC of X [n, d]: [1, 1]."""
    n = X.centre.shape[-2]
    Z = X.swapped()
    hfc = squares(Z - Z.mean(), (-2, -1), 1.0).tangent(LOG)
    lfc = squares(Z.mean(), (-2, -1), float(n)).tangent(LOG)
    return (hfc - lfc).times(0.5)
