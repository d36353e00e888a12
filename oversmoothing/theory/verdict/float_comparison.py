"""The verdict in float64: intervals for both radii, never a guess at a near-tie.

Each eigenvalue comes with an error estimate (theory.spectra.spectrum); the radii become intervals,
and only disjoint intervals, or equal ones that structure gives exactly, are a verdict.
"""

import numpy as np

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
    outcome = outcome_of(low, high)
    if outcome is Outcome.UNDECIDED and len(rest) == len(attention) > 0:
        outcome = _for_every_attention(value)
    return outcome, consensus, quotient


def _for_every_attention(value: Spectrum) -> Outcome:
    """The outcome that spec(H) alone settles, for every A with a simple eigenvalue 1 (T2d, T3d).

    |a| <= 1 and a != 1: a real h in [-1, 0) has |1 + h a| > |1 + h|, and a real h > 0 has
    |1 + h a| < 1 + h, however close to 1 (or to -1) a may be.
    """
    h, error = value.values, value.errors
    apart = np.abs(h[:, None] - h[None, :]) > error[:, None] + error[None, :]
    np.fill_diagonal(apart, True)
    # A matrix of real numbers: an eigenvalue with no other near it is its own conjugate.
    real = (h.imag == 0) & apart.all(axis=1)
    low, high = h.real - error, h.real + error
    if (real & (low >= -1) & (high < 0)).all():
        return Outcome.NON_SMOOTHING
    top = np.where(real, low, 0.0).max()
    if ((real & (low > 0)) | (np.abs(h) + error < top)).all():
        return Outcome.SMOOTHING
    return Outcome.UNDECIDED


def _off_one(attention: Spectrum) -> Spectrum:
    """The eigenvalues without the exact further copies of 1."""
    keep = ~(attention.exact & (attention.values == 1))
    return Spectrum(attention.values[keep], attention.errors[keep], attention.exact[keep])
