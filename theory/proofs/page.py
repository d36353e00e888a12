"""The ledger as one self-contained page."""

from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment
from markupsafe import Markup

from oversmoothing.theory.proofs.ledger import Entry
from oversmoothing.theory.proofs.mathml import mathml
from oversmoothing.theory.proofs.report import to_json_object, totals
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.provenance import provenance


def page(entries: Sequence[Entry]) -> str:
    """HTML of the ledger, claims in the order given, formulas as MathML.

    Raises `InputError` where one is none.
    """
    source = resources.files("oversmoothing.theory.proofs").joinpath("page.html").read_text("utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(
        claims=to_json_object(entries),
        formulas={e.claim.name: Markup(_formula(e)) for e in entries if e.claim.latex},
        names={entry.claim.name for entry in entries},
        totals=totals(entries),
        provenance=provenance(),
    )


def _formula(entry: Entry) -> str:
    try:
        return mathml(entry.claim.latex, display=True)
    except ValueError as error:
        raise InputError(f"the formula of {entry.claim.name}: {error}") from error
