"""The verdict on rational input, with its limits from exact projectors (T4, T6)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from oversmoothing.theory.depth.ratios_at_depths import ratios_at
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import Matrix, exact_stationary
from oversmoothing.theory.spectra.spectrum import attention_spectrum, value_projection_spectrum
from oversmoothing.theory.verdict import expansion as numerical
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.exact_comparison import (
    ExactDominance,
    Mode,
    exact_dominance,
    generic_rank,
    jordan_size,
)
from oversmoothing.theory.verdict.float_verdict import numerical_for_x0
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, agreed, limits
from oversmoothing.theory.verdict.modes import mode_content
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.words import (
    AT_CONSENSUS,
    ONE_TOKEN,
    ZERO_STATE,
    compared,
    limit_words,
    number,
    repeated_one,
)

# Fractions are decided exactly up to n, d <= EXACT_SIZE; larger ones are rounded to binary64.
EXACT_SIZE = 48
# Limits are derived from exact projectors up to this n and d, from eigenvectors beyond.
MODES_SIZE = 8


def decide_exactly(case: Case, depths: list[int]) -> Verdict:
    A, H, X0 = case.rational_A, case.rational_H, case.rational_X0
    found = exact_dominance(A, H)
    name = outcome_of_sign(found.comparison)
    rho_c: float | None = float(found.radius(True).mid())
    rho_q: float | None = float(found.radius(False).mid())
    if found.comparison == 0:
        rho_q = rho_c
    classes = [list(map(int, members)) for members in closed_classes(case.A)]
    pi = exact_stationary(A, classes)
    generic = _generic_limits(case, A, H, pi)
    rank = generic_rank(found)
    if rank is not None:
        generic = replace(generic, limit_rank=rank)
    reason = _exact_reason(found, name)
    if case.n == 1:
        name, rho_q = Outcome.TRIVIAL, None
        reason = ONE_TOKEN
    elif len(classes) > 1:
        reason += repeated_one(len(classes))
    behaviour, verdict_x0 = generic, None
    if X0 is not None:
        zero = not any(map(any, X0))
        behaviour, verdict_x0, note = _exact_for_x0(case, A, H, X0, pi, zero)
        reason += note
        if zero:
            name = Outcome.UNDEFINED
            reason = ZERO_STATE
    if name is not Outcome.TRIVIAL:
        reason += limit_words(behaviour, X0 is not None)
    return Verdict(
        name,
        "exact",
        rho_c,
        rho_q,
        reason,
        behaviour.tends_to,
        behaviour.limit,
        behaviour.limit_rank,
        verdict_x0,
        {} if X0 is None else ratios_at(case, A, H, X0, pi, depths),
        X0 is not None,
        attention_spectrum(case.A),
        value_projection_spectrum(case.H),
    )


def _generic_limits(case: Case, A: Matrix, H: Matrix, pi: list[Fraction]) -> Limits:
    """Limits for generic X_0: two seeded draws stand for all outside a null set.

    What they agree on holds for generic X_0 (the exceptions are algebraic, hence a null set); a
    limit on which they differ depends on X_0 and is None.
    """
    rng = np.random.default_rng(2401_04301)
    found = []
    for _ in range(2):
        draw = rng.integers(-(10**6), 10**6, size=(case.n, case.d))
        if max(case.n, case.d) <= MODES_SIZE:
            start = [[Fraction(int(x)) for x in row] for row in draw]
            content = mode_content(A, H, start, pi)
            found.append(limits(content.terms, (case.n, case.d)))
        else:
            expansion = numerical.expand(case.A, case.H, draw.astype(np.float64))
            found.append(UNKNOWN if expansion is None else numerical.expansion_limits(expansion))
    return agreed(found[0], found[1])


def _exact_for_x0(
    case: Case, A: Matrix, H: Matrix, X0: Matrix, pi: list[Fraction], zero: bool
) -> tuple[Limits, Outcome, str]:
    """Limits and verdict over the modes that X_0 contains (T4e), and a sentence about it."""
    if zero:
        return UNKNOWN, Outcome.UNDEFINED, ""
    flat = all(row == X0[0] for row in X0)
    if max(case.n, case.d) > MODES_SIZE:
        return numerical_for_x0(case, flat)
    content = mode_content(A, H, X0, pi)
    behaviour = limits(content.terms, (case.n, case.d))
    if content.vanishes:
        return behaviour, Outcome.UNDEFINED, " From this X_0 the state becomes exactly 0."
    if flat:
        return behaviour, Outcome.TRIVIAL, AT_CONSENSUS
    return behaviour, outcome_of_sign(content.comparison), ""


def _mode_words(mode: Mode) -> str:
    with at_precision(64):
        h = complex(mode.value.ball(64).mid())
        a = 1.0 if mode.attention is None else complex(mode.attention.ball(64).mid())
    return f"h = {number(h)}, a = {number(complex(a))}"


def _exact_reason(found: ExactDominance, name: Outcome) -> str:
    if not found.quotient:
        return ""
    rho_c, rho_q = (float(found.radius(side).mid()) for side in (True, False))
    consensus, quotient = _mode_words(found.consensus[0]), _mode_words(found.quotient[0])
    if name is Outcome.UNDECIDED:
        return (
            f"the radii agree to over 16000 bits (rho_C = {rho_c:.12g}, rho_Q = {rho_q:.12g}); to "
            f"prove them equal would take {found.bits_needed} bits, more than this tool spends."
        )
    reason = compared(name, rho_c, rho_q, consensus, quotient)
    if name is Outcome.TIE:
        s_c = max(map(jordan_size, found.consensus))
        s_q = max(map(jordan_size, found.quotient))
        reason += (
            f" Jordan blocks of size {s_c} (consensus) and {s_q} (quotient) sit there: for generic "
            f"X_0 ||HFC||/||c|| goes like L^{s_q - s_c}, c the pi-mean (T6b)."
        )
    return reason
