"""The Markdown of a chapter as a tree: claims, and in each its fields, formula, clauses, proofs.

A line begins an item ("- " or "1. "), goes on with the one above (indented as its text is), is a
heading, a formula between `$$`, or "Proof: title". Each text is one line, as Markdown would join
it; a backslash before punctuation is Markdown's and falls away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text

HEADING = re.compile(r"^## (\S+): (.+)$", re.M)
_ITEM = re.compile(r"( *)(-|\d+\.) (.*\S)")
_PROOF = re.compile(r"(Proof|Counterexample): (.*\S)")
_ESCAPED = re.compile(r"(`[^`]*`)|\\([!-/:-@\[-`{-~])")
# A continued line that begins so would be an item, a heading, a quotation or a comment of Markdown.
_BEGINS = re.compile(r"([-+*]|\d+[.)]|#{1,6})( |$)|>|%|:::|`{3}|~{3}|[-=]+$")


@dataclass
class Place:
    """A line of a chapter."""

    path: Path
    line: int

    def error(self, words: str) -> InputError:
        return InputError(f"{self.path.name}, line {self.line}: {words}")

    @contextmanager
    def told(self, claim: str) -> Iterator[None]:
        """A ValueError within, as an error of this line of the claim."""
        try:
            yield
        except InputError as error:
            if str(error).startswith(self.path.name):
                raise
            raise self.error(str(error)) from error
        except (ValueError, TypeError, KeyError) as error:
            raise self.error(f"{claim}: {error}") from error


@dataclass
class Item(Place):
    """One item of a list, with the items beneath it."""

    marker: str
    text: str
    children: list[Item] = field(default_factory=list)

    def read(self, *known: str) -> tuple[str, tuple[int, ...] | None, str]:
        """Key, clauses in brackets (None: no brackets) and value of "key [1, 2]: value"."""
        match = re.fullmatch(r"([a-z ]+?)(?: \[([\d, ]*)\])?: (.+)", self.text)
        if match is None or match[1] not in known or self.marker != "-":
            every = ", ".join(f"{key}: ..." for key in sorted(known))
            raise self.error(f"'{self.text[:60]}' is none of {every}")
        listed = match[2]
        covers = None if listed is None else tuple(int(k) for k in listed.split(",") if k.strip())
        return match[1], covers, match[3]


@dataclass
class Proof(Place):
    """A written proof or a counterexample: cases of the latter, and steps."""

    kind: str
    title: str
    cases: list[Item] = field(default_factory=list)
    steps: list[Item] = field(default_factory=list)


@dataclass
class Section(Place):
    """A claim as it is written."""

    name: str
    title: str
    latex: str = ""
    fields: list[Item] = field(default_factory=list)
    clauses: list[Item] = field(default_factory=list)
    beside: list[Item] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)


def names(path: Path) -> list[str]:
    """The claims of a chapter, none of it read further."""
    return [heading[1] for heading in HEADING.finditer(read_text(path))]


def source(path: Path, name: str) -> str:
    """The Markdown of one claim beneath its heading."""
    text = read_text(path)
    heading = next(heading for heading in HEADING.finditer(text) if heading[1] == name)
    after = HEADING.search(text, heading.end())
    return text[heading.end() : after.start() if after else len(text)].strip() + "\n"


def sections(path: Path) -> list[Section]:
    """The claims of a chapter. Raises `InputError` with the line that is none of its language."""
    lines = list(enumerate(read_text(path).splitlines(), 1))
    claims: list[Section] = []
    while lines:
        number, line = lines.pop(0)
        if not line.strip() or (number == 1 and line.startswith("# ")):
            continue
        heading = HEADING.fullmatch(line)
        if heading is None:
            raise Place(path, number).error(f"'{line[:60]}' stands in no claim")
        section = Section(path, number, heading[1], heading[2])
        end = next((k for k, (_, text) in enumerate(lines) if text.startswith("## ")), len(lines))
        _fill(section, lines[:end])
        del lines[:end]
        claims.append(section)
    return claims


def _fill(section: Section, lines: list[tuple[int, str]]) -> None:
    every: list[Item] = []
    stack: list[tuple[int, Item]] = []
    within = False  # a formula
    for number, line in lines:
        here = Place(section.path, number)
        proof = _PROOF.fullmatch(line)
        item = _ITEM.fullmatch(line)
        if within or line.startswith("$$"):
            if section.latex and not within:
                raise here.error("a second formula")
            text = (line if within else line[2:]).rstrip()
            within = not text.endswith("$$")
            section.latex = f"{section.latex} {text.removesuffix('$$').strip()}".strip()
        elif not line.strip():
            stack = []
        elif proof is not None:
            section.proofs.append(Proof(section.path, number, proof[1], _plain(proof[2])))
        elif item is not None:
            depth, marker = len(item[1]), item[2]
            while stack and depth < stack[-1][0]:
                stack.pop()
            new = Item(section.path, number, marker, item[3])
            every.append(new)
            if depth != (stack[-1][0] if stack else 0):
                raise here.error(f"'{line.strip()[:60]}' is not indented as an item")
            (stack[-1][1].children if stack else _list(section, new)).append(new)
            stack.append((depth + len(marker) + 1, new))
        else:
            depth = len(line) - len(line.lstrip())
            if not stack or depth != stack[-1][0] or _BEGINS.match(line.strip()):
                raise here.error(f"'{line.strip()[:60]}' goes on with nothing")
            stack[-1][1].text += f" {line.strip()}"
    for one in every:
        one.text = _plain(one.text)
    if within or not section.latex:
        raise section.error(f"{section.name} has no formula between $$ and $$")
    if not section.clauses:
        raise section.error(f"{section.name} has no clause")


def _list(section: Section, item: Item) -> list[Item]:
    """Where an item of the outermost list belongs; a numbered one has the number that is next."""
    bullet = item.marker == "-"
    if section.proofs:
        proof = section.proofs[-1]
        if bullet and (proof.kind == "Proof" or proof.steps):
            raise item.error("a proof has numbered steps alone")
        belongs = proof.cases if bullet else proof.steps
    elif not section.latex:
        belongs = section.fields
        if not bullet:
            raise item.error("a clause stands after the formula")
    else:
        belongs = section.beside if bullet else section.clauses
        if not bullet and section.beside:
            raise item.error("clauses stand together")
    if not bullet and item.marker != f"{len(belongs) + 1}.":
        raise item.error(f"{item.marker} where {len(belongs) + 1}. is next")
    return belongs


def _plain(text: str) -> str:
    """Without the backslashes of Markdown; code keeps its own."""
    return _ESCAPED.sub(lambda match: match[1] or match[2], text)
