"""The chapters on papers: what they send a reader to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oversmoothing.commands import COMMANDS
from oversmoothing.theory.proofs.ledger import Ledger, claims

PAPERS = Path(__file__).resolve().parents[2] / "docs" / "papers"
CHAPTERS = sorted(PAPERS.glob("*.md"))
# The papers that the project began with.
SEEDS = ("2401-04301-v1", "2401-04301-v3", "2312-06182", "2605-25619", "2604-19028")
COMMAND = re.compile(r"`oversmoothing ([a-z-]+)((?: [^`]*)?)`")
LEDGER = Ledger(claims())


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.name)
def test_every_command_of_a_chapter_is_one_and_its_claims_are_on_record(page: Path) -> None:
    for command, rest in COMMAND.findall(page.read_text("utf-8")):
        assert command in COMMANDS
        for name in rest.split() if command == "prove" else ():
            if name != "NAME" and not name.startswith("-"):
                assert LEDGER.select([name]), name


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_paper_says_what_became_of_it_and_by_which_command_one_sees_it(seed: str) -> None:
    text = (PAPERS / f"arxiv-{seed}.md").read_text("utf-8")
    table = text.split("| it says | what became of it | seen by |\n|---|---|---|\n")[1]
    rows = [line.strip("| ").split(" | ") for line in table.split("\n\n")[0].splitlines()]
    assert len(rows) >= 4 and all(len(row) in (2, 3) for row in rows)
    seen = [row for row in rows if len(row) == 3 and COMMAND.search(row[2])]
    # What no command shows is said not to be repeated.
    assert all("not repeated" in row[1] for row in rows if row not in seen)


def test_every_paper_on_record_has_its_chapter_in_the_book() -> None:
    index = (PAPERS / "index.md").read_text("utf-8")
    tree = index.split("```{toctree}")[1].split("```")[0].split()
    assert {page.stem for page in CHAPTERS} - {"index"} <= set(tree)
