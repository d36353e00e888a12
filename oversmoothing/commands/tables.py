"""Tables: drawn by rich for a reader at a terminal, plain text for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def table_text(frame: pd.DataFrame, number: Callable[[float], str] | None = None) -> str:
    """The table without its index; `number` words a float, '-' stands for one that is missing."""
    if not sys.stdout.isatty():
        return str(frame.to_string(index=False, float_format=number, na_rep="-"))
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    drawn = Table(header_style="bold")
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        drawn.add_column(str(name), justify="right" if numeric else "left")
    for row in frame.itertuples(index=False):
        drawn.add_row(*(_cell(value, number) for value in row))
    console = Console()
    with console.capture() as capture:
        console.print(drawn)
    return capture.get().rstrip("\n")


def _cell(value: object, number: Callable[[float], str] | None) -> str:
    from rich.markup import escape

    if isinstance(value, float):
        return "-" if value != value else number(value) if number else f"{value}"
    return escape(str(value))
