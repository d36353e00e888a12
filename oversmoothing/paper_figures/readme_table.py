"""The table of README: every figure with its command, minutes and verdicts, from a run's record.

`reproduce` writes RESULTS/verdicts.csv: a row a comparison with the paper, and one for a figure
that has none. The record of one run is kept in the package, and the table is made from it:

    python -m oversmoothing.paper_figures.readme_table RESULTS   # takes that run's record
    python -m oversmoothing.paper_figures.readme_table           # writes README's table again
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from oversmoothing.paper_figures import figure
from oversmoothing.paper_figures.figure_base import UNCHECKED, Comparison, counted
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text, write_atomically

RECORD = Path(__file__).resolve().parent / "verdicts.csv"
README = RECORD.parents[2] / "README.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEADER = "| figure | `figures` | minutes of a core | the paper | ours | verdict |"


def record(drawn: Mapping[str, tuple[float, Sequence[Comparison]]]) -> pd.DataFrame:
    """A row a comparison; drawn: seconds of processor time and comparisons by figure."""
    parts = []
    for name, (seconds, comparisons) in drawn.items():
        rows = (
            pd.DataFrame(comparisons).drop(columns="interval")
            if comparisons
            else pd.DataFrame([{"verdict": "ours"}])
        )
        rows.insert(0, "seconds", round(seconds))
        rows.insert(0, "title", figure(name).title)
        rows.insert(0, "figure", name)
        parts.append(rows)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


_WORDS = [key for key in Comparison.__dataclass_fields__ if key != "interval"]


def markdown(table: pd.DataFrame) -> str:
    """The table of README from a record: a row a figure, with its first decided comparison."""
    lines = [HEADER, "|---|---|---|---|---|---|"]
    for name, part in table.fillna("").groupby("figure", sort=False):
        first = part.iloc[0]
        minutes = first["seconds"] / 60
        cells = ["", "", "ours alone"]
        if first["verdict"] != "ours":
            comparisons = [
                Comparison(**{key: str(row[key]) for key in _WORDS}) for _, row in part.iterrows()
            ]
            decided = [each for each in comparisons if each.verdict != UNCHECKED]
            shown = (decided or comparisons)[0]
            cells = [f"{shown.paper} ({shown.what})", shown.ours, counted(comparisons)]
        spent = f"{minutes:.0f}" if minutes >= 1 else "< 1"
        row = [str(first["title"]), f"`{name}`", spent, *cells]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |")
    return "\n".join(lines)


def with_table(text: str, table: str) -> str:
    """README's text with the table between its marks. Raises `InputError` where they are not."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise InputError(f"README has no place for the table: {BEGIN} and {END}, once each")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}"


def main(arguments: Sequence[str]) -> None:
    """Take the record of the run in the folder given, if any; write README's table."""
    for folder in arguments[:1]:
        write_atomically(RECORD, read_text(Path(folder) / "verdicts.csv"))
    table = markdown(pd.read_csv(RECORD))
    write_atomically(README, with_table(read_text(README), table))
    print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
