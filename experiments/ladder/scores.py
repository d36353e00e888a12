"""How well predicted changes of log HFC/LFC fit the measured ones.

Pooled R^2 is flattered by the layers' means, which a table of means gets right; R^2 within layers
removes each layer's calibration mean, so that P0' (those means) is its zero. Intervals are over
images, which are the independent observations.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import DegenerateDataWarning, bootstrap, spearmanr

from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

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
    errors = np.square(measured - predicted).sum(1)
    within = np.square(measured - layer_means).sum(1)
    agree = (np.sign(measured) == np.sign(predicted)).mean(1)
    centred = measured - measured.mean()
    layers = measured.shape[1]

    def pooled(e: Array, squares: Array, sums: Array, axis: int = -1) -> Array:
        spread = squares.sum(axis) - sums.sum(axis) ** 2 / (sums.shape[axis] * layers)
        return _one_minus(e.sum(axis), spread)

    def against(e: Array, other: Array, axis: int = -1) -> Array:
        return _one_minus(e.sum(axis), other.sum(axis))

    def interval(statistic: Callable[..., Array], *samples: Array) -> tuple[float, float]:
        return _interval(statistic, samples, resamples, np.random.default_rng(seed))

    images = errors, np.square(centred).sum(1), centred.sum(1)
    skill = float(against(errors, within))
    return Score(
        float(pooled(*images)),
        *interval(pooled, *images),
        skill,
        *interval(against, errors, within),
        float(agree.mean()),
        *interval(np.mean, agree),
        _spearman(measured.ravel(), predicted.ravel()),
        float(np.mean([_spearman(y, p) for y, p in zip(measured.T, predicted.T, strict=True)])),
        skill,
        float("nan")
        if spectral is None
        else float(against(errors, np.square(measured - spectral).sum(1))),
    )


def _one_minus(errors: Array, whole: Array) -> Array:
    """1 - errors / whole; NaN where there is nothing to explain."""
    return 1.0 - errors / np.where(whole > 0, whole, np.nan)


def _interval(
    statistic: Callable[..., Array],
    samples: tuple[Array, ...],
    resamples: int,
    random: np.random.Generator,
) -> tuple[float, float]:
    """95 % by the resamples for which the statistic is defined; NaN for one image."""
    if len(samples[0]) < 2:
        return float("nan"), float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # undefined for some resamples
        drawn = bootstrap(
            samples, statistic, paired=True, n_resamples=resamples, method="percentile",
            vectorized=True, random_state=random,
        ).bootstrap_distribution  # fmt: skip
    found = drawn[np.isfinite(drawn)]
    if not len(found):
        return float("nan"), float("nan")
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def _spearman(y: Array, p: Array) -> float:
    """Rank correlation, ties at mean ranks; NaN for a constant."""
    return float(spearmanr(y, p).statistic) if np.ptp(y) and np.ptp(p) else float("nan")
