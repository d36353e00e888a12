"""Certified radii and verdicts from two enclosed spectra: nothing here can be wrong by rounding.

The float64 path proves discs around both spectra (theory.spectra.discs) and compares
moduli with outward rounding. What it cannot separate is left to theory.certificates.stages.
"""

from dataclasses import dataclass

import numpy as np

from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.spectra.discs import Discs, Failure
from oversmoothing.theory.spectra.layer_discs import attention_discs_all, head_discs, value_discs
from oversmoothing.theory.spectra.radii import Interval, consensus_radius, quotient_radius
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of


@dataclass(frozen=True)
class CertifiedDominance:
    """A certified comparison of rho_C and rho_Q.

    verdict: SMOOTHING, NON_SMOOTHING, TIE (outside exact arithmetic by structure only: an exact 0
    in spec(H), or 1 repeated in spec(A)), TRIVIAL or UNDECIDED. gap: bounds of rho_C - rho_Q where
    they are known better than from the two radii.
    """

    verdict: Outcome
    consensus: Interval | None
    quotient: Interval | None
    reason: str
    method: str
    gap: tuple[float, float] | None = None

    @property
    def margin(self) -> tuple[float, float] | None:
        """(low, high) of rho_C - rho_Q, rounded outward."""
        if self.gap is not None or self.consensus is None or self.quotient is None:
            return self.gap
        low = np.nextafter(self.consensus.low - self.quotient.high, -np.inf)
        high = np.nextafter(self.consensus.high - self.quotient.low, np.inf)
        return float(low), float(high)


def certify_spectra(
    attention: Discs | Failure, value: Discs | Failure, repeated: int = 0
) -> CertifiedDominance:
    """Compare the radii. repeated: further copies of the eigenvalue 1 that A is known to have."""
    method = "float64 with a-priori rounding bounds"
    consensus = None if isinstance(value, Failure) else consensus_radius(value)
    if isinstance(attention, Discs) and len(attention) == 0:
        return CertifiedDominance(
            Outcome.TRIVIAL, consensus, None, "one token only (n = 1): there is no quotient", method
        )
    for name, found in (("A", attention), ("H", value)):
        if isinstance(found, Failure):
            return CertifiedDominance(
                Outcome.UNDECIDED,
                None,
                None,
                f"spec({name}) was not enclosed: {found.reason}",
                method,
            )
    assert isinstance(attention, Discs) and isinstance(value, Discs) and consensus is not None
    quotient = quotient_radius(attention, value)
    if repeated:
        # rho_Q >= rho_C exactly: smoothing is excluded, and a tie cannot be told from enclosures.
        quotient = Interval(max(quotient.low, consensus.low), quotient.high)
    return _decide(consensus, quotient, repeated, method)


def _decide(
    consensus: Interval, quotient: Interval, repeated: int, method: str
) -> CertifiedDominance:
    c, q = consensus, quotient
    also = f" (the eigenvalue 1 of A occurs {repeated + 1} times)" if repeated else ""
    reasons = {
        Outcome.SMOOTHING: f"rho_C >= {c.low:.12g} > {q.high:.12g} >= rho_Q",
        Outcome.NON_SMOOTHING: f"rho_Q >= {q.low:.12g} > {c.high:.12g} >= rho_C",
        Outcome.TIE: f"rho_C = rho_Q = {c.low:.12g} by structure",
        Outcome.UNDECIDED: f"rho_C in [{c.low:.12g}, {c.high:.12g}] and rho_Q in "
        f"[{q.low:.12g}, {q.high:.12g}] overlap{also}",
    }
    outcome = outcome_of(c.low - q.high, c.high - q.low)
    return CertifiedDominance(outcome, consensus, quotient, reasons[outcome], method)


def certified_dominance(
    A: Array, H: Array | None = None, factors: tuple[Array, Array] | None = None
) -> CertifiedDominance:
    """The fast path: A [n, n] float64 >= 0 (meaning A_ij / sum), H [d, d] or the head's factors.

    Success and UNDECIDED are the outcomes; a wrong verdict is not one of them.
    """
    return certified_dominances(A[None], given_discs(H, factors))[0]


def given_discs(H: Array | None, factors: tuple[Array, Array] | None) -> Discs | Failure:
    """spec(H) from whichever was given."""
    if factors is not None:
        return head_discs(*factors)
    if H is None:
        raise ValueError("give H or the factors of the head")
    return value_discs(H)


def certified_dominances(A: Array, value: Discs | Failure) -> list[CertifiedDominance]:
    """One value projection against each attention of a stack [m, n, n], in batched products."""
    return [
        certify_spectra(found, value, len(closed_classes(each)) - 1)
        for found, each in zip(attention_discs_all(A), A, strict=True)
    ]
