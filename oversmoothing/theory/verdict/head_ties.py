"""What a head leaves of X_0 where its exact eigenvalues 0 lead alone: the part on which W is 0."""

import numpy as np

from oversmoothing.theory.numbers.bounded import Bounded
from oversmoothing.theory.numbers.rounding import UNIT, gamma, inflated, upper_product
from oversmoothing.theory.spectra.discs import Failure, enclose
from oversmoothing.theory.spectra.layer_discs import core_within
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.verdict.disc_tokens import ratio_of


def left_alone(X: Bounded, W_V: Array, W_proj: Array) -> Bounded | None:
    """X - X W_V G^-1 W_proj, G = W_proj W_V: the part of X that the head leaves as it is.

    None where G is not proved to be regular: with S ~ G^-1 and D = I - S G, G^-1 is within
    |D| / (1 - |D|) |S| of S (Frobenius norms).
    """
    core, error = core_within(W_V, W_proj, UNIT)
    try:
        S = np.linalg.inv(core)
    except np.linalg.LinAlgError:
        return None
    r, d = W_proj.shape
    with np.errstate(all="ignore"):
        defect = np.abs(np.eye(r) - S @ core) + upper_product(
            np.abs(S), error + gamma(r + 2) * np.abs(core)
        )
        size = float(inflated(np.asarray(np.linalg.norm(defect)), r * r + 8))
        if not size < 0.5:
            return None
        off = float(inflated(np.asarray(size / (1 - size) * np.linalg.norm(S)), r * r + 8))
        A, B, C = np.abs(X.value), np.abs(W_V), np.abs(W_proj)
        # Each product rounds, and each factor is known to half a unit in its last place.
        wide = 3 * gamma(d + 2 * r + 8)
        change = (
            A @ B @ (wide * np.abs(S) + off) @ C * (1 + wide) + X.error @ B @ (np.abs(S) + off) @ C
        )
        error = inflated(change + X.error + wide * A, 3 * d + 3 * r + 16)
    return Bounded(X.value - X.value @ W_V @ S @ W_proj, error)


def rank_at_least(X: Bounded, rank: int) -> bool:
    """Whether every matrix within X [n, d] has that rank: the discs of its Gram matrix say."""
    M, off = X.value.real, X.error
    if len(M) > M.shape[1]:
        M, off = M.T, off.T
    size = np.abs(M)
    gram = M @ M.T
    wide = upper_product(size, off.T) + upper_product(off, size.T + off.T)
    wide = inflated(wide + gamma(M.shape[1] + 2) * (size @ size.T), M.shape[1] + 8)
    found = enclose((gram + gram.T) / 2, wide + np.abs(gram - gram.T))
    if isinstance(found, Failure):
        return False
    free = np.abs(found.centres) > found.radii * (1 + 8 * UNIT)
    # A component of which every disc is free of 0 holds as many eigenvalues that are not 0.
    bad = np.unique(found.component[~free])
    return int(np.count_nonzero(~np.isin(found.component, bad))) >= rank


def tokens_differ(X: Bounded) -> bool:
    """Whether some two tokens of X [n, d] differ for certain."""
    away = np.abs(X.value[1:] - X.value[0])
    return bool((away > (X.error[1:] + X.error[0]) * (1 + 8 * UNIT)).any())


def ratio_of_state(X: Bounded) -> float | None:
    """HFC/LFC of X [n, d], where its bounds leave a number."""
    n, middle = len(X.value), X.value.mean(axis=0)
    off = X.error.mean(axis=0) + gamma(n + 2) * np.abs(X.value).mean(axis=0)
    mean = Bounded(middle, inflated(off, n + 4))
    spread = X.value - middle
    error = inflated(X.error + mean.error + UNIT * np.abs(spread), 4)
    return ratio_of(Bounded(spread.ravel(), error.ravel()), mean, n)
