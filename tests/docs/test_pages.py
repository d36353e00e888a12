"""The book names what exists: files, modules, public names, commands. And it asks no network."""

import re
import tomllib
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest

import oversmoothing
from oversmoothing.commands import ROWS

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
