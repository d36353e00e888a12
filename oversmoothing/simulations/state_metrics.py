"""The smoothing metrics of a state X [..., n, d]: HFC/LFC, token cosines and effective rank (T4).

Pure functions of a tensor of any float dtype and device, or of a `SplitState`; computed in float64
whatever the dtype of X. HFC = X - 1 m and LFC = 1 m with m the mean over the tokens; Frobenius
norms. Cosines run over pairs of distinct non-zero tokens (no diagonal; slice X to leave out CLS).
Centred first and rescaled by powers of two: right from 1e-300 to 1e+300, at any spread, and a power
of two times X changes no bit of a result.

Undefined is NaN: every metric of X = 0 or of a non-finite X, a cosine with fewer than two non-zero
tokens. LFC = 0 with HFC != 0 gives a ratio of +inf; one token gives the ratio 0.

Tests hold two others to `metrics`: `stream_metrics` of the residual streams of models, by plain
sums where these lose no digits; and those of one state in numpy (`simulations.sweep.points`).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from oversmoothing.simulations.state import (
    UNUSED,
    SplitState,
    exponent_of,
    log_of_two_to,
    normalise,
    scale,
    split,
    undisturbed,
)
from oversmoothing.theory.support.sizes import MatrixLike


@undisturbed()
def log_hfc_lfc_ratio(X: Any) -> Float64[Tensor, "*batch"]:
    """Natural logarithm of ||HFC||_F / ||LFC||_F, [...]; O(n d). -inf, +inf and NaN are kept."""
    hfc, lfc, exponent = _norms(X)
    return torch.log(hfc / lfc) + log_of_two_to(exponent)


def _norms(X: Any) -> tuple[Tensor, Tensor, Tensor]:
    state = X if isinstance(X, SplitState) else split(X)
    hfc = torch.linalg.vector_norm(state.hfc, dim=(-2, -1))
    lfc = math.sqrt(state.n) * torch.linalg.vector_norm(state.mean, dim=-1)
    return hfc, lfc, state.hfc_exponent - state.mean_exponent


@undisturbed()
def metrics(X: "MatrixLike | Tensor | SplitState") -> dict[str, Float64[Tensor, "*batch"]]:
    """Every metric of X [..., n, d], each a float64 tensor [...].

    X: a tensor, an array of numpy, nested lists, or a `SplitState`.
    hfc_lfc, log_hfc_lfc: the ratio of Frobenius norms and its natural logarithm.
    cos_mean, cos_min, cos_abs_mean, cos_abs_min: signed and absolute cosine over pairs.
    effective_rank: exp of the entropy of the normalised singular values. sigma2_sigma1.
    log_one_minus_cos_mean, log_one_minus_cos_min, log_one_minus_cos_abs_min (the maximum over pairs
    of 1 - |cos|), log_effective_rank_excess (of effective rank - 1), log_sigma2_sigma1: natural
    logarithms, finite where the number itself underflows. A difference between tokens some 1e308
    times smaller than the largest counts as 0: what rests on it alone is -inf.

    Raises `InputError` for X without two dimensions or not floating.

    >>> import oversmoothing
    >>> found = oversmoothing.metrics([[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(found["hfc_lfc"]), 9), round(float(found["effective_rank"]), 9)
    (1.0, 2.0)
    """
    from oversmoothing.simulations.singular_values import log_excess_of, singular_value_ratios

    state = X if isinstance(X, SplitState) else split(X)
    hfc, lfc, between = _norms(state)
    cosine = cosines(state)
    logs = {name: value for name, value in cosine.items() if name.startswith("log")}
    ratio, exponent = singular_value_ratios(state)
    log_excess = log_excess_of(ratio, exponent)
    # The order of the columns of every table.
    return {
        "hfc_lfc": scale(hfc / lfc, between, 0),
        "log_hfc_lfc": torch.log(hfc / lfc) + log_of_two_to(between),
        **{name: value for name, value in cosine.items() if name not in logs},
        "effective_rank": 1.0 + torch.exp(log_excess),
        "sigma2_sigma1": scale(ratio[..., 0], exponent, 0),
        **logs,
        "log_effective_rank_excess": log_excess,
        "log_sigma2_sigma1": torch.log(ratio[..., 0]) + log_of_two_to(exponent),
    }


def cosines(X: Tensor | SplitState) -> dict[str, Float64[Tensor, "*batch"]]:
    """Statistics of the cosine over pairs of distinct non-zero tokens, each [...]; O(n^2 d).

    cos_mean, cos_min: signed; cos_abs_mean, cos_abs_min: of its absolute value. log_one_minus_*:
    the natural logarithm of 1 minus that, finite where the number itself underflows, -inf where it
    is 0. NaN without a pair.
    """
    z = _directions(X)
    mean, mean_exponent = _one_minus_mean(z)
    points = torch.cat((z.s, z.v.unsqueeze(-1)), dim=-1)
    gram = points @ points.mT
    square = gram.diagonal(dim1=-2, dim2=-1)
    # In units of 2^(2 exponent). The largest distance is at least |z_i|^2 / 2 for every i (the
    # reference token is at the origin), so the subtraction costs the maximum only a few ulp.
    D = (0.5 * (square.unsqueeze(-1) + square.unsqueeze(-2)) - gram).clamp_min(0.0)
    exponent = 2 * z.exponent
    plain = scale(D, exponent, 2)
    one_minus_abs = torch.where(plain <= 1.0, D, scale(2.0 - plain, -exponent, 2))
    equal = z.sign.unsqueeze(-1) == z.sign.unsqueeze(-2)
    mixed = (z.sign != z.sign[..., :1]).any(-1)
    signed = torch.where(mixed[..., None, None], torch.where(equal, plain, 2.0 - plain), D)
    signed_exponent = torch.where(mixed, torch.zeros_like(exponent), exponent)

    n = z.valid.shape[-1]
    pairs = z.valid.unsqueeze(-1) & z.valid.unsqueeze(-2)
    pairs = pairs & ~torch.eye(n, dtype=torch.bool, device=z.valid.device)
    number = pairs.sum((-2, -1))

    def largest(x: Tensor) -> Tensor:
        return torch.where(number == 0, torch.nan, torch.where(pairs, x, -torch.inf).amax((-2, -1)))

    signed_max, abs_max = largest(signed), largest(one_minus_abs)
    folded = torch.where(pairs, torch.minimum(plain, 2.0 - plain), torch.zeros_like(plain))
    return {
        "cos_mean": 1.0 - scale(mean, mean_exponent, 0),
        "cos_min": 1.0 - scale(signed_max, signed_exponent, 0),
        "cos_abs_mean": 1.0 - folded.sum((-2, -1)) / number,
        "cos_abs_min": 1.0 - scale(abs_max, exponent, 0),
        "log_one_minus_cos_mean": torch.log(mean) + log_of_two_to(mean_exponent),
        "log_one_minus_cos_min": torch.log(signed_max) + log_of_two_to(signed_exponent),
        "log_one_minus_cos_abs_min": torch.log(abs_max) + log_of_two_to(exponent),
    }


@dataclass(frozen=True)
class _Directions:
    """u_i = sign_i ((1 - v_i) e + s_i); s [..., n, d] and v [..., n] in units of 2^exponent."""

    s: Tensor
    v: Tensor
    sign: Tensor
    exponent: Tensor
    valid: Tensor


def _directions(X: Tensor | SplitState) -> _Directions:
    state = X if isinstance(X, SplitState) else split(X)
    rows = state.rows
    valid = (rows != 0).any(-1)
    norm = torch.linalg.vector_norm(rows, dim=-1)
    # The longest token is the reference. Each token has its own scale: 2^top bounds them all.
    size = torch.where(valid, state.row_exponent + exponent_of(norm), UNUSED)
    top = size.amax(-1, keepdim=True)
    length = scale(norm, state.row_exponent - top, 0)
    pick = length.argmax(-1, keepdim=True).unsqueeze(-1)
    pick = pick.expand(*pick.shape[:-1], state.d)
    e = rows.gather(-2, pick)
    e = e / torch.linalg.vector_norm(e, dim=-1, keepdim=True)

    # From the difference to the reference token, which is one of HFC: accurate relative to the
    # spread. Used for tokens within half a length of the reference.
    gap, gap_exponent = normalise(
        state.hfc - state.hfc.gather(-2, pick), 2, state.hfc_exponent - top.squeeze(-1)
    )
    distance = scale(torch.linalg.vector_norm(gap, dim=-1), gap_exponent, 1)
    near = (distance <= 0.25) & valid
    across = _reject(gap, e) / length.unsqueeze(-1)
    # From the token itself: accurate to eps in the angle.
    direct = _reject(rows, e) / norm.unsqueeze(-1)
    cosine = (rows * e).sum(-1) / norm

    all_near = (near | ~valid).all(-1)
    exponent = torch.where(all_near, gap_exponent, torch.zeros_like(gap_exponent))
    s = torch.where(near.unsqueeze(-1), scale(across, gap_exponent - exponent, 2), direct)
    sign = torch.where(near | ~valid | (cosine >= 0), 1.0, -1.0).to(s.dtype)
    s = torch.where(valid.unsqueeze(-1), sign.unsqueeze(-1) * s, torch.zeros_like(s))
    s, exponent = normalise(s, 2, exponent)
    square = scale((s * s).sum(-1), exponent, 1)  # |s|^2 in units of 2^exponent
    c = torch.where(near, (1.0 - scale(square, exponent, 1)).sqrt(), cosine.abs())
    v = torch.where(valid, square / (1.0 + c), torch.zeros_like(square))
    return _Directions(s, v, sign, exponent, valid)


def _reject(x: Tensor, e: Tensor) -> Tensor:
    """x - e (e.x), twice: what rounding left along the unit vector e is removed too."""
    for _ in range(2):
        x = x - e * (x * e).sum(-1, keepdim=True)
    return x


def _one_minus_mean(z: _Directions) -> tuple[Tensor, Tensor]:
    """(value, exponent): 1 - mean cos = 2^exponent value."""
    mixed = (z.sign != z.sign[..., :1]).any(-1)
    # Tokens on both sides of e: 1 - cos(x_i, e) = 2 - v_i is of order 1, and so is the result.
    exponent = torch.where(mixed, torch.zeros_like(z.exponent), z.exponent)
    v = scale(z.v, z.exponent - exponent, 1)
    v = torch.where(z.sign < 0, 2.0 - v, v)
    s = scale(z.s, z.exponent - exponent, 2) * z.sign.unsqueeze(-1)
    weight = z.valid.to(s.dtype)
    count = weight.sum(-1)
    v = v - ((v * weight).sum(-1) / count).unsqueeze(-1)
    s = s - ((s * weight.unsqueeze(-1)).sum(-2) / count.unsqueeze(-1)).unsqueeze(-2)
    total = (v * v * weight).sum(-1) + ((s * s).sum(-1) * weight).sum(-1)
    return torch.where(count >= 2, total / (count - 1.0), torch.nan), 2 * exponent


NAMES = (
    "hfc_lfc", "log_hfc_lfc", "cos_mean", "cos_min", "cos_abs_mean", "cos_abs_min",
    "effective_rank", "sigma2_sigma1",
)  # fmt: skip
# 1 - cos loses eps / (1 - cos), a singular value sqrt(eps) sigma_1 by the Gram matrix: within this
# spread and scale of the tokens every metric keeps 1e-6 of itself.
SPREAD = 1e-2
SCALE = 1e100


class StreamState(NamedTuple):
    """X [b, n, d] as its metrics see it.

    `values`: the metrics by name, float64 [b]; `cosine` [b, n, n], of every pair; by suffix, of the
    first `ranks` inputs, `gram`, X^T X or X X^T, the smaller, and `sigma` [ranks, k], their
    singular values, largest first; `plain` [b]: where plain sums keep 1e-6 of everything. Cosines,
    Gram matrices and singular values of the others are not to be used.
    """

    values: dict[str, Tensor]
    cosine: Tensor
    gram: dict[str, Tensor]
    sigma: dict[str, Tensor]
    plain: Tensor


def stream_metrics(
    X: Float[Tensor, "b n d"], *, without_first: bool = False
) -> dict[str, Float64[Tensor, " b"]]:
    """The metrics NAMES of X [b, n, d] (n >= 1) as `metrics` has them, float64 [b] each.

    without_first adds the same of X[:, 1:] (CLS left out) under the names *_without_cls.
    """
    return stream_state(X, without_first=without_first).values


def stream_state(
    X: Float[Tensor, "b n d"], *, without_first: bool = False, ranks: int | None = None
) -> StreamState:
    """`stream_metrics` and what they are made of.

    ranks: of how many inputs, from the first, those of the singular values are taken (None: all).
    """
    narrow = X.detach()
    X = narrow.to(torch.float64)
    # How many tokens are left out, by suffix.
    parts = {"": 0, "_without_cls": 1} if without_first and X.shape[1] > 1 else {"": 0}
    ranks = len(X) if ranks is None else min(ranks, len(X))
    size = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    square = size.squeeze(-1)
    plain = (square.amin(-1) > 1 / SCALE) & (square.amax(-1) < SCALE)
    # Cosines of float32 tokens are no better than float32.
    unit = (X / size).to(torch.promote_types(narrow.dtype, torch.float32))
    cosine = (unit @ unit.mT).clamp_(-1.0, 1.0)
    few = torch.where(plain[:ranks, None, None], X[:ranks], 1.0)
    tall = X.shape[1] >= X.shape[2]
    gram = few.mT @ few if tall else few @ few.mT
    values, grams, sigmas = dict[str, Tensor](), dict[str, Tensor](), dict[str, Tensor]()
    for suffix, left in parts.items():
        if left:
            gram = gram - few[:, :left].mT @ few[:, :left] if tall else gram[:, left:, left:]
        measures, sigma = _of(X[:, left:], cosine[:, left:, left:], gram, ranks)
        plain &= _harmless(measures, ranks)
        values |= {f"{name}{suffix}": value for name, value in measures.items()}
        grams[suffix], sigmas[suffix] = gram, sigma
    if not bool(plain.all()):
        for suffix, left in parts.items():
            careful = metrics(X[~plain][:, left:])
            for name in NAMES:
                values[f"{name}{suffix}"][~plain] = careful[name]
    return StreamState(values, cosine, grams if ranks else {}, sigmas, plain)


def kept_parts(X: Tensor, keep: Tensor | None) -> list[Tensor]:
    """The stream [b, n, d] without padding: input by input where there is any."""
    if keep is None:
        return [X]
    return [x[k].unsqueeze(0) for x, k in zip(X, keep, strict=True)]


def stream_log_ratio(
    X: Float[Tensor, "b n d"], keep: Tensor | None = None
) -> Float64[Tensor, " b"]:
    """log HFC/LFC [b] of X [b, n, d], float64; keep [b, n]: the tokens that count (None: all).

    ||HFC||^2 = sum |x_i|^2 - n |m|^2 in float64, which keeps 1e-11 at a spread of 1e-2; inputs
    outside the plain range go to `metrics`.
    """
    if keep is not None:
        return torch.cat([stream_log_ratio(x) for x in kept_parts(X, keep)])
    Y = X.detach()
    n = Y.shape[1]
    square = torch.linalg.vector_norm(Y, dim=(1, 2), dtype=torch.float64).square()
    lfc = n * Y.mean(1, dtype=torch.float64).square().sum(-1)
    ratio = (square - lfc) / lfc
    plain = (square > 1 / SCALE) & (square < SCALE) & (ratio > SPREAD**2) & (ratio < SPREAD**-2)
    logs: Tensor = ratio.clamp_min(0.0).log() / 2
    if not bool(plain.all()):
        logs[~plain] = log_hfc_lfc_ratio(Y[~plain])
    return logs


def _harmless(measures: dict[str, Tensor], ranks: int) -> Tensor:
    """Which inputs the plain form measures to 1e-6."""
    good = (measures["hfc_lfc"] > SPREAD) & (measures["hfc_lfc"] < 1 / SPREAD)
    good &= measures["cos_mean"] < 1 - SPREAD**2
    good[:ranks] &= measures["sigma2_sigma1"][:ranks] > SPREAD
    return good


def _of(X: Tensor, cosine: Tensor, gram: Tensor, ranks: int) -> tuple[dict[str, Tensor], Tensor]:
    """(NAMES of X, the singular values of the first `ranks`); gram: X^T X or X X^T of those."""
    n = X.shape[1]
    mean = X.mean(1, keepdim=True)
    hfc = torch.linalg.vector_norm(X - mean, dim=(1, 2))
    ratio = hfc / (n**0.5 * torch.linalg.vector_norm(mean, dim=(1, 2)))
    size, wide = cosine.abs(), torch.float64
    pairs = n * (n - 1)
    trace = cosine.diagonal(dim1=-2, dim2=-1).sum(-1, dtype=wide)
    rank, second = torch.full_like(ratio, torch.nan), torch.full_like(ratio, torch.nan)
    sigma = X.new_zeros((0, min(X.shape[1:])))
    if ranks:
        sigma = torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt().flip(-1)
        share = sigma / sigma.sum(-1, keepdim=True)
        rank[:ranks] = torch.special.entr(share).sum(-1).exp()
        second[:ranks] = sigma[:, 1] / sigma[:, 0] if sigma.shape[-1] > 1 else 0.0
    return {
        "hfc_lfc": ratio,
        "log_hfc_lfc": ratio.log(),
        "cos_mean": (cosine.sum((1, 2), dtype=wide) - trace) / pairs,
        # A token's cosine with itself is least only where all are 1: `_harmless` excludes it.
        "cos_min": cosine.amin((1, 2)).to(wide),
        "cos_abs_mean": (size.sum((1, 2), dtype=wide) - trace) / pairs,
        "cos_abs_min": size.amin((1, 2)).to(wide),
        "effective_rank": rank,
        "sigma2_sigma1": second,
    }, sigma
