"""The book names what exists: files, modules, public names, commands. And it asks no network."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import oversmoothing
from oversmoothing.commands import ROWS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    *sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and "gallery" not in p.parts),
]
FOLDERS = "theory|simulations|experiments|paper_figures|oversmoothing|tests|docs"
NAMED_PATH = re.compile(rf"`((?:{FOLDERS})/[\w./*-]*)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page):
    named = NAMED_PATH.findall(page.read_text("utf-8"))
    missing = [path for path in named if not any(ROOT.glob(path.rstrip("/")))]
    assert not missing


@pytest.mark.parametrize("page", sorted(DOCS.glob("**/*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_to_pages(page):
    if {"_build", "gallery", "jupyter_execute"} & set(page.parts):
        return
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_public_name_stands_in_the_reference():
    page = (DOCS / "reference" / "api.md").read_text("utf-8")
    documented = set(re.findall(r"^\.\. auto\w+:: oversmoothing\.(\w+)$", page, re.MULTILINE))
    assert documented == set(oversmoothing.__all__)


def test_every_module_of_the_reference_exists():
    for page in (DOCS / "reference").glob("api-*.md"):
        for module in re.findall(
            r"^\.\. automodule:: (\S+)$", page.read_text("utf-8"), re.MULTILINE
        ):
            assert import_module(module).__doc__, module


def test_every_command_stands_in_the_reference():
    page = (DOCS / "reference" / "commands.md").read_text("utf-8")
    named = re.findall(r"^```\{command-help\} (.+)$", page, re.MULTILINE)
    assert named == [row.asked for row in ROWS if row.group]


def test_what_the_book_needs_is_an_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {re.split(r"[>=\[]", name)[0] for name in project["optional-dependencies"]["docs"]}
    assert {"sphinx", "myst-nb", "sphinx-gallery", "pydata-sphinx-theme"} <= wanted


def test_nothing_of_the_book_is_fetched():
    for path in [*DOCS.glob("_static/*"), *DOCS.glob("_extensions/*.py"), DOCS / "conf.py"]:
        assert not re.search(r"(?:@import|url\()\s*['\"]?https?:|<script|<link", path.read_text())
