"""The verdict in float64: intervals for both radii, never a guess at a near-tie.

Each eigenvalue comes with an error estimate (theory.spectra.spectrum); the radii become intervals,
and only disjoint intervals, or equal ones that structure gives exactly, are a verdict.
"""

from oversmoothing.theory.spectra.radii import Interval, consensus_interval, quotient_interval
from oversmoothing.theory.spectra.spectrum import Spectrum
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of


def compare(attention: Spectrum, value: Spectrum) -> tuple[Outcome, Interval, Interval]:
    """Verdict (possibly UNDECIDED) with the two intervals (T2, T3)."""
    consensus = consensus_interval(value)
    quotient = quotient_interval(attention, value)
    rest = _off_one(attention)
    other = quotient_interval(rest, value)
    low, high = consensus.low - other.high, consensus.high - other.low
    if len(rest) < len(attention):
        # 1 repeats, so rho_Q >= rho_C exactly: only the other eigenvalues can make it more.
        low, high = min(low, 0.0), min(high, 0.0)
    return outcome_of(low, high), consensus, quotient


def _off_one(attention: Spectrum) -> Spectrum:
    """The eigenvalues without the exact further copies of 1."""
    keep = ~(attention.exact & (attention.values == 1))
    return Spectrum(attention.values[keep], attention.errors[keep], attention.exact[keep])
