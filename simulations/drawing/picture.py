"""How every picture of the project looks: colours that all eyes tell apart, one style, no LaTeX."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from oversmoothing.theory.support.files import write_together
from oversmoothing.theory.verdict.outcome import Outcome

PNG_DPI = 150
FULL_WIDTH = 7.0  # inches: the text width of a two-column page

# Okabe and Ito (2008): told apart under every common form of colour blindness and in grey.
PALETTE: dict[str, str] = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "orange": "#E69F00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#8A8A8A",
    "light": "#DDDDDD",
}

# One colour per verdict, the same in every figure.
VERDICT_COLOUR: dict[str, str] = {
    Outcome.SMOOTHING: PALETTE["blue"],
    Outcome.NON_SMOOTHING: PALETTE["vermillion"],
    Outcome.TIE: PALETTE["green"],
    Outcome.TRIVIAL: PALETTE["grey"],
    Outcome.UNDEFINED: PALETTE["grey"],
    Outcome.UNDECIDED: PALETTE["orange"],
}

STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "mathtext.fontset": "dejavusans",
    "text.usetex": False,
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "figure.titlesize": 10.0,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "pdf.fonttype": 42,  # TrueType, so that text stays text
    "svg.hashsalt": "oversmoothing",
    "axes.unicode_minus": True,
}


@contextmanager
def style() -> Iterator[None]:
    """The house style for artists created within; nothing global is left behind."""
    with mpl.rc_context(STYLE):
        yield


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = FULL_WIDTH,
    height: float = 2.6,
    **subplots: Any,
) -> tuple[Figure, NDArray[np.object_]]:
    """A figure in the house style and its axes, always an array [rows, columns].

    width, height in inches. Further keywords go to `Figure.subplots`. Constrained layout keeps
    labels from overlapping. Uses the Agg canvas and no pyplot state.
    """
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
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
    figure: Figure, table: pd.DataFrame, caption: str, stem: Path, title: str
) -> FigureFiles:
    """The files of `figure_contents`, written together: a failure leaves the earlier four."""
    return FigureFiles(*write_together(figure_contents(figure, table, caption, stem, title)))


def figure_contents(
    figure: Figure, table: pd.DataFrame, caption: str, stem: Path, title: str
) -> dict[str | os.PathLike[str], str | bytes]:
    """The picture as STEM.pdf and STEM.png, its table as STEM.csv, its caption as STEM.txt.

    No date enters a file: the same input gives the same bytes.
    """
    files = FigureFiles(*(stem.with_suffix(f".{kind}") for kind in FigureFiles._fields))
    return {
        files.csv: table.to_csv(index=False),
        files.txt: caption.strip() + "\n",
        files.png: rendered(figure, "png", {"Title": title, "Software": None}),
        files.pdf: rendered(figure, "pdf", {"Title": title, "CreationDate": None, "ModDate": None}),
    }


def rendered(
    figure: Figure, kind: str, metadata: dict[str, str | None], dpi: int = PNG_DPI
) -> bytes:
    """The bytes of a picture in the house style."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def png(figure: Figure, dpi: int = 130) -> bytes:
    """A picture for a page, without a date or a version in it."""
    return rendered(figure, "png", {"Software": None}, dpi)
