"""Tables, drawn by rich at a terminal and plain for a pipe, and the files of one simulated run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oversmoothing.simulations.drawing.wording import formatters, in_column

if TYPE_CHECKING:
    import pandas as pd

    from oversmoothing.simulations.drawing.result import Result


def table_text(frame: pd.DataFrame, number: Callable[[float], str] | None = None) -> str:
    """The table without its index; `number` words a float, '-' stands for one that is missing."""
    if not sys.stdout.isatty():
        words = formatters(frame, number) if number else None
        return str(frame.to_string(index=False, formatters=words, na_rep="-"))
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    drawn = Table(header_style="bold")
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        drawn.add_column(str(name), justify="right" if numeric else "left")
    for row in frame.itertuples(index=False):
        cells = zip(frame.columns, row, strict=True)
        drawn.add_row(*(_cell(value, number and in_column(name, number)) for name, value in cells))
    console = Console()
    with console.capture() as capture:
        console.print(drawn)
    return capture.get().rstrip("\n")


def _cell(value: object, number: Callable[[float], str] | None) -> str:
    from rich.markup import escape

    if isinstance(value, float):
        return "-" if value != value else number(value) if number else f"{value}"
    return escape(str(value))


def finish(result: Result, folder: Path, as_json: bool) -> None:
    """All files of a result in a folder, and its JSON on the output, or its tables and sentences.

    Raises `InputError` where a file cannot be written.
    """
    from oversmoothing.simulations.drawing.result_files import write
    from oversmoothing.theory.support.files import to_json

    written = write(result, folder)
    if as_json:
        print(to_json(result.to_json_object()), end="")
        return
    print(result.text(table_text))
    print(f"wrote {written[0]} (and {', '.join(path.name for path in written[1:])} beside it)")


def write_run(
    stem: Path,
    configuration: dict[str, Any],
    device: str,
    table: pd.DataFrame,
    found: dict[str, Any],
    words: str,
    *,
    plot: bool = False,
    log_rate: float | None = None,
) -> None:
    """The layers as STEM.csv, the record as STEM.json, and some of the layers with the words.

    plot: the picture as STEM.png and STEM.pdf too, with its caption STEM.txt; log_rate: the slope
    of log HFC/LFC that is predicted.
    """
    from oversmoothing.simulations.drawing.wording import columns_of_run, few
    from oversmoothing.simulations.provenance import provenance
    from oversmoothing.theory.support.files import to_json, write_together

    record = {"schema_version": 1, "configuration": configuration, "device": device}
    contents: dict[str | os.PathLike[str], str | bytes] = {
        stem.with_suffix(".csv"): table.to_csv(index=False),
        stem.with_suffix(".json"): to_json(record | found | provenance()),
    }
    if plot:
        from oversmoothing.simulations.drawing.depth_plot import caption, draw_run
        from oversmoothing.simulations.drawing.picture import figure_contents

        n, d = configuration["n"], configuration["d"]
        title = f"{stem.name}: {n} token{'s' * (n != 1)}, {d} feature{'s' * (d != 1)}"
        of = f"{title}, seed {configuration['seed']}"
        figure = draw_run(table, title, log_rate)
        said = caption(table, of, words, log_rate)
        contents |= figure_contents(figure, table, said, stem, title)
    csv, *more = write_together(contents)
    rows = columns_of_run(table).iloc[few(len(table))]
    print(f"{table_text(rows, '{:.6g}'.format)}\n\n{words}")
    print(f"wrote {csv} and {', '.join(str(path) for path in more)}")
