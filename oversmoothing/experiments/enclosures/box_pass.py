"""ln HFC/LFC of every layer on a box of inputs: zonotopes, tangents, remainders of second order.

What a layer curves is taken at the centre of its box, to first order; the second order is bounded:
    GELU, 1 / sqrt, ln    by the second derivative over the interval (`curves.tangent`)
    softmax               with delta' = delta - sum_k a_k delta_k, |delta'_k| <= r_k and a at the
                          centre, a(xi)_k <= a_k exp(r_k) on the box (Jensen), and the second
                          derivative a(xi)_j ((delta'_j - m)^2 - Var), m and Var under a(xi), lies
                          between -a_j exp(r_j) V and a_j exp(r_j) (r_j + M)^2, where
                          V = sum_k a_k exp(r_k) r_k^2 and M = sum_k a_k exp(r_k) r_k
    products              by the product of the radii
"""

from __future__ import annotations

from collections.abc import Iterator

import flint
import numpy as np

from oversmoothing.experiments.enclosures.ball_pass import Ball, total
from oversmoothing.experiments.enclosures.network import (
    Block,
    HeadWeights,
    Network,
    NormWeights,
    alike,
)
from oversmoothing.experiments.enclosures.zonotope import (
    BITS,
    GELU,
    LOG,
    ROOT_INVERSE,
    Symbols,
    Zonotope,
    ball_softmax,
    bilinear,
    rows_with_rows,
    squares,
    tangent,
    upward,
)
from oversmoothing.theory.numbers.rounding import UNIT, at_precision, inflated
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

MOST_BYTES = 2**33


def refuse_unboxable(network: Network, pixels: int, layers: int) -> None:
    """Raises `InputError` for a network whose boxes of so many pixels cannot be enclosed over so
    many layers: another form, or more memory than `MOST_BYTES`."""
    right = network.patches is not None and all(
        block.placement == "pre"
        and {block.norm_attention.kind, block.norm_ffn.kind} == {"layer"}
        and {block.output_norm_attention.kind, block.output_norm_ffn.kind} == {"none"}
        and block.ffn is not None
        and block.ffn.activation == "gelu"
        and block.ffn.W_gate is None
        and not block.causal
        for block in network.blocks
    )
    if not right:
        raise InputError(
            "boxes are enclosed of vision transformers with LayerNorm in front of the sublayers, "
            "unmasked softmax attention and GELU, such as the digits models"
        )
    assert network.patches is not None
    n, d = network.patches.positions.shape
    symbols, widest = pixels, d
    for block in network.blocks[:layers]:
        assert block.ffn is not None
        hidden = block.ffn.W_in.shape[1]
        symbols += n * (4 * d + hidden) + len(block.heads) * n * n
        widest = max(widest, hidden)
    # Some three arrays of the widest kind are alive at a time.
    needed = 3 * 8 * symbols * n * widest
    if needed > MOST_BYTES:
        over, less = "a layer", ""
        if layers > 1:
            over, less = f"{layers} layers", "an earlier layer or "
        raise InputError(
            f"a box over {over} needs {needed / 2**30:.0f} GiB, more than "
            f"{MOST_BYTES / 2**30:.0f}: choose {less}a smaller model, such as the digits models"
        )


def box_ratios(network: Network, pixels: Array, eps: float) -> Iterator[Zonotope]:
    """ln HFC/LFC [1, 1] in front of the first block and behind each, of every input that differs
    from pixels [c, s, s] by at most eps in every pixel.

    Raises `LeftDomainError` where the box is too large for what stands in a layer.
    """
    symbols = Symbols()
    X = embedded_box(network, symbols.box(pixels, eps))
    yield log_ratio(X)
    for block in network.blocks:
        N = symbols.shared(layer_norm(block.norm_attention, X))
        X = X + symbols.shared(_attended(block, N, symbols))
        N = symbols.shared(layer_norm(block.norm_ffn, X))
        assert block.ffn is not None
        hidden = symbols.shared(tangent(N.mapped(block.ffn.W_in, block.ffn.b_in), GELU))
        X = symbols.shared(X + hidden.mapped(block.ffn.W_out, block.ffn.b_out))
        yield log_ratio(X)


def embedded_box(network: Network, box: Zonotope) -> Zonotope:
    """The tokens [n, d] of a box of pixels [c, s, s]."""
    patches = network.patches
    assert patches is not None
    cut = Zonotope(
        patches.cut(box.centre),
        np.stack([patches.cut(each) for each in box.generators]),
        patches.cut(box.rest),
    )
    tokens = cut.mapped(patches.W, patches.b)
    first = patches.first
    whole = Zonotope(
        np.concatenate([first, tokens.centre]),
        np.pad(tokens.generators, ((0, 0), (len(first), 0), (0, 0))),
        np.pad(tokens.rest, ((len(first), 0), (0, 0))),
    )
    return whole.times(1.0, patches.positions)


def centred(X: Zonotope, axis: int) -> Zonotope:
    """X less its mean over an axis."""
    Y = X.swapped() if axis == -2 else X
    k = Y.centre.shape[-1]
    mean = Y.mapped(np.full((k, 1), 1.0 / k))
    Z = Y - mean
    return Z.swapped() if axis == -2 else Z


def layer_norm(norm: NormWeights, X: Zonotope) -> Zonotope:
    """N(X) [n, d]."""
    d = X.centre.shape[-1]
    Y = centred(X, -1)
    scale = tangent(squares(Y, (-1,), 1.0 / d).times(1.0, norm.eps), ROOT_INVERSE)
    out = bilinear(Y, scale, np.multiply, 1)
    return out.times(norm.gain, 0.0 if norm.shift is None else norm.shift)


def _attended(block: Block, N: Zonotope, symbols: Symbols) -> Zonotope:
    out: Zonotope | None = None
    for heads in alike(block.heads):
        A = symbols.shared(softmax(_logits(heads[0], N, block.scaling)))
        for head in heads[1:]:
            A = A + symbols.shared(softmax(_logits(head, N, block.scaling)))
        V = N.mapped(heads[0].W_V, heads[0].b_V)
        mixed = bilinear(A, V, np.matmul, len(V.centre)).mapped(heads[0].W_O)
        out = mixed if out is None else out + mixed
    assert out is not None
    return out if block.b_O is None else out.times(1.0, block.b_O)


def _logits(head: HeadWeights, N: Zonotope, scaling: float) -> Zonotope:
    q, k = N.mapped(head.W_Q, head.b_Q), N.mapped(head.W_K, head.b_K)
    return bilinear(q, k, rows_with_rows, head.W_Q.shape[1]).times(scaling)


def softmax(logits: Zonotope) -> Zonotope:
    """softmax over the last dimension of [n, n]."""
    n = logits.centre.shape[-1]
    with at_precision(BITS):
        balls = [ball_softmax(row) for row in logits.centre]
        A = np.array([[float(x.mid()) for x in row] for row in balls])
        rounding = np.array([[upward(abs(x - float(x.mid()))) for x in row] for row in balls])
    # What a row has in common changes nothing: delta', as an affine form.
    point = Zonotope(A, np.zeros((0, *A.shape)), np.zeros_like(A))
    L = logits - bilinear(point, logits, lambda p, q: (p * q).sum(-1, keepdims=True), n)
    # sum_k a_k delta'_k = sum_k (a_k - A_k) delta_k, which is 0 but for the rounding of A.
    left_over = inflated((rounding * logits.radius).sum(-1, keepdims=True), n + 2)
    reach = inflated(L.radius + left_over, 2)
    with at_precision(BITS):
        bends = [_bends(*row) for row in zip(balls, reach.tolist(), strict=True)]
        offset = np.array([[float(((low + high) / 2).mid()) for low, high in row] for row in bends])
        left = np.array([
            [upward(abs(low - c).max(abs(high - c))) for (low, high), c in zip(*rows, strict=True)]
            for rows in zip(bends, offset.tolist(), strict=True)
        ])  # fmt: skip
    linear = L.times(A)
    unsaid = rounding * (1 + reach) + A * left_over
    rest = linear.rest + left + unsaid + 2 * UNIT * (A + np.abs(offset))
    return Zonotope(A + offset, linear.generators, inflated(rest, 16))


def _bends(a: list[Ball], reach: list[float]) -> list[tuple[Ball, Ball]]:
    """The least and the most that half the second derivative of each entry of softmax can be."""
    grown = [x * flint.arb(r).exp() for x, r in zip(a, reach, strict=True)]
    M = total(x * r for x, r in zip(grown, reach, strict=True))
    V = total(x * r * r for x, r in zip(grown, reach, strict=True))
    return [(-x * V / 2, x * (M + r) * (M + r) / 2) for x, r in zip(grown, reach, strict=True)]


def log_ratio(X: Zonotope) -> Zonotope:
    """ln HFC/LFC of X [n, d]: [1, 1]."""
    n = X.centre.shape[-2]
    Y = centred(X, -2)
    mean = X.swapped().mapped(np.full((n, 1), 1.0 / n))
    hfc = tangent(squares(Y, (-2, -1), 1.0), LOG)
    lfc = tangent(squares(mean, (-2, -1), float(n)), LOG)
    return (hfc - lfc).times(0.5)
