"""What every figure of the paper shares: its contract, its style and how its files are written.

A figure is a module with NAME, TITLE, data, draw and caption. `make_figure` computes its table
once, draws from the table alone and writes four files side by side: NAME.pdf and NAME.png (the
picture), NAME.csv (every number in it) and NAME.txt (the caption, with the verdict in words,
computed from the table). The same input gives the same bytes: no date enters a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Protocol

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from oversmoothing.simulations.drawing.picture import (
    PALETTE,
    VERDICT_COLOUR,
    FigureFiles,
    new_figure,
    page_width,
    style,
    write_figure,
    write_kinds,
)
from oversmoothing.simulations.engine.problem import choose_device
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
    """The contract of a figure: a module with these five names.

    For the report it has two more: SHORT, its caption in two sentences, and NOT_SHOWN, what a
    reader must not take from it. A figure of the paper has `compared`, from the table to what the
    paper reports beside ours, with verdicts (`comparison.py`).
    """

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
            fontsize="large",
        )


def make_figure(module: FigureModule, context: Context, out: Path) -> FigureFiles:
    """Compute, draw and write one figure: NAME.pdf, NAME.png, NAME.csv and NAME.txt in `out`.

    Raises what the figure raises; `InputError` where the folder cannot be written.
    """
    return write_figure(*_made(module, context, out))


def make_kinds(
    module: FigureModule, context: Context, out: Path, kinds: Sequence[str], page: str
) -> list[Path]:
    """As `make_figure`, with the picture as some of 'pdf', 'png' and 'svg', for a page.

    page: 'one-column' or 'two-column'. Returns the paths.
    """
    with page_width(page):
        return write_kinds(*_made(module, context, out), kinds)


def _made(
    module: FigureModule, context: Context, out: Path
) -> tuple[Figure, pd.DataFrame, str, Path, str]:
    folder = output_folder(out)
    table = module.data(context)
    caption = module.caption(table)
    with style():
        figure = module.draw(table)
    return figure, table, caption, folder / module.NAME, module.TITLE
