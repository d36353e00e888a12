"""A report as one page of HTML that needs no other file."""

from __future__ import annotations

import base64
from importlib import resources
from typing import Any

import pandas as pd
from jinja2 import Environment

from oversmoothing.experiments.inspection.report_columns import CONVENTIONS
from oversmoothing.experiments.inspection.token_clusters import shortened
from oversmoothing.theory.support.provenance import provenance

# Clusters of an input after a layer that the page lists, and letters of each; report_words.csv has
# all.
LISTED, LETTERS = 4, 240


def page(report: Any, picture: bytes, tokens: str | bytes | None) -> str:
    """HTML of a `Report` with the verdict, the tables, the pictures (PNG) and the conventions."""
    source = resources.files("oversmoothing.experiments.inspection") / "report_page.html"
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    merged = report.merged
    if not merged.empty:
        merged = merged[merged["cluster"] < LISTED]
        merged = merged.assign(words=[shortened(words, LETTERS) for words in merged["words"]])
    return environment.from_string(source.read_text("utf-8")).render(
        report=report,
        said=report.said(),
        narrow=_cells(report.short_table()),
        wide=_cells(report.short_table(wide=True)),
        picture=base64.b64encode(picture).decode("ascii"),
        tokens=base64.b64encode(tokens).decode("ascii") if isinstance(tokens, bytes) else "",
        merged=merged.to_dict("records"),
        conventions=CONVENTIONS,
        provenance=provenance(),
    )


def _cells(table: pd.DataFrame) -> dict[str, Any]:
    """The titles of the columns, and the rows as text."""
    rows = table.to_dict("records")
    return {
        "titles": list(table.columns),
        "rows": [[_cell(str(title), value) for title, value in row.items()] for row in rows],
    }


def _cell(title: str, value: float) -> str:
    if title == "layer":
        return str(int(value))
    return "–" if pd.isna(value) else f"{value:.3f}".replace("-", "−")
