"""Every sentence that a person can see: short, its words defined, its links alive, no raw formula.

    python -m tests.docs.test_words          # the counts, and what is at fault, by file and line

Sentences of the program are its string literals of four words and more, the docstrings of public
names and of commands, and the text of the pages that it writes (HTML, JavaScript). Code, tables and
displayed formulas are no sentences; a formula in a line and a value that is filled in count as one
word each. A term is defined where the words that `TERMS` has for it stand, at its first use or
before it.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import NamedTuple

import oversmoothing
from oversmoothing.commands import ROWS
from oversmoothing.commands.main import WORDS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, DOCS, CLAIMS = ROOT / "oversmoothing", ROOT / "docs", ROOT / "oversmoothing/theory/claims"
BUILT = {"_build", "gallery", "jupyter_execute"}
LONGEST = 30
# The share of sentences longer than that stays below this, everywhere.
AIM = 0.03

# The terms of the glossary that a page may use: how each is used, and what defines it.
TERMS = {
    "HFC/LFC": (r"\b[HL]FC\b", r"differ\w* between|differences|how (?:unlike|different)|high-freq"),
    "consensus": (
        r"\bconsensus\b",
        r"tokens (?:are )?(?:all )?(?:equal|alike|the same)|equal tokens",
    ),
    "quotient": (r"\bquotient\b", r"differences between tokens|modulo consensus"),
    "mode": (r"\b(?:dominant|other|every|each) modes?\b", r"pair|eigenvalue|multiplie"),
    "dominant": (r"\bdominant\b", r"largest|leads?\b|decides?\b"),
    "defective": (r"\bdefective\b", r"eigenvectors|Jordan"),
    "our reading": (r"\b[Oo]ur reading\b", r"not at hand|supplied|as we read"),
    "rate": (r"\brho_Q/rho_C|ρ_?Q/ρ_?C", r"per layer|a layer|each layer|every layer"),
    "tied weights": (r"\btied weights\b", r"(?:same|equal) .{0,30}(?:every|each|all) layers?"),
}


class Sentence(NamedTuple):
    where: str
    words: str

    @property
    def long(self) -> bool:
        return sum(bool(re.search(r"\w", word)) for word in self.words.split()) > LONGEST


# --------------------------------------------------------------------------------- what is read


# After a stop: a capital, a number, a quotation, or the next field of a docstring ("depth: ...").
_END = re.compile(
    r"(?<=[.!?])[\"')\]*]*\s+(?=[\"'(\[*`$A-Z0-9]|--|\w[\w, ]{0,30}(?:\[[^\]]*\])?: )"
)


def sentences(where: str, text: str) -> Iterator[Sentence]:
    """Split at stops, paragraphs and items; fewer than four words are none."""
    text = re.sub(r"\b(e\.g|i\.e|cf|vs|Fig|Eq|al)\.", r"\1", text)
    for part in re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. |#)", text):
        for each in _END.split(" ".join(part.split())):
            if len(each.split()) >= 4:
                yield Sentence(where, each)


def literals(path: Path) -> Iterator[Sentence]:
    """String literals of a module of Python that can be printed: no docstring, regex or LaTeX."""
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        text = ""
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "N" for p in node.values]
            text = "".join(map(str, parts))
            # What is filled in may hold sentences of its own.
            waiting += [p.value for p in node.values if isinstance(p, ast.FormattedValue)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting += ast.iter_child_nodes(node)
        if len(text.split()) >= 4 and "\\" not in text:
            yield from sentences(f"{path.relative_to(ROOT)}:{node.lineno}", text)  # type: ignore[attr-defined]


def prose(text: str) -> str:
    """Markdown without what is no sentence: code, tables, formulas, targets of links."""
    text = re.sub(r"^---\n.*?\n---\n", "", text, flags=re.S)
    fenced = r"^ *([`:~]{3,}).*?^ *\1\s*$|\$\$.*?\$\$|<!--.*?-->"
    text = re.sub(fenced, "\n", text, flags=re.S | re.M)
    text = re.sub(r"^\s*\|.*$|^\([\w-]+\)=$", "\n", text, flags=re.M)
    text = re.sub(r"`+[^`]+`+", "`code`", re.sub(r"\$[^$]+\$", "$x$", text))
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def docstrings() -> Iterator[tuple[str, str]]:
    """Of public names and their methods, and what each command says of itself."""
    for name in oversmoothing.__all__:
        value = getattr(oversmoothing, name)
        parts = vars(value).items() if inspect.isclass(value) else ()
        yield name, inspect.getdoc(value) or ""
        for each, part in parts:
            if not each.startswith("_"):
                yield f"{name}.{each}", inspect.getdoc(part) or ""
    commands = {row.function for row in ROWS}
    for module in sorted({function.split(":")[0] for function in commands}):
        for node in ast.parse((PACKAGE / "commands" / f"{module}.py").read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and f"{module}:{node.name}" in commands:
                yield f"{module}.py:{node.lineno}", ast.get_docstring(node) or ""


def shown_by_html(text: str) -> str:
    text = re.sub(r"<(script|style)\b.*?</\1>|<!--.*?-->|{#.*?#}", " ", text, flags=re.S)
    text = re.sub(r"{%.*?%}", " ", re.sub(r"{{.*?}}", "N", text, flags=re.S), flags=re.S)
    text = re.sub(r"</?(?:[pb]r?|div|li|h\d|t[dhr]|summary|label|option|button|d[td])\b[^>]*>",
                  "\n\n", text)  # fmt: skip
    return unescape(re.sub(r"<[^>]*>", "", text))


def web_pages() -> Iterator[tuple[str, str]]:
    """What HTML shows, and the strings of JavaScript."""
    for path in sorted([*PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.js")]):
        text, where = path.read_text("utf-8"), str(path.relative_to(ROOT))
        if path.suffix == ".html":
            yield where, shown_by_html(text)
            continue
        text = re.sub(r"^\s*//.*$|/\*.*?\*/", "", text, flags=re.M | re.S)
        for quoted in re.findall(r"\"([^\"\n]+)\"|`([^`]+)`", text):
            yield where, re.sub(r"\$\{[^}]*\}", "N", "".join(quoted))


def markdown() -> list[Path]:
    pages = [page for page in sorted(DOCS.rglob("*.md")) if not BUILT & set(page.parts)]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages]


@cache
def of_program() -> tuple[Sentence, ...]:
    said = [each for path in sorted(PACKAGE.rglob("*.py")) for each in literals(path)]
    for name, text in docstrings():
        said += sentences(name, prose(re.sub(r"^(?:>>>|\.\.\.).*", "", text, flags=re.M)))
    return (*said, *(each for where, text in web_pages() for each in sentences(where, text)))


@cache
def of_pages(folder: Path) -> tuple[Sentence, ...]:
    pages = markdown() if folder == DOCS else sorted(folder.glob("*.md"))
    return tuple(each for page in pages for each in sentences(
        str(page.relative_to(ROOT)), prose(page.read_text("utf-8"))))  # fmt: skip


def share_of_long(said: tuple[Sentence, ...]) -> float:
    return sum(each.long for each in said) / len(said)


def undefined(text: str) -> list[str]:
    """The terms of the glossary that a text uses before it says what they are."""
    found = []
    for term, (used, defined) in TERMS.items():
        first = re.search(used, text)
        if first is not None:
            # To the end of the sentence of the first use; behind a title, of the next one.
            ends = [m.start() for m in re.finditer(r"[.!?]\s|\n\s*\n", text[first.end() :])]
            paragraph = text[: first.end()].rpartition("\n\n")[2]
            title = len(paragraph) < 40 and text[first.end() :].startswith("\n\n")
            upto = first.end() + [*ends, len(text), len(text)][title]
            if not re.search(defined, text[:upto].replace("\n", " "), flags=re.I):
                found.append(term)
    return found


_RAW = re.compile(
    r"[<>!]=|->|\|\||\(x\)|\+-|\\[a-z]{2}|\b(?:rho|sigma|lambda)_\w?|[\w)\]]\^[\w({]"
    r"|(?<![\w/.])[A-Za-z]_[A-Za-z0-9]\b"
)


def raw(text: str) -> list[str]:
    """Formulas as they are typed, in what should show them set."""
    return _RAW.findall(text)


def targets(page: Path) -> Iterator[str]:
    """Links of a page that lead nowhere: to a file, or to a heading of a page."""
    text = re.sub(r"^([`:~]{3,}).*?^\1\s*$", "", page.read_text("utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
        if re.match(r"https?:|mailto:", target):
            if not re.fullmatch(r"https?://[\w.-]+\.[a-z]+(?:/[^\s]*)?|mailto:\S+@\S+", target):
                yield target
            continue
        path, _, heading = target.partition("#")
        place = page.parent / path if path else page
        if (path and not place.exists()) or (
            heading and place.suffix == ".md" and heading not in anchors(place)
        ):
            yield target


def anchors(page: Path) -> set[str]:
    text = page.read_text("utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    made = {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in titles}
    return made | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


def faults() -> Iterator[str]:
    """What is at fault in pages, by file."""
    for page in markdown():
        text = page.read_text("utf-8")
        # Formulas are set in the book's tables and folds too.
        opened = re.sub(r"^ *(?:\||:::.*)", "", text, flags=re.M) if DOCS in page.parents else text
        for each in (*undefined(prose(text)), *raw(prose(opened)), *targets(page)):
            yield f"{page.relative_to(ROOT)}: {each}"
    for where, text in web_pages():
        for each in (*undefined(text), *raw(text)) if where.endswith(".html") else ():
            yield f"{where}: {each}"


# ------------------------------------------------------------------------------- what must hold


def test_sentences_of_the_program_are_short():
    assert share_of_long(of_program()) < AIM


def test_sentences_of_the_book_and_of_the_claims_are_short():
    assert share_of_long(of_pages(DOCS)) < AIM
    assert share_of_long(of_pages(CLAIMS)) < AIM


def test_no_sentence_begins_with_of():
    said = (*of_program(), *of_pages(DOCS), *of_pages(CLAIMS))
    assert [each for each in said if each.words.startswith("Of ")] == []


def test_every_page_defines_its_words_sets_its_formulas_and_has_no_broken_link():
    assert list(faults()) == []


def test_the_glossary_is_one():
    """A term of the book's glossary has its entry in `TERMS`; what help pages define is one."""
    glossary = "\n".join(page.read_text("utf-8") for page in markdown())
    listed = set(re.findall(r"^([a-z][\w/ ]+)\n: ", glossary, re.M))
    assert listed <= set(TERMS) and set(WORDS) <= set(TERMS)
    for term, meaning in WORDS.items():
        assert re.search(TERMS[term][1], meaning), term


# Each check is shown what it must find.


def test_the_checks_find_what_is_planted(tmp_path):
    word = "word " * 31
    assert [each.long for each in sentences("", f"Short is this one. A {word}.")] == [False, True]
    assert [each.long for each in sentences("", prose(f"Short. `x` is {word}. $x$ is."))] == [True]
    assert undefined("It ends at consensus. There all tokens are equal.") == ["consensus"]
    assert undefined("Consensus, where all tokens are equal, is kept: consensus stays.") == []
    assert raw("where rho_C <= x^2 and $y$") == ["rho_C", "<=", "x^2"]
    assert raw("H (x) A -> 1 +- 2i != lambda_") == ["(x)", "->", "+-", "!=", "lambda_"]
    assert raw("(I + H)^T") == [")^T"]
    page = tmp_path / "page.md"
    page.write_text("# A title\n[x](#a-title) [y](#none) [z](gone.md) [w](https://a.org/b)\n")
    assert list(targets(page)) == ["#none", "gone.md"]
    source = ROOT / "tests/docs/test_words.py"
    assert any("how each is used" not in s.words for s in literals(source))


def main() -> None:
    for name, said in (("program", of_program()), ("book", of_pages(DOCS)),
                       ("proofs", of_pages(CLAIMS))):  # fmt: skip
        print(f"{name}: {len(said)} sentences, {share_of_long(said):.1%} of more than {LONGEST}")
        for each in said:
            if each.long or each.words.startswith("Of "):
                print(f"  {each.where}: {each.words}")
    print("\n".join(faults()))


if __name__ == "__main__":
    main()
