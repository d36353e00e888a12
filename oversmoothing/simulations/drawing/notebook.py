"""What is shown of a result that is too long to be shown whole: its words and a short table."""

import math
from html import escape
from typing import Any

import pandas as pd

from oversmoothing.simulations.drawing.wording import formatters

# Rows of a table that is shown.
ROWS = 9


def as_html(words: str, table: pd.DataFrame | None = None, *, digits: int = 3) -> str:
    """The words as a paragraph, the table under it: what a notebook shows."""
    paragraph = f"<p>{escape(words)}</p>"
    if table is None:
        return paragraph
    cells: Any = formatters(table, f"{{:.{digits}f}}".format)
    return paragraph + str(table.to_html(index=False, formatters=cells, na_rep="-"))


def few(count: int) -> list[int]:
    """At most `ROWS` of the numbers below count: evenly spaced, with the first and the last."""
    step = max(1, math.ceil((count - 1) / (ROWS - 1)))
    return sorted({*range(0, count, step), count - 1})


def columns_of_run(table: pd.DataFrame) -> pd.DataFrame:
    """What is shown of the metrics of a run: the layer, log10 HFC/LFC, cosines and rank."""
    columns = {"layer": table["depth"], "log10 HFC/LFC": table["log_hfc_lfc"] / math.log(10.0)}
    if "predicted_log_hfc_lfc" in table:
        columns["predicted"] = table["predicted_log_hfc_lfc"] / math.log(10.0)
    columns |= {
        "cos mean": table["cos_mean"],
        "cos min": table["cos_min"],
        "eff. rank": table["effective_rank"],
    }
    return pd.DataFrame(columns)
