"""README's table of all figures is what the command makes of the record of a run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from oversmoothing.paper_figures import FIGURES, figure, readme_table
from oversmoothing.paper_figures.figure_base import VERDICTS, Context, number, unchecked
from oversmoothing.theory.support.errors import InputError


def test_readme_holds_what_the_command_writes() -> None:
    table = readme_table.markdown(pd.read_csv(readme_table.RECORD))
    text = readme_table.README.read_text("utf-8")
    assert readme_table.with_table(text, table) == text, (
        "run python -m oversmoothing.paper_figures.readme_table"
    )


def test_the_record_has_every_figure_and_its_verdicts() -> None:
    found = pd.read_csv(readme_table.RECORD)
    assert list(dict.fromkeys(found["figure"])) == list(FIGURES)
    for name, part in found.groupby("figure"):
        assert set(part["title"]) == {figure(str(name)).title}
        assert set(part["verdict"]) <= set(VERDICTS) or part["verdict"].tolist() == ["ours"]


def test_recorded_verdicts_are_those_of_today(tmp_path: Path) -> None:
    """Of the figures that need no trained model; those are held by their own tests."""
    kept = pd.read_csv(readme_table.RECORD).fillna("")
    for name in ("norm_signs", "tables_2_3"):
        own = figure(name)
        now = own.compared(own.data(Context(tmp_path, progress=False)))
        then = kept[kept["figure"] == name]
        assert [each.verdict for each in now] == then["verdict"].tolist(), name
        assert [each.paper for each in now] == then["paper"].tolist(), name


def test_a_row_shows_the_first_comparison_that_was_decided() -> None:
    found = readme_table.record(
        {
            "table_1": (61.0, [unchecked("a", "1", "why"), number("b", 2.0, 3.0, 0.1, "why")]),
            "costs": (5.0, []),
        }
    )
    lines = readme_table.markdown(found).splitlines()[2:]
    assert "| `table_1` | 1 | 2.00 (b) | 3.00 | 1 differs, 1 cannot be checked |" in lines[0]
    assert lines[1].endswith("| `costs` | < 1 |  |  | ours alone |")
    with pytest.raises(InputError, match="no place"):
        readme_table.with_table("text", "table")
