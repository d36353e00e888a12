"""Every T-number leads somewhere, and every claim has its one place in the book."""

import re
from collections import Counter
from pathlib import Path

from oversmoothing.theory.proofs.ledger import claims

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
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
