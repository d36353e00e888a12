"""Every 95 % interval of the experiments: which one, and from how many independent inputs on.

Independent are the inputs (images, texts) or the seeds, not their layers or tokens. Below FEWEST
inputs there is no interval: a resampling of two or three values repeats them, and a t interval of
them rests on normality alone. Three seeds of a study are asked by `mean_interval(..., fewest=2)`,
which is legal, wide, and said with its number. Ends are NaN where there is no interval. The one
rank correlation stands here too, and the medians of times taken in turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from oversmoothing.theory.support.sizes import Array

# Independent inputs below which no interval is given.
FEWEST = 5
RESAMPLES = 2000
NAN = float("nan")
# The 97.5 % point of the standard normal distribution.
Z95 = 1.959963984540054


def share_interval(share: float, inputs: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share in [0, 1] averaged over `inputs` independent inputs.

    The cases of one input (its layers) depend on each other. Whatever their dependence, a quantity
    in [0, 1] with mean p has a variance of at most p (1 - p), so counting inputs and not cases
    as trials never makes the interval too short; and it is not empty at 0 or 1.
    """
    if inputs < FEWEST:
        return NAN, NAN
    z2 = Z95**2 / inputs
    return _lower_end(share, z2), 1.0 - _lower_end(1.0 - share, z2)


def _lower_end(p: float, z2: float) -> float:
    """The smaller root of (1 + z2) x^2 - (2 p + z2) x + p^2, from the larger one: no cancellation,
    so that the end never leaves [0, p]."""
    larger = (p + z2 / 2 + float(np.sqrt(z2 * (p * (1 - p) + z2 / 4)))) / (1 + z2)
    return p * p / ((1 + z2) * larger)


def mean_interval(
    values: NDArray[np.float64] | Sequence[float], fewest: int = FEWEST, confidence: float = 0.95
) -> tuple[float, float, float]:
    """(mean, low, high) over the first axis of values [m], by Student's t with m - 1 degrees.

    NaN (an undefined metric of some input) and infinity are kept, not dropped. Below `fewest`
    values the ends are NaN.
    """
    ends = mean_intervals(np.asarray(values)[None], fewest, confidence)
    mean, low, high = (float(each[0]) for each in ends)
    return mean, low, high


def named(name: str, ends: Iterable[Any]) -> dict[str, Any]:
    """(mean, low, high) as the columns NAME, NAME_low and NAME_high of a table."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def mean_intervals(
    values: Array, fewest: int = FEWEST, confidence: float = 0.95
) -> tuple[Array, Array, Array]:
    """`mean_interval` of every row of values [k, m], each [k]."""
    m = values.shape[1]
    mean = values.mean(1) if m else np.full(len(values), NAN)
    if m < max(2, fewest):
        return mean, np.full_like(mean, NAN), np.full_like(mean, NAN)
    with np.errstate(invalid="ignore"):
        reach = float(stdtrit(m - 1, (1 + confidence) / 2)) * values.std(1, ddof=1) / m**0.5
        reach = np.where(np.isfinite(mean), reach, NAN)
        return mean, mean - reach, mean + reach


def resampled_interval(
    statistic: Callable[[NDArray[np.int_]], float], inputs: int, seed: int = 0
) -> tuple[float, float]:
    """`percentiles` of statistic(k), k [inputs]: numbers of whole inputs drawn with repetition."""
    if inputs < FEWEST:
        return NAN, NAN
    draws = np.random.default_rng(seed).integers(inputs, size=(RESAMPLES, inputs))
    return percentiles(np.array([statistic(k) for k in draws]), inputs)


def percentiles(values: Array, inputs: int) -> tuple[float, float]:
    """The ends of an interval from a statistic's values on resamples of so many inputs.

    The middle 95 % of them are too short for few inputs (of 5 normal values they cover the mean in
    84 of 100 draws): the ends lie as much farther out as Student's t lies beyond the normal
    ("expanded percentile", Hesterberg, Am. Stat. 69, 2015). NaN below FEWEST, where the statistic
    is undefined on one resample in forty or more, and where it is the same on all but for rounding:
    inputs that agree say nothing of others by being drawn again.
    """
    known = values[np.isfinite(values)]
    if inputs < FEWEST or len(known) <= 0.975 * len(values):
        return NAN, NAN
    if np.ptp(known) <= 1e-12 * np.abs(known).max():
        return NAN, NAN
    reach = stdtrit(inputs - 1, 0.975) * (inputs / (inputs - 1)) ** 0.5
    low, high = np.quantile(known, [ndtr(-reach), ndtr(reach)])
    return float(low), float(high)


def resampled_share(share: float, values: Array, inputs: int) -> tuple[float, float]:
    """`percentiles` of a share; at 0 and 1 Wilson's, since no resample leaves it there."""
    if share in (0.0, 1.0):
        return share_interval(share, inputs)
    return percentiles(values, inputs)


def rank_correlation(y: Array, p: Array) -> float:
    """Spearman's over all entries of two arrays, ties at mean ranks; NaN where one is constant."""
    # All of scipy.stats takes half a second to load.
    from scipy.stats import rankdata

    ranks = [rankdata(y), rankdata(p)]
    # scipy's own function takes most of the time of a bootstrap.
    return float(np.corrcoef(ranks)[0, 1]) if all(np.ptp(each) for each in ranks) else NAN


def in_words(
    low: float, high: float, number: int, form: Callable[[float], str], of: str = "input"
) -> str:
    """'95 % interval .12 to .31, 20 inputs', or that there is none and how many it takes."""
    counted = f"{number} {of}{'' if number == 1 else 's'}"
    if not np.isnan(low):
        return f"95 % interval {form(low)} to {form(high)}, {counted}"
    if number < FEWEST:
        return f"no interval: {counted}, at least {FEWEST} are needed"
    return f"no interval: it is undefined for some of {counted}, or they all agree"


def interleaved_medians(
    runs: Sequence[Callable[[], object]],
    repeats: int = 5,
    synchronise: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Median seconds of each, in turn A B A B ..., after one warm-up of each.

    synchronise is called before each clock reading (torch.cuda.synchronize on a GPU). clock:
    `time.process_time` counts what the process computes, however busy the machine.
    """
    times: list[list[float]] = [[] for _ in runs]
    for repeat in range(repeats + 1):
        for k, run in enumerate(runs):
            synchronise()
            start = clock()
            run()
            synchronise()
            if repeat:
                times[k].append(clock() - start)
    return [median(each) for each in times]
