"""Axes over decades: ratios from their logarithms, however small, and layers up to any depth."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator


def plot_log(axis: Axes, depth: Any, natural_log: Any, **style_of_line: Any) -> None:
    """Draw natural logarithms on a decade axis: y is log10, so that 1e-4000 is still drawn.

    Infinite and undefined values are left out (a gap), never clipped to a number.
    """
    y = np.asarray(natural_log, dtype=float) / np.log(10.0)
    y = np.where(np.isfinite(y), y, np.nan)
    axis.plot(depth, y, **style_of_line)


class _DecadeLocator(Locator):
    """Whole decades where the axis spans some, else 1, 2, 5 of each: few ticks, always round."""

    def __call__(self) -> list[float]:
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        span = vmax - vmin
        if span >= 1.8:
            ticks: Any = MaxNLocator(nbins=5, integer=True, min_n_ticks=2).tick_values(vmin, vmax)
        else:
            steps = [1.0, 2.0, 5.0] if span >= 0.6 else np.arange(1.0, 10.0, 0.2).tolist()
            if 0.2 < span < 0.6:
                steps = list(range(1, 10))
            decades = np.arange(np.floor(vmin), np.ceil(vmax) + 1)
            ticks = np.add.outer(decades, np.log10(steps)).ravel()
        return [float(t) for t in ticks if vmin - 1e-9 <= t <= vmax + 1e-9]


def _decade_label(value: float, _: int | None = None) -> str:
    whole = math.floor(value + 1e-9)
    mantissa = 10.0 ** (value - whole)
    power = abs(mantissa - 1.0) < 1e-6
    if -2 < value < 3.5:
        return f"{10.0**value:.3g}"
    return f"$10^{{{whole}}}$" if power else f"${mantissa:.2g}\\cdot 10^{{{whole}}}$"


def decade_axis(axis: Axes) -> None:
    """Label a y axis that carries log10 values with the numbers themselves (powers of ten)."""
    axis.yaxis.set_major_locator(_DecadeLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(_decade_label))
