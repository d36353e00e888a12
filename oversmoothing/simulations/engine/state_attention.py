"""One layer of attention that follows the state, right at any spread (T8a-b, T9).

With X = 1 c + E the logits are x_i M x_j^T = (c + e_i) M c^T + c M e_j^T + e_i M e_j^T. The first
term is the same for all j and leaves the softmax; what is left is

    t_j = c M e_j^T + b_j   (the same for every token i)   and   s_ij = e_i M e_j^T + beta_ij,

where the position bias is b_j + beta_ij, b its mean over i. So A_i = a + D_i with a = softmax(t),

    D_ij = a_j (x_ij - k_i) / (1 + k_i),   x = exp(s) - 1,   k_i = sum_j a_j x_ij,

and since HFC does not see what all tokens share, P A X = P D E: a product of small numbers, each
known to its own last digit (E' = E M Sigma_a W to leading order, T8b); in A X they would be lost.
D carries its power of two, as E does: a spread of 1e-200 makes D about 1e-400.

The mean takes a^T E + mean_i(D_i E). In the mean over i the part of D linear in s cancels exactly
(E and beta are centred), so it is left out, and the rest summed by itself:

    mean_i D_ij = mean_i a_j ((q_ij - qbar_i) - k_i (x_ij - k_i) / (1 + k_i)),   q = exp(s) - 1 - s.

Where |s| exceeds 1, or a causal mask hides tokens, D = A - a with both from the softmax: there it
is no smaller than its rounding.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from oversmoothing.simulations.state import Scaled, normalise, normalised_sum, scale
from oversmoothing.theory.layer.layer import real_array
from oversmoothing.theory.spectra.heads import side_by_side, stacked
from oversmoothing.theory.support.errors import InputError

# exp(s) - 1 - s by series below this: above it the difference keeps 45 digits of 53.
_SERIES = 2.0**-8


@dataclass(frozen=True)
class FromState:
    """A_h = softmax(X W_Q,h W_K,h^T X^T / sqrt(r) + bias_h), computed from X at each layer.

    W_Q, W_K [heads, d, r] or [d, r] for one head. bias: finite logits by position, [n, n] or
    [heads, n, n]. causal: token i sees the tokens up to i.

    >>> import oversmoothing
    >>> attention = oversmoothing.FromState(W_Q=[[1.0]], W_K=[[1.0]])
    >>> run = oversmoothing.evolve_heads(
    ...     X0=[[1.0], [2.0]], attention=attention, weights=[[0.5]], depth=3
    ... )
    >>> len(run)
    2
    """

    W_Q: "ArrayLike | Tensor"
    W_K: "ArrayLike | Tensor"
    bias: "ArrayLike | Tensor | None" = None
    causal: bool = False


class Deviation(NamedTuple):
    """A_h = 1/n + 1 (g_h as far as it is shared) + D_h, each part with exponents [N].

    D [N, heads, n, n]: rows of A minus a, rows sum to 0. shared [N, heads, 1, n]: a - 1/n. rest
    [N, heads, 1, n]: the mean over the rows of D.
    """

    D: Scaled
    shared: Scaled
    rest: Scaled


class SoftmaxHeads:
    """W_Q, W_K and the bias of one layer on a device, for heads on n tokens of d features.

    Raises `InputError` for shapes that do not fit and for biases that are not finite.
    """

    def __init__(
        self, given: FromState, heads: int, n: int, d: int, where: torch.device, dtype: torch.dtype
    ) -> None:
        W_Q = stacked(real_array(given.W_Q, "W_Q"))
        W_K = stacked(real_array(given.W_K, "W_K"))
        if W_Q.shape != W_K.shape or W_Q.shape[:-1] != (heads, d) or W_Q.shape[-1] == 0:
            raise InputError(
                f"W_Q {list(W_Q.shape)} and W_K {list(W_K.shape)} must both be [{heads}, {d}, r]"
            )
        self.heads, self.r, self.causal = heads, W_Q.shape[-1], given.causal
        self.W_Q, self.W_K = (
            torch.as_tensor(side_by_side(W).copy()).to(where, dtype) for W in (W_Q, W_K)
        )
        self.column: Tensor | None = None
        self.beta: Tensor | None = None
        if given.bias is not None:
            bias = real_array(given.bias, "bias")
            if bias.shape not in ((n, n), (heads, n, n)):
                raise InputError(
                    f"bias has shape {list(bias.shape)}; it must be [{n}, {n}] or "
                    f"[{heads}, {n}, {n}]"
                )
            bias = np.broadcast_to(bias, (1, heads, n, n))
            column = bias.mean(axis=-2, keepdims=True)
            self.column = torch.as_tensor(column.copy()).to(where, dtype)
            self.beta = torch.as_tensor(bias - column).to(where, dtype)

    def _project(self, X: Tensor, W: Tensor) -> Tensor:
        N, k, d = X.shape
        return (X.reshape(N * k, d) @ W).view(N, k, self.heads, self.r).transpose(1, 2)

    def deviation(self, E: Tensor, E_exponent: Tensor, m: Tensor, m_exponent: Tensor) -> Deviation:
        """The attention of X = 2^E_exponent E + 1 (2^m_exponent m); E [N, n, d] centred, m [N, d].

        Exponents int64 [N].
        """
        keys = self._project(E, self.W_K).transpose(-1, -2) / math.sqrt(self.r)
        t = self._project(m.unsqueeze(1), self.W_Q) @ keys  # [N, heads, 1, n]
        s = self._project(E, self.W_Q) @ keys  # [N, heads, n, n]
        t_scaled = normalise(t, 3, E_exponent + m_exponent)
        s_scaled = normalise(s, 3, 2 * E_exponent)
        if self.column is not None and self.beta is not None:
            none = torch.zeros_like(E_exponent)
            t_scaled = normalised_sum(t_scaled, (self.column.expand_as(t), none), trailing=3)
            s_scaled = normalised_sum(s_scaled, (self.beta.expand_as(s), none), trailing=3)
        D, rest = self._rows(t_scaled, s_scaled)
        return Deviation(D, _softmax_less_uniform(*t_scaled), rest)

    def _rows(self, t: Scaled, s: Scaled) -> tuple[Scaled, Scaled]:
        """D and its mean over i."""
        a, s_exponent = _softmax(*t), s[1]
        # |s| <= 1: the largest entry of s lies in [1/2, 1).
        small = torch.full_like(s_exponent, not self.causal, dtype=torch.bool) & (s_exponent <= 0)
        exponent = torch.where(small, s_exponent, 0)
        if bool(small.all()):
            D, rest = _small(s[0], exponent, a)
        else:
            D = self._large(t, s, a)
            rest = D.mean(-2, keepdim=True)
            if bool(small.any()):
                near, near_rest = _small(s[0], exponent, a)
                here = small.view(-1, 1, 1, 1)
                D, rest = torch.where(here, near, D), torch.where(here, near_rest, rest)
        return (D, exponent), (rest, 2 * exponent)

    def _large(self, t: Scaled, s: Scaled, a: Tensor) -> Tensor:
        exponent = torch.maximum(s[1], t[1])
        logits = scale(s[0], s[1] - exponent, 3) + scale(t[0], t[1] - exponent, 3)
        if self.causal:
            seen = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
            logits = logits.masked_fill(~seen, -math.inf)
        return _balanced(_softmax(logits, exponent) - a, a)


def _softmax(t: Tensor, exponent: Tensor) -> Tensor:
    """softmax(2^exponent t) over the last axis; the largest goes first, so nothing overflows."""
    return torch.softmax(scale(t - t.amax(-1, keepdim=True), exponent, 3), dim=-1)


def _softmax_less_uniform(t: Tensor, exponent: Tensor) -> Scaled:
    """softmax(2^exponent t) - 1/n as (value, exponent), to its own last digit."""
    n = t.shape[-1]
    small = exponent <= 0
    near_exponent = torch.where(small, exponent, torch.zeros_like(exponent))
    near = t * _psi(scale(t, near_exponent, 3))
    mean = near.mean(-1, keepdim=True)
    near = (near - mean) / (n * (1 + scale(mean, near_exponent, 3)))
    far = _softmax(t, exponent) - 1.0 / n
    return torch.where(small.view(-1, 1, 1, 1), near, far), near_exponent


def _small(s: Tensor, exponent: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """(2^-exponent D, 2^(-2 exponent) mean_i D) for logits 2^exponent s of at most 1."""
    value = scale(s, exponent, 3)
    x = s * _psi(value)
    q = s * s * _phi(value)
    k = (a * x).sum(-1, keepdim=True)
    centred = x - k
    damping = 1 + scale(k, exponent, 3)
    D = _balanced(a * centred / damping, a)
    rest = a * ((q - (a * q).sum(-1, keepdim=True)) - (k / damping) * centred)
    return D, _balanced(rest, a).mean(-2, keepdim=True)


def _balanced(D: Tensor, a: Tensor) -> Tensor:
    """D with the entry of the largest a_j replaced by minus the others: rows sum to 0.

    Where a is nearly one-hot that entry is the rounding of 1 - 1, and the others are not.
    """
    place = a.argmax(-1, keepdim=True).expand(*D.shape[:-1], 1)
    D = D.scatter(-1, place, 0.0)
    return D.scatter(-1, place, -D.sum(-1, keepdim=True))


def _psi(s: Tensor) -> Tensor:
    """(exp(s) - 1) / s, 1 at 0."""
    zero = s == 0
    return torch.where(zero, 1.0, torch.expm1(s) / torch.where(zero, 1.0, s))


def _phi(s: Tensor) -> Tensor:
    """(exp(s) - 1 - s) / s^2, 1/2 at 0."""
    series = torch.full_like(s, 1 / 5040)
    for factorial in (720, 120, 24, 6, 2):
        series = series * s + 1 / factorial
    far = s.abs() > _SERIES
    safe = torch.where(far, s, 1.0)
    return torch.where(far, (torch.expm1(safe) - safe) / (safe * safe), series)
