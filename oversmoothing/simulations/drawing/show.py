"""What a script ends with: its picture in a window or a notebook, or files with its numbers."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show(figure: Figure, table: Mapping[str, Sequence[Any]], out: Any = None) -> list[Path]:
    """Show a figure, or write it as PNG and PDF with its numbers as CSV beside.

    figure: of matplotlib. table: {column: values}, columns of one length. out: the folder, which is
    otherwise what `--out DIR` says on the command line of the script; without either the figure is
    shown, in a window or below the cell, and nothing is written. The files have the name of the
    script. Returns their paths. Raises `InputError` for columns of different lengths.

    >>> import tempfile, matplotlib.figure, oversmoothing
    >>> figure = matplotlib.figure.Figure()
    >>> _ = figure.subplots().plot([0, 1, 2], [1, 2, 4])
    >>> table = {"layer": [0, 1, 2], "size": [1, 2, 4]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.suffix for path in oversmoothing.show(figure, table, folder))
    ['.csv', '.pdf', '.png']
    """
    columns = {name: list(values) for name, values in table.items()}
    if len({len(values) for values in columns.values()}) > 1:
        lengths = {name: len(values) for name, values in columns.items()}
        raise InputError(f"the columns of the table have different lengths: {lengths}")
    if out is None:
        parser = argparse.ArgumentParser(add_help=False)
        parser.add_argument("--out")
        out = parser.parse_known_args()[0].out
    if out is None:
        import matplotlib.pyplot as plt

        # Elsewhere than in a window this prints a warning that nobody wants.
        if "agg" not in plt.get_backend().lower():
            plt.show()
        return []
    folder = output_folder(Path(out))
    name = Path(sys.argv[0]).stem if sys.argv[0].endswith(".py") else "figure"
    paths = [folder / f"{name}.{kind}" for kind in ("png", "pdf", "csv")]
    for path in paths[:2]:
        figure.savefig(path, dpi=150)
    held = io.StringIO()
    csv.writer(held, lineterminator="\n").writerows([columns, *zip(*columns.values(), strict=True)])
    write_atomically(paths[2], held.getvalue())
    return paths
