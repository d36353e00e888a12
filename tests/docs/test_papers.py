"""The chapters on papers: what they send a reader to is there."""

import re
from pathlib import Path

import pytest

from oversmoothing.theory.proofs.claim import PAPERS as PAPERS_OF

PAPERS = Path(__file__).resolve().parents[2] / "docs" / "papers"
CHAPTERS = sorted(PAPERS.glob("*.md"))
# Where the papers that the project began with have a table, with the headings above it.
TABLES = {"dovonon": 2, "attention": 1, "graphs": 1, "clustering": 1}


@pytest.mark.parametrize(("page", "count"), TABLES.items())
def test_a_paper_says_what_became_of_it_and_by_which_command_one_sees_it(page, count):
    text = (PAPERS / f"{page}.md").read_text("utf-8")
    tables = text.split("| it says | what became of it | seen by |\n|---|---|---|\n")[1:]
    assert len(tables) == count
    for table in tables:
        rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()]
        assert len(rows) >= 4 and all(len(row) in (2, 3) for row in rows)
        seen = [row for row in rows if len(row) == 3 and "`oversmoothing " in row[2]]
        # What no command shows is said not to be repeated.
        assert all("not repeated" in row[1] for row in rows if row not in seen)


def test_every_paper_on_record_is_named_with_its_year_and_linked():
    text = "".join(page.read_text("utf-8") for page in CHAPTERS)
    headings = " ".join(re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    for number, (authors, title) in PAPERS_OF.items():
        assert f"https://arxiv.org/abs/{number}" in text, number
        assert authors.split()[0] in headings and authors[-4:] in headings, authors
        assert title.split(",")[0].replace(" transformers", "")[:24].lower() in headings.lower()
