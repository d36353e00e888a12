"""The page of `prove --out` in a real browser: the style of every page, and what was found."""

import re

import pytest

from oversmoothing import main
from tests.support.browser import DESKTOP, PHONE, opened

# A claim that holds, with two clauses and a formula, and one that is false.
FILE = r"""
from oversmoothing import Claim, by, draw, exact, given


def sums(A, H, X0):
    return all(sum(row) == 1 for row in A)


def small(A, H, X0):
    return all(2 * entry <= 1 for row in A for entry in row)


ROWS = Claim(
    name="rows",
    clauses=("||A|| <= 1 in the maximum norm.", "so 1 is an eigenvalue, h_1 -> 1"),
    latex=r"\sum_j A_{ij} = 1",
    hypotheses=(given.POSITIVE,),
    evidence=(by.written("by hand", "[1] The rows sum to 1. [2] A 1 = 1."), by.law(sums)),
    repaired_by="entries",
)
ENTRIES = Claim(
    name="entries",
    clauses=("No entry of A exceeds 1/2.",),
    hypotheses=(given.POSITIVE,),
    evidence=(by.law(small),),
)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledger")
    (folder / "mine.py").write_text(FILE)
    report = folder / "ledger.html"
    # One of them is refuted.
    assert main(["prove", str(folder / "mine.py"), "--out", str(report)]) == 1
    return report


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_can_read_it_and_it_asks_for_nothing(chromium, path, size, scheme):
    with opened(chromium, path, size=size, color_scheme=scheme) as work:
        work.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert work.page.locator("details:not([open])").count() == 0
        assert not work.faults() and not work.complaints and not work.outside()
        assert work.page.evaluate("() => document.documentElement.scrollWidth") <= size[0]


def test_it_shows_what_was_found_in_the_style_of_every_page(chromium, path):
    with opened(chromium, path, "#claim-entries") as work:
        web = work.page
        assert web.locator("#claim-entries").get_attribute("open") is not None
        shown = web.locator("body").inner_text()
        assert "refuted" in shown and "Counterexample" in shown and "fails" in shown
        # A clause stands once.
        assert web.locator("#claim-rows").inner_text().count("in the maximum norm") == 1
        assert "oversmoothing prove entries" not in shown  # it is of a file, no claim of the ledger
        assert "‖A‖ ≤ 1" in shown and "\\sum" not in shown and web.locator("math").count() == 1
        # One style: the colours of refuted and of links are the shared variables.
        edge, text = web.evaluate(
            "() => [getComputedStyle(document.querySelector('.claim.refuted')).borderLeftColor,"
            " getComputedStyle(document.documentElement).getPropertyValue('--sharpens')]"
        )
        assert edge == f"rgb({', '.join(str(int(text.strip()[k : k + 2], 16)) for k in (1, 3, 5))})"
        web.locator("#by-status").select_option("refuted")
        assert web.locator("#shown").inner_text() == "1 of 2 shown"
        web.locator("#by-words").fill("no-such-word")
        assert web.locator("#shown").inner_text() == "0 of 2 shown"


def test_links_lead_into_the_page(path):
    text = path.read_text("utf-8")
    places = set(re.findall(r' id="([^"]+)"', text))
    links = re.findall(r'href="#([^"]+)"', text)
    assert "claim-entries" in links and set(links) <= places
