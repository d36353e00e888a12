"""Two regressions with penalties chosen inside the calibration set: ridge and kernel ridge."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist, pdist
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

Predictor = Callable[[Array], Array]

RIDGE_PENALTIES = tuple(10.0**k for k in range(-3, 6))
KERNEL_SCALES = (2.0, 8.0, 32.0)
KERNEL_PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FOLDS = 5


def ridge(X: Array, Y: Array, penalties: tuple[float, ...] = RIDGE_PENALTIES) -> Predictor:
    """Ridge regression of Y [m, t] on X [m, p] (standardised); a penalty for each target.

    The penalty is the one of the least leave-one-out error, exactly.
    Raises `InputError` for fewer than two observations.
    """
    if len(X) < 2:
        raise InputError(f"{len(X)} observations cannot be regressed: give at least 2")
    fitted = make_pipeline(
        StandardScaler(), RidgeCV(np.array(penalties), alpha_per_target=Y.shape[1] > 1)
    )
    fitted.fit(X, Y)

    def predict(Z: Array) -> Array:
        found: Array = fitted.predict(Z).reshape(len(Z), -1)
        return found

    return predict


@dataclass(frozen=True)
class Block:
    """Features [m, p] of one kind and their weight in the kernel's squared distance."""

    values: Array
    weight: float = 1.0


def kernel_ridge(
    blocks: list[Block],
    Y: Array,
    targets: list[Block],
    sources: NDArray[np.int_],
    *,
    scales: tuple[float, ...] = KERNEL_SCALES,
    penalties: tuple[float, ...] = KERNEL_PENALTIES,
) -> Array:
    """Kernel ridge predictions [q, t] at `targets` (the same blocks at q other points).

    Kernel exp(-D / (scale median D)), D the sum over blocks of weight^2 times the mean squared
    difference of standardised features. Scale and penalty are chosen for each target by FOLDS-fold
    cross-validation. sources [m]: the image each of the m observations came from: altered copies
    of one image stay in one fold, and only the first observation of each source counts in the
    error.
    """
    X, Z = _scaled(blocks, targets)
    original = np.zeros(len(X), dtype=bool)
    original[np.unique(sources, return_index=True)[1]] = True
    median = float(np.median(pdist(X[original], "sqeuclidean"))) if original.sum() > 1 else 1.0
    median = median if median > 0 else 1.0
    # Consecutive ranks and not the numbers themselves: no fold is empty unless images are few.
    rank = np.searchsorted(np.unique(sources), sources)
    folds = rank % min(FOLDS, int(original.sum()))
    D, E = (cdist(points, X, "sqeuclidean") / median for points in (X, Z))
    means = Y[original].mean(0)
    choices = [(scale, penalty) for scale in scales for penalty in penalties]
    errors = np.zeros((len(choices), Y.shape[1]))
    for k, (scale, penalty) in enumerate(choices):
        K = np.exp(-D / scale)
        for fold in np.unique(folds):
            test = (folds == fold) & original
            train = folds != fold
            if not train.any():
                continue
            weights = _solve(K[np.ix_(train, train)], penalty, Y[train] - means)
            errors[k] += np.square(K[np.ix_(test, train)] @ weights + means - Y[test]).sum(0)
    best = np.argmin(errors, axis=0)
    found = np.empty((len(Z), Y.shape[1]))
    for k in np.unique(best):
        scale, penalty = choices[k]
        weights = _solve(np.exp(-D / scale), penalty, Y - means)
        chosen = best == k
        found[:, chosen] = (np.exp(-E / scale) @ weights + means)[:, chosen]
    return found


def kernel_cost(blocks: list[Block], observations: int, targets: int) -> int:
    """Multiply-adds of one prediction: distances to and sums over the observations."""
    features = sum(int(block.values.shape[1]) for block in blocks)
    return observations * (features + targets)


def _solve(K: Array, penalty: float, Y: Array) -> Array:
    factor = cho_factor(K + penalty * np.eye(len(K)), check_finite=False)
    found: Array = cho_solve(factor, Y, check_finite=False)
    return found


def _scaled(blocks: list[Block], targets: list[Block]) -> tuple[Array, Array]:
    left, right = [], []
    for block, target in zip(blocks, targets, strict=True):
        factor = block.weight / (_size(block.values) * block.values.shape[1] ** 0.5)
        left.append((block.values - block.values.mean(0)) * factor)
        right.append((target.values - block.values.mean(0)) * factor)
    return np.concatenate(left, axis=1), np.concatenate(right, axis=1)


def _size(X: Array) -> Array:
    """Standard deviations, 1 for a constant (it then counts for nothing)."""
    sd = X.std(0)
    found: Array = np.where(sd > 1e-12 * (np.abs(X).max(0) + 1e-300), sd, 1.0)
    return found
