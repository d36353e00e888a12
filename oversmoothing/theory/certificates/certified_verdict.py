"""A numerical verdict made rigorous: its word and its radii replaced by certified ones."""

from dataclasses import replace

from oversmoothing.theory.certificates.stages import decide
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.outcome import Outcome


def certify_case(case: Case, numerical: Verdict) -> Verdict:
    """Certify the verdict by the first stage that reaches one (theory.certificates.stages)."""
    found, _ = decide(case)
    special = numerical.verdict in (Outcome.TRIVIAL, Outcome.UNDEFINED)
    word = numerical.verdict if special else found.verdict
    if found.verdict is Outcome.UNDECIDED:
        reason = f"not certified: {found.reason} ({found.method})"
        return replace(numerical, verdict=word, reason=reason)
    consensus, quotient = found.consensus, found.quotient
    return replace(
        numerical,
        verdict=word,
        status="certified",
        rho_consensus=None if consensus is None else consensus.shown,
        rho_quotient=None if quotient is None else quotient.shown,
        reason=f"certified: {found.reason} ({found.method}). {numerical.reason}",
    )
