"""What one X_0 leads to: limits, the verdict over the modes it contains, its tokens (T4e, T14)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.depth.onset import Onset
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.numbers.exact import Matrix, plus
from oversmoothing.theory.spectra.heads import ManyHeads
from oversmoothing.theory.support.errors import CloseRootsError
from oversmoothing.theory.verdict.answer import (
    AT_CONSENSUS,
    ILL_CONDITIONED,
    NOT_SHOWN,
    TOO_MANY_MODES,
    VANISHES,
    left_out_for_cost,
    shown,
)
from oversmoothing.theory.verdict.by_cells import decided_in_cell
from oversmoothing.theory.verdict.by_discs import CellDiscs, cell_discs
from oversmoothing.theory.verdict.by_projectors import by_projectors
from oversmoothing.theory.verdict.cosines import UNKNOWN_TOKENS, TokenLimits, token_limits
from oversmoothing.theory.verdict.decide import Comparison, lasts
from oversmoothing.theory.verdict.disc_parts import heads_contained, limits_of_heads
from oversmoothing.theory.verdict.disc_start import DiscStart, onset_of_cell
from oversmoothing.theory.verdict.formulas import COMPARED, Outcome
from oversmoothing.theory.verdict.limits import UNKNOWN, ZERO, Limits, infinite, merged
from oversmoothing.theory.verdict.resolvent import (
    LARGEST_WORK,
    QUICK_WORK,
    has_every_mode,
    resolvent_seconds,
)
from oversmoothing.theory.verdict.start import Content, start_content

# States of short binary numbers up to so many entries are looked at token by token: under a second.
_SHORT_STATE = 24
# Others that an X_0 has whatever leads, in words.
_SETTLED = {Outcome.UNDEFINED: VANISHES, Outcome.TRIVIAL: AT_CONSENSUS}


def drawn_limits(case: Layer) -> Iterator[Limits]:
    """Limits of two seeded draws of X_0, in fractions."""
    rng = np.random.default_rng(2401_04301)
    for _ in range(2):
        yield _of_draw(case, rng.integers(-(10**6), 10**6, size=(case.n, case.d)))


def _of_draw(case: Layer, draw: NDArray[np.int64]) -> Limits:
    start = [[Fraction(int(x)) for x in row] for row in draw]
    content = _content(case, start, QUICK_WORK, False)
    if content is None:
        answer = by_projectors(case, start)
        if answer.limits.tends_to is not None:
            return answer.limits
        content = _content(case, start, LARGEST_WORK, False)
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


def limits_of_start(
    case: Layer, start: Entries, radii: Comparison, generic: Outcome, thorough: bool = False
) -> OfStart:
    """What an X_0 (not 0) leads to (T4e), exactly where the layer is decidable.

    generic: the verdict for generic X_0, and radii what it rests on. thorough: also what is left
    out for its cost else.
    """
    if isinstance(case, ManyHeads) and not case.decidable:
        return _start_of_heads(case, start, radii, generic)
    if radii.cell is not None:
        return _with_short_numbers(_start_in_floats(start, radii.cell, generic), case, start)
    content = _content(case, start.fractions, math.inf if thorough else QUICK_WORK)
    return _large_start(case, start, generic) if content is None else _of_content(content, case)


def _content(case: Layer, X0: Matrix, work: float, begins: bool = True) -> Content | None:
    A, H = case.rational_A, case.rational_H
    return start_content(A, H, X0, case.classes, begins, case.others, work)


def _of_content(content: Content, case: Layer) -> OfStart:
    tokens, outcome = token_limits(content.tokens, case.d), content.outcome
    if outcome in _SETTLED:
        return OfStart(content.limits, outcome, _SETTLED[outcome], tokens=tokens)
    return OfStart(content.limits, outcome, shown(content.onset), content.onset, tokens)


def _with_short_numbers(answer: OfStart, case: Layer, start: Entries) -> OfStart:
    """What tokens do from binary64 numbers that mean what they say, and from which layer on X_0
    shows the same verdict: as from fractions. Rounding can turn a power of L, a phase or a cosine,
    so that nothing is said of the tokens of others."""
    exact = case.as_fractions() if case.n * case.d <= _SHORT_STATE else None
    if exact is None:
        return answer
    try:
        content = start_content(exact.rational_A, exact.rational_H, start.fractions)
    except CloseRootsError:
        return answer
    if content is None:
        return answer
    answer = replace(answer, tokens=token_limits(content.tokens, case.d))
    if answer.outcome not in COMPARED or content.outcome is not answer.outcome:
        return answer
    return replace(answer, words=shown(content.onset), onset=content.onset)


def _large_start(case: Layer, start: Entries, generic: Outcome) -> OfStart:
    """Where the resolvent is too large: by projectors; else an X_0 that contains every mode behaves
    as generic ones, and so does one that contains the mode which decides, by discs."""
    X0 = start.fractions
    if len(set(map(tuple, X0))) == 1:
        return _at_consensus(case, start, None)
    left_out = left_out_for_cost(resolvent_seconds(case.rational_A, case.rational_H, case.others))
    answer = by_projectors(case, X0)
    if answer.outcome is not Outcome.UNDECIDED:
        return OfStart(answer.limits, answer.outcome, left_out, None, answer.tokens)
    content = _content(case, X0, LARGEST_WORK)
    if content is not None:
        return _of_content(content, case)
    if has_every_mode(case.rational_A, case.rational_H, X0, case.others):
        limits = ZERO if generic is Outcome.SMOOTHING else UNKNOWN
        return OfStart(limits, generic, left_out)
    if not case.others:
        # What holds for all layers and starts that round to these floats holds for this one.
        discs = DiscStart(cell_discs(case), start.floats).decided(generic)
        if discs.outcome is not Outcome.UNDECIDED:
            limits = ZERO if generic is Outcome.SMOOTHING else UNKNOWN
            return OfStart(limits, discs.outcome, left_out)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES + left_out)


def _start_of_heads(case: ManyHeads, X: Entries, radii: Comparison, generic: Outcome) -> OfStart:
    """Of several heads in floats, as far as discs or balls show which modes X_0 contains."""
    X0, smoothing = X.floats, generic is Outcome.SMOOTHING
    if (X0[0] == X0).all():
        return _at_consensus(case, X, None)
    rest = (radii.rho_quotient if smoothing else radii.rho_consensus) + 2 * radii.error
    # An estimate says of no mode that it leads.
    sure = radii.status == "certified" and generic in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING)
    if not sure or not heads_contained(case, X0, rest):
        return OfStart(UNKNOWN, Outcome.UNDECIDED, NOT_SHOWN)
    return OfStart(ZERO if smoothing else limits_of_heads(case, X0), generic)


def _start_in_floats(start: Entries, cell: CellDiscs, generic: Outcome) -> OfStart:
    """The same from discs, and what they leave open from all cases that round to the same floats,
    as far as these agree; else UNDECIDED."""
    case, X0 = cell.case, start.floats
    if (X0[0] == X0).all():
        return _at_consensus(case, start, cell)
    discs = DiscStart(cell, X0)
    answer = discs.decided(generic)
    outcome, known = answer.outcome, answer.limits
    if outcome is not Outcome.SMOOTHING and not known.whole:
        shared = decided_in_cell(case, start, outcome is not Outcome.UNDECIDED)
        outcome = shared.outcome if outcome is Outcome.UNDECIDED else outcome
        known = merged(known, second=shared.limits)
        if known.tends_to is None and discs.means_fall(outcome, X0):
            known = infinite(known.limit_rank)
    if outcome is Outcome.UNDECIDED:
        return OfStart(known, outcome, ILL_CONDITIONED)
    if known.tends_to == "infinity" and discs.balanced and not np.any([*map(math.fsum, X0.T)]):
        known = replace(known, reached="every")
    tends_to = "zero" if outcome is Outcome.SMOOTHING else known.tends_to
    begins = onset_of_cell(cell, X0, tends_to)
    return OfStart(known, outcome, shown(begins), begins)


def _at_consensus(case: Layer, start: Entries, cell: CellDiscs | None) -> OfStart:
    """X_0 = 1 c^T stays at consensus, whatever A is, with c' = c (I + W): exactly 0 from some depth
    on where c is in the nilpotent part of I + H, as given (T11.1)."""
    total = reduce(plus, (H for _, H in case.others), case.rational_H)
    content = start_content([[Fraction(1)]], total, start.fractions[:1])
    if content is not None:
        if content.vanishes:
            return OfStart(UNKNOWN, Outcome.UNDEFINED, VANISHES)
        return OfStart(ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    if lasts(case, cell, all_modes=True):
        return OfStart(ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES)
