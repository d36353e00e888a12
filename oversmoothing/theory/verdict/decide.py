"""rho_C against rho_Q for one case, and what HFC/LFC tends to, exactly or by discs (T2-T6, T14)."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from oversmoothing.theory.depth.onset import Onset
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.numbers.exact import Matrix, plus
from oversmoothing.theory.numbers.rounding import UNIT
from oversmoothing.theory.spectra.algebraic import CloseRootsError
from oversmoothing.theory.spectra.heads import DENSE_SIZE, ManyHeads
from oversmoothing.theory.spectra.layer_discs import Interval, Spectrum, spectra_of
from oversmoothing.theory.verdict.answer import (
    AT_CONSENSUS,
    ILL_CONDITIONED,
    NOT_SHOWN,
    TOO_MANY_MODES,
    VANISHES,
    WRITE_EXACTLY,
    Pair,
    compared,
    left_out_for_cost,
    number,
    shown,
)
from oversmoothing.theory.verdict.by_discs import (
    CellDiscs,
    cell_discs,
    decide_cell,
    decide_heads,
    finer,
)
from oversmoothing.theory.verdict.by_fractions import (
    ExactDominance,
    Mode,
    exact_dominance,
    generic_rank,
    jordan_size,
)
from oversmoothing.theory.verdict.by_projectors import by_projectors
from oversmoothing.theory.verdict.cell_limits import decided_in_cell, limits_of_heads, merged
from oversmoothing.theory.verdict.cosines import UNKNOWN_TOKENS, TokenLimits, token_limits
from oversmoothing.theory.verdict.disc_limits import (
    UNKNOWN,
    ZERO,
    DominantPair,
    Limits,
    agreed,
    infinite,
)
from oversmoothing.theory.verdict.disc_parts import heads_contained
from oversmoothing.theory.verdict.disc_start import DiscStart, onset_of_cell
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.resolvent import (
    LARGEST_WORK,
    QUICK_WORK,
    has_every_mode,
    resolvent_seconds,
)
from oversmoothing.theory.verdict.start import Content, start_content

# Of a radius: where its enclosure is wider, rounding has left no digit worth saying.
_NO_DIGIT = 2.0**-10


@dataclass(frozen=True)
class Comparison:
    """The outcome for generic X_0, by status "exact", "certified" (by discs or balls, for all that
    rounds to the case), "estimated" (Arnoldi's method) or "numerical" (rounding decides), both
    radii, and why.

    attention, value: the spectra in float64, of one head. rank: the asymptotic rank for generic X_0
    where exact arithmetic knows it (T4c). vague: of either radius rounding leaves no digit. cell:
    the discs of a case in floats, dominance: the modes of one in fractions. error: how far rho_C -
    rho_Q may be off by rounding.
    """

    outcome: Outcome
    status: str
    rho_consensus: float
    rho_quotient: float
    reason: str
    attention: Spectrum | None
    value: Spectrum | None
    rank: int | None = None
    vague: tuple[bool, bool] = (False, False)
    cell: CellDiscs | None = None
    error: float = 0.0
    dominance: ExactDominance | None = None


def compare_radii(case: Layer, relative: float = UNIT, dense_size: int = DENSE_SIZE) -> Comparison:
    """Exactly where the case allows it, else for everything within the rounding of its entries,
    with UNDECIDED where that decides. relative: how well they are known, if not as float64.
    dense_size: of the operator of several heads, up to which it is formed."""
    if isinstance(case, ManyHeads):
        return _of_heads(case, dense_size)
    return _exactly(case) if case.decidable else _numerically(case, relative)


def _exactly(case: Layer) -> Comparison:
    found = exact_dominance(case.rational_A, case.rational_H)
    outcome = outcome_of_sign(found.comparison)
    rho_c, rho_q = found.radii()
    if outcome is Outcome.TIE:
        rho_q = rho_c
    reason = _exact_reason(found, outcome, rho_c, rho_q) if found.quotient else ""
    rank = generic_rank(found)
    return Comparison(
        outcome, "exact", rho_c, rho_q, reason, *spectra_of(case), rank, dominance=found
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


def exact_pairs(found: ExactDominance | None) -> tuple[Pair, ...]:
    """One dominant pair of each side that leads, consensus first; none where undecided."""
    if found is None or found.comparison is None:
        return ()
    leading = [found.consensus] if found.comparison >= 0 else []
    leading += [found.quotient] if found.comparison <= 0 else []
    pairs = []
    for mode in (side[0] for side in leading):
        h, multiplier = complex(mode.value.ball(64).mid()), complex(mode.multiplier(64).mid())
        a = 1.0 if mode.attention is None else complex(mode.attention.ball(64).mid())
        pairs.append(Pair(h, complex(a), multiplier, mode.attention is None))
    return tuple(pairs)


def _mode_words(mode: Mode) -> str:
    h = complex(mode.value.ball(64).mid())
    a = 1.0 if mode.attention is None else complex(mode.attention.ball(64).mid())
    return f"h = {number(h)}, a = {number(complex(a))}"


def _numerically(case: Layer, relative: float) -> Comparison:
    cell = cell_discs(case, relative)
    found = decide_cell(cell)
    if found.outcome is Outcome.UNDECIDED and (parts := finer(cell)) is not None:
        cell, found = parts, decide_cell(parts)
    outcome, consensus, quotient = found.outcome, found.consensus, found.quotient
    if outcome is Outcome.UNDECIDED and relative == UNIT:
        outcome = decided_in_cell(case, None).outcome
    rho_c = consensus.shown
    rho_q = rho_c if outcome is Outcome.TIE else quotient.shown
    attention, value = cell.spectra
    reason = _numerical_reason(outcome, attention, value, consensus, quotient)
    vague = (_vague(consensus), _vague(quotient))
    open_ = outcome is Outcome.UNDECIDED and case.n > 1
    status = "numerical" if open_ else "certified"
    return Comparison(
        outcome, status, rho_c, rho_q, reason, attention, value, None, vague, cell, found.error
    )


def _of_heads(case: ManyHeads, dense_size: int) -> Comparison:
    """The radii of the operator of all heads."""
    if case.decidable:
        exact = exact_dominance(case.rational_A, case.rational_H, case.others)
        outcome, (rho_c, rho_q) = outcome_of_sign(exact.comparison), exact.radii()
        rho_q = rho_c if outcome is Outcome.TIE else rho_q
        reason = _heads_reason(case, outcome, f"{rho_c:.6g}", f"{rho_q:.6g}", "")
        if outcome is Outcome.UNDECIDED:
            reason = _exact_reason(exact, outcome, rho_c, rho_q)
        return Comparison(outcome, "exact", rho_c, rho_q, reason, None, None, dominance=exact)
    found = decide_heads(case, dense_size)
    outcome, fixed, moving = found.outcome, found.consensus, found.quotient
    status = "estimated" if found.method == "arnoldi" else "certified"
    if found.reason:
        reason = f"rho_Q is not known: {found.reason}. A larger dense_size settles it by LAPACK."
    elif outcome is Outcome.UNDECIDED:
        status = "numerical" if status == "certified" else status
        reason = _overlap(fixed, moving)
    else:
        reason = _heads_reason(case, outcome, _shown(fixed), _shown(moving), f", {found.method}")
    if found.method == "arnoldi" and not found.reason:
        reason += f" This is an estimate: dense_size={(case.n - 1) * case.d} proves it."
    radii = fixed.shown, float("nan") if found.reason else moving.shown
    vague = not found.reason and _vague(fixed), not found.reason and _vague(moving)
    return Comparison(outcome, status, *radii, reason, None, None, None, vague, None, found.error)


def _heads_reason(case: ManyHeads, outcome: Outcome, rho_c: str, rho_q: str, how: str) -> str:
    heads = f"{case.heads} head" + ("s" if case.heads > 1 else "") + how
    operator = f"{'I + ' if case.residual else ''}sum_h H_h"
    return {
        Outcome.SMOOTHING: f"consensus dominates: the radius of {operator} is {rho_c}, that of the "
        f"differences between tokens {rho_q} ({heads}).",
        Outcome.NON_SMOOTHING: "consensus does not dominate: the radius of the differences between "
        f"tokens is {rho_q}, that of {operator} {rho_c} ({heads}).",
        Outcome.TIE: f"tie in modulus: the radius of {operator}, {rho_c}, is that of the "
        f"differences between tokens too ({heads}).",
    }.get(outcome, "")


def _overlap(consensus: Interval, quotient: Interval) -> str:
    if not (math.isfinite(consensus.high) and math.isfinite(quotient.high)):
        return f"1 + h a may be beyond the range of binary64 (1.8e308). {WRITE_EXACTLY}"
    return (
        f"rounding decides: rho_C = {consensus.shown:.12g} +- "
        f"{(consensus.high - consensus.low) / 2:.1e} and rho_Q = {quotient.shown:.12g} +- "
        f"{(quotient.high - quotient.low) / 2:.1e} overlap. {WRITE_EXACTLY}"
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
        return _overlap(consensus, quotient)
    i, j = quotient.index
    h_c, h_q = value.values[consensus.index[1]], value.values[j]
    return compared(
        outcome,
        _shown(consensus),
        _shown(quotient),
        f"h = {number(complex(h_c))}, a = 1",
        f"h = {number(complex(h_q))}, a = {number(complex(attention.values[i]))}",
    )


# States of short binary numbers up to so many entries are looked at token by token: under a second.
_SHORT_STATE = 24
# Outcomes for one X_0 that compare its modes.
_COMPARED = (Outcome.SMOOTHING, Outcome.NON_SMOOTHING, Outcome.TIE)
# Others that an X_0 has whatever leads, in words.
_SETTLED = {Outcome.UNDEFINED: VANISHES, Outcome.TRIVIAL: AT_CONSENSUS}


def generic_limits(case: Layer, found: Comparison) -> Limits:
    """Limits for generic X_0.

    SMOOTHING is T4a. In floats the dominant pair decides, and what it leaves open the balls around
    all cases that round to the same. In fractions two seeded draws stand for all X_0 outside a null
    set: what they agree on holds for generic X_0 (the exceptions are algebraic), as far as such
    draws can show it; a limit on which they differ depends on X_0 and is None.
    """
    if isinstance(case, ManyHeads) and not case.decidable:
        if found.outcome is Outcome.NON_SMOOTHING:
            return limits_of_heads(case, None)
        return ZERO if found.outcome is Outcome.SMOOTHING else UNKNOWN
    if case.n == 1:
        return ZERO if found.rho_consensus and _lasts(case, found.cell) else UNKNOWN
    if found.outcome is Outcome.SMOOTHING:
        return ZERO
    if found.cell is not None:
        behaviour = DominantPair(found.cell).generic(found.outcome)
        depends = found.outcome is Outcome.TIE and behaviour.tends_to == "constant"
        known = behaviour.whole or (depends and behaviour.limit_rank is not None)
        if known or found.cell.relative > UNIT:
            return behaviour
        return merged(behaviour, second=decided_in_cell(case, None).limits)
    if found.outcome is Outcome.UNDECIDED:
        return UNKNOWN
    rng = np.random.default_rng(2401_04301)
    behaviour = agreed(*(_drawn_limits(case, rng) for _ in range(2)))
    if found.rank is None or (not found.rho_consensus and not found.rho_quotient):
        return behaviour
    return replace(behaviour, limit_rank=found.rank)


def _drawn_limits(case: Layer, rng: np.random.Generator) -> Limits:
    draw = rng.integers(-(10**6), 10**6, size=(case.n, case.d))
    start = [[Fraction(int(x)) for x in row] for row in draw]
    content = _content(case, start, QUICK_WORK, False)
    if content is None:
        found = by_projectors(case, start)
        if found.limits.tends_to is not None:
            return found.limits
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
    case: Layer, start: Entries, found: Comparison, generic: Outcome, thorough: bool = False
) -> OfStart:
    """What an X_0 (not 0) leads to (T4e), exactly where the layer is decidable.

    generic: the verdict for generic X_0, and found what it rests on. thorough: also what is left
    out for its cost else.
    """
    if isinstance(case, ManyHeads) and not case.decidable:
        return _start_of_heads(case, start, found, generic)
    if found.cell is not None:
        return _with_short_numbers(_start_in_floats(start, found.cell, generic), case, start)
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


def _with_short_numbers(found: OfStart, case: Layer, start: Entries) -> OfStart:
    """What tokens do from binary64 numbers that mean what they say, and from which layer on X_0
    shows the same verdict: as from fractions. Rounding can turn a power of L, a phase or a cosine,
    so that nothing is said of the tokens of others."""
    exact = case.as_fractions() if case.n * case.d <= _SHORT_STATE else None
    if exact is None:
        return found
    try:
        content = start_content(exact.rational_A, exact.rational_H, start.fractions)
    except CloseRootsError:
        return found
    if content is None:
        return found
    found = replace(found, tokens=token_limits(content.tokens, case.d))
    if found.outcome not in _COMPARED or content.outcome is not found.outcome:
        return found
    return replace(found, words=shown(content.onset), onset=content.onset)


def _large_start(case: Layer, start: Entries, generic: Outcome) -> OfStart:
    """Where the resolvent is too large: by projectors; else an X_0 that contains every mode behaves
    as generic ones, and so does one that contains the mode which decides, by discs."""
    X0 = start.fractions
    if len(set(map(tuple, X0))) == 1:
        return _at_consensus(case, start, None)
    left_out = left_out_for_cost(resolvent_seconds(case.rational_A, case.rational_H, case.others))
    found = by_projectors(case, X0)
    if found.outcome is not Outcome.UNDECIDED:
        return OfStart(found.limits, found.outcome, left_out, None, found.tokens)
    content = _content(case, X0, LARGEST_WORK)
    if content is not None:
        return _of_content(content, case)
    if has_every_mode(case.rational_A, case.rational_H, X0, case.others):
        limits = ZERO if generic is Outcome.SMOOTHING else UNKNOWN
        return OfStart(limits, generic, left_out)
    if not case.others:
        # What holds for all layers and starts that round to these floats holds for this one.
        discs = DiscStart(DominantPair(cell_discs(case)), start.floats).contained(generic)
        if discs.outcome is not Outcome.UNDECIDED:
            limits = ZERO if generic is Outcome.SMOOTHING else UNKNOWN
            return OfStart(limits, discs.outcome, left_out)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES + left_out)


def _start_of_heads(case: ManyHeads, X: Entries, found: Comparison, generic: Outcome) -> OfStart:
    """Of several heads in floats, as far as discs or balls show which modes X_0 contains."""
    X0, smoothing = X.floats, generic is Outcome.SMOOTHING
    if (X0[0] == X0).all():
        return _at_consensus(case, X, None)
    rest = (found.rho_quotient if smoothing else found.rho_consensus) + 2 * found.error
    # An estimate says of no mode that it leads.
    sure = found.status == "certified" and generic in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING)
    if not sure or not heads_contained(case, X0, rest):
        return OfStart(UNKNOWN, Outcome.UNDECIDED, NOT_SHOWN)
    return OfStart(ZERO if smoothing else limits_of_heads(case, X0), generic)


def _start_in_floats(start: Entries, cell: CellDiscs, generic: Outcome) -> OfStart:
    """The same from discs, and what they leave open from all cases that round to the same floats,
    as far as these agree; else UNDECIDED."""
    case, X0 = cell.case, start.floats
    if (X0[0] == X0).all():
        return _at_consensus(case, start, cell)
    pair = DominantPair(cell)
    found = DiscStart(pair, X0).contained(generic)
    outcome, known = found.outcome, found.limits
    if outcome is not Outcome.SMOOTHING and not known.whole:
        shared = decided_in_cell(case, start)
        outcome = shared.outcome if outcome is Outcome.UNDECIDED else outcome
        known = merged(known, second=shared.limits)
        if known.tends_to is None and pair.without_mean(outcome, X0):
            known = infinite(known.limit_rank)
    if outcome is Outcome.UNDECIDED:
        return OfStart(known, outcome, ILL_CONDITIONED)
    if known.tends_to == "infinity" and pair.balanced and not np.any([*map(math.fsum, X0.T)]):
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
    if _lasts(case, cell, all_modes=True):
        return OfStart(ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES)


def _lasts(case: Layer, cell: CellDiscs | None, all_modes: bool = False) -> bool:
    """Whether some mode of consensus (or each) keeps it from dying out: 1 + h is not 0 anywhere in
    its disc; in fractions none is unknown."""
    if cell is None:
        return True
    beyond = cell.consensus.low[0] > 0
    return bool(beyond.all() if all_modes else beyond.any())
