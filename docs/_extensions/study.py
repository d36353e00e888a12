"""```{study-found} digits```: the recorded study, its hypotheses with their intervals and verdicts,
then a table of means ± sd for each study. ```{starts-found} digits```: how far each H turned from
its start, beside its spectrum. Made from the recorded runs when the book is built."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from oversmoothing.experiments.models.model import START_UNKNOWN, start_spread
from oversmoothing.experiments.study.study_files import RecordedStudy, recorded_study
from oversmoothing.experiments.study.study_tables import in_words, shown
from oversmoothing.experiments.study.value_spectra import in_all, recorded_deit

STARTS = (
    "model", "seeds", "cos(H_start, H_end)", "in the disc as drawn", "in the disc, trained",
    "Re h < 0, trained",
)  # fmt: skip
START_SHARES = ("disc_at_start", "disc_at_end", "negative_at_end")
HEADS = ("hypothesis", "measure", "difference", "95 % interval", "seeds", "verdict")


def hypotheses(found: RecordedStudy) -> list[tuple[str, ...]]:
    """A row a hypothesis, in the order of HEADS."""
    return [
        (
            f"{row.name}: {row.says}" + (f" {row.note}" if row.note else ""),
            str(row.measure),
            f"{row.difference:+.3g}",
            f"[{row.low:+.3g}, {row.high:+.3g}]",
            str(row.seeds),
            str(row.verdict),
        )
        for row in found.judged().itertuples(index=False)
    ]


def starts(found: RecordedStudy) -> list[tuple[str, ...]]:
    """A row a kind of run that was trained once more, in the order of STARTS; then DeiT-Ti."""
    kinds = {run.name: in_words(run.choice) for run in found.chosen.runs(found.chosen.studies)}
    table = found.starts.assign(what=found.starts["run"].map(kinds))
    rows = [
        (
            str(what),
            str(part["seed"].nunique()),
            start_spread(part["cos_start"].tolist()),
            *(f"{100 * part[name].mean():.0f} %" for name in START_SHARES),
        )
        for what, part in table.groupby("what", sort=False)
    ]
    for row in in_all(recorded_deit()).to_dict("records"):
        where = "whole H" if row["H of"] == "whole" else "each head's H"
        norm = "as stored" if row["norm"] == "unfolded" else "the norm's gain folded in"
        shares = (f"{row[f'{name}, %']:.0f} %" for name in ("in the disc", "Re h < 0"))
        rows.append((f"DeiT-Ti, {where}, {norm}", "1", START_UNKNOWN, "–", *shares))
    return rows


def means(found: RecordedStudy, study: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads of a study's table and its rows; what there is no value of is a dash."""
    table = shown(study, found.table(study))
    rows = [
        tuple("–" if cell == "" or cell != cell else str(cell) for cell in row)
        for row in table.itertuples(index=False, name=None)
    ]
    return tuple(table.columns), rows


class StartsFound(SphinxDirective):
    """cos(H_start, H_end) and spectra, of the recorded study and of DeiT-Ti."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table."""
        return [_table(STARTS, starts(recorded_study(self.arguments[0])), "study-starts")]


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
    app.add_directive("starts-found", StartsFound)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
