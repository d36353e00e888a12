"""A run of the ledger as one page, in the style of every page: `oversmoothing prove --out`."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from oversmoothing.simulations.drawing.web_page import web_page
from oversmoothing.simulations.running import provenance
from oversmoothing.theory.proofs.claim import cited
from oversmoothing.theory.proofs.ledger import Entry
from oversmoothing.theory.proofs.mathml import mathml
from oversmoothing.theory.proofs.report import to_json_object, totals
from oversmoothing.theory.support.errors import InputError

# Claims up to this number stand open; of more a reader opens what is wanted.
FEW = 3


def page(entries: Sequence[Entry]) -> str:
    """HTML of the claims that were run, in the order given, formulas as MathML.

    Raises `InputError` where one is none.
    """
    claims = to_json_object(entries)
    for claim, entry in zip(claims, entries, strict=True):
        failing = any(each["holds"] is False for each in claim["evidence"])
        claim |= {
            "as_recorded": entry.as_recorded,
            "short": claim["status"].split()[0],
            "of": cited(entry.claim.name),
            "kinds": list(dict.fromkeys(each["kind"] for each in claim["evidence"])),
            "open": len(entries) <= FEW or failing or not entry.as_recorded,
            "formula": _formula(entry),
        }
    return web_page(
        "oversmoothing.simulations.against_theory",
        "ledger_page.html",
        claims=claims,
        names={entry.claim.name for entry in entries},
        statuses=sorted({claim["status"] for claim in claims}),
        sources=sorted({claim["of"] for claim in claims}),
        kinds=sorted({kind for claim in claims for kind in claim["kinds"]}),
        totals=totals(entries).splitlines(),
        provenance=provenance(),
    )


def _formula(entry: Entry) -> Markup:
    if not entry.claim.latex:
        return Markup()
    try:
        return Markup(mathml(entry.claim.latex, display=True))
    except ValueError as error:
        raise InputError(f"the formula of {entry.claim.name}: {error}") from error
