"""The ledger in the book. ```{claim} T2d``` is one claim, folded; ```{claims} N-2103.03404-``` all
whose names begin so; ```{formula} T2d``` its formula alone. In the block stands the command that
prints the same, for who reads the source.

Statement, formula, hypotheses, status and evidence are those of the ledger; the book adds the
story. Every claim or chapter that a page's text names becomes a link to its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from markupsafe import escape
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from oversmoothing.simulations.against_theory.simulated_evidence import SIMULATED
from oversmoothing.simulations.drawing.web_page import typeset
from oversmoothing.theory.proofs.claim import REFERENCE, Claim, Scope, address, cited, tally
from oversmoothing.theory.proofs.coq import Formal, on_record
from oversmoothing.theory.proofs.evidence import Counterexample, Written
from oversmoothing.theory.proofs.items import HEADING
from oversmoothing.theory.proofs.ledger import Ledger, claims, files
from oversmoothing.theory.support.files import read_text

ROOT = Path(__file__).resolve().parents[2]
_NOT_LINKED = (
    nodes.literal,
    nodes.literal_block,
    nodes.reference,
    nodes.title,
    nodes.math,
    nodes.raw,
)
# What each kind of evidence is, to who has not read the theory's first page.
KINDS = {
    "formal": "checked by Coq",
    "written": "proof in steps",
    "symbolic": "identity in symbols",
    "for all reals": "decided by z3 and cvc5",
    "certified": "instances in ball arithmetic",
    "searched": "searched for counterexamples",
    "simulated": "simulated",
    "sharp": "sharp: false neighbours fail",
    "counterexample": "counterexample",
}


@cache
def ledger() -> dict[str, Claim]:
    """Every claim by name, with the evidence from simulations."""
    return Ledger(claims(), extra=SIMULATED)


@cache
def title(name: str) -> str:
    """What a claim says, in the words of its heading."""
    found = (match for match in HEADING.finditer(read_text(files()[name])))
    words = next(match[2] for match in found if match[1] == name)
    # A letter of a formula (h = -1, tau -> 1) stays as it is.
    begins = re.match(r"(?!tau|rho|pi|sigma)(?:an? |[a-z]{3,}\b)", words)
    return words[0].upper() + words[1:] if begins else words


def plain(text: str) -> nodes.inline:
    """Text with formulas in letters, as the ledger has it: set as formulas when it is written."""
    return nodes.inline(text=text, classes=["plain"])


class OfClaim(SphinxDirective):
    """What stands for a claim, with the command that prints it in the source."""

    required_arguments, has_content = 1, True

    def told(self) -> None:
        """Raises where the source names another command."""
        command = f"oversmoothing prove {self.arguments[0]}"
        if list(self.content) != [command]:
            raise self.error(f"the block must hold the line: {command}")


class ClaimFold(OfClaim):
    """One claim as the ledger has it, folded under what it says."""

    def chosen(self) -> list[Claim]:
        """The claim of that name."""
        if self.arguments[0] not in ledger():
            raise self.error(f"no claim {self.arguments[0]!r} in the ledger")
        return [ledger()[self.arguments[0]]]

    def run(self) -> list[nodes.Node]:
        """Each claim, and its name as a place to link to."""
        self.told()
        found: list[nodes.Node] = []
        for claim in self.chosen():
            places = _places(self.env)
            if places.get(claim.name, self.env.docname) != self.env.docname:
                raise self.error(f"{claim.name} has its place in {places[claim.name]} already")
            places[claim.name] = self.env.docname
            self.env.note_dependency(str(files()[claim.name]))
            found += _fold(claim)
        return found


class Claims(ClaimFold):
    """Every claim whose name begins so."""

    def chosen(self) -> list[Claim]:
        """Those claims, in the order of the ledger. Raises where there is none."""
        begin = self.arguments[0]
        end = r"(?!\d)" if re.fullmatch(r"T\d+", begin) else ""  # T1 is no beginning of T11
        named = re.compile(re.escape(begin) + end)
        found = [claim for claim in ledger().values() if named.match(claim.name)]
        if not found:
            raise self.error(f"no claim begins with {begin!r}")
        return found


class Formula(OfClaim):
    """The formula of a claim, with who it is from."""

    def run(self) -> list[nodes.Node]:
        """The formula, and a line with the claim's name and status."""
        self.told()
        claim = ledger().get(self.arguments[0])
        if claim is None:
            raise self.error(f"no claim {self.arguments[0]!r} in the ledger")
        self.env.note_dependency(str(files()[claim.name]))
        line = nodes.paragraph("", f"{claim.name}, ", classes=["formula-of"])
        line += nodes.Text(f"{claim.on_record}")
        return [nodes.math_block(claim.latex, claim.latex), line]


def _fold(claim: Claim) -> list[nodes.Node]:
    assert claim.on_record is not None
    opening = (
        f'<details class="claim claim-{claim.on_record.short}" id="{claim.name}"><summary>'
        f'<span class="claim-name">{claim.name}</span> '
        f'<span class="claim-title">{typeset(title(claim.name))}</span> '
        f'<span class="claim-status">{escape(str(claim.on_record))}</span></summary>'
    )
    body = nodes.container(classes=["claim-body"])
    body += nodes.math_block(claim.latex, claim.latex)
    if len(claim.clauses) == 1:
        body += nodes.paragraph("", "", plain(claim.clauses[0]))
    else:
        body += _numbered(claim.clauses)
    if claim.hypotheses:
        body += _note("Assumed", "; ".join(h.words for h in claim.hypotheses))
    if claim.setting:
        body += _note("Setting", claim.setting)
    if claim.wording:
        body += _note("Whose words", claim.wording)
    if claim.repaired_by:
        body += _note("What holds instead", claim.repaired_by)
    body += _how_known(claim)
    for evidence in claim.evidence:
        if isinstance(evidence, Written | Counterexample):
            body += _steps(evidence)
        if isinstance(evidence, Formal):
            body += nodes.literal_block(
                text=on_record()[evidence.theorem].type, classes=["claim-formal"], language="coq"
            )
    if claim.cites:
        body += _note("Rests on", ", ".join(claim.cites))
    if claim.further:
        body += _note("To go further", claim.further)
    body += _source(claim)
    return [nodes.raw("", opening, format="html"), body, nodes.raw("", "</details>", format="html")]


def _how_known(claim: Claim) -> nodes.Node:
    """Every piece of evidence, with the clauses that it covers."""
    listed = nodes.bullet_list(classes=["claim-evidence"])
    for each in claim.evidence:
        covers = ", ".join(map(str, each.covers))
        clauses = f" for {covers}" if covers and len(claim.clauses) > 1 else ""
        beside = "" if covers else " (beside the proof)"
        line = nodes.paragraph()
        line += nodes.strong(text=f"{KINDS[str(each.kind)]}{clauses}{beside}: ")
        line += plain(each.title.removeprefix("sharp: "))
        listed += nodes.list_item("", line)
    return listed


def _numbered(texts: tuple[str, ...]) -> nodes.enumerated_list:
    found = nodes.enumerated_list(enumtype="arabic", suffix=")", prefix="(")
    for text in texts:
        found += nodes.list_item("", nodes.paragraph("", "", plain(text)))
    return found


def _steps(evidence: Written | Counterexample) -> list[nodes.Node]:
    """The numbered steps; a mark where one is executed."""
    word = "Proof" if isinstance(evidence, Written) else "Counterexample"
    head = nodes.paragraph(classes=["claim-steps-head"])
    head += nodes.strong(text=f"{word}: ")
    head += plain(evidence.title)
    steps = nodes.enumerated_list(classes=["claim-steps"], enumtype="arabic", suffix=".")
    for step in evidence.steps:
        words = nodes.paragraph("", "", plain(step.words))
        if step.check is not None:
            said = "verified" if step.scope is Scope.GENERAL else f"illustrated: {step.scope}"
            words += nodes.inline(text=f" {said}", classes=["claim-executed"])
        steps += nodes.list_item("", words)
    return [head, steps]


def _note(label: str, words: str) -> nodes.paragraph:
    note = nodes.paragraph(classes=["claim-note"])
    note += nodes.strong(text=f"{label}: ")
    note += plain(words)
    return note


def _source(claim: Claim) -> nodes.paragraph:
    note = _note("Source", claim.source)
    if link := address(claim.name):
        note += nodes.Text(" · ")
        note += nodes.reference("", cited(claim.name), refuri=link, internal=False)
    note += nodes.Text(" · run it: ")
    note += nodes.literal(text=f"oversmoothing prove {claim.name}")
    note += nodes.Text(" · written in ")
    note += nodes.literal(text=files()[claim.name].relative_to(ROOT).as_posix())
    return note


class LedgerTotals(SphinxDirective):
    """How many claims stand how."""

    def run(self) -> list[nodes.Node]:
        """One sentence."""
        words = tally(claim.on_record for claim in ledger().values() if claim.on_record)
        chapters = len({re.match(r"T\d+", n)[0] for n in ledger() if n.startswith("T")})  # type: ignore[index]
        papers = len({cited(n) for n in ledger() if not n.startswith("T")})
        text = (
            f"There are {len(ledger())} claims, in {chapters} chapters of theory and on {papers} "
            f"papers: {words}."
        )
        return [nodes.paragraph(text=text)]


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
    """The claims that a reference names: itself, or its parts (T7b: T7b-certificate ...; T7)."""
    if reference in ledger():
        return [reference]
    return [name for name in ledger() if re.match(rf"{re.escape(reference)}(?![\d])", name)]


def _link(app: Sphinx, tree: nodes.document, docname: str) -> None:
    for text in list(tree.findall(nodes.Text)):
        above = list(_ancestors(text))
        if any(isinstance(node, _NOT_LINKED) for node in above):
            continue
        in_plain = isinstance(text.parent, nodes.inline) and "plain" in text.parent["classes"]
        pieces = _linked(app, str(text), docname, in_plain)
        if in_plain or len(pieces) > 1:
            text.parent.replace(text, pieces)


def _ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _linked(app: Sphinx, text: str, docname: str, in_plain: bool) -> list[nodes.Node]:
    def words(part: str) -> nodes.Node:
        return nodes.raw("", str(typeset(part)), format="html") if in_plain else nodes.Text(part)

    places = _places(app.env)
    pieces: list[nodes.Node] = []
    end = 0
    for found in REFERENCE.finditer(text):
        word = found.group()
        named = targets(word)
        if not named or named[0] not in places:
            continue
        # A whole chapter is its page.
        anchor = "" if re.fullmatch(r"T\d+", word) else f"#{named[0]}"
        pieces.append(words(text[end : found.start()]))
        uri = app.builder.get_relative_uri(docname, places[named[0]]) + anchor
        link = nodes.reference(word, word, refuri=uri, internal=True)
        if anchor:
            link["reftitle"] = title(named[0])
        pieces.append(link)
        end = found.end()
    pieces.append(words(text[end:]))
    return pieces


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and the links."""
    app.add_directive("claim", ClaimFold)
    app.add_directive("claims", Claims)
    app.add_directive("formula", Formula)
    app.add_directive("ledger-totals", LedgerTotals)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
    app.connect("doctree-resolved", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
