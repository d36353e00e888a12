"""The record of statements on papers: complete without a script, filtered with one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from oversmoothing.theory.proofs.claim import Status
from oversmoothing.theory.proofs.evidence import Counterexample
from oversmoothing.theory.proofs.ledger import claims
from tests.support.browser import DESKTOP, PHONE, browser, opened

DOCS = Path(__file__).resolve().parents[2] / "docs"
ON_PAPERS = {name: claim for name, claim in claims().items() if not name.startswith("T")}
HEADS = [
    "paper",
    "version",
    "statement",
    "wording",
    "status",
    "region",
    "counterexample",
    "what holds instead",
    "command",
]
CONF = f"""
import sys
sys.path[:0] = [{str(DOCS / "_extensions")!r}]
extensions = ["mathml_renderer", "claims", "record"]
html_math_renderer = "mathml"
html_static_path = [{str(DOCS / "_static")!r}]
html_theme = "basic"
smartquotes = False
"""
# A page beside the record has the card of one claim, to which the record must link.
CARD = "N-2604.23681-linear-rank"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record as a book of two pages has it."""
    source = tmp_path_factory.mktemp("book")
    (source / "conf.py").write_text(CONF, "utf-8")
    (source / "card.rst").write_text(f"Card\n====\n\n.. claim:: {CARD}\n", "utf-8")
    text = "Record\n======\n\n.. claim-record::\n\n.. toctree::\n\n   card\n"
    (source / "index.rst").write_text(text, "utf-8")
    built = source / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(source), str(built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built / "index.html"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def plain(chromium: Browser, path: Path) -> list[dict[str, str]]:
    """The rows as a browser without scripts shows them, by head."""
    with opened(chromium, path, java_script_enabled=False) as work:
        assert work.page.locator("form.record-filter").count() == 0
        heads = work.page.locator("table.claim-record thead th").all_inner_texts()
        assert heads == HEADS
        cells = work.page.locator("table.claim-record tbody td").all_inner_texts()
    step = len(HEADS)
    starts = range(0, len(cells), step)
    return [dict(zip(HEADS, cells[k : k + step], strict=True)) for k in starts]


def shown(page: Page) -> list[list[str]]:
    """The cells of the rows that a reader sees."""
    found: list[list[str]] = page.evaluate(
        "() => [...document.querySelectorAll('table.claim-record tbody tr')]"
        ".filter((row) => row.offsetParent !== null)"
        ".map((row) => [...row.cells].map((cell) => cell.textContent.trim()))"
    )
    return found


def test_without_a_script_every_statement_on_a_paper_has_its_row(
    plain: list[dict[str, str]],
) -> None:
    for (name, claim), row in zip(ON_PAPERS.items(), plain, strict=True):
        assert row["statement"].startswith(f"{name}: ")
        assert " ".join(claim.statement.split()) in " ".join(row["statement"].split())
        assert row["status"] == str(claim.on_record)
        assert row["command"] == f"oversmoothing prove {name}"
        assert all(hypothesis.words in row["region"] for hypothesis in claim.hypotheses)
        assert row["paper"].removeprefix("arXiv ") in name or "2026" in row["paper"]


def test_a_refuted_statement_shows_its_numbers_and_what_holds_instead(
    plain: list[dict[str, str]],
) -> None:
    for claim, row in zip(ON_PAPERS.values(), plain, strict=True):
        refuted = bool(claim.on_record and claim.on_record.refuted)
        assert bool(row["counterexample"]) == refuted
        assert row["what holds instead"] == (claim.repaired_by or "")
        for evidence in claim.evidence:
            if isinstance(evidence, Counterexample):
                assert evidence.numbers in row["counterexample"]
        # Whose words, and what of the paper's hypotheses a refutation has.
        assert not refuted or row["wording"].endswith(claim.wording[-60:])
        # No row may pass our reading off as the paper's words.
        words = row["wording"].split(" (")[0]
        assert words in {"the paper's words", "our reading", "ours", "as its source has it"}
        assert (words == "the paper's words") == (claim.on_record is Status.REFUTED_WORDS)
        if words == "as its source has it":
            assert "our reading" not in claim.source + claim.statement


def test_the_record_counts_what_it_refutes_by_whose_words_they_are(
    chromium: Browser, path: Path
) -> None:
    refuted = [claim for claim in ON_PAPERS.values() if claim.on_record and claim.on_record.refuted]
    own = sum(claim.on_record is Status.REFUTED_WORDS for claim in refuted)
    without = sum("our reading, without" in claim.wording for claim in refuted)
    with opened(chromium, path, java_script_enabled=False) as work:
        text = " ".join(work.page.locator("body").inner_text().split())
    assert (
        f"{len(refuted)} refuted ({own} in the paper's own words, {len(refuted) - own} of our "
        f"reading); {without} of the readings leave out a condition that the paper makes"
    ) in text
    assert 0 < without < len(refuted) - own


def test_a_name_in_the_record_leads_to_its_card(chromium: Browser, path: Path) -> None:
    with opened(chromium, path) as work:
        links = work.page.locator(f"table.claim-record a[href='card.html#{CARD}']")
        assert links.count() >= 2  # of its own row, and of the one that it repairs


def test_the_fields_leave_the_rows_that_fit(chromium: Browser, path: Path) -> None:
    with opened(chromium, path) as work:
        page = work.page
        assert len(shown(page)) == len(ON_PAPERS)
        page.get_by_label("words", exact=True).fill("sinkhorn REFUTED")
        left = shown(page)
        assert 0 < len(left) < len(ON_PAPERS)
        assert all("sinkhorn" in " ".join(row).lower() for row in left)
        assert page.locator("form.record-filter output").inner_text() == (
            f"{len(left)} of {len(ON_PAPERS)} statements"
        )
        page.get_by_label("words", exact=True).fill("")
        page.get_by_label("status", exact=True).select_option("written")
        page.get_by_label("paper", exact=True).select_option("arXiv 2312.06182")
        wanted = [
            name
            for name, claim in ON_PAPERS.items()
            if "2312.06182" in name and claim.on_record is Status.WRITTEN
        ]
        assert [row[2].split(": ")[0] for row in shown(page)] == wanted
        page.get_by_label("wording", exact=True).select_option("ours")
        assert all(row[3].startswith("ours") for row in shown(page))
        page.get_by_label("words", exact=True).fill("no statement says this")
        assert shown(page) == []
        assert work.complaints == [] and work.outside() == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_fields_have_labels_and_the_page_no_faults_of_access(
    chromium: Browser, path: Path, size: tuple[int, int]
) -> None:
    with opened(chromium, path, size=size) as work:
        places = [fault for fault in work.faults() if "record" in fault or "label" in fault]
        assert places == []
