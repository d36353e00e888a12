"""Streams and metrics in balls by another order of operations, for the checker: Z = X^T throughout.

Of `ball_pass` it shares the names of types alone. Tokens are columns; variances are E x^2 -
(E x)^2; a head's logits are X (W_Q W_K^T) X^T and its values X (W_V W_O); softmax has another shift
and divides; every activation is written by another function; sums run backwards; the feed-forward
adds its hidden features in two parts.

||HFC||^2 is the sum of squares less ||LFC||^2; cosines are read off Z^T Z; singular values are
roots of the eigenvalues of the smaller Gram matrix S: with V near eigenvectors, refined by Newton's
step (Ogita and Aishima 2018) and taken as exact, T = V^T S V is computed in balls, and lambda_i(S)
lies within the factors 1 +- ||V^T V - I|| (Ostrowski) of T_ii +- the norm of what stands off its
diagonal (Weyl).
"""

from collections.abc import Callable, Iterator

import flint
import numpy as np

from oversmoothing.experiments.enclosures.ball_pass import Ball, Balls
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
    whole = flint.arb(0)
    for x in reversed(values):
        whole += x
    return whole


def _norm(norm: NormWeights, Z: Balls) -> Balls:
    if norm.kind == "none":
        return Z
    d = Z.nrows()
    gain, shift = norm.gain.tolist(), [0.0] * d if norm.shift is None else norm.shift.tolist()
    rows = []
    for token in Z.transpose().tolist():
        mean = _backwards(token) / d if norm.kind == "layer" else flint.arb(0)
        spread = _backwards([x * x for x in token]) / d - mean * mean
        root = (spread + norm.eps).sqrt()
        rows.append([
            x * (g / root) + (b - mean * (g / root))
            for x, g, b in zip(token, gain, shift, strict=True)
        ])  # fmt: skip
    return flint.arb_mat(rows).transpose()


def _mixed(block: Block, Z: Balls) -> Balls:
    """(sum_h A_h X W_V,h W_O,h + biases)^T of Z = X^T."""
    d, n = Z.nrows(), Z.ncols()
    ones = flint.arb_mat(1, n, [1] * n)
    # Rows of A sum to 1: the biases of the values go through as they are.
    bias = flint.arb_mat(d, 1, [0] * d) if block.b_O is None else columns(block.b_O[None])
    mixed = flint.arb_mat(d, n, [0] * (d * n))
    for head in reversed(block.heads):
        W_O = columns(head.W_O)
        if head.b_V is not None:
            bias += W_O * columns(head.b_V[None])
        values = (W_O * columns(head.W_V)) * Z
        mixed += values * _attention(head, Z, block).transpose()
    return mixed + bias * ones


def _attention(head: HeadWeights, Z: Balls, block: Block) -> Balls:
    n = Z.ncols()
    both = columns(head.W_Q).transpose() * columns(head.W_K)
    logits = Z.transpose() * (both * Z)
    ones = flint.arb_mat(n, 1, [1] * n)
    # A constant of the row, (W_Q^T x_i + b_Q) . b_K, changes no softmax and is left out.
    if head.b_Q is not None:
        keys = columns(head.W_K).transpose() * columns(head.b_Q[None])
        logits += ones * (keys.transpose() * Z)
    rows = []
    for i, row in enumerate(logits.tolist()):
        seen = row[: i + 1] if block.causal else row
        # Any shift will do: the middle of the row's last.
        shift = flint.arb(float(seen[-1].mid()))
        powers = [1 / ((shift - x) * block.scaling).exp() for x in seen]
        sum_of_all = _backwards(powers)
        rows.append([x / sum_of_all for x in powers] + [flint.arb(0)] * (n - len(seen)))
    return flint.arb_mat(rows)


def _ffn(ffn: FeedForward, Z: Balls) -> Balls:
    half = ffn.W_in.shape[1] // 2
    f = OTHERWISE[ffn.activation]
    fed = None
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
        fed = added if fed is None else added + fed
    if ffn.b_out is None:
        return fed
    n = Z.ncols()
    return columns(ffn.b_out[None]) * flint.arb_mat(1, n, [1] * n) + fed


def _map(W: Array, b: Array | None, part: slice, Z: Balls) -> list[list[Ball]]:
    rows: list[list[Ball]] = (columns(W) * Z).tolist()
    if b is None:
        return rows
    return [[x + c for x in row] for row, c in zip(rows, b[part].tolist(), strict=True)]


def _gelu_tanh(x: Ball) -> Ball:
    # (1 + tanh u) / 2 = 1 / (1 + e^-2u)
    u = x * (1 + CUBIC * (x * x)) * (8 / flint.arb.pi()).sqrt()
    return x / ((-u).exp() + 1)


def _half_tanh(x: Ball, by: float) -> Ball:
    # x / (1 + e^-c x) = x (1 + tanh(c x / 2)) / 2
    return ((x * by / 2).tanh() + 1) * x / 2


OTHERWISE: dict[str, Callable[[Ball], Ball]] = {
    "gelu": lambda x: (-x / flint.arb(2).sqrt()).erfc() * x / 2,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: _half_tanh(x, 1.0),
    "relu": lambda x: (abs(x) + x) / 2,
    "quick_gelu": lambda x: _half_tanh(x, QUICK),
}


def other_metrics(Z: Balls) -> dict[str, Ball]:
    """The metrics of `ball_pass.NAMES`; not finite where they cannot be told."""
    n = Z.ncols()
    gram = (Z.transpose() * Z).tolist()
    squares = [gram[i][i] for i in range(n)]
    ones = flint.arb_mat(n, 1, [1] * n)
    lfc = sum((x * x for x in (Z * ones).entries()), flint.arb(0)) / n
    whole = sum(reversed(squares), flint.arb(0))
    log_ratio = ((whole - lfc).log() - lfc.log()) / 2
    roots = [x.sqrt() for x in squares]
    cosines = [gram[k][i] / (roots[i] * roots[k]) for k in range(n) for i in range(k + 1, n)]
    sizes = [abs(x) for x in cosines]
    units = Z * flint.arb_mat(n, 1, [1 / x for x in roots])
    # |sum u|^2 = n + the sum over ordered pairs
    of_sum = sum((x * x for x in units.entries()), flint.arb(0))
    sigma = _singular_values(Z)
    # log t - (sum sigma log sigma) / t with t = sum sigma, in units of sigma_1
    shares = [x / sigma[0].upper() for x in reversed(sigma)]
    t = sum(shares, flint.arb(0))
    entropy = t.log() - sum(map(_x_log_x, shares), flint.arb(0)) / t
    return {
        "hfc_lfc": log_ratio.exp(),
        "log_hfc_lfc": log_ratio,
        "cos_mean": (of_sum - n) / (n * (n - 1)),
        "cos_min": _smallest(cosines),
        "cos_abs_mean": 2 * sum(sizes, flint.arb(0)) / (n * (n - 1)),
        "cos_abs_min": _smallest(sizes),
        "effective_rank": entropy.exp(),
        "sigma2_sigma1": sigma[1] / sigma[0] if len(sigma) > 1 else flint.arb(0),
    }


def _smallest(values: list[Ball]) -> Ball:
    """A ball around the smallest of several numbers known by balls."""
    if not all(x.is_finite() for x in values):
        return flint.arb("nan")
    return min(x.lower() for x in values).union(min(x.upper() for x in values))


def _singular_values(Z: Balls) -> list[Ball]:
    S = Z * Z.transpose() if Z.nrows() <= Z.ncols() else Z.transpose() * Z
    k = S.nrows()
    middle = np.array([[float(x.mid()) for x in row] for row in S.tolist()])
    if not np.isfinite(middle).all():
        return [flint.arb("nan")] * k
    V = flint.arb_mat([[flint.arb(x) for x in row] for row in np.linalg.eigh(middle)[1].tolist()])
    V = _refined(S, V)
    T = (V.transpose() * S * V).tolist()
    off = _row_sums(T, [[False] * i + [True] + [False] * (k - i - 1) for i in range(k)])
    M = (V.transpose() * V).tolist()
    skew = _row_sums([[x - (i == j) for j, x in enumerate(row)] for i, row in enumerate(M)], None)
    values = [flint.arb(0, 1) * off + T[i][i] for i in range(k)]
    lows = sorted((x.lower() for x in values), reverse=True)
    highs = sorted((x.upper() for x in values), reverse=True)
    widest = 1 + flint.arb(0, 1) * skew
    if not widest > 0:
        return [flint.arb("nan")] * k
    roots = []
    for low, high in zip(lows, highs, strict=True):
        top = flint.arb((high / widest).upper())
        bottom = flint.arb((low / widest).lower())
        root = top.sqrt() if top > 0 else flint.arb(0)
        roots.append(root.union(bottom.sqrt() if bottom > 0 else flint.arb(0)))
    return roots


def _row_sums(rows: list[list[Ball]], left_out: list[list[bool]] | None) -> Ball:
    """The largest sum of moduli of a row, an upper bound."""
    largest = flint.arb(0)
    for i, row in enumerate(rows):
        taken = [abs(x) for j, x in enumerate(row) if left_out is None or not left_out[i][j]]
        size = sum(taken, flint.arb(0)).upper()
        largest = largest if largest >= size else size
    return largest


def _refined(S: Balls, V: Balls) -> Balls:
    """V (I + E) with E from the residuals V^T S V and I - V^T V, to twice the digits of V."""
    T = _floats(V.transpose() * S * V)
    one = flint.arb_mat([[int(i == j) for j in range(V.nrows())] for i in range(V.nrows())])
    R = -_floats(V.transpose() * V - one)
    values = np.diag(T) / (1 - np.diag(R))
    with np.errstate(all="ignore"):
        gap = values[None, :] - values[:, None]
        step = T + values[None, :] * R
        # Within a cluster only the lengths and angles of V are mended.
        E = np.where(np.abs(step) < np.abs(gap) / 4, step / gap, R / 2)
    np.fill_diagonal(E, np.diag(R) / 2)
    E_ = flint.arb_mat([[flint.arb(x) for x in row] for row in np.nan_to_num(E).tolist()])
    return (V + V * E_).mid()


def _floats(M: Balls) -> Array:
    return np.array([[float(x.mid()) for x in row] for row in M.tolist()])


def _x_log_x(x: Ball) -> Ball:
    """Falls from 0 at 0 to -1/e at 1/e, then rises."""
    if x > 0:
        return x * x.log()
    high = flint.arb(x.upper())
    if not high < flint.arb(-1).exp():
        return flint.arb("nan")
    return flint.arb(0).union(high * high.log()) if high > 0 else flint.arb(0)
