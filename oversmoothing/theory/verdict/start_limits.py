"""What HFC/LFC tends to from generic X_0, and from the X_0 of a case (T4, T6, T14)."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.spectra.algebraic import CloseRootsError
from oversmoothing.theory.spectra.spectrum import value_projection_spectrum
from oversmoothing.theory.verdict.comparison import Comparison
from oversmoothing.theory.verdict.decided_in_cell import decided_in_cell, merged
from oversmoothing.theory.verdict.expansion import expand, expansion_limits
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, agreed
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of, outcome_of_sign
from oversmoothing.theory.verdict.present_modes import present_radii, shows_from
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
# Radii closer than this (relative) are one modulus to eigenvectors in floats.
_APART = 1e-9


def generic_limits(case: Case, found: Comparison) -> Limits:
    """Limits for generic X_0.

    SMOOTHING is T4a. Else two seeded draws stand for all X_0 outside a null set: what they agree on
    holds for generic X_0 (the exceptions are algebraic), as far as such draws can show it; a limit
    on which they differ depends on X_0 and is None. What draws in floats leave open is what all
    cases that round to these floats share.
    """
    if case.n == 1:
        return _ZERO if found.rho_consensus and _lasts(case) else UNKNOWN
    if found.outcome is Outcome.SMOOTHING:
        return _ZERO
    rng = np.random.default_rng(2401_04301)
    if not case.decidable:
        behaviour = UNKNOWN
        if found.outcome is Outcome.TIE or _apart(found):
            behaviour = agreed(*(_drawn_expansion(case, rng) for _ in range(2)))
        if None not in (behaviour.tends_to, behaviour.limit_rank):
            return behaviour
        return merged(behaviour, second=decided_in_cell(case, generic=True).limits)
    if found.outcome is Outcome.UNDECIDED:
        return UNKNOWN
    behaviour = agreed(*(_drawn_limits(case, rng) for _ in range(2)))
    if found.rank is None or (not found.rho_consensus and not found.rho_quotient):
        return behaviour
    return replace(behaviour, limit_rank=found.rank)


def _apart(found: Comparison) -> bool:
    """Whether the radii of a strict verdict are apart in floats too, not by structure alone."""
    gap = abs(found.rho_consensus - found.rho_quotient)
    strict = found.outcome is not Outcome.UNDECIDED
    return strict and gap > _APART * max(found.rho_consensus, found.rho_quotient)


def _drawn_limits(case: Case, rng: np.random.Generator) -> Limits:
    draw = rng.integers(-(10**6), 10**6, size=(case.n, case.d))
    start = [[Fraction(int(x)) for x in row] for row in draw]
    content = start_content(case.rational_A, case.rational_H, start, case.classes)
    return UNKNOWN if content is None else content.limits


def _drawn_expansion(case: Case, rng: np.random.Generator) -> Limits:
    expansion = expand(case.A, case.H, rng.standard_normal((case.n, case.d)), case.may_balance)
    return UNKNOWN if expansion is None else expansion_limits(expansion)


@dataclass(frozen=True)
class OfStart:
    """What one X_0 leads to: limits, the verdict over the modes it contains, a sentence about it,
    about the depth from which the largest of them outweighs the others, and what its tokens do."""

    limits: Limits
    outcome: Outcome
    words: str = ""
    shows_from: float | None = None
    tokens: TokenLimits = UNKNOWN_TOKENS


def limits_of_start(case: Case, generic: Outcome) -> OfStart:
    """What the X_0 (not 0) of a case leads to (T4e), exactly where the case is decidable.

    generic: the verdict for generic X_0.
    """
    if not case.decidable:
        return replace(numerical_limits_of_start(case), tokens=_tokens_of_short_numbers(case))
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
    words = shown(content.shows_from)
    return OfStart(content.limits, outcome, words, content.shows_from, tokens)


def _tokens_of_short_numbers(case: Case) -> TokenLimits:
    """What tokens do from binary64 numbers that mean what they say: as from fractions. Rounding can
    turn a power of L, a phase or a cosine, so that nothing is said of others."""
    exact = case.as_fractions() if case.n * case.d <= _SHORT_STATE else None
    if exact is None or exact.rational_X0 is None:
        return UNKNOWN_TOKENS
    try:
        content = start_content(exact.rational_A, exact.rational_H, exact.rational_X0)
    except CloseRootsError:
        return UNKNOWN_TOKENS
    return UNKNOWN_TOKENS if content is None else token_limits(content.tokens, case.d)


def _large_start(case: Case, X0: Matrix, generic: Outcome) -> OfStart:
    """Where the resolvent is too large: an X_0 that contains every mode behaves as generic ones."""
    if len(set(map(tuple, X0))) == 1:
        return _at_consensus(case)
    if has_every_mode(case.rational_A, case.rational_H, X0):
        return OfStart(_ZERO if generic is Outcome.SMOOTHING else UNKNOWN, generic)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES)


def numerical_limits_of_start(case: Case) -> OfStart:
    """The same from eigenvectors in float64, UNDECIDED where rounding could turn it.

    What they leave open all cases that round to the same floats decide, as far as they agree.
    """
    assert case.X0 is not None
    if (case.X0[0] == case.X0).all():
        return _at_consensus(case)
    found = _by_eigenvectors(case)
    if found.outcome is Outcome.SMOOTHING:
        return replace(found, limits=_ZERO)
    known = found.limits
    if found.outcome is not Outcome.UNDECIDED and known.whole:
        return found
    shared = decided_in_cell(case, generic=False)
    if found.outcome is Outcome.UNDECIDED and shared.outcome is not Outcome.UNDECIDED:
        found = replace(found, outcome=shared.outcome, words="")
    return replace(found, limits=merged(known, second=shared.limits))


def _by_eigenvectors(case: Case) -> OfStart:
    assert case.X0 is not None
    expansion = expand(case.A, case.H, case.X0, case.may_balance)
    if expansion is None:
        return OfStart(UNKNOWN, Outcome.UNDECIDED, ILL_CONDITIONED)
    behaviour = expansion_limits(expansion)
    depth = shows_from(expansion)
    found = present_radii(expansion)
    if found.tie:
        return OfStart(behaviour, Outcome.TIE, shown(depth), depth)
    consensus, quotient = found.consensus, found.quotient
    # Never 0: of two radii that came out as 0 neither is known to be.
    doubt = max(64 * expansion.error, 1e-12) * max(consensus.high, quotient.high)
    doubt += np.finfo(np.float64).tiny
    low, high = consensus.low - quotient.high - doubt, consensus.high - quotient.low + doubt
    outcome = outcome_of(low, high)
    winner = consensus if outcome is Outcome.SMOOTHING else quotient
    if outcome is Outcome.UNDECIDED or winner.low <= expansion.vanishing:
        # What may have died out beats nothing, not even what is not there.
        return OfStart(UNKNOWN, Outcome.UNDECIDED)
    return OfStart(behaviour, outcome, shown(depth), depth)


def _at_consensus(case: Case) -> OfStart:
    """X_0 = 1 c^T stays at consensus, whatever A is, with c' = c (I + W): exactly 0 from some depth
    on where c is in the nilpotent part of I + H, as given (T11.1)."""
    X0 = case.rational_X0
    assert X0 is not None
    content = start_content([[Fraction(1)]], case.rational_H, X0[:1])
    if content is not None:
        if content.vanishes:
            return OfStart(UNKNOWN, Outcome.UNDEFINED, VANISHES)
        return OfStart(_ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    if _lasts(case, all_modes=True):
        return OfStart(_ZERO, Outcome.TRIVIAL, AT_CONSENSUS)
    return OfStart(UNKNOWN, Outcome.UNDECIDED, TOO_MANY_MODES)


def _lasts(case: Case, all_modes: bool = False) -> bool:
    """Whether some mode of consensus (or each) keeps it from dying out: 1 + h is not 0 beyond its
    error; in fractions none is unknown."""
    value = value_projection_spectrum(case.H)
    beyond = np.abs(1 + value.values) > value.errors
    return bool(beyond.all() if all_modes else case.decidable or beyond.any())
