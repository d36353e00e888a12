"""The ledger of claims as the report shows it: every statement with its formula and its evidence.

A status is the one on record. The report runs no proof: `oversmoothing prove` does, and the tests
hold every claim to its record.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from oversmoothing.simulations.drawing.web.web_page import typeset
from oversmoothing.theory.proofs.claim import Claim
from oversmoothing.theory.proofs.ledger import claims
from oversmoothing.theory.proofs.mathml import mathml

# The statements that open the report, each in one sentence of its own.
OPENING = {
    "T2b": "One real eigenvalue h of H, against the smallest real eigenvalue a of the attention:",
    "T3b": "The same in the complex plane, for any other eigenvalue a: inside a disc h loses.",
    "T3c": "One disc lies in all of these: there h loses whatever the attention is.",
    "T5a": "How fast: the factor of HFC/LFC per layer, in the long run.",
    "T4c": "Rank is another matter: it collapses where one pair dominates, smoothing or not.",
    "T7b-rotation": "Weights that change by layer can smooth though each layer alone does not.",
}


def opening() -> list[dict[str, Any]]:
    """The statements of `OPENING` with their formulas, in its order."""
    known = claims()
    return [
        {
            "name": name,
            "words": words,
            "status": _status(known[name]),
            "formula": _formula(known[name]),
        }
        for name, words in OPENING.items()
    ]


def ledger() -> list[dict[str, Any]]:
    """Every claim, in the order of T-numbers, papers last."""
    return [_row(claim) for claim in claims().values()]


def _row(claim: Claim) -> dict[str, Any]:
    kinds: dict[str, list[Markup]] = {}
    for piece in claim.evidence:
        kinds.setdefault(str(piece.kind), []).append(typeset(piece.title))
    return {
        "name": claim.name,
        "on_record": claim.on_record,
        "status": _status(claim),
        "short": _status(claim).split()[0],
        "clauses": [typeset(clause) for clause in claim.clauses],
        "formula": _formula(claim),
        "source": typeset(claim.source),
        "wording": typeset(claim.wording),
        "of": "paper" if claim.name.startswith(("P-", "N-")) else "theory",
        "hypotheses": [typeset(hypothesis.words) for hypothesis in claim.hypotheses],
        "evidence": kinds,
        "repaired_by": claim.repaired_by,
    }


def _status(claim: Claim) -> str:
    return str(claim.on_record)


def _formula(claim: Claim) -> Markup:
    return Markup(mathml(claim.latex, display=True))
