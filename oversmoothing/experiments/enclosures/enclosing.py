"""What is enclosed: the forward pass of a network, the metrics of every layer, or on a box.

The pass runs on balls (one input) or on zonotopes (a box of inputs). What a layer curves is taken
by tangents, and softmax to first order at the centre of its box; what that leaves out is bounded
(`zonotope`). Balls enclose every function as it is.

One input in balls, at the precision that it takes; how far the floating metrics of `inspect` are
from the proved ones. On a box, the largest on which the change of ln HFC/LFC over a layer keeps its
sign, found by halving on a logarithmic scale: both routes must prove the sign, and what is claimed
is the hull of their intervals, so that the checker finds its own within.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, pairwise
from math import sqrt
from operator import add
from typing import TypeVar

import flint
import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.enclosures import network as weights, zonotope
from oversmoothing.experiments.enclosures.balls import Ball, Balls, Curve, Entries, ball_metrics
from oversmoothing.experiments.enclosures.network import Network
from oversmoothing.experiments.enclosures.other_route import other_box_ratios
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state_metrics import stream_metrics
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.sizes import Array

Number = TypeVar("Number", Balls, zonotope.Zonotope)
ACTIVATIONS = {
    "gelu": zonotope.GELU,
    "gelu_tanh": Curve(
        lambda x: (
            x * (1 + ((2 / flint.arb.pi()).sqrt() * (x + weights.CUBIC * x * x * x)).tanh()) / 2
        )
    ),
    "silu": Curve(lambda x: x / (1 + (-x).exp())),
    "relu": Curve(lambda x: x.max(flint.arb(0))),
    "quick_gelu": Curve(lambda x: x / (1 + (-weights.QUICK * x).exp())),
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


def box_ratios(network: Network, pixels: Array, eps: float) -> Iterator[zonotope.Zonotope]:
    """ln HFC/LFC [1, 1] in front of the first block and behind each, of every input that differs
    from pixels [c, s, s] by at most eps in every pixel. Raises as `streams`."""
    symbols = zonotope.Symbols()
    return map(_log_ratio, streams(network, pixels, lambda x: symbols.box(x, eps)))


def _after(block: weights.Block, X: Number) -> Number:
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


def _normed(norm: weights.NormWeights, X: Number) -> Number:
    """N(X), token by token."""
    if norm.kind == "none":
        return X
    Y = X - X.mean() if norm.kind == "layer" else X
    scale = Y.squares().times(1.0, norm.eps).tangent(zonotope.ROOT_INVERSE)
    return Y.multiplied(scale).times(norm.gain, 0.0 if norm.shift is None else norm.shift).own()


def _attended(block: weights.Block, X: Number) -> Number:
    """sum_h A_h X W_V,h W_O,h + biases of normalised tokens X."""
    parts = []
    for heads in weights.alike(block.heads):
        A = reduce(add, (_attention(head, X, block).own() for head in heads))
        parts.append(A.matmul(X.mapped(heads[0].W_V, heads[0].b_V)).mapped(heads[0].W_O))
    out = reduce(add, parts)
    return out if block.b_O is None else out.times(1.0, block.b_O)


def _attention(head: weights.HeadWeights, X: Number, block: weights.Block) -> Number:
    """softmax(scaling q k^T)."""
    q, k = X.mapped(head.W_Q, head.b_Q), X.mapped(head.W_K, head.b_K)
    return q.matmul(k.swapped()).times(block.scaling).softmax(block.causal)


def _fed_forward(ffn: weights.FeedForward, X: Number) -> Number:
    """FFN(X), token by token."""
    hidden = X.mapped(ffn.W_in, ffn.b_in).tangent(ACTIVATIONS[ffn.activation]).own()
    if ffn.W_gate is not None:
        hidden = hidden.multiplied(X.mapped(ffn.W_gate, ffn.b_gate))
    return hidden.mapped(ffn.W_out, ffn.b_out)


def _log_ratio(X: zonotope.Zonotope) -> zonotope.Zonotope:
    """ln HFC/LFC of X [n, d]: [1, 1]."""
    n = X.centre.shape[-2]
    Z = X.swapped()
    hfc = zonotope.squares(Z - Z.mean(), (-2, -1), 1.0).tangent(zonotope.LOG)
    lfc = zonotope.squares(Z.mean(), (-2, -1), float(n)).tangent(zonotope.LOG)
    return (hfc - lfc).times(0.5)


WITHOUT = "_without_cls"
# Bits to start from: those that remain, and those that the radii of a trained ViT's block cost.
BASE, A_BLOCK = 128, 20
MOST = 2**13
# The radius of a metric, in units of the larger of 1 and its modulus, that is small enough.
RADIUS = 1e-9
# Of each token that a model gives in float64, relative to its length: another network differs by
# more.
SAME = 1e-9
# Tokens of an input: attention in balls takes their square; memory of a box.
MOST_TOKENS, MOST_BYTES = 1024, 2**33
STATED = {torch.float64: 1e-12, torch.float32: 1e-5}
# The first eps tried, the smallest, and how near to the largest one the search goes.
FIRST, LEAST, NEAR = 2.0**-8, 2.0**-40, 1.1


@dataclass(frozen=True)
class Enclosed:
    """By layer, from the stream in front of the first block on: metrics by name, balls."""

    layers: tuple[dict[str, Ball], ...]
    bits: int


def first_bits(network: Network) -> int:
    """The precision that a trained network of this depth usually takes."""
    return BASE + A_BLOCK * len(network.blocks)


def names_of(network: Network, metrics: Sequence[str]) -> list[str]:
    """The names of the metrics of a layer: where there is a CLS token, without it too."""
    return [*metrics, *(f"{name}{WITHOUT}" for name in metrics if network.cls)]


def enclosed(network: Network, given: Array, seen: Sequence[Array] | None = None) -> Enclosed:
    """The metrics of every layer on pixels [c, s, s] or a stream X_0 [n, d], each within `RADIUS`.

    seen: the streams [n, d] that the model itself gave in float64, to be compared with: raises
    `InputError` where a layer is not the network's. Raises `InputError` for a stream of fewer than
    two tokens (three with CLS), and `RequirementError` where `MOST` bits do not suffice: a token
    or the mean of all is 0.
    """
    bits = first_bits(network)
    while bits <= MOST:
        with at_precision(bits):
            layers = _at(network, given, seen)
        if layers is not None:
            return Enclosed(layers, bits)
        bits *= 2
    raise RequirementError(
        f"{MOST} bits do not tell the metrics of a layer: a token, or the mean of all, is 0 or "
        "nearly so"
    )


def _at(
    network: Network, given: Array, seen: Sequence[Array] | None
) -> tuple[dict[str, Ball], ...] | None:
    """The metrics by layer, None where they are too wide at this precision."""
    layers = []
    every = streams(network, given, Balls.exact)
    for number, X in enumerate(steps(every, len(network.blocks) + 1, "layer")):
        if not all(x.is_finite() for x in X.entries.ravel()):
            return None
        if seen is not None:
            _compare(X.centre, seen[number], number)
        layers.append(metrics_of(network, X.entries, ball_metrics))
        if not all(small(x) for x in layers[-1].values()):
            return None
    return tuple(layers)


def small(x: Ball) -> bool:
    """Whether the radius of a metric is at most `RADIUS`."""
    return bool(x.is_finite() and x.rad() <= RADIUS * max(1.0, abs(float(x.mid()))))


def metrics_of(
    network: Network, X: Entries, route: Callable[[Entries], dict[str, Ball]]
) -> dict[str, Ball]:
    """The metrics of a stream [n, d] by one route, and without the CLS token where there is one."""
    least = 2 + network.cls
    if len(X) < least:
        raise InputError(f"the stream has {len(X)} tokens: cosines need {least}")
    metrics = route(X)
    if network.cls:
        metrics |= {f"{name}{WITHOUT}": value for name, value in route(X[1:]).items()}
    return metrics


def _compare(own: Array, seen: Array, number: int) -> None:
    error = np.inf
    if own.shape == seen.shape:
        lengths = np.linalg.norm(own - seen, axis=-1), np.linalg.norm(seen, axis=-1)
        error = float((lengths[0] / np.maximum(lengths[1], np.finfo(float).tiny)).max())
    if not error <= SAME:
        where = f"layer {number} gives" if number else "the embedding gives"
        raise InputError(
            f"{where} another stream than its parts do ({error:.1e} of a token's length): it "
            f"computes what cannot be enclosed (rotary positions, biases); {weights.SUPPORTED}"
        )


def largest_error(layers: Sequence[dict[str, Ball]], streams: Sequence[Tensor]) -> float:
    """The largest distance of a metric of the streams [n, d] from its ball, in units of the larger
    of 1 and its modulus; 0 within the ball."""
    worst = 0.0
    for layer, X in zip(layers, streams, strict=True):
        cls = any(name.endswith(WITHOUT) for name in layer)
        floating = stream_metrics(X[None], without_first=cls)
        for name, ball in layer.items():
            beyond = abs(float((ball - float(floating[name][0])).abs_lower()))
            worst = max(worst, beyond / max(1.0, abs(float(ball.mid()))))
    return worst


Ratios = Callable[[Network, Array, float], Iterator[zonotope.Zonotope]]
Ends = tuple[float, float]


def changes(route: Ratios, network: Network, pixels: Array, eps: float, layers: int) -> list[Ends]:
    """Intervals for the change of ln HFC/LFC over the first layers, on all inputs within eps of
    pixels [c, s, s] in every pixel; as many as the route can prove."""
    intervals: list[Ends] = []
    try:
        for before, after in pairwise(islice(route(network, pixels, eps), layers + 1)):
            low, high = (after - before).interval()
            intervals.append((float(low[0, 0]), float(high[0, 0])))
    except zonotope.LeftDomainError:
        pass
    return intervals


def signed(ends: Ends) -> bool:
    """Whether the change has one sign."""
    return ends[0] > 0 or ends[1] < 0


def both_routes(network: Network, pixels: Array, eps: float, layers: int) -> list[Ends]:
    """The hulls of what both routes prove of the first layers."""
    routes = (box_ratios, other_box_ratios)
    proved = (changes(route, network, pixels, eps, layers) for route in routes)
    return [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(*proved, strict=False)]


def on_box(
    network: Network, pixels: Array, eps: float, layers: Sequence[int] = ()
) -> dict[int, Ends]:
    """Of these layers, from 1 (all where none is named), those over which the sign of the change is
    proved on the box of eps. Raises `InputError` as `largest_box` does."""
    asked = layers or range(1, len(network.blocks) + 1)
    _refuse(network, pixels, asked)
    intervals = both_routes(network, pixels, eps, max(asked))
    return {
        number: ends for number, ends in enumerate(intervals, 1) if number in asked and signed(ends)
    }


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


def _refuse(network: Network, pixels: Array, layers: Sequence[int]) -> None:
    for layer in layers:
        if not 1 <= layer <= len(network.blocks):
            raise InputError(f"the network has the layers 1 to {len(network.blocks)}, not {layer}")
    refuse_unboxable(network, pixels.size, max(layers))


def largest_box(network: Network, pixels: Array, layer: int) -> tuple[float, Ends]:
    """(eps, the change of ln HFC/LFC over that layer, from 1): at `NEAR` times eps one of the
    routes proves no sign. Raises `InputError` where there is no such layer, where none of at least
    `LEAST` is proved, and for a network whose boxes cannot be enclosed."""
    _refuse(network, pixels, [layer])

    def proved(eps: float) -> Ends | None:
        intervals = both_routes(network, pixels, eps, layer)
        return intervals[-1] if len(intervals) == layer and signed(intervals[-1]) else None

    eps, high, best = FIRST, 2 * FIRST, proved(FIRST)
    while best is None:
        high, eps = eps, eps / 4
        if eps < LEAST:
            raise InputError(
                f"the change of HFC/LFC over layer {layer} is too small to have a sign on any "
                "box: choose another layer or image"
            )
        best = proved(eps)
    while eps >= FIRST and (more := proved(high)) is not None:
        eps, best, high = high, more, 2 * high
    while high > NEAR * eps:
        middle = sqrt(eps * high)
        intervals = proved(middle)
        if intervals is None:
            high = middle
        else:
            eps, best = middle, intervals
    return eps, best
