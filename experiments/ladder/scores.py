"""How well predicted changes of log HFC/LFC fit the measured ones.

Pooled R^2 is flattered by the layers' means, which a table of means gets right; R^2 within layers
removes each layer's calibration mean, so that P0' (those means) is its zero. Intervals are over
images, which are the independent observations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from oversmoothing.theory.support.errors import InputError

Array = NDArray[np.float64]

RESAMPLES = 500


@dataclass(frozen=True)
class Score:
    """One predictor on held-out images; each interval is the 95 % one of a bootstrap over images.

    r2: 1 - SSE / sum (y - mean y)^2 over all images and layers. r2_within: 1 - SSE / sum (y -
    calibration mean of the layer)^2. sign: share of equal signs. spearman: rank correlation over
    all pairs. spearman_within: its mean over layers, each across images (NaN where the prediction
    is one number a layer). skill_means and skill_spectral: 1 - SSE / SSE of P0' (the same number
    as r2_within) and of P0''.
    """

    r2: float
    r2_low: float
    r2_high: float
    r2_within: float
    r2_within_low: float
    r2_within_high: float
    sign: float
    sign_low: float
    sign_high: float
    spearman: float
    spearman_within: float
    skill_means: float
    skill_spectral: float


def score(
    measured: Array,
    predicted: Array,
    layer_means: Array,
    spectral: Array | None = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Score:
    """Score predicted [m, layers] against measured [m, layers] changes of log HFC/LFC.

    layer_means [layers]: means over the calibration images. spectral [m, layers]: the predictions
    of P0''. Raises `InputError` for other shapes or numbers that are not finite.
    """
    if predicted.shape != measured.shape or layer_means.shape != measured.shape[1:]:
        raise InputError(
            f"predictions {predicted.shape} and layer means {layer_means.shape} for measurements "
            f"{measured.shape}: they must be [m, layers], [layers] and [m, layers]"
        )
    if not (np.isfinite(measured).all() and np.isfinite(predicted).all()):
        raise InputError("a change of log HFC/LFC is not finite: leave that image or rung out")
    m = len(measured)
    errors = np.square(measured - predicted).sum(1)
    within = np.square(measured - layer_means).sum(1)
    agree = (np.sign(measured) == np.sign(predicted)).mean(1)
    draws = np.random.default_rng(seed).integers(0, m, (resamples, m))
    total = np.array([_spread(measured[draw]) for draw in draws])
    sums = errors[draws].sum(1)
    return Score(
        _one_minus(float(errors.sum()), _spread(measured)),
        *_resampled(sums, total),
        _one_minus(float(errors.sum()), float(within.sum())),
        *_resampled(sums, within[draws].sum(1)),
        float(agree.mean()),
        *_interval(agree[draws].mean(1)),
        _spearman(measured.ravel(), predicted.ravel()),
        float(np.mean([_spearman(y, p) for y, p in zip(measured.T, predicted.T, strict=True)])),
        _one_minus(float(errors.sum()), float(within.sum())),
        _one_minus(float(errors.sum()), float(np.square(measured - spectral).sum()))
        if spectral is not None
        else float("nan"),
    )


def _spread(values: Array) -> float:
    return float(np.square(values - values.mean()).sum())


def _one_minus(errors: float, whole: float) -> float:
    """1 - errors / whole; NaN where there is nothing to explain."""
    return 1.0 - errors / whole if whole > 0 else float("nan")


def _resampled(errors: Array, whole: Array) -> tuple[float, float]:
    pairs = zip(errors.tolist(), whole.tolist(), strict=True)
    return _interval(np.array([_one_minus(a, b) for a, b in pairs]))


def _interval(values: Array) -> tuple[float, float]:
    found = values[np.isfinite(values)]
    if not len(found):
        return float("nan"), float("nan")
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def _spearman(y: Array, p: Array) -> float:
    """Rank correlation, ties at mean ranks; NaN for a constant."""
    a, b = rankdata(y), rankdata(p)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt(np.square(a).sum() * np.square(b).sum()))
    return float(a @ b) / size if size > 0 else float("nan")
