"""The ledger as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment

from theory.claims.ledger import Entry
from theory.claims.report import to_json_object, totals
from theory.provenance import provenance


def page(entries: Sequence[Entry]) -> str:
    """HTML of the ledger, claims in the order given."""
    source = resources.files("simulations").joinpath("prove_page.html").read_text("utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(
        claims=to_json_object(entries), totals=totals(entries), provenance=provenance()
    )
