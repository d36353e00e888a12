"""ln HFC/LFC of every layer on a box by another route, for the checker: chords, other products.

Of `box_pass` it shares the arithmetic of zonotopes. Logits are N (W_Q W_K^T) N^T and values
N (W_V W_O), as in `other_pass`; softmax is exp, a sum, an inverse and a product; every curved
function is replaced by its chord, with the range of what is left found piece by piece; variances
and HFC are what remains of the sum of squares.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oversmoothing.experiments.enclosures.network import (
    Block,
    HeadWeights,
    Network,
    NormWeights,
    alike,
)
from oversmoothing.experiments.enclosures.zonotope import (
    EXP,
    GELU,
    INVERSE,
    LOG,
    ROOT_INVERSE,
    Symbols,
    Zonotope,
    bilinear,
    chord,
    rows_with_rows,
    squares,
)
from oversmoothing.theory.support.sizes import Array


def other_box_ratios(network: Network, pixels: Array, eps: float) -> Iterator[Zonotope]:
    """As `box_pass.box_ratios`, [1, 1] each. Raises `LeftDomainError` for too large a box."""
    symbols = Symbols()
    X = _tokens(network, symbols.box(pixels.reshape(1, -1), eps), pixels.shape)
    yield _ratio(X)
    for block in network.blocks:
        X = symbols.shared(X + _mixed(block, _norm(block.norm_attention, X, symbols), symbols))
        N = _norm(block.norm_ffn, X, symbols)
        assert block.ffn is not None
        hidden = symbols.shared(chord(N.mapped(block.ffn.W_in, block.ffn.b_in), GELU))
        X = symbols.shared(X + hidden.mapped(block.ffn.W_out, block.ffn.b_out))
        yield _ratio(X)


def _tokens(network: Network, box: Zonotope, shape: tuple[int, ...]) -> Zonotope:
    """X_0 [n, d] of pixels [1, c s s], by one matrix of all patches: [c s s, n d]."""
    patches = network.patches
    assert patches is not None
    (c, height, width), p = shape, patches.side
    first, (n, d) = len(patches.first), patches.positions.shape
    whole = np.zeros((c, height, width, n, d))
    weights = patches.W.reshape(c, p, p, d)
    for token in range(n - first):
        top, left = (p * x for x in divmod(token, width // p))
        whole[:, top : top + p, left : left + p, first + token] = weights
    shift = np.zeros((n, d))
    shift[:first] = patches.first
    if patches.b is not None:
        shift[first:] = patches.b
    flat = box.mapped(whole.reshape(c * height * width, n * d), shift.ravel())
    flat = flat.times(1.0, patches.positions.reshape(1, -1))
    return Zonotope(
        flat.centre.reshape(n, d), flat.generators.reshape(-1, n, d), flat.rest.reshape(n, d)
    )


def _norm(norm: NormWeights, X: Zonotope, symbols: Symbols) -> Zonotope:
    d = X.centre.shape[-1]
    # Centred by a matrix: I - 11^T / d.
    Y = X.mapped(np.eye(d) - np.full((d, d), 1.0 / d))
    root = chord(squares(Y, (-1,), 1.0 / d).times(1.0, norm.eps), ROOT_INVERSE)
    Y = Y.times(norm.gain)
    out = bilinear(root, Y, np.multiply, 1)
    return symbols.shared(out if norm.shift is None else out.times(1.0, norm.shift))


def _mixed(block: Block, N: Zonotope, symbols: Symbols) -> Zonotope:
    d = N.centre.shape[-1]
    shift = np.zeros(d) if block.b_O is None else block.b_O
    total: Zonotope | None = None
    for heads in reversed(alike(block.heads)):
        maps = [_softmax(_logits(head, N, block.scaling), symbols) for head in reversed(heads)]
        A = symbols.shared(sum(maps[1:], maps[0]))
        values = N.mapped(heads[0].W_V, heads[0].b_V).mapped(heads[0].W_O)
        mixed = bilinear(values.swapped(), A.swapped(), np.matmul, len(N.centre)).swapped()
        total = mixed if total is None else mixed + total
    assert total is not None
    return total.times(1.0, shift)


def _logits(head: HeadWeights, N: Zonotope, scaling: float) -> Zonotope:
    """Less what is constant in a row: N (W_Q W_K^T) N^T + 1 (W_K b_Q)^T N^T, times scaling."""
    queries = N.mapped(head.W_Q, head.b_Q).mapped(head.W_K.T)
    return bilinear(N, queries, rows_with_rows, N.centre.shape[-1]).times(scaling).swapped()


def _softmax(logits: Zonotope, symbols: Symbols) -> Zonotope:
    """Each row less its largest entry, an affine form as the others are; then exp and its share."""
    n = logits.centre.shape[-1]
    largest = logits.centre.argmax(-1)
    rows = np.arange(len(largest))
    top = Zonotope(*(
        x[..., None]
        for x in (logits.centre[rows, largest], logits.generators[:, rows, largest],
                  logits.rest[rows, largest])
    ))  # fmt: skip
    powers = symbols.shared(chord(logits - top, EXP))
    inverse = chord(powers.mapped(np.ones((n, 1))), INVERSE)
    return bilinear(powers, inverse, np.multiply, 1)


def _ratio(X: Zonotope) -> Zonotope:
    n = X.centre.shape[-2]
    Z = X.swapped()
    Y = Z.mapped(np.eye(n) - np.full((n, n), 1.0 / n))
    mean = Z.mapped(np.full((n, 1), n**-0.5))
    hfc, lfc = (chord(squares(each, (-2, -1), 1.0), LOG) for each in (Y, mean))
    return hfc.times(0.5) - lfc.times(0.5)
