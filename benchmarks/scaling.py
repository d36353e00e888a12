"""How time and memory grow with n, d, L and the number of points: exponents, measured.

Each size is run in a fresh process, forked from a server that has loaded the libraries, so that the
peak of its resident memory (getrusage) is its own. One thread.
"""

import math
import tempfile
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from benchmarks.benchmark import Row, measurement
from benchmarks.timing import in_fresh_process, peak_mib, timed
from oversmoothing.paper_figures.figures.costs import SERIES, Series, exponent, one_more_layer
from oversmoothing.simulations.state import one_thread
from oversmoothing.simulations.sweep.config import make_config
from oversmoothing.simulations.sweep.runner import run_sweep

# Growth of the peak below this is allocation noise: no exponent is fitted to it.
RESOLUTION_MIB = 4.0
_REPEATS = 5


def _sweep(size: int, repeats: int) -> float:
    config = make_config(
        {"axes": {"seed": {"from": 0, "to": size - 1, "steps": size}}, "fixed": {"n": 32, "d": 16}}
    )
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        return timed(lambda: run_sweep(config, Path(folder)))[0]


# The exponents of memory, in the order of the series.
EVERY = (
    *SERIES,
    Series("one more layer, n = 16", "d", (128, 256, 512, 1024),
           lambda d, k: one_more_layer(16, d, k), 2.0),
    Series("sweep, n = 32, d = 16", "points", (50, 100, 200, 400), _sweep, 1.0),
)  # fmt: skip
MEMORY = {"n": 2.0, "d": 2.0, "L": 0.0, "points": 0.0}


def _measured(index: int, size: int) -> tuple[float, float]:
    series = EVERY[index]
    with one_thread():
        series.run(min(series.sizes) // 8, 1)  # what loads on first use is loaded
        before = peak_mib()
        return series.run(size, _REPEATS), max(0.0, peak_mib() - before)


def measure_one(index: int, size: int) -> tuple[float, float]:
    """(seconds, MiB by which the peak grew) of EVERY[index] at that size, in its own process.

    Raises `RequirementError` where the process dies.
    """
    return in_fresh_process(_measured, index, size)


@measurement("scaling", "exponents of time and memory in n, d, L and points", pinned=False)
def exponents() -> list[Row]:
    """The exponents as rows that only compare: ratio is the exponent, not a quotient of times."""
    rows = []
    for k, series in enumerate(EVERY):
        seconds, mib = zip(*(measure_one(k, size) for size in series.sizes), strict=True)
        seen = max(mib) >= RESOLUTION_MIB
        for quantity, (slope, error), expected in (
            ("seconds", exponent(series.sizes, seconds), series.time),
            ("MiB", exponent(series.sizes, mib) if seen else (math.nan,) * 2,
             MEMORY[series.variable]),
        ):  # fmt: skip
            note = f"+- {error:.2f}, in theory {expected:g} for large {series.variable}"
            times = {}
            if quantity == "seconds":
                pairs = zip(series.sizes, seconds, strict=True)
                times = {f"{series.variable} = {size}": value for size, value in pairs}
            else:
                pairs = zip(series.sizes, mib, strict=True)
                note += "; " + ", ".join(f"{value:.1f} MiB at {size}" for size, value in pairs)
            name = f"exponent of {quantity} in {series.variable}: {series.name}"
            rows.append(Row(name, slope, times, note))
    return rows
