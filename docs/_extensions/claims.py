"""The ledger in the book: ```{claim} T2d```, ```{claim-table} P-2401.04301v1```, and links.

Statement, formula, hypotheses, status and evidence are those of the ledger, a chapter's Markdown as
it stands in its file; the book adds the story. Every T-number in a page's text becomes a link to
its claim or its chapter.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from oversmoothing.simulations.against_theory.simulated_evidence import SIMULATED
from oversmoothing.theory.proofs.claim import REFERENCE, Claim, Scope, tally
from oversmoothing.theory.proofs.coq import Formal, on_record
from oversmoothing.theory.proofs.evidence import Counterexample, Written
from oversmoothing.theory.proofs.items import source
from oversmoothing.theory.proofs.ledger import Ledger, claims, files

ROOT = Path(__file__).resolve().parents[2]
_NOT_LINKED = (
    nodes.literal,
    nodes.literal_block,
    nodes.reference,
    nodes.title,
    nodes.math,
    nodes.strong,
)


@cache
def ledger() -> dict[str, Claim]:
    """Every claim by name, with the evidence from simulations."""
    return Ledger(claims(), extra=SIMULATED)


class ClaimCard(SphinxDirective):
    """One claim as the ledger has it."""

    required_arguments = 1
    has_content = False

    def run(self) -> list[nodes.Node]:
        """The card, and the name as a place to link to."""
        name = self.arguments[0]
        if name not in ledger():
            raise self.error(f"no claim {name!r} in the ledger")
        places = _places(self.env)
        if places.get(name, self.env.docname) != self.env.docname:
            raise self.error(f"{name} has its place in {places[name]} already")
        places[name] = self.env.docname
        return [_card(ledger()[name], self._stated(name))]

    def _stated(self, name: str) -> list[nodes.Node]:
        """The claim's own Markdown from its formula on; nothing where it stands in no chapter."""
        path = files()[name]
        if path.suffix != ".md":
            return []
        self.env.note_dependency(str(path))
        text = source(path, name)
        lines = StringList(text[text.index("$$") :].splitlines(), source=str(path))
        stated = nodes.container(classes=["claim-stated"])
        self.state.nested_parse(lines, 0, stated)
        return [stated]


def _card(claim: Claim, stated: list[nodes.Node]) -> nodes.Node:
    card = nodes.container(classes=["claim", f"claim-{claim.on_record.short}"], ids=[claim.name])
    head = nodes.paragraph(classes=["claim-head"])
    head += nodes.strong(text=claim.name)
    head += nodes.Text(" ")
    head += nodes.inline(text=claim.on_record.value, classes=["claim-status"])
    card += head
    if stated:
        card += stated
    elif len(claim.clauses) == 1:
        card += nodes.paragraph(text=claim.statement, classes=["claim-statement"])
        card += nodes.math_block(claim.latex, claim.latex)
    else:
        card += _numbered(claim.clauses, "claim-statement")
        card += nodes.math_block(claim.latex, claim.latex)
    if claim.hypotheses:
        words = "; ".join(h.words for h in claim.hypotheses)
        card += _note("Hypotheses", words)
    if claim.setting:
        card += _note("Setting", claim.setting)
    card += _note("Source", claim.source)
    if claim.wording:
        card += _note("Wording", claim.wording)
    if claim.repaired_by:
        card += _note("What holds instead", claim.repaired_by)
    proof = [f"{e.title} ({e.kind}{_for(e.covers, claim)})" for e in claim.evidence if e.covers]
    beside = [f"{e.title} ({e.kind})" for e in claim.evidence if not e.covers]
    counter = claim.on_record.refuted
    if proof and not stated:
        card += _note("Counterexample" if counter else "Proof", "; ".join(proof))
    if beside and not stated:
        card += _note("Checked beside", "; ".join(beside))
    for evidence in claim.evidence:
        if isinstance(evidence, Written | Counterexample) and not stated:
            card += _steps(evidence)
        if isinstance(evidence, Formal):
            card += nodes.literal_block(
                text=on_record()[evidence.theorem].type, classes=["claim-formal"], language="coq"
            )
    if claim.cites:
        card += _note("Rests on", ", ".join(claim.cites))
    if claim.further:
        card += _note("To go further", claim.further)
    run = nodes.paragraph(classes=["claim-note"])
    run += nodes.strong(text="File ")
    run += nodes.literal(text=files()[claim.name].relative_to(ROOT).as_posix())
    run += nodes.Text(", run by ")
    run += nodes.literal(text=f"oversmoothing prove {claim.name}")
    card += run
    return card


def _for(covers: tuple[int, ...], claim: Claim) -> str:
    """The clauses that evidence covers, where there are several."""
    return f" for {', '.join(map(str, covers))}" if len(claim.clauses) > 1 else ""


def _numbered(texts: tuple[str, ...], kind: str) -> nodes.enumerated_list:
    found = nodes.enumerated_list(classes=[kind], enumtype="arabic", suffix=")", prefix="(")
    for text in texts:
        item = nodes.list_item()
        item += nodes.paragraph(text=text)
        found += item
    return found


def _steps(evidence: Written | Counterexample) -> list[nodes.Node]:
    """The numbered proof, folded; a mark where a step is executed."""
    word = "Proof" if isinstance(evidence, Written) else "Counterexample"
    steps = nodes.enumerated_list(classes=["claim-steps"], enumtype="arabic", suffix=".")
    for step in evidence.steps:
        item, words = nodes.list_item(), nodes.paragraph(text=step.words)
        if step.check is not None:
            said = "verified" if step.scope is Scope.GENERAL else f"illustrated: {step.scope}"
            words += nodes.inline(text=f" {said}", classes=["claim-executed"])
        item += words
        steps += item
    title = html.escape(f"{word}: {evidence.title}")
    opening = f'<details class="claim-proof"><summary>{title}</summary>'
    return [
        nodes.raw("", opening, format="html"),
        steps,
        nodes.raw("", "</details>", format="html"),
    ]


def _note(label: str, words: str) -> nodes.paragraph:
    note = nodes.paragraph(classes=["claim-note"])
    note += nodes.strong(text=f"{label} ")
    note += nodes.Text(words)
    return note


class ClaimTable(SphinxDirective):
    """Claims whose names begin so, on the page that holds them: stated, and what became of it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table."""
        begin = self.arguments[0]
        chosen = [c for c in ledger().values() if c.name.startswith(begin)]
        if not chosen:
            raise self.error(f"no claim begins with {begin!r}")
        rows = [[_named(claim.name, begin), *map(_words, _row(claim))] for claim in chosen]
        heads = map(_words, ("claim", "stated", "status", "what holds instead"))
        return [_table(list(heads), rows)]


def _row(claim: Claim) -> tuple[str, ...]:
    return (claim.statement, claim.on_record.value, claim.repaired_by or "")


def _words(text: str) -> nodes.paragraph:
    return nodes.paragraph(text=text)


def _named(name: str, begin: str) -> nodes.paragraph:
    """The rest of the name, as a link to the claim on the same page."""
    place = nodes.reference("", name.removeprefix(begin), refuri=f"#{name}", internal=True)
    return nodes.paragraph("", "", place)


def _table(heads: list[nodes.paragraph], rows: list[list[nodes.paragraph]]) -> nodes.Node:
    table = nodes.table(classes=["claim-table"])
    group = nodes.tgroup(cols=len(heads))
    table += group
    for _ in heads:
        group += nodes.colspec(colwidth=1)
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += _cells(heads)
    for row in rows:
        body += _cells(row)
    return table


def _cells(words: list[nodes.paragraph]) -> nodes.row:
    row = nodes.row()
    for word in words:
        row += nodes.entry("", word)
    return row


class LedgerTotals(SphinxDirective):
    """How many claims stand how."""

    def run(self) -> list[nodes.Node]:
        """One sentence."""
        words = tally(claim.on_record for claim in ledger().values())
        return [nodes.paragraph(text=f"On record are {len(ledger())} claims: {words}.")]


def _places(env: BuildEnvironment) -> dict[str, str]:
    if not hasattr(env, "claim_places"):
        env.claim_places = {}  # type: ignore[attr-defined]
    return env.claim_places  # type: ignore[attr-defined,no-any-return]


def _purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    for name in [name for name, place in _places(env).items() if place == docname]:
        del _places(env)[name]


def _merge(app: Sphinx, env: BuildEnvironment, docnames: Any, other: BuildEnvironment) -> None:
    _places(env).update(_places(other))


def targets(reference: str) -> list[str]:
    """The claims that a reference names: itself, or its parts (T7b: T7b-certificate ...)."""
    if reference in ledger():
        return [reference]
    return [name for name in ledger() if re.match(rf"{re.escape(reference)}(?![\d])", name)]


def _link(app: Sphinx, tree: nodes.document, docname: str) -> None:
    places = _places(app.env)
    chapters = {f"T{k}": f"theory/t{k}" for k in range(1, 12)}
    for text in list(tree.findall(nodes.Text)):
        if any(isinstance(node, _NOT_LINKED) for node in _ancestors(text)):
            continue
        pieces = _linked(app, str(text), docname, places, chapters)
        if len(pieces) > 1:
            text.parent.replace(text, pieces)


def _ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _linked(
    app: Sphinx, text: str, docname: str, places: dict[str, str], chapters: dict[str, str]
) -> list[nodes.Node]:
    pieces: list[nodes.Node] = []
    end = 0
    for found in REFERENCE.finditer(text):
        word = found.group()
        named = targets(word)
        if word in chapters:
            place, anchor = chapters[word], ""
        elif named and named[0] in places:
            place, anchor = places[named[0]], f"#{named[0]}"
        else:
            continue
        pieces.append(nodes.Text(text[end : found.start()]))
        uri = app.builder.get_relative_uri(docname, place) + anchor
        pieces.append(nodes.reference(word, word, refuri=uri, internal=True))
        end = found.end()
    pieces.append(nodes.Text(text[end:]))
    return pieces


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and the links."""
    app.add_directive("claim", ClaimCard)
    app.add_directive("claim-table", ClaimTable)
    app.add_directive("ledger-totals", LedgerTotals)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    app.connect("doctree-resolved", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
