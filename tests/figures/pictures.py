"""Pictures compared loosely: a figure against a small grey thumbnail of it that is on record.

Both are shrunk to WIDTH pixels and averaged over boxes of an eighth of that; the distance is the
largest difference of a box (of 255). The tolerance of a figure is SHARE of the least distance that
a fault makes, one panel without what is drawn in it or one legend less, and MOST at the most. When
this was chosen faults made 3.2 and more in every figure, another family of letters (serif) up to
3.5, and in each figure less than its tolerance.

    python -m tests.figures.pictures [NAME ...]   # takes them anew, after a figure was changed
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from oversmoothing.paper_figures import FIGURES, figure as figure_of
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.simulations.drawing.picture import rendered, style
from tests.figures.small import Tables, timed_by_a_law

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "thumbnails"
TOLERANCES = KEPT / "tolerances.json"
DPI, WIDTH, BOX, SHARE, MOST = 60, 128, 16, 0.75, 8.0

# Another version of matplotlib puts titles and legends some pixels off: a picture is compared with
# one that was kept under the pinned version alone.
PINNED = re.findall(r"^matplotlib==(\d+\.\d+)", (ROOT / "constraints.txt").read_text("utf-8"), re.M)
AS_KEPT = mpl.__version__.split(".")[:2] == PINNED[0].split(".")

Grey = NDArray[np.float64]
Fault = tuple[str, Callable[[Figure], Any]]


def drawn(name: str, table: pd.DataFrame, **changed: Any) -> Figure:
    """The figure of a table; changed: settings of matplotlib beside the house style."""
    with style(), mpl.rc_context(changed):
        figure: Figure = figure_of(name).draw(table)
    return figure


def shrunk(figure: Figure) -> Image.Image:
    """The thumbnail of a figure."""
    return thumbnail(Image.open(io.BytesIO(rendered(figure, "png", dpi=DPI))))


def thumbnail(picture: Image.Image) -> Image.Image:
    height = round(WIDTH * picture.height / picture.width)
    return picture.convert("L").resize((WIDTH, height), Image.Resampling.BOX)


def stored(name: str) -> Image.Image:
    return Image.open(KEPT / f"{name}.png")


def distance(a: Image.Image, b: Image.Image) -> float:
    """Of two thumbnails; infinite where they differ in size."""
    return float(np.abs(_boxes(a) - _boxes(b)).max()) if a.size == b.size else float("inf")


def _boxes(picture: Image.Image) -> Grey:
    grey = np.asarray(picture, dtype=float)
    rows, columns = (-(-length // BOX) for length in grey.shape)
    whole = np.full((rows * BOX, columns * BOX), 255.0)
    whole[: grey.shape[0], : grey.shape[1]] = grey
    found: Grey = whole.reshape(rows, BOX, columns, BOX).mean(axis=(1, 3))
    return found


def faults(figure: Figure) -> Iterator[Fault]:
    """What must be seen in a figure: a panel that is empty, a legend that is missing."""
    for k, axis in enumerate(figure.axes):
        if axis.has_data():
            yield f"panel {k} is empty", lambda each, k=k: _emptied(each, k)
        if axis.get_legend() is not None:
            yield f"panel {k} has no legend", lambda each, k=k: each.axes[k].get_legend().remove()
    for k in range(len(figure.legends)):
        yield f"legend {k} is missing", lambda each, k=k: each.legends[k].remove()


def _emptied(figure: Figure, k: int) -> None:
    axis = figure.axes[k]
    for artist in [*axis.lines, *axis.collections, *axis.patches, *axis.images, *axis.texts]:
        artist.remove()


def faulty(name: str, table: pd.DataFrame) -> Iterator[tuple[str, Image.Image]]:
    """(what is wrong, thumbnail) of the figure with each of its faults."""
    for words, make in faults(drawn(name, table)):
        figure = drawn(name, table)
        make(figure)
        yield words, shrunk(figure)


def take(name: str, table: pd.DataFrame) -> float:
    """Store the thumbnail of a figure. Returns its tolerance."""
    picture = shrunk(drawn(name, table))
    picture.save(KEPT / f"{name}.png", optimize=True)
    return min(MOST, SHARE * min(distance(picture, wrong) for _, wrong in faulty(name, table)))


def main(names: list[str]) -> None:
    """Take these, or all."""
    kept = json.loads(TOLERANCES.read_text("utf-8")) if TOLERANCES.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(Context(Path(folder), device="cpu", progress=False))
        tables.update(timed_by_a_law())
        for name in names or FIGURES:
            kept[name] = round(take(name, tables[name]), 1)
            print(name, kept[name])
    ordered = {name: kept[name] for name in FIGURES if name in kept}
    TOLERANCES.write_text(json.dumps(ordered, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
