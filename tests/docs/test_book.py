"""The book as a browser shows it: links lead somewhere, nothing is cut off, no raw formulas.

It is built without running its cells and scripts, which `make docs` does: pages, links, formulas
and tables are what is asked about. A script draws a picture of its own; here each is blank.
"""

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

from tests.support.browser import opened
from tests.support.processes import python

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WIDE, PHONE = (1440, 900), (390, 844)
# What stands open and is wider than its place, or reaches beyond the window.
CLIPPED = """() => {
  for (const each of document.querySelectorAll("article details")) each.open = true;
  dispatchEvent(new Event("resize"));
  const found = [];
  const blocks = "pre, table, td, math, img, p, li, dd, summary, .formula, h1, h2, h3";
  for (const block of document.querySelectorAll(blocks.split(", ").map((b) => `article ${b}`))) {
    const box = block.getBoundingClientRect();
    if (!box.width || block.closest("[hidden], .visually-hidden")) continue;
    const inside = block.scrollWidth > block.clientWidth + 1 && block.clientWidth > 0;
    const inline = getComputedStyle(block).display.includes("inline") || block.tagName === "math";
    if ((inside && !inline) || box.right > innerWidth + 1 || box.left < -1)
      found.push(`${block.tagName} ${block.className}: ${block.textContent.trim().slice(0, 60)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push("the page itself");
  return found;
}"""
RAW = r"""() => {
  const found = [];
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (text.parentElement.closest("pre, code, math, script, .docutils.literal, .sig")) continue;
    const marks = "<=|>=|!=|\\^T|\\|\\||\\s\\(x\\)\\s|\\\\[a-z]+|\\b(?:rho|sigma|lambda)_";
    const raw = text.data.match(new RegExp(`.{0,30}(?:${marks}).{0,20}`));
    if (raw) found.push(raw[0]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages; a warning of the builder is an error."""
    out = tmp_path_factory.mktemp("book")
    # Cells that are not run are read as Python, and their "!" is none.
    settings = ["-D", "nb_execution_mode=off", "-D", "draw_pictures=0"]
    settings += ["-D", "suppress_warnings=misc.highlighting_failure", "-d", str(out / "trees")]
    sphinx = ("-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html")
    done = python(*sphinx, *settings, DOCS, out / "html", cwd=ROOT, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    return out / "html"


def pages(book: Path) -> list[Path]:
    return sorted(path for path in book.rglob("*.html") if "_static" not in path.parts)


def shown(chromium: Browser, book: Path, script: str, size: tuple[int, int]) -> dict[str, Any]:
    """What a script finds on each page, by the page's name; pages without a find are left out."""
    found = {}
    for path in pages(book):
        with opened(chromium, path, size=size) as work:
            if work.page.locator("article").count() and (said := work.page.evaluate(script)):
                found[str(path.relative_to(book))] = said
    return found


def test_the_book_has_at_most_45_pages_and_asks_no_network(chromium, book):
    assert len(pages(book)) - (book / "search.html").exists() <= 45
    with opened(chromium, book / "index.html") as work:
        # The theme says once that no reader has chosen light or dark yet.
        said = [each for each in work.complaints if "invalid theme mode" not in each]
        assert work.outside() == [] and said == []


def test_every_link_within_the_book_leads_to_a_place(book):
    texts = {path.resolve(): path.read_text("utf-8") for path in pages(book)}
    places = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    broken = []
    for path, text in texts.items():
        for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and anchor not in places.get(target, ())):
                broken.append(f"{path.name}: {link}")
    assert not broken


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1440", "390"])
def test_no_block_of_a_page_is_cut_off(chromium, book, size):
    assert not shown(chromium, book, CLIPPED, size)


def test_no_page_shows_a_raw_formula(chromium, book):
    assert not shown(chromium, book, RAW, WIDE)
