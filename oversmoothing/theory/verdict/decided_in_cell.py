"""The verdict in floats where eigenvectors leave it open: from all cases that round to the same."""

from dataclasses import dataclass

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.rounding_cell import RoundingCell
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits
from oversmoothing.theory.verdict.limits_in_balls import limits_in_balls
from oversmoothing.theory.verdict.modes_in_balls import modes_of
from oversmoothing.theory.verdict.outcome import Outcome

# Balls of so many bits lose next to nothing beside the rounding of the input.
_BITS = 192
# Beyond this side the balls would take longer than a verdict in floats is worth.
LARGEST_SIDE = 32


@dataclass(frozen=True)
class Decided:
    """The outcome that the whole cell shares, or UNDECIDED, and what is known of its limits."""

    outcome: Outcome
    limits: Limits


def decided_in_cell(case: Case, generic: bool) -> Decided:
    """For generic X_0, or for the X_0 of the case, which is not at consensus."""
    outcome, limits = Outcome.UNDECIDED, UNKNOWN
    if max(case.n, case.d) > LARGEST_SIDE or case.n == 1:
        return Decided(outcome, limits)
    with at_precision(_BITS):
        for modes in modes_of(RoundingCell(case), generic):
            if outcome is Outcome.UNDECIDED:
                outcome = modes.outcome()
            limits = merged(limits, second=limits_in_balls(modes, outcome))
            known = outcome, limits.tends_to, limits.limit_rank
            if {Outcome.UNDECIDED, None}.isdisjoint(known):
                break
    return Decided(outcome, limits)


def merged(first: Limits, second: Limits) -> Limits:
    """What either knows, what the first knows first; a limit only to the same tends_to."""
    known = first if first.tends_to is not None else second
    limit = known.limit
    if limit is None and known.tends_to == second.tends_to:
        limit = second.limit
    rank = first.limit_rank if first.limit_rank is not None else second.limit_rank
    return Limits(known.tends_to, limit, rank)
