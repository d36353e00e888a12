"""The book names what exists: files, public names, commands, claims, papers. It asks no network."""

import re
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest

import oversmoothing
from oversmoothing.commands import ROWS
from oversmoothing.theory.proofs.claim import PAPERS as PAPERS_OF
from oversmoothing.theory.proofs.ledger import claims

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BUILT = {"_build", "jupyter_execute"}
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    *(BOOK := sorted(p for p in DOCS.rglob("*.md") if not BUILT & set(p.parts))),
]
FOLDERS = "theory|simulations|experiments|paper_figures|oversmoothing|tests|docs"
NAMED_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page):
    named = NAMED_PATH.findall(page.read_text("utf-8"))
    assert not [path for path in named if not any(ROOT.glob(path.rstrip("/")))]


def test_a_terminal_of_the_book_shows_neither_codes_nor_bars():
    bar = run_path(str(DOCS / "_extensions" / "terminal.py"))["_BAR"]
    assert bar.sub("", "\x1b[1ma\x1b[0m\nvit: 0step [00:00, ?step/s]\n 50%|# | 1/2\nb") == "a\nb"


@pytest.mark.parametrize("page", BOOK, ids=lambda page: str(page.relative_to(DOCS)))
def test_what_can_be_counted_is_not_typed(page):
    assert not re.findall(r"T1\s*(?:to|-|–)\s*T1\d|\b1\d\d claims", page.read_text("utf-8"))


QUESTIONS = [p for f in ("theory", "papers") for p in sorted((DOCS / f).glob("*.md"))]


@pytest.mark.parametrize("page", QUESTIONS, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_of_theory_or_papers_begins_with_words_and_a_picture(page):
    text = page.read_text("utf-8")
    title, _, rest = text.partition("\n")
    assert not re.match(r"# (?:T\d|\d{4}\.)", title)
    if page.stem == "index":
        return
    assert rest.lstrip().startswith("**"), "the statement in words, in bold, is first"
    before, _, _ = rest.partition("```{formula}")
    assert "```{picture}" in before


@pytest.mark.parametrize(
    "page", sorted((DOCS / "theory").glob("t*.md")), ids=lambda page: page.stem
)
def test_a_page_of_theory_says_where_it_fails_with_commands(page):
    text = page.read_text("utf-8")
    order = [text.index(part) for part in ("```{formula}", "## Why it is true", "```{claims}")]
    assert order == sorted(order) and re.search(r"^\$ oversmoothing \S+", text, re.MULTILINE)


def test_every_public_name_stands_in_the_reference():
    page = (DOCS / "reference" / "api.md").read_text("utf-8")
    documented = set(re.findall(r"^\.\. auto\w+:: oversmoothing\.(\w+)$", page, re.MULTILINE))
    assert documented == set(oversmoothing.__all__)


def test_every_module_of_the_reference_exists():
    page = (DOCS / "reference" / "modules.md").read_text("utf-8")
    modules = re.findall(r"^\.\. automodule:: (\S+)$", page, re.MULTILINE)
    assert modules and all(import_module(module).__doc__ for module in modules)


def test_every_command_stands_in_the_reference():
    page = (DOCS / "reference" / "commands.md").read_text("utf-8")
    named = re.findall(r"^```\{command-help\} (.+)$", page, re.MULTILINE)
    assert named == [row.asked for row in ROWS]


def test_what_the_book_needs_is_an_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {re.split(r"[>=\[]", name)[0] for name in project["optional-dependencies"]["docs"]}
    assert {"sphinx", "myst-nb", "pydata-sphinx-theme"} <= wanted


def test_nothing_of_the_book_is_fetched():
    for path in [*DOCS.glob("_static/*"), *DOCS.glob("_extensions/*.py"), DOCS / "conf.py"]:
        assert not re.search(r"(?:@import|url\()\s*['\"]?https?:|<script|<link", path.read_text())


# --- papers ---

PAPERS = DOCS / "papers"
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
    text = "".join(page.read_text("utf-8") for page in sorted(PAPERS.glob("*.md")))
    headings = " ".join(re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    for number, (authors, title) in PAPERS_OF.items():
        assert f"https://arxiv.org/abs/{number}" in text, number
        assert authors.split()[0] in headings and authors[-4:] in headings, authors
        assert title.split(",")[0].replace(" transformers", "")[:24].lower() in headings.lower()


# --- every T-number leads somewhere, and every claim has its one place in the book ---

NAMES = list(claims())
CHAPTERS = {re.match(r"T\d+", name).group() for name in NAMES if name.startswith("T")}
PLANTED = {"T77", "T99"}  # claims that tests make up
SINGLE = re.compile(r"\b(T\d+)((?:\.\d+)|[a-z])?(?:-([a-z])\b)?(?![\w])")
PLACE = re.compile(r"^```\{claims?\} (\S+)$", re.MULTILINE)


def written_files() -> list[Path]:
    folders = ("theory", "simulations", "experiments", "paper_figures", "tests", "docs")
    found = [p for f in folders for p in (ROOT / f).rglob("*.*")
             if p.suffix in {".py", ".md", ".toml"}]  # fmt: skip
    found += (ROOT / "oversmoothing" / "commands").glob("*.py")
    found += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "oversmoothing" / "__init__.py"]
    built = {DOCS / "_build", DOCS / "jupyter_execute"}
    return [p for p in found if p.exists() and not built & set(p.parents)]


def references(text: str) -> set[str]:
    """T1c, T11.9, T2; of T1c-d both ends and what lies between."""
    found = set()
    for chapter, part, until in SINGLE.findall(text):
        found.add(chapter + part)
        if until and part.isalpha():
            found |= {chapter + chr(code) for code in range(ord(part), ord(until) + 1)}
    return found


def resolves(reference: str) -> bool:
    if reference in CHAPTERS | PLANTED or reference in NAMES:
        return True
    return any(name.startswith(f"{reference}-") for name in NAMES)


def test_ranges_are_read_as_such():
    read = references("T1c-d, T2-T4; T11.9 and T4c-style")
    assert read == {"T1c", "T1d", "T2", "T4", "T11.9", "T4c"}


def test_every_reference_leads_to_a_claim_or_a_chapter():
    lost = {
        f"{reference} in {path.relative_to(ROOT)}"
        for path in written_files()
        for reference in references(path.read_text("utf-8"))
        if not resolves(reference)
    }
    assert not lost, sorted(lost)


def places(page: Path) -> list[str]:
    """The claims that a page folds in: by name, chapter (T2), or beginning."""
    found = []
    for asked in PLACE.findall(page.read_text("utf-8")):
        # T1 is a chapter, and T11 another.
        begins = re.escape(asked) + r"(?!\d)" * bool(re.fullmatch(r"T\d+", asked))
        found += [name for name in NAMES if re.match(begins, name)]
    return found


def test_every_claim_has_its_place_on_exactly_one_page():
    pages = [*(DOCS / "theory").glob("*.md"), *(DOCS / "papers").glob("*.md")]
    found = Counter(name for page in pages for name in places(page))
    assert set(found) == set(NAMES)
    assert [name for name, count in found.items() if count > 1] == []


def test_a_claim_of_the_theory_stands_on_a_page_whose_title_names_its_chapter():
    for page in (DOCS / "theory").glob("*.md"):
        titled = re.findall(r"\bT\d+\b", page.read_text("utf-8").partition("\n")[0])
        chapters = {re.match(r"T\d+", name).group() for name in places(page)}
        assert chapters == set(titled), page.name
