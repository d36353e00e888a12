"""What HFC/LFC tends to from generic X_0, and from the X_0 of a case (T4, T6, T14)."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.numbers.rounding import UNIT
from oversmoothing.theory.spectra.algebraic import CloseRootsError
from oversmoothing.theory.verdict.by_discs import CellDiscs
from oversmoothing.theory.verdict.comparison import Comparison
from oversmoothing.theory.verdict.decided_in_cell import decided_in_cell, merged
from oversmoothing.theory.verdict.disc_limits import DominantPair
from oversmoothing.theory.verdict.disc_start import DiscStart
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, agreed
from oversmoothing.theory.verdict.onset import Onset
from oversmoothing.theory.verdict.onset_floats import onset_of_cell
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.resolvent import has_every_mode
from oversmoothing.theory.verdict.start_content import start_content
from oversmoothing.theory.verdict.token_limits import UNKNOWN_TOKENS, TokenLimits, token_limits
from oversmoothing.theory.verdict.words import (
    AT_CONSENSUS,
    ILL_CONDITIONED,
    TOO_MANY_MODES,
    VANISHES,
    shown,
)

# States of short binary numbers up to so many entries are looked at token by token: under a second.
_SHORT_STATE = 24
_ZERO = Limits("zero", 0.0, 1)
# Outcomes for one X_0 that compare its modes.
_COMPARED = (Outcome.SMOOTHING, Outcome.NON_SMOOTHING, Outcome.TIE)


def generic_limits(case: Case, found: Comparison) -> Limits:
    """Limits for generic X_0.

    SMOOTHING is T4a. In floats the dominant pair decides, and what it leaves open the balls around
    all cases that round to the same. In fractions two seeded draws stand for all X_0 outside a null
    set: what they agree on holds for generic X_0 (the exceptions are algebraic), as far as such
    draws can show it; a limit on which they differ depends on X_0 and is None.
    """
    if case.n == 1:
        return _ZERO if found.rho_consensus and _lasts(case, found.cell) else UNKNOWN
    if found.outcome is Outcome.SMOOTHING:
        return _ZERO
    if found.cell is not None:
        behaviour = DominantPair(found.cell).generic(found.outcome)
        depends = found.outcome is Outcome.TIE and behaviour.tends_to == "constant"
        known = behaviour.whole or (depends and behaviour.limit_rank is not None)
        if known or found.cell.relative > UNIT:
            return behaviour
        return merged(behaviour, second=decided_in_cell(case, generic=True).limits)
    if found.outcome is Outcome.UNDECIDED:
        return UNKNOWN
    rng = np.random.default_rng(2401_04301)
    behaviour = agreed(*(_drawn_limits(case, rng) for _ in range(2)))
    if found.rank is None or (not found.rho_consensus and not found.rho_quotient):
        return behaviour
    return replace(behaviour, limit_rank=found.rank)


def _drawn_limits(case: Case, rng: np.random.Generator) -> Limits:
    draw = rng.integers(-(10**6), 10**6, size=(case.n, case.d))
    start = [[Fraction(int(x)) for x in row] for row in draw]
    content = start_content(case.rational_A, case.rational_H, start, case.classes, begins=False)
    return UNKNOWN if content is None else content.limits


@dataclass(frozen=True)
class OfStart:
    """What one X_0 leads to: limits, the verdict over the modes it contains, a sentence about it,
    from which layer on it shows what decides, and what its tokens do."""

    limits: Limits
    outcome: Outcome
    words: str = ""
    onset: Onset | None = None
    tokens: TokenLimits = UNKNOWN_TOKENS


def limits_of_start(case: Case, found: Comparison, generic: Outcome) -> OfStart:
    """What the X_0 (not 0) of a case leads to (T4e), exactly where the case is decidable.

    generic: the verdict for generic X_0, and found what it rests on.
    """
    if found.cell is not None:
        return _with_short_numbers(_start_in_floats(case, found.cell, generic), case)
    X0 = case.rational_X0
    assert X0 is not None
    content = start_content(case.rational_A, case.rational_H, X0, case.classes)
    if content is None:
        return _large_start(case, X0, generic)
    tokens = token_limits(content.tokens, case.d)
    if content.vanishes:
        return OfStart(content.limits, Outcome.UNDEFINED, VANISHES, tokens=tokens)
    if content.at_consensus:
        return OfStart(content.limits, Outcome.TRIVIAL, AT_CONSENSUS, tokens=tokens)
    outcome = outcome_of_sign(content.comparison)
    return OfStart(content.limits, outcome, shown(content.onset), content.onset, tokens)


def _with_short_numbers(found: OfStart, case: Case) -> OfStart:
    """What tokens do from binary64 numbers that mean what they say, and from which layer on X_0
    shows the same verdict: as from fractions. Rounding can turn a power of L, a phase or a cosine,
    so that nothing is said of the tokens of others."""
    exact = case.as_fractions() if case.n * case.d <= _SHORT_STATE else None
    if exact is None or exact.rational_X0 is None:
        return found
    try:
        content = start_content(exact.rational_A, exact.rational_H, exact.rational_X0)
    except CloseRootsError:
        return found
    if content is None:
        return found
    found = replace(found, tokens=token_limits(content.tokens, case.d))
    if found.outcome not in _COMPARED or outcome_of_sign(content.comparison) is not found.outcome:
        return found
    return replace(found, words=shown(content.onset), onset=content.onset)


def _large_start(case: Case, X0: Matrix, generic: Outcome) -> OfStart:
    """Where the resolvent is too large: an X_0 that contains every mode behaves as generic ones."""
    if len(set(map(tuple, X0))) == 1:
        return _at_consensus(case, None)
    if has_every_mode(case.rational_A, case.rational_H, X0):
        return OfStart(_ZERO if generic is Outcome.SMOOTHING else UNKNOWN, generic)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES)


def _start_in_floats(case: Case, cell: CellDiscs, generic: Outcome) -> OfStart:
    """The same from discs, and what they leave open from all cases that round to the same floats,
    as far as these agree; else UNDECIDED."""
    assert case.X0 is not None
    if (case.X0[0] == case.X0).all():
        return _at_consensus(case, cell)
    pair = DominantPair(cell)
    found = DiscStart(pair).contained(generic)
    outcome, known = found.outcome, found.limits
    if outcome is not Outcome.SMOOTHING and not known.whole:
        shared = decided_in_cell(case, generic=False)
        outcome = shared.outcome if outcome is Outcome.UNDECIDED else outcome
        known = merged(known, second=shared.limits)
        if known.tends_to is None and pair.without_mean(outcome):
            known = Limits("infinity", float("inf"), known.limit_rank)
    if outcome is Outcome.UNDECIDED:
        return OfStart(known, outcome, ILL_CONDITIONED)
    tends_to = "zero" if outcome is Outcome.SMOOTHING else known.tends_to
    begins = onset_of_cell(cell, tends_to)
    return OfStart(known, outcome, shown(begins), begins)


def _at_consensus(case: Case, cell: CellDiscs | None) -> OfStart:
    """X_0 = 1 c^T stays at consensus, whatever A is, with c' = c (I + W): exactly 0 from some depth
    on where c is in the nilpotent part of I + H, as given (T11.1)."""
    X0 = case.rational_X0
    assert X0 is not None
    content = start_content([[Fraction(1)]], case.rational_H, X0[:1])
    if content is not None:
        if content.vanishes:
            return OfStart(UNKNOWN, Outcome.UNDEFINED, VANISHES)
        return OfStart(_ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    if _lasts(case, cell, all_modes=True):
        return OfStart(_ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES)


def _lasts(case: Case, cell: CellDiscs | None, all_modes: bool = False) -> bool:
    """Whether some mode of consensus (or each) keeps it from dying out: 1 + h is not 0 anywhere in
    its disc; in fractions none is unknown."""
    if cell is None:
        return True
    beyond = cell.consensus.low[0] > 0
    return bool(beyond.all() if all_modes else beyond.any())
