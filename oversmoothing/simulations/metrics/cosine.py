"""Cosines between tokens, exact near collapse: signed and absolute, mean and extreme (T4, T5b).

All pairs i != k of tokens with x_i != 0 (a zero token has no direction and is masked). With e the
direction of the longest token, the unit tokens are u_i = sign_i ((1 - v_i) e + s_i), s_i orthogonal
to e and v_i = 1 - |cos(x_i, e)| = |s_i|^2 / (2 - v_i), and for z_i = (s_i, v_i)
    1 - cos(u_i, u_k) = |z_i - z_k|^2 / 2      for tokens of equal sign:
no two numbers near 1 are subtracted, so 1 - cos has its relative accuracy at any spread. (The Gram
matrix of unit rows in float32 is 16 % wrong at a spread of 1e-3.)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

from oversmoothing.simulations.states.scaled import (
    UNUSED,
    exponent_of,
    log_of_two_to,
    normalise,
    scale,
)
from oversmoothing.simulations.states.split_state import SplitState, split


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
    nothing = number == 0

    def largest(x: Tensor) -> Tensor:
        top = torch.where(pairs, x, -torch.inf).amax((-2, -1))
        return torch.where(nothing, torch.nan, top)

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
    value = torch.where(count >= 2, total / (count - 1.0), torch.nan)
    return value, 2 * exponent
