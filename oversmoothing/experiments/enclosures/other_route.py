"""The forward pass and the metrics by another order of operations, for the checker.

With `enclosing.streams` it shares the arithmetic of balls and zonotopes alone. Patches are cut
pixel by pixel; tokens are centred by I - 1 1^T / d; a head's logits are those of X and (X W_Q)
W_K^T, its values (X W_V) W_O; softmax is exp, a sum, an inverse and a product, with another shift;
every activation is written by another function and replaced by its chord, with the range of what is
left found piece by piece; heads are added backwards; the feed-forward adds its hidden features in
two parts.

||HFC||^2 is the sum of squares less ||LFC||^2; cosines are read off X X^T; singular values are
roots of the eigenvalues of the smaller Gram matrix S: with V near eigenvectors, refined by Newton's
step (Ogita and Aishima 2018) and taken as exact, T = V^T S V is computed in balls, and lambda_i(S)
lies within the factors 1 +- ||V^T V - I|| (Ostrowski) of T_ii +- the norm of what stands off its
diagonal (Weyl).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TypeVar

import flint
import numpy as np

from oversmoothing.experiments.enclosures import balls, network as weights, zonotope
from oversmoothing.theory.support.sizes import Array

Number = TypeVar("Number", balls.Balls, zonotope.Zonotope)


def _twice_below(x: balls.Ball) -> balls.Ball:
    """Twice the share of the standard normal distribution below x."""
    return 1 + (x / flint.arb(2).sqrt()).erf()


def _gelu_tanh(x: balls.Ball) -> balls.Ball:
    # (1 + tanh u) / 2 = 1 / (1 + e^-2u)
    u = x * (1 + weights.CUBIC * (x * x)) * (8 / flint.arb.pi()).sqrt()
    return x / ((-u).exp() + 1)


def _half_tanh(x: balls.Ball, by: float) -> balls.Ball:
    # x / (1 + e^-c x) = x (1 + tanh(c x / 2)) / 2
    return ((x * by / 2).tanh() + 1) * x / 2


OTHERWISE = {
    "gelu": replace(
        zonotope.GELU,
        value=lambda x: _twice_below(x) * x / 2,
        first=lambda x: _twice_below(x) / 2 + x * zonotope.normal(x),
    ),
    "gelu_tanh": balls.Curve(_gelu_tanh),
    "silu": balls.Curve(lambda x: _half_tanh(x, 1.0)),
    "relu": balls.Curve(lambda x: (abs(x) + x) / 2),
    "quick_gelu": balls.Curve(lambda x: _half_tanh(x, weights.QUICK)),
}


def other_streams(
    network: weights.Network, given: Array, known: Callable[[Array], Number]
) -> Iterator[Number]:
    """As `enclosing.streams`."""
    patches = network.patches
    if patches is None:
        X = known(given)
    else:
        tokens = known(_cut(patches, given)).mapped(patches.W).below(patches.first)
        patch = np.arange(len(patches.positions)) >= len(patches.first)
        shift = 0.0 if patches.b is None else np.outer(patch, patches.b)
        X = tokens.times(1.0, patches.positions).times(1.0, shift)
    yield X
    for block in network.blocks:
        X = _behind(block, X)
        yield X


def other_box_ratios(
    network: weights.Network, pixels: Array, eps: float
) -> Iterator[zonotope.Zonotope]:
    """As `enclosing.box_ratios`, [1, 1] each."""
    symbols = zonotope.Symbols()
    return map(_ratio, other_streams(network, pixels, lambda x: symbols.box(x, eps)))


def _cut(patches: weights.Patches, pixels: Array) -> Array:
    """The patches anew, pixel by pixel."""
    p, (channels, height, width) = patches.side, pixels.shape
    return np.array([
        [pixels[c, top + y, left + x]
         for c in range(channels) for y in range(p) for x in range(p)]
        for top in range(0, height, p) for left in range(0, width, p)
    ])  # fmt: skip


def _behind(block: weights.Block, X: Number) -> Number:
    if block.placement == "post":
        mixed = _norm(block.output_norm_attention, _mixed(block, X))
        Y = _norm(block.norm_attention, (mixed + X).own())
        if block.ffn is None:
            return Y
        return _norm(block.norm_ffn, _norm(block.output_norm_ffn, _ffn(block.ffn, Y)) + Y)
    attended = _mixed(block, _norm(block.norm_attention, X))
    Y = (_norm(block.output_norm_attention, attended) + X).own()
    if block.ffn is None:
        return Y
    fed = _ffn(block.ffn, _norm(block.norm_ffn, Y if block.placement == "pre" else X))
    return (_norm(block.output_norm_ffn, fed) + Y).own()


def _norm(norm: weights.NormWeights, X: Number) -> Number:
    if norm.kind == "none":
        return X
    Y = X.centred() if norm.kind == "layer" else X
    root = Y.squares().times(1.0, norm.eps).chord(zonotope.ROOT_INVERSE)
    out = Y.times(norm.gain).multiplied(root)
    return (out if norm.shift is None else out.times(1.0, norm.shift)).own()


def _mixed(block: weights.Block, X: Number) -> Number:
    """sum_h A_h X W_V,h W_O,h + biases."""
    parts = []
    for heads in reversed(weights.alike(block.heads)):
        A = reduce(add, [_attention(head, X, block) for head in reversed(heads)]).own()
        values = X.mapped(heads[0].W_V, heads[0].b_V).mapped(heads[0].W_O)
        parts.append(values.swapped().matmul(A.swapped()).swapped())
    whole = reduce(add, parts)
    return whole if block.b_O is None else whole.times(1.0, block.b_O)


def _attention(head: weights.HeadWeights, X: Number, block: weights.Block) -> Number:
    # Less what is constant in a row: X (W_Q W_K^T) X^T + 1 (W_K b_Q)^T X^T.
    queries = X.mapped(head.W_Q, head.b_Q).mapped(head.W_K.T)
    logits = X.matmul(queries.swapped()).times(block.scaling).swapped()
    return other_softmax(logits, block.causal)


def other_softmax(logits: Number, causal: bool) -> Number:
    """softmax of every row; a causal row sees itself and those before."""
    # Any shift will do: of a row that sees itself and those before, its own.
    n = len(logits.centre)
    shift = np.arange(n) if causal else logits.centre.argmax(-1)
    powers = (logits - logits.picked(shift)).chord(zonotope.EXP).own()
    powers = powers.times(np.tri(n)) if causal else powers
    return powers.multiplied(powers.sums().chord(zonotope.INVERSE))


def _ffn(ffn: weights.FeedForward, X: Number) -> Number:
    half, parts = ffn.W_in.shape[1] // 2, []
    for part in (slice(half, None), slice(None, half))[: 1 + (half > 0)]:
        hidden = X.mapped(ffn.W_in[:, part], None if ffn.b_in is None else ffn.b_in[part])
        hidden = hidden.chord(OTHERWISE[ffn.activation]).own()
        if ffn.W_gate is not None:
            b_gate = None if ffn.b_gate is None else ffn.b_gate[part]
            hidden = X.mapped(ffn.W_gate[:, part], b_gate).multiplied(hidden)
        parts.append(hidden.mapped(ffn.W_out[part]))
    whole = reduce(add, parts)
    return whole if ffn.b_out is None else whole.times(1.0, ffn.b_out)


def _ratio(X: zonotope.Zonotope) -> zonotope.Zonotope:
    """ln HFC/LFC of X [n, d]: [1, 1]."""
    n = X.centre.shape[-2]
    Z = X.swapped()
    mean = Z.mapped(np.full((n, 1), n**-0.5))
    hfc, lfc = (
        zonotope.squares(part, (-2, -1), 1.0).chord(zonotope.LOG) for part in (Z.centred(), mean)
    )
    return hfc.times(0.5) - lfc.times(0.5)


def other_metrics(X: balls.Entries) -> dict[str, balls.Ball]:
    """The metrics `state_metrics.NAMES` of a stream [n, d], not finite where they are not told."""
    n = len(X)
    gram = balls.product(X, X.T)
    squared = gram.diagonal()
    mean = X.T.sum(1)
    lfc = (mean * mean)[::-1].sum() / n
    log_ratio = ((squared[::-1].sum() - lfc).log() - lfc.log()) / 2
    roots = balls.each(lambda x: x.sqrt(), squared)
    cosines = (gram / (roots[:, None] * roots))[np.triu_indices(n, 1)]
    sizes = abs(cosines)
    # |sum u|^2 = n + the sum over ordered pairs
    of_sum = (X.T / roots).sum(1)
    sigma = _singular_values(X)
    # log t - (sum sigma log sigma) / t with t = sum sigma, in units of sigma_1
    shares = sigma[::-1] / sigma[0].upper()
    t = shares.sum()
    entropy = t.log() - balls.each(_x_log_x, shares).sum() / t
    return {
        "hfc_lfc": log_ratio.exp(),
        "log_hfc_lfc": log_ratio,
        "cos_mean": ((of_sum * of_sum).sum() - n) / (n * (n - 1)),
        "cos_min": _smallest(cosines),
        "cos_abs_mean": 2 * sizes.sum() / (n * (n - 1)),
        "cos_abs_min": _smallest(sizes),
        "effective_rank": entropy.exp(),
        "sigma2_sigma1": sigma[1] / sigma[0] if len(sigma) > 1 else flint.arb(0),
    }


def _smallest(values: balls.Entries) -> balls.Ball:
    """A ball around the smallest of several numbers known by balls."""
    if not all(x.is_finite() for x in values):
        return flint.arb("nan")
    return min(x.lower() for x in values).union(min(x.upper() for x in values))


def _singular_values(X: balls.Entries) -> balls.Entries:
    S = balls.product(X, X.T) if len(X) <= X.shape[1] else balls.product(X.T, X)
    k = len(S)
    unknown = balls.exact(np.full(k, np.nan))
    middle = balls.middles(S)
    if not np.isfinite(middle).all():
        return unknown
    V = _refined(S, balls.exact(np.linalg.eigh(middle)[1]))
    T = balls.product(balls.product(V.T, S), V)
    diagonal = T.diagonal().copy()
    np.fill_diagonal(T, flint.arb(0))
    skew = _row_sums(balls.product(V.T, V) - np.eye(k))
    values = diagonal + flint.arb(0, 1) * _row_sums(T)
    widest = 1 + flint.arb(0, 1) * skew
    if not widest > 0:
        return unknown
    roots = []
    for x in balls.in_order(values):
        top, bottom = (x.upper() / widest).upper(), (x.lower() / widest).lower()
        root = top.sqrt() if top > 0 else flint.arb(0)
        roots.append(root.union(bottom.sqrt() if bottom > 0 else flint.arb(0)))
    return np.array(roots)


def _row_sums(X: balls.Entries) -> balls.Ball:
    """The largest sum of moduli of a row, an upper bound."""
    return max((x.upper() for x in abs(X).sum(1)), default=flint.arb(0))


def _refined(S: balls.Entries, V: balls.Entries) -> balls.Entries:
    """V (I + E) with E from the residuals V^T S V and I - V^T V, to twice the digits of V."""
    T = balls.middles(balls.product(balls.product(V.T, S), V))
    R = -balls.middles(balls.product(V.T, V) - np.eye(len(V)))
    values = np.diag(T) / (1 - np.diag(R))
    with np.errstate(all="ignore"):
        gap = values[None, :] - values[:, None]
        step = T + values[None, :] * R
        # Within a cluster only the lengths and angles of V are mended.
        E = np.where(np.abs(step) < np.abs(gap) / 4, step / gap, R / 2)
    np.fill_diagonal(E, np.diag(R) / 2)
    return balls.each(lambda x: x.mid(), V + balls.product(V, balls.exact(np.nan_to_num(E))))


def _x_log_x(x: balls.Ball) -> balls.Ball:
    """Falls from 0 at 0 to -1/e at 1/e, then rises."""
    if x > 0:
        return x * x.log()
    high = flint.arb(x.upper())
    if not high < flint.arb(-1).exp():
        return flint.arb("nan")
    return flint.arb(0).union(high * high.log()) if high > 0 else flint.arb(0)
