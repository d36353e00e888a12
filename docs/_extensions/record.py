"""The record in the book: ```{claim-record}```, every claim of the ledger in one row.

The table is complete without a script; docs/_static/book.js adds the fields that filter it.
"""

from __future__ import annotations

import re

from claims import KINDS, ledger, plain, title
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from oversmoothing.theory.proofs.claim import LEFT_OUT, OUR_READING, Claim, cited, tally
from oversmoothing.theory.proofs.evidence import Counterexample

HEADS = ("claim", "about", "says", "status", "words of", "evidence")


def about(claim: Claim) -> str:
    """The chapter of the theory, or the paper by author and year."""
    chapter = re.match(r"T\d+", claim.name)
    return chapter[0] if chapter else cited(claim.name)


def wording(claim: Claim) -> str:
    """Whose words the statement has: the paper's, our reading of it, or ours."""
    if claim.wording:
        return OUR_READING if claim.wording.startswith(OUR_READING) else "the paper"
    if claim.source.startswith("ours") or claim.name.startswith("T"):
        return "ours"
    if any(OUR_READING in text for text in (claim.source, *claim.clauses)):
        return OUR_READING
    return "its source"


def _refuted() -> str:
    """How many are refuted, in whose words, and how many without a condition of the paper."""
    refuted = [claim for claim in ledger().values() if claim.on_record and claim.on_record.refuted]
    left_out = sum(claim.wording.startswith(LEFT_OUT) for claim in refuted)
    counts = tally(claim.on_record for claim in refuted if claim.on_record)
    return (
        f"Among them are {counts}. {left_out} of our readings leave out a condition that the paper "
        "makes; what refutes such a reading does not touch the paper."
    )


class ClaimRecord(SphinxDirective):
    """All claims in one table."""

    def run(self) -> list[nodes.Node]:
        """A sentence with the counts, and the table; the names in it become links."""
        found = list(ledger().values())
        papers = [claim for claim in found if not claim.name.startswith("T")]
        words = (
            f"The record has {len(found)} claims: {len(found) - len(papers)} of the theory, and "
            f"{len(papers)} on {len({cited(claim.name) for claim in papers})} papers. {_refuted()}"
        )
        return [nodes.paragraph(text=words), _table(found)]


def _says(claim: Claim) -> list[nodes.paragraph]:
    """What it says; of a refuted statement also the numbers, and what holds instead."""
    lines = [nodes.paragraph("", "", plain(title(claim.name)))]
    for each in claim.evidence:
        if isinstance(each, Counterexample):
            lines.append(nodes.paragraph("", "", plain(f"Counterexample: {each.numbers}")))
    if claim.repaired_by:
        lines.append(nodes.paragraph("", "", plain(f"What holds instead: {claim.repaired_by}")))
    return lines


def _table(found: list[Claim]) -> nodes.Node:
    table = nodes.table(classes=["claim-record"])
    group = nodes.tgroup(cols=len(HEADS))
    table += group
    group += [nodes.colspec(colwidth=1) for _ in HEADS]
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += _row([[nodes.paragraph(text=each)] for each in HEADS])
    for claim in found:
        kinds = dict.fromkeys(KINDS[str(each.kind)] for each in claim.evidence)
        texts = [claim.name, about(claim), None, str(claim.on_record), wording(claim)]
        cells = [_says(claim) if text is None else [nodes.paragraph(text=text)] for text in texts]
        body += _row([*cells, [nodes.paragraph(text="; ".join(kinds))]])
    return table


def _row(cells: list[list[nodes.paragraph]]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", *cell)
    return row


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("claim-record", ClaimRecord)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
