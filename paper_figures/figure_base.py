"""What every figure of the paper shares: its contract, its style and how its files are written.

A figure is a module with NAME, TITLE, data, draw and caption. `make_figure` computes its table
once, draws from the table alone and writes four files side by side: NAME.pdf and NAME.png (the
picture), NAME.csv (every number in it) and NAME.txt (the caption, with the verdict in words,
computed from the table). The same input gives the same bytes: no date enters a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator
from numpy.typing import NDArray

from oversmoothing.simulations.drawing.picture import (
    PALETTE,
    VERDICT_COLOUR,
    FigureFiles,
    new_figure,
    style,
    write_figure,
)
from oversmoothing.simulations.engine.inputs import choose_device
from oversmoothing.theory.support.files import output_folder

__all__ = ["PALETTE", "VERDICT_COLOUR", "new_figure"]


@dataclass(frozen=True)
class Context:
    """What a figure may know besides its own code.

    results: folder of earlier results (JSON, CSV or Parquet), for figures that show experiments.
    seed: of every random number the figure draws. device: 'auto', 'cpu' or 'cuda'.
    progress: whether a bar may be shown on stderr.
    """

    results: Path
    seed: int = 0
    device: str = "auto"
    progress: bool = True

    @classmethod
    def checked(cls, results: Path, seed: int, device: str) -> Context:
        """With a device that is there and a folder that can be written. Raises `InputError`."""
        choose_device(device)
        return cls(output_folder(results), seed, device)


class FigureModule(Protocol):
    """The contract of a figure: a module with these five names."""

    NAME: str
    TITLE: str
    data: Callable[[Context], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    caption: Callable[[pd.DataFrame], str]


def label_panels(axes: NDArray[np.object_]) -> None:
    """Set a bold letter above the left end of each panel, row by row."""
    for letter, axis in zip(ascii_lowercase, axes.flatten().tolist(), strict=False):
        axis.annotate(
            letter,
            xy=(0.0, 1.0),
            xycoords="axes fraction",
            xytext=(-2, 4),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontweight="bold",
            fontsize=9.5,
        )


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


def make_figure(module: FigureModule, context: Context, out: Path) -> FigureFiles:
    """Compute, draw and write one figure: NAME.pdf, NAME.png, NAME.csv and NAME.txt in `out`.

    Raises what the figure raises; `InputError` where the folder cannot be written.
    """
    folder = output_folder(out)
    table = module.data(context)
    caption = module.caption(table)
    with style():
        figure = module.draw(table)
    return write_figure(figure, table, caption, folder / module.NAME, module.TITLE)
