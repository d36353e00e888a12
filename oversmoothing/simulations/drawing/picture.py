"""How every picture of the project looks: colours that all eyes tell apart, one style, no LaTeX.

Axes over decades carry ratios by their logarithms, however small, and layers up to any depth.
"""

import io
import logging
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator
from numpy.typing import NDArray

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import write_together
from oversmoothing.theory.verdict.formulas import Outcome

PNG_DPI = 150
FULL_WIDTH = 7.0  # inches: the text width of a two-column page
# The text of a page of one column is narrower; letters and lines shrink with it, to 6.7 points.
WIDTHS = {"one-column": 5.5, "two-column": FULL_WIDTH}
_page: ContextVar[str] = ContextVar("page", default="two-column")
# The kinds of picture file, each with what it would say of the date and the machine.
KINDS: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "ModDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}

# Okabe and Ito (2008): told apart under every common form of colour blindness and in grey.
PALETTE: dict[str, str] = {
    "blue": "#0072B2", "vermillion": "#D55E00", "green": "#009E73",
    "orange": "#E69F00", "purple": "#CC79A7", "sky": "#56B4E9",
    "black": "#000000", "grey": "#8A8A8A", "light": "#DDDDDD",
}  # fmt: skip

# One colour per verdict, the same in every figure.
VERDICT_COLOUR: dict[str, str] = {
    Outcome.SMOOTHING: PALETTE["blue"], Outcome.NON_SMOOTHING: PALETTE["vermillion"],
    Outcome.TIE: PALETTE["green"], Outcome.TRIVIAL: PALETTE["grey"],
    Outcome.UNDEFINED: PALETTE["grey"], Outcome.UNDECIDED: PALETTE["orange"],
}  # fmt: skip

STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "mathtext.fontset": "dejavusans", "text.usetex": False, "axes.unicode_minus": True,
    "font.size": 8.5, "axes.titlesize": 9.0, "axes.labelsize": 8.5, "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0, "legend.fontsize": 8.0, "figure.titlesize": 10.0,
    "axes.linewidth": 0.7, "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "axes.grid": True, "grid.color": "#E6E6E6", "grid.linewidth": 0.5,
    "lines.linewidth": 1.3, "lines.markersize": 3.5,
    "legend.frameon": False, "legend.handlelength": 1.8,
    "figure.facecolor": "white", "savefig.facecolor": "white",
    "pdf.fonttype": 42,  # TrueType, so that text stays text
    "svg.hashsalt": "oversmoothing",
}  # fmt: skip


@contextmanager
def style() -> Iterator[None]:
    """The house style for artists created within; nothing global is left behind."""
    smaller = WIDTHS[_page.get()] / FULL_WIDTH
    sized = {key: value * smaller for key, value in STYLE.items()
             if key.endswith(("size", "width")) and isinstance(value, float)}  # fmt: skip
    with mpl.rc_context(STYLE | sized):
        yield


@contextmanager
def page_width(name: str) -> Iterator[None]:
    """Figures created within fit the text of a page of 'one-column' or 'two-column'."""
    if name not in WIDTHS:
        raise InputError(f"no page '{name}'; there are {', '.join(WIDTHS)}")
    token = _page.set(name)
    try:
        yield
    finally:
        _page.reset(token)


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = FULL_WIDTH, height: float = 2.6,
    **subplots: Any,
) -> tuple[Figure, NDArray[np.object_]]:  # fmt: skip
    """A figure in the house style and its axes, always an array [rows, columns].

    width, height in inches on a page of two columns, less on one of one. Further keywords go to
    `Figure.subplots`. Constrained layout keeps labels from overlapping. Uses the Agg canvas and no
    pyplot state.
    """
    with style():
        smaller = WIDTHS[_page.get()] / FULL_WIDTH
        figure = Figure(figsize=(width * smaller, height * smaller), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    return figure, axes


class FigureFiles(NamedTuple):
    """Where the four files of one figure lie."""

    csv: Path
    txt: Path
    png: Path
    pdf: Path


def write_figure(
    figure: Figure, table: pd.DataFrame, caption: str, stem: Path, title: str,
    kinds: Sequence[str] = ("png", "pdf"),
) -> list[Path]:  # fmt: skip
    """The table as STEM.csv, the caption as STEM.txt, the picture as STEM.png, STEM.pdf (or other
    KINDS), written together: a failure leaves the earlier ones. Returns the paths, in this order.

    No date enters a file: the same input gives the same bytes.
    """
    contents: dict[str | os.PathLike[str], str | bytes] = {
        stem.with_suffix(".csv"): table.to_csv(index=False),
        stem.with_suffix(".txt"): caption.strip() + "\n",
    }
    for kind in dict.fromkeys(kinds):
        contents[stem.with_suffix(f".{kind}")] = rendered(figure, kind, title)
    return write_together(contents)


def rendered(figure: Figure, kind: str, title: str = "", dpi: int = PNG_DPI) -> bytes:
    """The bytes of a picture in the house style, without a date or a version in it."""
    buffer, named = io.BytesIO(), {"Title": title} if title else {}
    with style():
        # It warns of the date in a font.
        logging.getLogger("fontTools").setLevel(logging.ERROR)
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=named | KINDS[kind])
    return buffer.getvalue()


def png(figure: Figure) -> bytes:
    """A picture for a page."""
    return rendered(figure, "png", dpi=130)


def plot_log(axis: Axes, depth: Any, natural_log: Any, **style_of_line: Any) -> None:
    """Draw natural logarithms on a decade axis: y is log10, so that 1e-4000 is still drawn.

    Infinite and undefined values are left out (a gap), never clipped to a number.
    """
    y = np.asarray(natural_log, dtype=float) / np.log(10.0)
    y = np.where(np.isfinite(y), y, np.nan)
    axis.plot(depth, y, **style_of_line)


def band(axis: Axes, x: Any, low: Any, high: Any, colour: str) -> None:
    """Fill from low to high under a line of that colour: an interval, or a spread."""
    axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


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
            decades = np.arange(np.floor(vmin), np.ceil(vmax) + 1)
            coarse = [np.array([1.0, 2.0, 5.0])] * int(span >= 0.6)
            for steps in [*coarse, *(np.arange(1.0, 10.0, by) for by in (1.0, 0.2, 0.05))]:
                ticks = np.add.outer(decades, np.log10(steps)).ravel()
                if np.sum((vmin <= ticks) & (ticks <= vmax)) >= 2:
                    break
        return [float(t) for t in ticks if vmin - 1e-9 <= t <= vmax + 1e-9]


def _decade_label(value: float, _: int | None = None) -> str:
    whole = math.floor(value + 1e-9)
    mantissa = 10.0 ** (value - whole)
    power = abs(mantissa - 1.0) < 1e-6
    if -2 < value < 3.5:
        return f"{10.0**value:.3g}"
    if abs(value) in 10.0 ** np.arange(5, 19):
        return f"$10^{{{'-' if value < 0 else ''}10^{{{len(str(abs(whole))) - 1}}}}}$"
    return f"$10^{{{whole}}}$" if power else f"${mantissa:.2g}\\cdot 10^{{{whole}}}$"


def decade_axis(axis: Axes) -> None:
    """Label a y axis that carries log10 values with the numbers themselves (powers of ten)."""
    if axis.get_yscale() == "linear":
        axis.yaxis.set_major_locator(_DecadeLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(_decade_label))
