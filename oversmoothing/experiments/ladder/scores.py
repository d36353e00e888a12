"""How well predicted changes of log HFC/LFC fit the measured ones.

Pooled R^2 is flattered by the layers' means, which a table of means gets right; R^2 within layers
removes each layer's calibration mean, so that P0' (those means) is its zero. Intervals are over
images, which are the independent observations.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from oversmoothing.experiments.intervals import NAN, RESAMPLES, percentiles, resampled_share
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array


@dataclass(frozen=True)
class Score:
    """One predictor on held-out images; each interval is the 95 % one of a bootstrap over
    `images` images (of `sign` at 0 and 1 Wilson's; NaN below FEWEST).

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
    images: int


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
    centred = measured - measured.mean()
    squares, sums = np.square(centred).sum(1), centred.sum(1)
    errors = np.square(measured - predicted).sum(1)
    within = np.square(measured - layer_means).sum(1)
    agree = (np.sign(measured) == np.sign(predicted)).mean(1)

    def pooled(k: NDArray[np.int_]) -> Array:
        """r2, r2_within and sign [3, ...] of the images k [..., m]."""
        e = errors[k].sum(-1)
        spread = squares[k].sum(-1) - sums[k].sum(-1) ** 2 / measured.size
        r2 = [_one_minus(e, spread), _one_minus(e, within[k].sum(-1))]
        return np.stack([*r2, agree[k].mean(-1)])

    images = len(measured)
    r2, skill, sign = pooled(np.arange(images)).tolist()
    drawn = np.random.default_rng(seed).integers(images, size=(resamples, images))
    values = pooled(drawn)
    return Score(
        r2,
        *percentiles(values[0], images),
        skill,
        *percentiles(values[1], images),
        sign,
        *resampled_share(sign, values[2], images),
        _spearman(measured.ravel(), predicted.ravel()),
        float(np.mean([_spearman(y, p) for y, p in zip(measured.T, predicted.T, strict=True)])),
        skill,
        NAN
        if spectral is None
        else float(_one_minus(errors.sum(), np.square(measured - spectral).sum())),
        images,
    )


def _one_minus(errors: Array, whole: Array) -> Array:
    """1 - errors / whole; NaN where there is nothing to explain."""
    return 1.0 - errors / np.where(whole > 0, whole, np.nan)


def _spearman(y: Array, p: Array) -> float:
    """Rank correlation, ties at mean ranks; NaN for a constant."""
    return float(spearmanr(y, p).statistic) if np.ptp(y) and np.ptp(p) else NAN
