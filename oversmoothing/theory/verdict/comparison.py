"""rho_C against rho_Q for one case, exactly or in float64, with the words that say it (T2, T3)."""

from dataclasses import dataclass

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.numbers.rounding import UNIT
from oversmoothing.theory.spectra.radii import Interval
from oversmoothing.theory.spectra.spectrum import Spectrum, spectra_of
from oversmoothing.theory.verdict.by_discs import CellDiscs, cell_discs, decide_cell
from oversmoothing.theory.verdict.decided_in_cell import decided_in_cell
from oversmoothing.theory.verdict.exact_comparison import (
    ExactDominance,
    Mode,
    exact_dominance,
    generic_rank,
    jordan_size,
)
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.words import compared, number

# Of a radius: where its enclosure is wider, rounding has left no digit worth saying.
_NO_DIGIT = 2.0**-10


@dataclass(frozen=True)
class Comparison:
    """The outcome for generic X_0, by status "exact", "certified" (by discs or balls, for all that
    rounds to the case) or "numerical" (rounding decides), both radii, and why.

    attention, value: the spectra in float64. rank: the asymptotic rank for generic X_0 where exact
    arithmetic knows it (T4c). vague: of either radius rounding leaves no digit. cell: the discs of
    a case in floats. error: how far rho_C - rho_Q may be off by rounding.
    """

    outcome: Outcome
    status: str
    rho_consensus: float
    rho_quotient: float
    reason: str
    attention: Spectrum
    value: Spectrum
    rank: int | None = None
    vague: tuple[bool, bool] = (False, False)
    cell: CellDiscs | None = None
    error: float = 0.0


def compare_radii(case: Case, relative: float = UNIT) -> Comparison:
    """Exactly where the case allows it, else for everything within the rounding of its entries,
    with UNDECIDED where that decides. relative: how well they are known, if not as float64."""
    return _exactly(case) if case.decidable else _numerically(case, relative)


def _exactly(case: Case) -> Comparison:
    found = exact_dominance(case.rational_A, case.rational_H)
    outcome = outcome_of_sign(found.comparison)
    rho_c, rho_q = (float(found.radius(side).mid()) for side in (True, False))
    if outcome is Outcome.TIE:
        rho_q = rho_c
    reason = _exact_reason(found, outcome, rho_c, rho_q) if found.quotient else ""
    return Comparison(
        outcome, "exact", rho_c, rho_q, reason, *spectra_of(case), generic_rank(found)
    )


def _exact_reason(found: ExactDominance, outcome: Outcome, rho_c: float, rho_q: float) -> str:
    if outcome is Outcome.UNDECIDED:
        return (
            f"the radii agree to over 16000 bits (rho_C = {rho_c:.12g}, rho_Q = {rho_q:.12g}); to "
            f"prove them equal would take {found.bits_needed} bits, more than this tool spends."
        )
    consensus, quotient = _mode_words(found.consensus[0]), _mode_words(found.quotient[0])
    reason = compared(outcome, f"{rho_c:.6g}", f"{rho_q:.6g}", consensus, quotient)
    if outcome is Outcome.TIE:
        s_c = max(map(jordan_size, found.consensus))
        s_q = max(map(jordan_size, found.quotient))
        reason += (
            f" Jordan blocks of size {s_c} (consensus) and {s_q} (quotient) sit there: for generic "
            f"X_0 ||HFC||/||c|| goes like L^{s_q - s_c}, c the pi-mean (T6b)."
        )
    return reason


def _mode_words(mode: Mode) -> str:
    h = complex(mode.value.ball(64).mid())
    a = 1.0 if mode.attention is None else complex(mode.attention.ball(64).mid())
    return f"h = {number(h)}, a = {number(complex(a))}"


def _numerically(case: Case, relative: float) -> Comparison:
    cell = cell_discs(case, relative)
    found = decide_cell(cell)
    outcome, consensus, quotient = found.outcome, found.consensus, found.quotient
    if outcome is Outcome.UNDECIDED and relative == UNIT:
        outcome = decided_in_cell(case, generic=True).outcome
    rho_c, rho_q = consensus.shown, quotient.shown
    if outcome is Outcome.TIE:
        rho_q = rho_c
    attention, value = cell.spectra
    reason = _numerical_reason(outcome, attention, value, consensus, quotient)
    vague = (_vague(consensus), _vague(quotient))
    open_ = outcome is Outcome.UNDECIDED and case.n > 1
    status = "numerical" if open_ else "certified"
    error = (consensus.high - consensus.low) / 2 + (quotient.high - quotient.low) / 2
    return Comparison(
        outcome, status, rho_c, rho_q, reason, attention, value, None, vague, cell, error
    )


def _vague(radius: Interval) -> bool:
    return not radius.high - radius.low <= _NO_DIGIT * radius.shown


def _shown(radius: Interval) -> str:
    if not _vague(radius):
        return f"{radius.shown:.6g}"
    # Outwards, by more than printing rounds.
    return f"{0.99 * max(0.0, radius.low):.3g} to {1.01 * radius.high:.3g}"


def _numerical_reason(
    outcome: Outcome, attention: Spectrum, value: Spectrum, consensus: Interval, quotient: Interval
) -> str:
    if quotient.index is None or consensus.index is None:
        return ""
    if outcome is Outcome.UNDECIDED:
        return (
            f"rounding decides: rho_C = {consensus.shown:.12g} +- "
            f"{(consensus.high - consensus.low) / 2:.1e} and rho_Q = {quotient.shown:.12g} +- "
            f"{(quotient.high - quotient.low) / 2:.1e} overlap. Write the entries as fractions "
            '("-4/3") for an exact decision; for a head of rank r < d pass W=(W_V, W_proj).'
        )
    i, j = quotient.index
    h_c, h_q = value.values[consensus.index[1]], value.values[j]
    return compared(
        outcome,
        _shown(consensus),
        _shown(quotient),
        f"h = {number(complex(h_c))}, a = 1",
        f"h = {number(complex(h_q))}, a = {number(complex(attention.values[i]))}",
    )
