"""One state in numpy, iterated and measured: the workers of a sweep start without torch.

Iterated are Y = Q^T X and c = pi^T X, each with its own power of two, since HFC and LFC part by
more than the range of a float (T1c-d, T11.9):
    Y' = Y + sum_h B_h Y W_h   and   c' = c + sum_h (c + pi^T (A_h - I) HFC) W_h.
One head: pi is its Perron vector, the second system is autonomous, and the mean is recovered at the
end. Several heads have no common one: pi = 1/n, and c is the mean. The iterations in torch do the
same to batches: for the small matrices of a point, a call of torch costs more than its products,
and importing it more than a hundred points.

The metrics are right to eps, absolutely, which is all that the column of a sweep needs; what is
relatively accurate near collapse is `simulations.state_metrics`. HFC/LFC is theory's
`ScaledState.log_hfc_lfc`.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from oversmoothing.theory.depth.closed_form import ScaledState
from oversmoothing.theory.layer.attention import complement_basis, quotient, stationary_distribution
from oversmoothing.theory.numbers.rounding import add, normalise
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array


def iterate(
    A: Float64[Array, "heads n n"],
    H: Float64[Array, "heads d d"],
    X0: Float64[Array, "n d"],
    depths: Sequence[int],
) -> list[ScaledState]:
    """X' = X + sum_h A_h X H_h^T at increasing depths >= 0; A [heads, n, n], H [heads, d, d].

    Raises `InputError` where one layer leaves the range of floats.
    """
    n, d = X0.shape
    Q, B, W = complement_basis(n), quotient(A), np.swapaxes(H, -1, -2)
    pi, weights = _couplings(A, Q)
    to_mean = (1.0 / n - pi) @ Q
    Y, y_scale = normalise(Q.T @ X0)
    c, c_scale = normalise(pi @ X0)
    found = []
    depth = 0
    for wanted in depths:
        while depth < wanted:
            fed, scale = add(np.broadcast_to(c, (len(W), d)), c_scale, weights @ Y, y_scale)
            c, c_scale = add(c, c_scale, np.einsum("hi,hij->j", fed, W), scale)
            c, c_scale = _finite(c, c_scale)
            moved = Y.copy()
            for B_h, W_h in zip(B, W, strict=True):
                moved += B_h @ (Y @ W_h)
            Y, y_scale = _finite(moved, y_scale)
            depth += 1
        mean, scale = add(c, c_scale, to_mean @ Y, y_scale)
        found.append(ScaledState(depth, Q @ Y, mean, float(y_scale), float(scale)))
    return found


def _couplings(
    A: Float64[Array, "heads n n"], Q: Float64[Array, "n m"]
) -> tuple[Float64[Array, " n"], Float64[Array, "heads m"]]:
    """pi [n], and pi^T (A_h - I) Q [heads, n-1], which is 0 for one head."""
    heads, n = len(A), A.shape[-1]
    if heads == 1:
        return stationary_distribution(A[0]), np.zeros((1, n - 1))
    weights = A.mean(axis=-2) @ Q
    for h in range(heads):
        # A doubly stochastic head feeds nothing, whatever rounding says.
        if (stationary_distribution(A[h]) == 1.0 / n).all():
            weights[h] = 0.0
    return np.full(n, 1.0 / n), weights


def _finite(x: Array, exponent: int) -> tuple[Array, int]:
    if not np.isfinite(x).all():
        raise InputError("a layer multiplies the state beyond the range of floats: scale H down")
    return normalise(x, exponent)


def dense(state: ScaledState) -> Array:
    """X_L up to a power of two, [n, d]: HFC + mean on the larger of the two scales."""
    parts = [(state.hfc, state.log2_hfc_scale), (state.mean, state.log2_mean_scale)]
    present = [scale for part, scale in parts if part.any()]
    if not present:
        return np.zeros_like(state.hfc)
    top = max(present)
    hfc, mean = (
        part * 2.0 ** max(scale - top, -1074.0) if part.any() else part for part, scale in parts
    )
    return hfc + mean


def cosine_extremes(X: Array) -> tuple[float, float]:
    """(mean, minimum) of the signed cosine over pairs of distinct non-zero tokens of X [n, d].

    NaN without a pair.
    """
    # Tokens may differ by more than the root of the range of floats: each is scaled first.
    size = np.abs(X).max(axis=1, initial=0.0)
    units = X[size > 0] / size[size > 0][:, None]
    k = len(units)
    if k < 2:
        return math.nan, math.nan
    units = units / np.linalg.norm(units, axis=1)[:, None]
    cosines = np.clip(units @ units.T, -1.0, 1.0)[np.triu_indices(k, 1)]
    return float(cosines.mean()), float(cosines.min())


def effective_rank(X: Array) -> float:
    """exp of the entropy of the normalised singular values of X [n, d]; NaN for X = 0."""
    sigma = np.linalg.svd(X, compute_uv=False)
    total = float(sigma.sum())
    if total == 0.0:
        return math.nan
    p = sigma[sigma > 0] / total
    return float(np.exp(-(p * np.log(p)).sum()))
