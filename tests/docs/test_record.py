"""The record of all claims: complete without a script, filtered with one; and a claim as folded."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from oversmoothing.theory.proofs.claim import Status, cited
from oversmoothing.theory.proofs.evidence import Counterexample
from oversmoothing.theory.proofs.ledger import claims
from tests.support.browser import DESKTOP, PHONE, opened
from tests.support.processes import python

DOCS = Path(__file__).resolve().parents[2] / "docs"
CLAIMS = claims()
HEADS = ["claim", "about", "says", "status", "words of", "evidence"]
CONF = f"""
import sys
sys.path[:0] = [{str(DOCS / "_extensions")!r}]
extensions = ["mathml_renderer", "claims", "record"]
html_math_renderer = "mathml"
html_static_path = [{str(DOCS / "_static")!r}]
html_css_files = ["book.css"]
html_js_files = [("book.js", {{"defer": "defer"}})]
html_theme = "basic"
smartquotes = False
"""
# A page beside the record folds in these, to which the record must link.
FOLDED = "N-2604.23681-"
PROVE = f"oversmoothing prove {FOLDED}"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record as a book of two pages has it."""
    source = tmp_path_factory.mktemp("book")
    (source / "conf.py").write_text(CONF, "utf-8")
    (source / "card.rst").write_text(f"Card\n====\n\n.. claims:: {FOLDED}\n\n   {PROVE}\n", "utf-8")
    text = "Record\n======\n\n.. claim-record::\n\n.. toctree::\n\n   card\n"
    (source / "index.rst").write_text(text, "utf-8")
    done = python("-m", "sphinx", "-q", "-W", source, source / "html")
    assert done.returncode == 0, done.stderr
    return source / "html" / "index.html"


@pytest.fixture(scope="module")
def plain(chromium: Browser, path: Path) -> list[dict[str, str]]:
    """The rows as a browser without scripts shows them, by head."""
    with opened(chromium, path, java_script_enabled=False) as work:
        assert work.page.locator("form.record-filter").count() == 0
        heads = work.page.locator("table.claim-record thead th").all_inner_texts()
        assert heads == HEADS
        cells = work.page.locator("table.claim-record tbody td").all_inner_texts()
    step = len(HEADS)
    return [dict(zip(HEADS, cells[k : k + step], strict=True)) for k in range(0, len(cells), step)]


def shown(page: Page) -> list[list[str]]:
    """The cells of the rows that a reader sees."""
    found: list[list[str]] = page.evaluate(
        "() => [...document.querySelectorAll('table.claim-record tbody tr')]"
        ".filter((row) => row.offsetParent !== null)"
        ".map((row) => [...row.cells].map((cell) => cell.textContent.trim()))"
    )
    return found


def test_without_a_script_every_claim_has_its_row(plain):
    for (name, claim), row in zip(CLAIMS.items(), plain, strict=True):
        assert row["claim"] == name and row["status"] == str(claim.on_record)
        chapter = re.match(r"T\d+", name)
        assert row["about"] == (chapter.group() if chapter else cited(name))
        assert row["evidence"] and len(row["says"]) > 15


def test_a_refuted_statement_shows_its_numbers_and_what_holds_instead(plain):
    for claim, row in zip(CLAIMS.values(), plain, strict=True):
        refuted = bool(claim.on_record and claim.on_record.refuted)
        assert ("Counterexample: " in row["says"]) == refuted
        assert ("What holds instead: " in row["says"]) == bool(claim.repaired_by)
        assert (claim.repaired_by or "") in row["says"]
        for evidence in claim.evidence:
            if isinstance(evidence, Counterexample):  # its numbers, whatever signs they are set in
                digits = [c for c in evidence.numbers if c.isdigit()]
                assert "".join(digits) in "".join(c for c in row["says"] if c.isdigit())
        # No row may pass our reading off as the paper's words.
        assert row["words of"] in {"the paper", "our reading", "ours", "its source"}
        assert (row["words of"] == "the paper") == (claim.on_record is Status.REFUTED_WORDS)
        if row["words of"] == "its source":
            assert "our reading" not in claim.source + claim.statement


def test_the_record_counts_what_it_refutes_by_whose_words_they_are(chromium, path):
    refuted = [claim for claim in CLAIMS.values() if claim.on_record and claim.on_record.refuted]
    own = sum(claim.on_record is Status.REFUTED_WORDS for claim in refuted)
    without = sum("our reading, without" in claim.wording for claim in refuted)
    with opened(chromium, path, java_script_enabled=False) as work:
        text = " ".join(work.page.locator("body").inner_text().split())
    assert (
        f"{len(refuted)} refuted ({own} in the paper's own words, {len(refuted) - own} of our "
        f"reading). {without} of our readings leave out a condition that the paper makes"
    ) in text
    assert 0 < without < len(refuted) - own
    assert f"The record has {len(CLAIMS)} claims" in text


def test_a_name_in_the_record_leads_to_its_claim_and_opens_it(chromium, path):
    name = f"{FOLDED}linear-rank"
    with opened(chromium, path) as work:
        links = work.page.locator(f"table.claim-record a[href='card.html#{name}']")
        assert links.count() >= 2  # of its own row, and of the one that it repairs
    with opened(chromium, path.parent / "card.html", f"#{name}") as work:
        folded = work.page.locator("details.claim")
        opened_ones = [folded.nth(k).get_attribute("open") is not None for k in range(2)]
        assert folded.count() == 2 and sorted(opened_ones) == [False, True]
        body = work.page.locator(f"[id='{name}'] .claim-body")
        assert body.locator("math").count() >= 1
        text = body.inner_text()
        for part in ("Source:", "run it: oversmoothing prove", "written in oversmoothing/theory"):
            assert part in text
        assert work.complaints == []


def test_the_fields_leave_the_rows_that_fit(chromium, path):
    with opened(chromium, path) as work:
        page = work.page
        assert len(shown(page)) == len(CLAIMS)
        page.get_by_label("search", exact=True).fill("sinkhorn REFUTED")
        left = shown(page)
        assert 0 < len(left) < len(CLAIMS)
        assert all("sinkhorn" in " ".join(row).lower() for row in left)
        assert page.locator("form.record-filter output").inner_text() == (
            f"{len(left)} of {len(CLAIMS)} claims"
        )
        page.get_by_label("search", exact=True).fill("")
        page.get_by_label("status", exact=True).select_option("written")
        page.get_by_label("about", exact=True).select_option("Yu and Zhang 2023")
        wanted = [name for name, claim in CLAIMS.items()
                  if "2312.06182" in name and claim.on_record is Status.WRITTEN]  # fmt: skip
        assert [row[0] for row in shown(page)] == wanted
        page.get_by_label("about", exact=True).select_option("T2")
        page.get_by_label("status", exact=True).select_option("")
        assert {row[0][:2] for row in shown(page)} == {"T2"}
        page.get_by_label("evidence", exact=True).select_option("checked by Coq")
        assert shown(page) and all("checked by Coq" in row[5] for row in shown(page))
        page.get_by_label("search", exact=True).fill("no statement says this")
        assert shown(page) == []
        assert work.complaints == [] and work.outside() == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_fields_have_labels_and_the_page_no_faults_of_access(chromium, path, size):
    with opened(chromium, path, size=size) as work:
        places = [fault for fault in work.faults() if "record" in fault or "label" in fault]
        assert places == []
