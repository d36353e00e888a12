"""The Lyapunov exponents of layers that change: gamma_C of consensus, gamma_Q of the rest (T7a).

For stationary ergodic layers log ||prod (I + sum_h H_h)|| / L -> gamma_C and, on the quotient,
log ||prod (Y -> Y + sum_h B_h Y W_h)|| / L -> gamma_Q. gamma_Q < gamma_C: HFC/LFC of generic X_0
decays like exp((gamma_Q - gamma_C) L). gamma_Q > gamma_C: it does not decay exponentially.

Both are measured on one sequence of layers by carrying an orthonormal frame along (QR at each
layer): the mean of the logarithms of what R's diagonal does is the exponent, and the spread of
that mean over blocks of layers its standard error.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from oversmoothing.simulations.heads.layers import as_rule, prescribed_attention, weights_at
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

_BLOCKS = 20


@dataclass(frozen=True)
class LyapunovExponents:
    """Lyapunov exponents measured over a number of layers, largest first.

    consensus [frame], quotient [frame]: natural logarithm per layer. gap = gamma_Q - gamma_C, top
    exponents; gap_error: its standard error, from the means over blocks of layers (right where a
    block is longer than the correlations).
    """

    layers: int
    consensus: Array
    quotient: Array
    gap: float
    gap_error: float

    @property
    def gamma_consensus(self) -> float:
        """The top exponent of consensus."""
        return float(self.consensus[0])

    @property
    def gamma_quotient(self) -> float:
        """The top exponent of the quotient, -inf for one token."""
        return float(self.quotient[0]) if len(self.quotient) else -math.inf


def lyapunov_exponents(
    *,
    attention: Any,
    weights: Any,
    layers: int,
    residual: bool = True,
    frame: int = 1,
    discard: int = 100,
) -> LyapunovExponents:
    """Measure gamma_C and gamma_Q over `layers` layers (a multiple of 20).

    attention, weights: as for `evolve_heads`, but prescribed: attention that follows the state has
    no exponents of its own. frame: how many exponents of each (up to d and (n - 1) d). The first
    `discard` layers turn the frame into place and are not counted.
    Raises `InputError` on illegal input or where every vector of the frame dies.
    """
    if layers < _BLOCKS or layers % _BLOCKS:
        raise InputError(f"layers must be a positive multiple of {_BLOCKS}, not {layers}")
    if frame < 1 or discard < 0:
        raise InputError("frame must be at least 1, discard at least 0")
    A_rule, W_rule = as_rule(attention), as_rule(weights)
    rng = np.random.default_rng(0)
    C: Array = np.empty(0)
    U: Array = np.empty(0)
    logs: list[tuple[Array, Array]] = []
    for layer in range(discard + layers):
        W = weights_at(W_rule, layer).dense()
        A = prescribed_attention(A_rule, layer, len(W), "has no Lyapunov exponents of its own")
        if A.ndim != 3:
            raise InputError(
                f"A has shape {list(A.shape)}: exponents are of one stack, not a batch"
            )
        B = quotient(A)
        d, k = W.shape[-1], B.shape[-1]
        if C.size == 0:
            C = np.linalg.qr(rng.standard_normal((d, min(frame, d))))[0]
            U = np.linalg.qr(rng.standard_normal((k * d, min(frame, k * d))))[0]
        moved = W.sum(axis=0).T @ C
        C, log_C = _reorthogonalise(C + moved if residual else moved)
        if k:
            frames = U.shape[1]
            mixed = B.reshape(-1, k) @ U.reshape(k, d * frames)
            # [heads, k, d, frames] -> [k, frames, heads d]
            mixed = mixed.reshape(-1, k, d, frames).transpose(1, 3, 0, 2).reshape(k, frames, -1)
            out = (mixed @ W.reshape(-1, d)).swapaxes(1, 2).reshape(U.shape)
            U, log_U = _reorthogonalise(U + out if residual else out)
        else:
            log_U = np.empty(0)
        if layer >= discard:
            logs.append((log_C, log_U))
    c, q = (np.array([pair[i] for pair in logs]) for i in (0, 1))
    gap, error = -math.inf, 0.0
    if q.shape[1]:
        difference = q[:, :1] - c[:, :1]
        blocks = difference.reshape(_BLOCKS, -1, 1).mean(axis=1)
        gap = float(difference.mean(axis=0)[0])
        error = float(blocks.std(axis=0, ddof=1)[0]) / math.sqrt(_BLOCKS)
    return LyapunovExponents(layers, c.mean(axis=0), q.mean(axis=0), gap, error)


def _reorthogonalise(M: Array) -> tuple[Array, Array]:
    Q, R = np.linalg.qr(M)
    diagonal = np.abs(np.diag(R))
    if (diagonal == 0).any():
        raise InputError("a layer takes a direction to exactly 0: an exponent is -inf")
    return Q, np.log(diagonal)
