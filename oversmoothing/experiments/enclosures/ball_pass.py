"""The forward pass of a network in balls: every stream contains the exact one.

Weights and input are exact numbers; the products are FLINT's, LayerNorm, softmax and activations
are computed entry by entry. Radii grow by some 10^6 a block of a trained ViT, which bits absorb.
"""

from collections.abc import Callable, Iterator

import flint

from oversmoothing.experiments.enclosures.ball_arrays import (
    Ball,
    Balls,
    entrywise,
    every_finite,
    exact,
    exact_row,
    of_rows,
    total,
)
from oversmoothing.experiments.enclosures.ffn_form import CUBIC, QUICK, FeedForward
from oversmoothing.experiments.enclosures.network import Block, HeadWeights, Network, NormWeights
from oversmoothing.theory.support.sizes import Array


class TooWideError(ArithmeticError):
    """Balls of infinite radius: the precision does not suffice."""


def streams(network: Network, given: Array) -> Iterator[Balls]:
    """The streams [n, d] in front of the first block and behind each, at the working precision.

    given: pixels [c, s, s], or X_0 [n, d] of a network without patches. Raises `TooWideError` where
    the precision does not suffice.
    """
    X = exact(given) if network.patches is None else embedded(network, given)
    yield X
    for block in network.blocks:
        X = after(block, X)
        if not every_finite(X):
            raise TooWideError
        yield X


def embedded(network: Network, pixels: Array) -> Balls:
    """X_0 of pixels."""
    patches = network.patches
    assert patches is not None
    tokens = affine(exact(patches.cut(pixels)), patches.W, patches.b)
    rows = [exact_row(first) for first in patches.first] + tokens.tolist()
    return of_rows(rows) + exact(patches.positions)


def after(block: Block, X: Balls) -> Balls:
    """The stream behind a block."""
    post = block.placement == "post"
    given = X if post else normed(block.norm_attention, X)
    Y = X + normed(block.output_norm_attention, attended(block, given))
    Y = normed(block.norm_attention, Y) if post else Y
    if block.ffn is None:
        return Y
    seen = {"pre": Y, "parallel": X, "post": Y}[block.placement]
    N = seen if post else normed(block.norm_ffn, seen)
    Z = Y + normed(block.output_norm_ffn, fed_forward(block.ffn, N))
    return normed(block.norm_ffn, Z) if post else Z


def affine(X: Balls, W: Array, b: Array | None) -> Balls:
    """X W + 1 b."""
    Y = X * exact(W)
    return Y if b is None else _plus(Y, b)


def _plus(Y: Balls, b: Array) -> Balls:
    ones = flint.arb_mat(Y.nrows(), 1, [1] * Y.nrows())
    return Y + ones * exact(b[None])


def normed(norm: NormWeights, X: Balls) -> Balls:
    """N(X), token by token."""
    if norm.kind == "none":
        return X
    gain = exact_row(norm.gain)
    shift = None if norm.shift is None else exact_row(norm.shift)
    return of_rows([_normed(norm, gain, shift, x) for x in X.tolist()])


def _normed(
    norm: NormWeights, gain: list[Ball], shift: list[Ball] | None, x: list[Ball]
) -> list[Ball]:
    d = len(x)
    if norm.kind == "layer":
        mean = total(x) / d
        x = [e - mean for e in x]
    scale = (total(e * e for e in x) / d + norm.eps).rsqrt()
    y = [e * scale * g for e, g in zip(x, gain, strict=True)]
    return y if shift is None else [e + b for e, b in zip(y, shift, strict=True)]


def attended(block: Block, X: Balls) -> Balls:
    """sum_h A_h X W_V,h W_O,h + biases of normalised tokens X."""
    out = None
    for head in block.heads:
        A = attention(head, X, block.scaling, block.causal)
        added = A * affine(X, head.W_V, head.b_V) * exact(head.W_O)
        out = added if out is None else out + added
    return out if block.b_O is None else _plus(out, block.b_O)


def attention(head: HeadWeights, X: Balls, scaling: float, causal: bool) -> Balls:
    """softmax(scaling q k^T), row by row; a causal row sees itself and those before."""
    q, k = affine(X, head.W_Q, head.b_Q), affine(X, head.W_K, head.b_K)
    logits = (q * k.transpose() * flint.arb(scaling)).tolist()
    return of_rows([
        softmax(row[: i + 1]) + [flint.arb(0)] * (len(row) - i - 1) if causal else softmax(row)
        for i, row in enumerate(logits)
    ])  # fmt: skip


def softmax(row: list[Ball]) -> list[Ball]:
    """exp(x - c) over its sum, for a number c near the largest."""
    largest = flint.arb(max(float(x.mid()) for x in row))
    powers = [(x - largest).exp() for x in row]
    share = 1 / total(powers)
    return [x * share for x in powers]


def fed_forward(ffn: FeedForward, X: Balls) -> Balls:
    """FFN(X), token by token."""
    hidden = entrywise(affine(X, ffn.W_in, ffn.b_in), ACTIVATIONS[ffn.activation])
    if ffn.W_gate is not None:
        gate = affine(X, ffn.W_gate, ffn.b_gate)
        pairs = zip(hidden.entries(), gate.entries(), strict=True)
        hidden = flint.arb_mat(hidden.nrows(), hidden.ncols(), [f * g for f, g in pairs])
    return affine(hidden, ffn.W_out, ffn.b_out)


def _gelu(x: Ball) -> Ball:
    return x * (1 + (x / flint.arb(2).sqrt()).erf()) / 2


def _gelu_tanh(x: Ball) -> Ball:
    return x * (1 + ((2 / flint.arb.pi()).sqrt() * (x + CUBIC * x * x * x)).tanh()) / 2


def _silu(x: Ball) -> Ball:
    return x / (1 + (-x).exp())


def _quick_gelu(x: Ball) -> Ball:
    return x / (1 + (-QUICK * x).exp())


ACTIVATIONS: dict[str, Callable[[Ball], Ball]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
    "relu": lambda x: x.max(flint.arb(0)),
    "quick_gelu": _quick_gelu,
}
