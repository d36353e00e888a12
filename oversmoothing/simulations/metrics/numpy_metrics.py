"""The metrics of one state in numpy, for the workers of a sweep, which start without torch.

To eps, absolutely, which is all that the column of a sweep needs; what is relatively accurate near
collapse is `metrics`. HFC/LFC is theory's `ScaledState.log_hfc_lfc`.
"""

import math

import numpy as np

from oversmoothing.theory.depth.closed_form import ScaledState
from oversmoothing.theory.support.sizes import Array


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
