"""The record in the book: ```{claim-record}```, every statement on a paper in one row.

The table is complete without a script; docs/_static/record.js adds the fields that filter it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from claims import ledger
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from oversmoothing.theory.proofs.claim import LEFT_OUT, OUR_READING, THE_PAPERS, Claim, tally
from oversmoothing.theory.proofs.evidence import Counterexample

_NAME = re.compile(r"[PN]-(?P<paper>\d{4}\.\d{5}|[a-z]+\d{4})(?P<version>v\d)?-")
_VERSION = re.compile(r"\b(v\d)\b")
# Papers without an arXiv number, by the word and the year of their claims.
_TITLES = {"clustering2026": "Token clustering in Lean (2026)"}

HEADS = (
    "paper",
    "version",
    "statement",
    "wording",
    "status",
    "region",
    "counterexample",
    "what holds instead",
    "command",
)


@dataclass(frozen=True)
class Row:
    """One statement: its cells in the order of HEADS, and the claim's name, which links to it."""

    name: str
    cells: tuple[str, ...]


def paper(claim: Claim) -> str:
    """By arXiv number, or by title where it has none. Raises ValueError for the theory's own."""
    found = _NAME.match(claim.name)
    if found is None:
        raise ValueError(f"{claim.name} is on no paper")
    return _TITLES.get(found["paper"], f"arXiv {found['paper']}")


def version(claim: Claim) -> str:
    """The paper's version, where the claim's name or its source says it."""
    found = _NAME.match(claim.name)
    said = (found and found["version"]) or _VERSION.findall(claim.source)[:1]
    return "".join(said) or "not known"


def wording(claim: Claim) -> str:
    """Whose words the statement has: the paper's, our reading of it, or ours on its subject."""
    if claim.wording:
        return OUR_READING if claim.wording.startswith(OUR_READING) else "the paper's words"
    if claim.source.startswith("ours"):
        return "ours"
    if any(OUR_READING in text for text in (claim.source, *claim.clauses)):
        return OUR_READING
    return "as its source has it"


def _condition(claim: Claim) -> str:
    """What follows in the claim's own words, after whose they are."""
    said = claim.wording.removeprefix(OUR_READING).removeprefix(THE_PAPERS[0]).lstrip(",: ")
    return said and f": {said}"


def region(claim: Claim) -> str:
    """Where the statement is made: its hypotheses and its setting."""
    return "; ".join([h.words for h in claim.hypotheses] + [claim.setting] * bool(claim.setting))


def counterexample(claim: Claim) -> str:
    """The exact numbers, and what they are, of a refuted statement."""
    found = [e for e in claim.evidence if isinstance(e, Counterexample)]
    return "; ".join(f"{e.title}: {e.numbers}" for e in found)


def rows() -> list[Row]:
    """One row a statement of the ledger on a paper, in the order of the ledger."""
    return [
        Row(
            claim.name,
            (
                paper(claim),
                version(claim),
                claim.statement,
                f"{wording(claim)} ({claim.source}){_condition(claim)}",
                claim.on_record.value if claim.on_record else "",
                region(claim),
                counterexample(claim),
                claim.repaired_by or "",
                f"oversmoothing prove {claim.name}",
            ),
        )
        for claim in ledger().values()
        if not claim.name.startswith("T")
    ]


def _refuted() -> str:
    """How many are refuted, in whose words, and how many without a condition of the paper."""
    refuted = [claim for claim in ledger().values() if claim.on_record and claim.on_record.refuted]
    left_out = sum(claim.wording.startswith(LEFT_OUT) for claim in refuted)
    counts = tally(claim.on_record for claim in refuted if claim.on_record)
    return (
        f"Among them are {counts}; {left_out} of the readings leave out a condition that the paper "
        "makes, and what refutes them does not touch the paper."
    )


class ClaimRecord(SphinxDirective):
    """All statements on papers, in one table."""

    def run(self) -> list[nodes.Node]:
        """A sentence with the counts, and the table; the names in it become links."""
        found = rows()
        papers = len({row.cells[0] for row in found})
        beyond = [row for row in found if row.cells[0] != "arXiv 2401.04301"]
        words = (
            f"On record are {len(found)} statements on {papers} papers, {len(beyond)} of them on "
            f"the {len({row.cells[0] for row in beyond})} papers beyond arXiv 2401.04301. "
            f"{_refuted()}"
        )
        return [nodes.paragraph(text=words), _table(found)]


def _table(found: list[Row]) -> nodes.Node:
    table = nodes.table(classes=["claim-table", "claim-record"])
    group = nodes.tgroup(cols=len(HEADS))
    table += group
    for _ in HEADS:
        group += nodes.colspec(colwidth=1)
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += _row([nodes.paragraph(text=each) for each in HEADS])
    for row in found:
        # The name stands in front of its statement, and the command is to be copied as it is.
        cells = [nodes.paragraph(text=text) for text in row.cells]
        cells[2].insert(0, nodes.Text(f"{row.name}: "))
        cells[-1] = nodes.paragraph("", "", nodes.literal(text=row.cells[-1]))
        body += _row(cells)
    return table


def _row(cells: list[nodes.paragraph]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", cell)
    return row


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the script that filters its table."""
    app.add_directive("claim-record", ClaimRecord)
    app.add_js_file("record.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
