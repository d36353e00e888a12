"""```{study-answers}```: every question of the study with its answer, from the recorded rows, then
the means behind it. ```{study-power}```: what the planned seeds can decide. Made
when the book is built."""

from __future__ import annotations

import math
from typing import Any

from claims import plain
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from oversmoothing.experiments.study.answers import (
    MEASURES,
    answers,
    recorded_rows,
    rounded,
    spreads,
)

HEADS = ("question", "decision", "asked", "seen", "95 % interval", "seeds", "p (Holm)")
MEANS = ("cell", "seeds", "error", "bits", "cos", "alignment", "head_negative", "hfc_lfc")


def cell(value: Any, form: str = "{:.3g}") -> str:
    """A number as it is shown; a dash where there is none."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else form.format(value)
    return str(value)


def answered(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row a question, in the order of HEADS."""
    made = []
    for row in answers(rows).table.to_dict("records"):
        value, low, high = row["value"], row["low"], row["high"]
        unit = MEASURES.get(row["measure"], (None, row["measure"]))[1]
        ends = [rounded(each, low, high) for each in (low, high)]
        made.append(
            (
                row["question"],
                row["decision"] + ("" if row["primary"] else " (exploratory)"),
                row["says"],
                "–" if math.isnan(value) else f"{rounded(value, low, high)} {unit}",
                "–" if math.isnan(low) else f"[{', '.join(ends)}]",
                f"{row['seeds']} of {row['planned']}",
                cell(row["p_holm"]),
            )
        )
    return made


class StudyAnswers(SphinxDirective):
    """The questions with their answers, and folded the means."""

    def run(self) -> list[nodes.Node]:
        """What was recorded, the answers, the means."""
        rows = recorded_rows()
        found = answers(rows)
        details = found.details
        words = (
            f"{details['runs']} of {details['planned_runs']} planned runs are on record "
            f"({details['core_hours']} core-hours; {', '.join(details['dates']) or 'no date'})."
        )
        result: list[nodes.Node] = [
            nodes.paragraph(text=words),
            _table(HEADS, answered(rows), "study-judged"),
        ]
        if "means" in found.tables:
            means = found.tables["means"].rows[list(MEANS)].to_dict("records")
            shown = [tuple(cell(row[name]) for name in MEANS) for row in means]
            result += [nodes.rubric(text="Means"), _table(MEANS, shown, "study-means")]
        return result


class StudyPower(SphinxDirective):
    """How far beyond its end a truth must lie to be decided."""

    def run(self) -> list[nodes.Node]:
        """The table of `oversmoothing study spreads`."""
        frame = spreads(recorded_rows()).table
        rows = [tuple(cell(each) for each in row) for row in frame.itertuples(index=False)]
        return [_table(tuple(frame.columns), rows, "study-means")]


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]], kind: str) -> nodes.Node:
    table = nodes.table(classes=["study-table", kind])
    group = nodes.tgroup(cols=len(heads))
    table += group
    group += [nodes.colspec(colwidth=1) for _ in heads]
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += _row(heads)
    for row in rows:
        body += _row(row)
    return table


def _row(cells: tuple[str, ...]) -> nodes.row:
    row = nodes.row()
    for each in cells:
        row += nodes.entry("", nodes.paragraph("", "", plain(each)))
    return row


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("study-answers", StudyAnswers)
    app.add_directive("study-power", StudyPower)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
