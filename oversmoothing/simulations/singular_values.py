"""Singular values of a state, effective rank and sigma2 / sigma1, accurate near rank one (T4, T5).

A state is [s, t; b, C] in the bases [1/sqrt n, Q] of the tokens and (mean direction, rest) of the
features. When one row dominates, the small block is deflated by Householder reflections, each part
with its own power of two, so that sigma2 / sigma1 = 1e-200 has as many digits as 0.1. An SVD of X
itself stops at eps.
"""

import math

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from oversmoothing.simulations.state import (
    UNUSED,
    SplitState,
    log_of_two_to,
    normalise,
    scale,
    split,
)
from oversmoothing.theory.numbers.rounding import to_quotient, two_product

# An SVD has sigma2 / sigma1 to eps: below this, to less than ten digits.
_LOST = 1e-6
# Below this ratio of HFC to LFC (or its inverse for two tokens) deflate; above, an SVD of X serves.
DEFLATE_BELOW = 0.125
# Each sweep multiplies the off-diagonal blocks by (sigma2/sigma1)^4 <= 2^-12; they enter squared.
SWEEPS = 6


def log_excess_of(
    ratio: Float64[Tensor, "*batch k"], exponent: Int64[Tensor, "*batch"]
) -> Float64[Tensor, "*batch"]:
    """log(effective rank - 1) from sigma_i / sigma_1 = 2^exponent ratio_i, i >= 2.

    ratio [..., k] and exponent [...], as `singular_value_ratios` returns them.

    With p_i the normalised singular values and delta = 1 - p_1, the entropy is
    sum_{i>=2} p_i (g - log p_i), g = -(1 - delta) log(1 - delta) / delta: positive terms only.
    """
    plain = scale(ratio, exponent, 1)
    total = plain.sum(-1)
    delta = total / (1.0 + total)
    g = torch.where(delta > 0, -(1.0 - delta) * torch.log1p(-delta) / delta, 1.0)
    log_p = torch.log(ratio) + (log_of_two_to(exponent) - torch.log1p(total)).unsqueeze(-1)
    terms = torch.where(ratio > 0, ratio * (g.unsqueeze(-1) - log_p), ratio)
    log_entropy = torch.log(terms.sum(-1)) + log_of_two_to(exponent) - torch.log1p(total)
    entropy = torch.exp(log_entropy)
    grown = torch.where(entropy > 0, torch.expm1(entropy) / entropy, 1.0)
    # NaN compares false above: hand it on.
    return torch.where(entropy.isnan(), entropy, log_entropy + torch.log(grown))


def singular_value_ratios(
    X: Tensor | SplitState,
) -> tuple[Float64[Tensor, "*batch k"], Int64[Tensor, "*batch"]]:
    """(ratio [..., k], exponent [...]): sigma_i / sigma_1 = 2^exponent ratio_i for i = 2 .. k + 1.

    In descending order, k = min(n, d) - 1; with k = 0 one zero is returned. NaN for X = 0 and for
    non-finite X. Accurate relative to the larger of HFC and LFC and, within the smaller one, to its
    own norm; sigma2 / sigma1 of an X that neither dominates is right down to 1e-28 (what X itself
    has been rounded to is another matter: in a run it stops at eps).
    """
    state = X if isinstance(X, SplitState) else split(X)
    n, d = state.n, state.d
    finite = torch.isfinite(state.hfc).all(-1).all(-1) & torch.isfinite(state.mean).all(-1)
    defined = finite & (state.rows != 0).any(-1).any(-1)
    batch = defined.shape
    one = torch.zeros((*batch, 1), dtype=torch.float64, device=state.hfc.device)
    no_exponent = torch.zeros(batch, dtype=torch.int64, device=state.hfc.device)
    if min(n, d) == 1:
        return torch.where(defined.unsqueeze(-1), one, torch.nan), no_exponent

    # The two parts as orthogonal blocks of rows: sqrt(n) mean, and Y = Q^T hfc.
    top = (math.sqrt(n) * state.mean).unsqueeze(-2)
    rest = to_quotient(state.hfc)
    shift = state.hfc_exponent - state.mean_exponent
    top_norm = torch.linalg.vector_norm(top, dim=(-2, -1))
    rest_norm = torch.linalg.vector_norm(rest, dim=(-2, -1))
    top_large = (top_norm > 0) & (scale(rest_norm, shift, 0) <= DEFLATE_BELOW * top_norm)
    if n == 2:  # Y is one row too: the roles can be exchanged
        exchange = (rest_norm > 0) & (scale(top_norm, -shift, 0) <= DEFLATE_BELOW * rest_norm)
        swap = exchange[..., None, None]
        top, rest = torch.where(swap, rest, top), torch.where(swap, top, rest)
        shift = torch.where(exchange, -shift, shift)
        top_large = top_large | exchange

    top_large = top_large & defined
    deflated, exponent = _deflate(top.squeeze(-2), rest, shift, top_large)
    dense, dense_exponent = _dense_ratios(state, defined & ~top_large)
    ratio = torch.where(top_large.unsqueeze(-1), deflated, dense)
    exponent = torch.where(top_large, exponent, dense_exponent)
    return torch.where(defined.unsqueeze(-1), ratio, torch.nan), exponent


def _dense_ratios(state: SplitState, defined: Tensor) -> tuple[Tensor, Tensor]:
    """The ratios and their exponent by an SVD of X, and where that stops at eps by `_beside`."""
    used = torch.where((state.rows != 0).any(-1), state.row_exponent, UNUSED)
    X = scale(state.rows, used - used.amax(-1, keepdim=True), 1)
    X = torch.where(defined[..., None, None], X, torch.zeros_like(X))
    sigma = torch.linalg.svdvals(X)
    ratio = torch.div(sigma[..., 1:], sigma[..., :1])
    exponent = torch.zeros(defined.shape, dtype=torch.int64, device=X.device)
    lost = defined & (ratio[..., 0] < _LOST)
    if bool(lost.any()):
        ratio[lost], exponent[lost] = _beside(X[lost])
    return ratio, exponent


def _beside(X: Float64[Tensor, "k n d"]) -> tuple[Tensor, Tensor]:
    """sigma_i / sigma_1 for i >= 2 and their exponent, for X with one dominant singular value.

    X = s u v^T + R, with s u v^T subtracted in twice the digits, so that R is right to its own last
    digit. Reflections that take u and v to e_1 leave [s + r, t; b, C], to be deflated.
    """
    U, S, Vt = torch.linalg.svd(X, full_matrices=False)
    u, v = S[..., :1, None] * U[..., :1], Vt[..., :1, :]
    high, low = two_product(u, v)
    R = (X - high) - low
    size_u, R = _reflect_columns(u.mT, R.mT)
    size_v, R = _reflect_columns(v, R.mT)
    # A reflection takes a row to e_1 with the sign opposite to that of its first entry.
    same = (u[..., :1, :] >= 0) == (v[..., :1] >= 0)
    top = R[..., 0, :].clone()
    top[..., :1] += (torch.where(same, 1.0, -1.0) * size_u * size_v).squeeze(-1)
    nothing = torch.zeros(len(X), dtype=torch.int64, device=X.device)
    return _deflate(top, R[..., 1:, :], nothing, nothing == 0)


def _deflate(top: Tensor, rest: Tensor, shift: Tensor, use: Tensor) -> tuple[Tensor, Tensor]:
    """Ratios of the matrix of rows (top [..., d], 2^shift rest [..., m, d]) with a dominant top.

    Batch elements outside `use` are computed with a harmless stand-in and dropped by the caller.
    """
    d = top.shape[-1]
    stand_in = torch.zeros_like(top)
    stand_in[..., 0] = 1.0
    top = torch.where(use.unsqueeze(-1), top, stand_in)
    rest = torch.where(use[..., None, None], rest, torch.zeros_like(rest))
    shift = torch.where(use, shift, torch.zeros_like(shift))
    rest, shift = normalise(rest, 2, shift)

    # Features: a reflection that takes top to s e_1; then [s, t; beta b, beta C], beta = 2^shift.
    s, rest = _reflect_columns(top.unsqueeze(-2), rest)
    b, C = rest[..., :1], rest[..., 1:]
    t = torch.zeros((*top.shape[:-1], 1, d - 1), dtype=top.dtype, device=top.device)
    for _ in range(SWEEPS):
        # Tokens: reflect u = (s, beta b) to its first entry. v = u + |u| e_1, v.v = 2 |u| v_1.
        small = scale(b, shift, 2)
        size = (s * s + (small * small).sum((-2, -1), keepdim=True)).sqrt()
        factor = s + size
        inner = factor * t + scale(b.mT @ C, 2 * shift, 2)
        C = C - b @ inner / (size * factor)
        t = t - inner / size
        s = size  # up to a sign, which no singular value sees
        # Features again: reflect (s, t) to its first entry; the first column of the rest refills.
        size = (s * s + (t * t).sum((-2, -1), keepdim=True)).sqrt()
        factor = s + size
        along = C @ t.mT
        b = -along / size
        C = C - along @ t / (size * factor)
        s = size
        t = torch.zeros_like(t)
    sigma = torch.linalg.svdvals(C)
    sigma, shift = normalise(sigma, 1, shift)
    return sigma / s.squeeze(-1), shift


def _reflect_columns(row: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
    """(|row| [..., 1, 1], rest G) for the reflection G with row G = +-|row| e_1."""
    size = torch.linalg.vector_norm(row, dim=-1, keepdim=True)
    first = row[..., :1]
    sign = torch.where(first >= 0, 1.0, -1.0).to(row.dtype)
    v = torch.cat((first + sign * size, row[..., 1:]), dim=-1)
    inner = rest @ v.mT
    return size, rest - inner @ v / (size * (size + first.abs()))
