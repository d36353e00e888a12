"""What HFC/LFC tends to from generic X_0, and from the X_0 of a case (T4, T6)."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.verdict.comparison import Comparison
from oversmoothing.theory.verdict.expansion import expand, expansion_limits, present_radii
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, agreed, limits
from oversmoothing.theory.verdict.modes import mode_content
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of, outcome_of_sign
from oversmoothing.theory.verdict.words import AT_CONSENSUS

# Limits are derived from exact projectors up to this n and d, from eigenvectors beyond.
MODES_SIZE = 8


def generic_limits(case: Case, found: Comparison) -> Limits:
    """Limits for generic X_0: two seeded draws stand for all outside a null set.

    What they agree on holds for generic X_0 (the exceptions are algebraic, hence a null set); a
    limit on which they differ depends on X_0 and is None.
    """
    if not case.decidable:
        if case.n == 1:
            return Limits("zero", 0.0, 1) if found.rho_consensus else UNKNOWN
        if found.outcome is Outcome.UNDECIDED:
            return UNKNOWN
    rng = np.random.default_rng(2401_04301)
    behaviour = agreed(*(_limits_of_a_draw(case, rng) for _ in range(2)))
    return behaviour if found.rank is None else replace(behaviour, limit_rank=found.rank)


def _limits_of_a_draw(case: Case, rng: np.random.Generator) -> Limits:
    shape = case.n, case.d
    if not case.decidable:
        return _expanded(case, rng.standard_normal(shape))
    draw = rng.integers(-(10**6), 10**6, size=shape)
    if max(shape) > MODES_SIZE:
        return _expanded(case, draw.astype(np.float64))
    start = [[Fraction(int(x)) for x in row] for row in draw]
    content = mode_content(case.rational_A, case.rational_H, start, case.rational_pi)
    return limits(content.terms, shape)


def _expanded(case: Case, X0: NDArray[np.float64]) -> Limits:
    expansion = expand(case.A, case.H, X0)
    return UNKNOWN if expansion is None else expansion_limits(expansion)


def limits_of_start(case: Case) -> tuple[Limits, Outcome, str]:
    """Limits and outcome over the modes that X_0 (not 0) contains (T4e), and a sentence about it.

    Exactly for a decidable case of n, d <= MODES_SIZE.
    """
    assert case.X0 is not None
    if not case.decidable or max(case.n, case.d) > MODES_SIZE:
        return numerical_limits_of_start(case)
    X0 = case.rational_X0
    assert X0 is not None
    content = mode_content(case.rational_A, case.rational_H, X0, case.rational_pi)
    behaviour = limits(content.terms, (case.n, case.d))
    if content.vanishes:
        return behaviour, Outcome.UNDEFINED, " From this X_0 the state becomes exactly 0."
    if all(row == X0[0] for row in X0):
        return behaviour, Outcome.TRIVIAL, AT_CONSENSUS
    return behaviour, outcome_of_sign(content.comparison), ""


def numerical_limits_of_start(case: Case) -> tuple[Limits, Outcome, str]:
    """The same from eigenvectors in float64."""
    assert case.X0 is not None
    flat = bool((case.X0[0] == case.X0).all())
    expansion = expand(case.A, case.H, case.X0)
    if expansion is None:
        return (
            UNKNOWN,
            Outcome.TRIVIAL if flat else Outcome.UNDECIDED,
            " The eigenvectors are too ill-conditioned to say which modes this X_0 contains.",
        )
    behaviour = expansion_limits(expansion)
    if flat:
        return behaviour, Outcome.TRIVIAL, AT_CONSENSUS
    rho_c, rho_q = present_radii(expansion)
    # Never 0: of two radii that came out as 0 neither is known to be.
    doubt = max(64 * expansion.error, 1e-12) * max(rho_c, rho_q) + np.finfo(np.float64).tiny
    return behaviour, outcome_of(rho_c - rho_q - doubt, rho_c - rho_q + doubt), ""
