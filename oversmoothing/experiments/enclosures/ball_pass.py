"""One input in balls: the forward pass of a network and the metrics of its streams.

Every stream contains the exact one. Weights and input are exact numbers; the products are FLINT's,
LayerNorm, softmax and activations are computed entry by entry. Radii grow by some 10^6 a block of a
trained ViT, which bits absorb. Metrics have the conventions of `simulations.state_metrics`.
Singular values: with U, V of a float64 SVD of the middles, taken as exact matrices that need not be
orthogonal, B = U^T X V is computed in balls; sigma_i(B) lies within the norm of what stands off its
diagonal of the i-th of its diagonal (Weyl), and sigma_i(X) within the factors 1 +- ||U^T U - I||,
1 +- ||V^T V - I|| of that (Ostrowski).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import flint
import numpy as np

from oversmoothing.experiments.enclosures.network import (
    CUBIC,
    QUICK,
    Block,
    FeedForward,
    HeadWeights,
    Network,
    NormWeights,
)
from oversmoothing.theory.support.sizes import Array

Ball = Any  # flint.arb, which carries no types
Balls = Any  # flint.arb_mat
ACTIVATIONS: dict[str, Callable[[Ball], Ball]] = {
    "gelu": lambda x: x * (1 + (x / flint.arb(2).sqrt()).erf()) / 2,
    "gelu_tanh": lambda x: (
        x * (1 + ((2 / flint.arb.pi()).sqrt() * (x + CUBIC * x * x * x)).tanh()) / 2
    ),
    "silu": lambda x: x / (1 + (-x).exp()),
    "relu": lambda x: x.max(flint.arb(0)),
    "quick_gelu": lambda x: x / (1 + (-QUICK * x).exp()),
}
# In the order of `simulations.state_metrics.NAMES`.
NAMES = (
    "hfc_lfc", "log_hfc_lfc", "cos_mean", "cos_min", "cos_abs_mean", "cos_abs_min",
    "effective_rank", "sigma2_sigma1",
)  # fmt: skip


def exact(values: Array) -> Balls:
    """The matrix [m, n] of exactly these numbers."""
    m, n = values.shape
    return flint.arb_mat(m, n, [flint.arb(x) for x in values.ravel().tolist()])


def exact_row(values: Array) -> list[Ball]:
    """The numbers as a list."""
    return list(map(flint.arb, values.tolist()))


def of_rows(rows: Sequence[Sequence[Ball]]) -> Balls:
    """The matrix of these rows."""
    return flint.arb_mat(len(rows), len(rows[0]), [x for row in rows for x in row])


def total(values: Iterable[Ball]) -> Ball:
    """The sum of balls, 0 of none."""
    return sum(values, flint.arb(0))


def middles(M: Balls) -> Array:
    """The middles of the balls, rounded to binary64."""
    values = [float(x.mid()) for x in M.entries()]
    return np.array(values).reshape(M.nrows(), M.ncols())


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
        if not all(x.is_finite() for x in X.entries()):
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
    f, inner = ACTIVATIONS[ffn.activation], affine(X, ffn.W_in, ffn.b_in)
    entries = [f(x) for x in inner.entries()]
    if ffn.W_gate is not None:
        gate = affine(X, ffn.W_gate, ffn.b_gate)
        entries = [x * g for x, g in zip(entries, gate.entries(), strict=True)]
    hidden = flint.arb_mat(inner.nrows(), inner.ncols(), entries)
    return affine(hidden, ffn.W_out, ffn.b_out)


def ball_metrics(X: Balls) -> dict[str, Ball]:
    """The metrics `NAMES` of a stream [n, d] in balls, n >= 2.

    What cannot be told at this precision (a token or the mean that may be 0) is not finite.
    """
    rows = X.tolist()
    n = len(rows)
    mean = [total(column) / n for column in zip(*rows, strict=True)]
    hfc = total((x - m) * (x - m) for row in rows for x, m in zip(row, mean, strict=True))
    ratio = (hfc / (n * total(m * m for m in mean))).sqrt()
    ratios = {"hfc_lfc": ratio, "log_hfc_lfc": ratio.log()}
    sigma = singular_values(X)
    whole = total(sigma)
    # Effective rank: exp of the entropy of sigma_i / sum sigma.
    entropy = total(_entropy_term(x / whole) for x in sigma)
    second = sigma[1] / sigma[0] if len(sigma) > 1 else flint.arb(0)
    ratios |= _cosines(rows)
    return ratios | {"effective_rank": entropy.exp(), "sigma2_sigma1": second}


def _cosines(rows: list[list[Ball]]) -> dict[str, Ball]:
    sizes = [total(x * x for x in row).rsqrt() for row in rows]
    units = of_rows([[x * s for x in row] for row, s in zip(rows, sizes, strict=True)])
    gram = (units * units.transpose()).tolist()
    n = len(rows)
    pairs = [gram[i][k] for i in range(n) for k in range(i)]
    signed, smallest = pairs[0], abs(pairs[0])
    for x in pairs[1:]:
        signed = signed.min(x)
        smallest = smallest.min(abs(x))
    return {
        "cos_mean": total(pairs) / len(pairs),
        "cos_min": signed,
        "cos_abs_mean": total(abs(x) for x in pairs) / len(pairs),
        "cos_abs_min": smallest,
    }


def singular_values(X: Balls) -> list[Ball]:
    """Balls around sigma_1 >= sigma_2 >= ... of X [n, d], min(n, d) of them, none below 0."""
    middle = middles(X)
    if not np.isfinite(middle).all():
        return [flint.arb("nan")] * min(middle.shape)
    U, _, Vt = np.linalg.svd(middle)
    U_, V_ = exact(U), exact(Vt.T)
    B = (U_.transpose() * X * V_).tolist()
    k = min(middle.shape)
    diagonal = [abs(B[i][i]) for i in range(k)]
    rest = _norm_off_diagonal(B)
    left, right = _skew(U_), _skew(V_)
    bent = left + right + left * right
    # sigma_i(X) = sigma_i(B) / t with t^2 between (1 - skew U)(1 - skew V) and (1 + ...)(1 + ...)
    scale = 1 / (1 + flint.arb(0, 1) * bent).sqrt()
    # Around the i-th largest of numbers known by balls; ends are points, compared exactly.
    lows = sorted((x.lower() for x in diagonal), reverse=True)
    highs = sorted((x.upper() for x in diagonal), reverse=True)
    hulls = [low.union(high) for low, high in zip(lows, highs, strict=True)]
    around = [(x + flint.arb(0, 1) * rest) * scale for x in hulls]
    return [x if x > 0 else x.max(flint.arb(0)) for x in around]


def _norm_off_diagonal(B: list[list[Ball]]) -> Ball:
    """A number at least the spectral norm of B without its diagonal: sqrt(||.||_1 ||.||_inf)."""
    moduli = [[abs(x).upper() if i != j else flint.arb(0) for j, x in enumerate(row)]
              for i, row in enumerate(B)]  # fmt: skip
    return (_largest_sum(moduli) * _largest_sum(list(zip(*moduli, strict=True)))).sqrt().upper()


def _largest_sum(rows: list[list[Ball]]) -> Ball:
    largest = flint.arb(0)
    for row in rows:
        largest = largest.max(total(row))
    return largest


def _skew(U: Balls) -> Ball:
    """A number at least ||U^T U - I||."""
    gram = (U.transpose() * U).tolist()
    moduli = [[abs(x - (i == j)) for j, x in enumerate(row)] for i, row in enumerate(gram)]
    return _largest_sum(moduli).upper()


def _entropy_term(p: Ball) -> Ball:
    """-p log p; on [0, high] with high < 1/e it runs from 0 to its value at high."""
    if p > 0:
        return -p * p.log()
    high = flint.arb(p.upper())
    if not high < flint.arb(-1).exp():
        return flint.arb("nan")
    return flint.arb(0).union(-high * high.log()) if high > 0 else flint.arb(0)
