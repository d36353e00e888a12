"""The forward pass in balls by another order of operations, for the checker: Z = X^T throughout.

Of `ball_pass` it shares the network's numbers alone. Tokens are columns; variances are E x^2 -
(E x)^2; a head's logits are X (W_Q W_K^T) X^T and its values X (W_V W_O); softmax has another shift
and divides; every activation is written by another function; sums run backwards; the feed-forward
adds its hidden features in two parts.
"""

from collections.abc import Callable, Iterator

import flint

from oversmoothing.experiments.enclosures.ball_arrays import Ball, Balls
from oversmoothing.experiments.enclosures.ffn_form import CUBIC, QUICK, FeedForward
from oversmoothing.experiments.enclosures.network import Block, HeadWeights, Network, NormWeights
from oversmoothing.theory.support.sizes import Array


def columns(values: Array) -> Balls:
    """The transpose of an array [m, n], entry for entry: [n, m]."""
    return flint.arb_mat([[flint.arb(x) for x in column] for column in values.T.tolist()])


def transposed_streams(network: Network, given: Array) -> Iterator[Balls]:
    """X^T [d, n] in front of the first block and behind each, at the working precision."""
    Z = columns(given) if network.patches is None else _embedded(network, given)
    yield Z
    for block in network.blocks:
        Z = _behind(block, Z)
        yield Z


def _embedded(network: Network, pixels: Array) -> Balls:
    patches = network.patches
    assert patches is not None
    p, (channels, height, width) = patches.side, pixels.shape
    # The patches anew, pixel by pixel.
    cut = [
        [flint.arb(float(pixels[c, top + y, left + x]))
         for c in range(channels) for y in range(p) for x in range(p)]
        for top in range(0, height, p) for left in range(0, width, p)
    ]  # fmt: skip
    W = columns(patches.W)
    tokens = W * flint.arb_mat(cut).transpose()
    rows = []
    known = len(patches.first)
    for feature, row in enumerate(tokens.tolist()):
        bias = 0.0 if patches.b is None else float(patches.b[feature])
        whole = [flint.arb(float(x)) for x in patches.first[:, feature]] + [x + bias for x in row]
        assert len(whole) == known + len(row)
        places = patches.positions[:, feature].tolist()
        rows.append([place + x for place, x in zip(places, whole, strict=True)])
    return flint.arb_mat(rows)


def _behind(block: Block, Z: Balls) -> Balls:
    if block.placement == "post":
        Y = _norm(block.norm_attention, _norm(block.output_norm_attention, _mixed(block, Z)) + Z)
        if block.ffn is None:
            return Y
        return _norm(block.norm_ffn, _norm(block.output_norm_ffn, _ffn(block.ffn, Y)) + Y)
    attended = _mixed(block, _norm(block.norm_attention, Z))
    Y = _norm(block.output_norm_attention, attended) + Z
    if block.ffn is None:
        return Y
    fed = _ffn(block.ffn, _norm(block.norm_ffn, Y if block.placement == "pre" else Z))
    return _norm(block.output_norm_ffn, fed) + Y


def _backwards(values: list[Ball]) -> Ball:
    found = flint.arb(0)
    for x in reversed(values):
        found += x
    return found


def _norm(norm: NormWeights, Z: Balls) -> Balls:
    if norm.kind == "none":
        return Z
    d = Z.nrows()
    gain, shift = norm.gain.tolist(), [0.0] * d if norm.shift is None else norm.shift.tolist()
    found = []
    for token in Z.transpose().tolist():
        mean = _backwards(token) / d if norm.kind == "layer" else flint.arb(0)
        spread = _backwards([x * x for x in token]) / d - mean * mean
        root = (spread + norm.eps).sqrt()
        found.append([
            x * (g / root) + (b - mean * (g / root))
            for x, g, b in zip(token, gain, shift, strict=True)
        ])  # fmt: skip
    return flint.arb_mat(found).transpose()


def _mixed(block: Block, Z: Balls) -> Balls:
    """(sum_h A_h X W_V,h W_O,h + biases)^T of Z = X^T."""
    d, n = Z.nrows(), Z.ncols()
    ones = flint.arb_mat(1, n, [1] * n)
    # Rows of A sum to 1: the biases of the values go through as they are.
    bias = flint.arb_mat(d, 1, [0] * d) if block.b_O is None else columns(block.b_O[None])
    found = flint.arb_mat(d, n, [0] * (d * n))
    for head in reversed(block.heads):
        W_O = columns(head.W_O)
        if head.b_V is not None:
            bias += W_O * columns(head.b_V[None])
        values = (W_O * columns(head.W_V)) * Z
        found += values * _attention(head, Z, block).transpose()
    return found + bias * ones


def _attention(head: HeadWeights, Z: Balls, block: Block) -> Balls:
    n = Z.ncols()
    both = columns(head.W_Q).transpose() * columns(head.W_K)
    logits = Z.transpose() * (both * Z)
    ones = flint.arb_mat(n, 1, [1] * n)
    # A constant of the row, (W_Q^T x_i + b_Q) . b_K, changes no softmax and is left out.
    if head.b_Q is not None:
        keys = columns(head.W_K).transpose() * columns(head.b_Q[None])
        logits += ones * (keys.transpose() * Z)
    found = []
    for i, row in enumerate(logits.tolist()):
        seen = row[: i + 1] if block.causal else row
        # Any shift will do: the middle of the row's last.
        shift = flint.arb(float(seen[-1].mid()))
        powers = [1 / ((shift - x) * block.scaling).exp() for x in seen]
        sum_of_all = _backwards(powers)
        found.append([x / sum_of_all for x in powers] + [flint.arb(0)] * (n - len(seen)))
    return flint.arb_mat(found)


def _ffn(ffn: FeedForward, Z: Balls) -> Balls:
    half = ffn.W_in.shape[1] // 2
    f = OTHERWISE[ffn.activation]
    found = None
    for part in (slice(half, None), slice(None, half)):
        if ffn.W_in[:, part].shape[1] == 0:
            continue
        hidden = [[f(x) for x in row] for row in _map(ffn.W_in[:, part], ffn.b_in, part, Z)]
        if ffn.W_gate is not None:
            gates = _map(ffn.W_gate[:, part], ffn.b_gate, part, Z)
            hidden = [
                [g * h for g, h in zip(*rows, strict=True)]
                for rows in zip(gates, hidden, strict=True)
            ]
        added = columns(ffn.W_out[part]) * flint.arb_mat(hidden)
        found = added if found is None else added + found
    if ffn.b_out is None:
        return found
    n = Z.ncols()
    return columns(ffn.b_out[None]) * flint.arb_mat(1, n, [1] * n) + found


def _map(W: Array, b: Array | None, part: slice, Z: Balls) -> list[list[Ball]]:
    rows: list[list[Ball]] = (columns(W) * Z).tolist()
    if b is None:
        return rows
    return [[x + c for x in row] for row, c in zip(rows, b[part].tolist(), strict=True)]


def _gelu(x: Ball) -> Ball:
    return (-x / flint.arb(2).sqrt()).erfc() * x / 2


def _gelu_tanh(x: Ball) -> Ball:
    # (1 + tanh u) / 2 = 1 / (1 + e^-2u)
    u = x * (1 + CUBIC * (x * x)) * (8 / flint.arb.pi()).sqrt()
    return x / ((-u).exp() + 1)


def _half_tanh(x: Ball, by: float) -> Ball:
    # x / (1 + e^-c x) = x (1 + tanh(c x / 2)) / 2
    return ((x * by / 2).tanh() + 1) * x / 2


OTHERWISE: dict[str, Callable[[Ball], Ball]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: _half_tanh(x, 1.0),
    "relu": lambda x: (abs(x) + x) / 2,
    "quick_gelu": lambda x: _half_tanh(x, QUICK),
}
