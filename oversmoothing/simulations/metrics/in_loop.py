"""HFC/LFC and the mean cosine together, in the dtype of X, for the inside of a loop over layers.

`simulations.metrics.metrics` computes everything in float64 with exponents of its own; here a few
passes over X give both numbers, relatively accurate down to a spread of sqrt(eps): everything is
centred first, and 1 - cos is never formed by a subtraction from 1. With X = 1 m + Y, e = m / |m|,
y_i = p_i e + s_i with s_i orthogonal to e, and t_i = |x_i|, the unit tokens u_i = x_i / t_i are
    u_i = e + s_i / t_i - v_i e,   v_i = 1 - cos(x_i, e) = |s_i|^2 / (t_i (t_i + |m| + p_i)),
and the mean over the pairs i != k is  1 - cos = sum_i |u_i - mean u|^2 / (n - 1).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from oversmoothing.simulations.states.scaled import exponent_of, largest, scale
from oversmoothing.theory.support.errors import InputError

# Up to this spread, |y_i| <= _NEAR |m|, the formula with y_i loses nothing.
_NEAR = 0.5
# Largest entries between 1/safe and safe: squares, and squares of spreads, stay in range.
_SAFE = {torch.float32: 2.0**20, torch.float64: 2.0**200}
# The square of a token shorter than this may underflow.
_TINY = {torch.float32: 2.0**-40, torch.float64: 2.0**-400}


def hfc_lfc_and_cosine(X: Tensor) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """(||HFC||_F / ||LFC||_F, 1 - mean cosine over pairs i != k of non-zero tokens), each [...].

    X [..., n, d] float32 or float64; the results have its dtype, and its relative accuracy times
    the conditioning of the question: 1e-6 in float64 at a spread of 1e-7, in float32 at 1e-3, at
    any scale. O(n d), no Gram matrix. Undefined is NaN: both for X = 0 and for non-finite X, the
    cosine with fewer than two non-zero tokens; LFC = 0 gives +inf, one token the ratio 0.

    Raises `InputError` for X without two dimensions of size >= 1 or of another dtype.
    """
    if X.ndim < 2 or 0 in X.shape[-2:]:
        raise InputError(f"X must be [..., n, d] with n, d >= 1, not {tuple(X.shape)}")
    if X.dtype not in (torch.float32, torch.float64):
        raise InputError(f"X must be float32 or float64, not {X.dtype}: convert it first")
    n, d = X.shape[-2:]
    batch = X.shape[:-2]
    with torch.no_grad():
        X = _scaled(X.reshape(-1, n, d), _SAFE[X.dtype])
        ones = torch.full((1, 1, n), 1.0 / n, dtype=X.dtype, device=X.device).expand(len(X), 1, n)
        mean = torch.bmm(ones, X)
        Y = X - mean
        # What the rounding of the mean left: small, but at a small spread not beside Y.
        left = torch.bmm(ones, Y)
        mean += left
        y = torch.linalg.vector_norm(Y, dim=-1)
        m, off = torch.linalg.vector_norm(torch.cat((mean, left), -2), dim=-1).unbind(-1)
        hfc = torch.linalg.vector_norm(y, dim=-1)
        hfc = torch.addcmul(hfc * hfc, off, off, value=-n).clamp_min_(0.0).sqrt_()
        # m = 0 passes only for X = 0, whose cosines are NaN in either way.
        near = y.amax(-1) <= _NEAR * m
        if bool(near.all()):
            cosine = _near_cosine(Y, mean, m)
        else:
            cosine = _direct_cosine(X)
            if bool(near.any()):
                cosine = torch.where(near, _near_cosine(Y, mean, m), cosine)
    return (hfc / (n**0.5 * m)).reshape(batch), cosine.reshape(batch)


def _near_cosine(Y: Tensor, mean: Tensor, m: Tensor) -> Tensor:
    """1 - mean cosine from the centred tokens; every token is within _NEAR of the mean.

    Y is overwritten.
    """
    n = Y.shape[-2]
    if n == 1:
        return torch.full_like(m, torch.nan)
    m = m[:, None, None]
    e = mean / m
    p = torch.bmm(Y, e.mT)
    S = Y.addcmul_(p, e, value=-1)  # Y is not needed again
    square = torch.linalg.vector_norm(S, dim=-1, keepdim=True).square_()
    along = m + p
    t = (along.square() + square).sqrt_()
    v = (square / (t * (t + along))).sum(-2, keepdim=True)
    # |s / t - v e|^2 = 2 v, and the sum of s / t - v e needs one more product.
    total = torch.linalg.vector_norm(torch.baddbmm(v * e, t.reciprocal_().mT, S, beta=-1), dim=-1)
    return (torch.addcmul(v[..., 0] * 2.0, total, total, value=-1.0 / n) / (n - 1)).squeeze(-1)


def _direct_cosine(X: Tensor) -> Tensor:
    """1 - mean cosine where it is of order 1: from the unit tokens, zero tokens left out."""
    norm = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    if bool((norm < _TINY[X.dtype]).any()):
        # Some token is lost beside the others: each gets a scale of its own.
        X = _scaled(X.reshape(-1, 1, X.shape[-1]), 1.0).reshape(X.shape)
        norm = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    valid = norm > 0
    weight = torch.where(valid, 1.0 / norm, 0.0)
    count = valid.sum((-2, -1)).to(X.dtype)
    # sum_i |u_i - mean u|^2 = k - |sum u|^2 / k, which loses nothing while it is of order 1.
    total = torch.bmm(weight.mT, X).square().sum((-2, -1))
    value = (count - total / count) / (count - 1)
    return torch.where(count >= 2, value, torch.nan)


def _scaled(X: Tensor, safe: float) -> Tensor:
    """X [N, n, d] times a power of two for each element, its largest entry between 1/safe and safe.

    Where X is safe already nothing is done.
    """
    top = largest(X, 2)
    if bool(((top <= safe) & (top * safe >= 1)).all()):
        return X
    return scale(X, -exponent_of(top), 2)
