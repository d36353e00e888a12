"""A verdict about the binary numbers themselves: its word and radii are those of certificates."""

from dataclasses import replace

from oversmoothing.theory.certificates.stages import decide
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.outcome import Outcome


def certify_case(case: Case, of_cell: Verdict) -> Verdict:
    """The verdict by the first stage that reaches one (theory.certificates.stages).

    of_cell: that on all that rounds to the case; what it decides holds for the case too.
    """
    found, _ = decide(case)
    special = of_cell.verdict in (Outcome.TRIVIAL, Outcome.UNDEFINED)
    word = of_cell.verdict if special else found.verdict
    if found.verdict is Outcome.UNDECIDED:
        if not special and of_cell.verdict is not Outcome.UNDECIDED:
            return replace(of_cell, point=True)
        reason = f"not certified: {found.reason} ({found.method})"
        return replace(of_cell, verdict=word, reason=reason, point=True)
    consensus, quotient = found.consensus, found.quotient
    return replace(
        of_cell,
        verdict=word,
        status="certified",
        rho_consensus=None if consensus is None else consensus.shown,
        rho_quotient=None if quotient is None else quotient.shown,
        reason=f"certified: {found.reason} ({found.method}). {of_cell.reason}",
        point=True,
    )
