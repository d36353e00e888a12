"""A numerical verdict made rigorous: its word and its radii replaced by certified ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from theory.case import Case
from theory.certificates.certificate import EXACT_FALLBACK_SIZE
from theory.certificates.dominance import CertifiedDominance, certified_dominance
from theory.exact import exact_dominance
from theory.verdict_object import Verdict

Array = NDArray[np.float64]
_NAMES = {1: "SMOOTHING", -1: "NON_SMOOTHING", 0: "TIE", None: "UNDECIDED"}


def certify_case(case: Case, numerical: Verdict) -> Verdict:
    """Certify the verdict on binary64 input: discs in float64, else exactly where small enough."""
    found = certified_dominance(case.given_A, case.H)
    if found.verdict == "UNDECIDED" and max(case.n, case.d) <= EXACT_FALLBACK_SIZE:
        exact = exact_dominance(case.rational_A, case.rational_H)
        return replace(
            numerical,
            verdict=_word(numerical, _NAMES[exact.comparison]),
            status="numerical" if exact.comparison is None else "certified",
            rho_consensus=float(exact.radius(True).mid()),
            rho_quotient=float(exact.radius(False).mid()) if case.n > 1 else None,
            reason=f"decided on the exact binary64 values (rows of A divided by their sums); "
            f"in float64 alone: {found.reason}.",
        )
    return _merged(numerical, found)


def certify_head(case: Case, numerical: Verdict, factors: tuple[Array, Array]) -> Verdict:
    """The same for one head, through its r x r core."""
    return _merged(numerical, certified_dominance(case.given_A, factors=factors))


def _word(numerical: Verdict, word: str) -> str:
    return numerical.verdict if numerical.verdict in ("TRIVIAL", "UNDEFINED") else word


def _merged(numerical: Verdict, found: CertifiedDominance) -> Verdict:
    consensus, quotient = found.consensus, found.quotient
    if found.verdict == "UNDECIDED" or consensus is None:
        return replace(
            numerical,
            verdict=_word(numerical, "UNDECIDED"),
            reason=f"not certified: {found.reason}",
        )
    return replace(
        numerical,
        verdict=_word(numerical, found.verdict),
        status="certified",
        rho_consensus=(consensus.low + consensus.high) / 2,
        rho_quotient=None if quotient is None else (quotient.low + quotient.high) / 2,
        reason=f"certified: {found.reason} ({found.method}). {numerical.reason}",
    )
