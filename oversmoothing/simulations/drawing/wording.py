"""Numbers in words and tables, and what a notebook shows of a result.

No positive ratio is written as 0, no 0 with a sign.
"""

import math
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from oversmoothing.theory.numbers.rounding import ratio_text

if TYPE_CHECKING:
    import pandas as pd


def factor_text(log: float, digits: int = 3) -> str:
    """The factor with this natural logarithm."""
    return ratio_text(math.exp(log) if abs(log) < 700 else None, log, digits)


def signed(value: float, digits: int = 2, kind: str = "f") -> str:
    """A change with its sign, which what is written as 0 has not: '+0.31', '-0.02', '0.00'."""
    text = f"{value:+.{digits}{kind}}"
    return text[1:] if float(text) == 0 else text


def in_column(name: str, number: Callable[[float], str]) -> Callable[[float], str]:
    """`number` for the cells of a column: '-' for none, no sign in front of zeros, and where the
    column is HFC/LFC itself no zeros for what is positive."""

    def word(value: float) -> str:
        if math.isnan(value):
            return "-"
        text = number(value)
        if not math.isfinite(value) or float(text) != 0:
            return text
        if value > 0 and name.startswith("HFC/LFC"):
            return f"{value:.2g}"
        return text.lstrip("+-")

    return word


def formatters(frame: Any, number: Callable[[float], str]) -> dict[str, Any]:
    """`in_column` for each column of floats of a pandas table."""
    return {name: in_column(str(name), number) for name in frame.select_dtypes("floating")}


def plain_table(rows: "pd.DataFrame", number: Callable[[float], str] | None) -> str:
    """A table as text without a frame; `number` words a float."""
    cells = formatters(rows, number) if number else None
    return str(rows.to_string(index=False, formatters=cells, na_rep="-"))


# Rows of a table that is shown.
ROWS = 9


def as_html(words: str, table: "pd.DataFrame") -> str:
    """The words as a paragraph, the table under it: what a notebook shows."""
    cells: Any = formatters(table, "{:.3f}".format)
    return f"<p>{escape(words)}</p>{table.to_html(index=False, formatters=cells, na_rep='-')}"


def few(count: int) -> list[int]:
    """At most `ROWS` of the numbers below count: evenly spaced, with the first and the last."""
    step = max(1, math.ceil((count - 1) / (ROWS - 1)))
    return sorted({*range(0, count, step), count - 1})
