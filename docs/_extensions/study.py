"""```{study-found} digits```: the recorded study, its hypotheses with their intervals and verdicts,
then a table of means ± sd for each study. Made from the recorded runs when the book is built."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from oversmoothing.experiments.study.recorded_results import RecordedStudy, recorded_study
from oversmoothing.experiments.study.study_tables import shown

HEADS = ("hypothesis", "measure", "difference", "95 % interval", "seeds", "verdict")


def hypotheses(found: RecordedStudy) -> list[tuple[str, ...]]:
    """A row a hypothesis, in the order of HEADS."""
    return [
        (
            f"{row.name}: {row.says}",
            str(row.measure),
            f"{row.difference:+.3g}",
            f"[{row.low:+.3g}, {row.high:+.3g}]",
            str(row.seeds),
            str(row.verdict),
        )
        for row in found.judged().itertuples(index=False)
    ]


def means(found: RecordedStudy, study: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads of a study's table and its rows; what there is no value of is a dash."""
    table = shown(study, found.table(study))
    rows = [
        tuple("–" if cell == "" or cell != cell else str(cell) for cell in row)
        for row in table.itertuples(index=False, name=None)
    ]
    return tuple(table.columns), rows


class StudyFound(SphinxDirective):
    """The recorded study of one data set."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Where it came from, its hypotheses, its tables."""
        found = recorded_study(self.arguments[0])
        made = found.made
        words = (
            f"Recorded {made['date']}: {len(found.runs)} runs, {made['hours_of_training']} hours "
            f"of training on one core each, torch {made['versions']['torch']}, "
            f"{made['platform']}, {made['device']}."
        )
        result: list[nodes.Node] = [
            nodes.paragraph(text=words),
            _table(HEADS, hypotheses(found), "study-judged"),
        ]
        for study in found.studies:
            result += [nodes.rubric(text=study), _table(*means(found, study), "study-means")]
        return result


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
    for cell in cells:
        row += nodes.entry("", nodes.paragraph(text=cell))
    return row


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("study-found", StudyFound)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
