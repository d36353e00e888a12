"""How time and peak memory grow with n, d, L and the number of points: exponents, measured.

Each size is run in a fresh process, forked from a server that has loaded the libraries, so that the
peak of its resident memory (getrusage) is its own. One thread. An exponent is the slope of a least
squares line through (log size, log value), with its standard error.
"""

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from oversmoothing.experiments.threads import one_thread
from oversmoothing.paper_figures.costs.timing import in_fresh_process, peak_mib, timed

# Growth of the peak below this is allocation noise: no exponent is fitted to it.
RESOLUTION_MIB = 4.0
QUANTITIES = ("seconds", "MiB")
_REPEATS = 5


@dataclass(frozen=True)
class Series:
    """One line of the picture: what is run, which size varies, and the exponents in theory.

    run(size, repeats) returns seconds. time, memory: expected exponents for large sizes.
    """

    name: str
    variable: str
    sizes: tuple[int, ...]
    run: Callable[[int, int], float]
    time: float
    memory: float


def _inputs(n: int, d: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    A = rng.random((n, n))
    A /= A.sum(axis=1, keepdims=True)
    H = rng.standard_normal((d, d))
    H *= 0.5 / math.sqrt(d)
    return {"A": A, "H": H, "X0": rng.standard_normal((n, d))}


def _seconds(run: Callable[[], object], repeats: int) -> float:
    """The least of the repeats: what others do on the machine only adds."""
    return min(timed(run)[0] for _ in range(repeats))


def _evolve(n: int, d: int, depth: int, repeats: int, method: str) -> float:
    from oversmoothing.simulations.engine.evolve import evolve

    given = _inputs(n, d)
    return _seconds(lambda: evolve(**given, depth=[depth], method=method, device="cpu"), repeats)


def _layer(n: int, d: int, repeats: int) -> float:
    """Seconds of one more layer: the setup cancels. NaN where noise exceeds the difference."""
    few = 8
    more = few + max(32, round(4e8 / (2 * n * d * (n + d))))
    runs = [_evolve(n, d, depth, repeats, "plain") for depth in (few, more)]
    return (runs[1] - runs[0]) / (more - few) if runs[1] > runs[0] else math.nan


def _sweep(size: int, repeats: int) -> float:
    from oversmoothing.simulations.sweep.config import make_config
    from oversmoothing.simulations.sweep.runner import run_sweep

    config = make_config(
        {"axes": {"seed": {"from": 0, "to": size - 1, "steps": size}}, "fixed": {"n": 32, "d": 16}}
    )

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()):
            run_sweep(config, Path(folder))

    return _seconds(run, 1)


SERIES = (
    Series("one more layer, d = 16", "n", (128, 256, 512, 1024),
           lambda n, k: _layer(n, 16, k), 2.0, 2.0),
    Series("one more layer, n = 16", "d", (128, 256, 512, 1024),
           lambda d, k: _layer(16, d, k), 2.0, 2.0),
    Series("plain, n = 32, d = 16", "L", (1000, 4000, 16000, 64000),
           lambda L, k: _evolve(32, 16, L, k, "plain"), 1.0, 0.0),
    Series("closed form, n = 32, d = 16", "L", (1000, 4000, 16000, 64000),
           lambda L, k: _evolve(32, 16, L, k, "closed_form"), 0.0, 0.0),
    Series("sweep, n = 32, d = 16", "points", (50, 100, 200, 400), _sweep, 1.0, 0.0),
)  # fmt: skip


def _measured(index: int, size: int) -> tuple[float, float]:
    series = SERIES[index]
    with one_thread():
        series.run(min(series.sizes) // 8, 1)  # what loads on first use is loaded
        before = peak_mib()
        return series.run(size, _REPEATS), max(0.0, peak_mib() - before)


def measure_one(index: int, size: int) -> tuple[float, float]:
    """(seconds, MiB by which the peak grew) of SERIES[index] at that size, in its own process.

    Raises `RequirementError` where the process dies.
    """
    return in_fresh_process(_measured, index, size)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Slope of log value against log size and its standard error (n - 2 degrees of freedom).

    NaN where a value is NaN or not positive, or of fewer than two sizes; the error is NaN for two.
    """
    x, y = np.log(np.asarray(sizes, float)), np.asarray(values, float)
    if len(x) < 2 or not (y > 0).all():
        return math.nan, math.nan
    y = np.log(y)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    if len(x) == 2:
        return slope, math.nan
    rest = y - y.mean() - slope * centred
    return slope, float(np.sqrt(rest @ rest / (len(x) - 2) / (centred @ centred)))


def measure(progress: bool = False) -> pd.DataFrame:
    """One row a series, quantity and size; about a minute on two quiet cores.

    Columns: series, variable, quantity ('seconds' or 'MiB'), size, value, exponent and
    exponent_error (repeated; NaN for memory whose growth stays below RESOLUTION_MIB), expected.
    """
    work = [(k, size) for k, series in enumerate(SERIES) for size in series.sizes]
    with tqdm(work, disable=None if progress else True, file=sys.stderr, unit="size") as bar:
        found = {(k, size): measure_one(k, size) for k, size in bar}
    return pd.DataFrame(
        row
        for k, series in enumerate(SERIES)
        for place, quantity in enumerate(QUANTITIES)
        for row in rows(series, quantity, [found[k, size][place] for size in series.sizes])
    )


def rows(series: Series, quantity: str, values: list[float]) -> list[dict[str, Any]]:
    """The rows of `measure` for one series and quantity, from the values at its sizes."""
    seen = quantity == "seconds" or max(values) >= RESOLUTION_MIB
    slope, error = exponent(series.sizes, values) if seen else (math.nan, math.nan)
    common = {"series": series.name, "variable": series.variable, "quantity": quantity}
    fit = {
        "exponent": slope,
        "exponent_error": error,
        "expected": series.time if quantity == "seconds" else series.memory,
    }
    return [
        common | {"size": size, "value": value} | fit
        for size, value in zip(series.sizes, values, strict=True)
    ]
