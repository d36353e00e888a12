"""What a certificate claims of one X_0: its verdict, and the depth from which it has smoothed."""

from fractions import Fraction
from typing import Any

from oversmoothing.theory.depth.bounds_in_balls import certified_depth_in_balls
from oversmoothing.theory.layer.case import EXACT_SIZE, Case
from oversmoothing.theory.numbers.rational import fraction_text
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.start_content import start_content

# Up to this n and d the modes of X_0 are computed exactly, here and by whoever checks it, and up to
# that one the depth.
START_SIZE, DEPTH_SIZE = EXACT_SIZE, 8


def claims_of_start(
    case: Case, verdict: Outcome, generic: bool, eps: Fraction
) -> list[dict[str, Any]]:
    """Claims about the X_0 of a case, each of which stands on those before it.

    generic: whether X_0 contains the dominant mode, so that it has the verdict of generic X_0.
    """
    X0 = case.rational_X0
    assert X0 is not None
    found = outcome_of_start(case)
    if found is None and generic:
        found = Outcome.TRIVIAL if all(row == X0[0] for row in X0) else verdict
    if found is None:
        return []
    claims: list[dict[str, Any]] = [{"verdict_x0": str(found)}]
    if (
        verdict is found is Outcome.SMOOTHING
        and case.logits is None
        and max(case.n, case.d) <= DEPTH_SIZE
    ):
        depth = certified_depth_in_balls(case.rational_A, case.rational_H, X0, eps)
        if depth is not None:
            claims.append({"eps": fraction_text(eps), "depth": depth.depth})
    return claims


def outcome_of_start(case: Case) -> Outcome | None:
    """The verdict over the modes that X_0 contains, from the exact input; None where it is none."""
    X0 = case.rational_X0
    assert X0 is not None
    if case.starts_at_zero:
        return Outcome.UNDEFINED
    if case.logits is not None or max(case.n, case.d) > START_SIZE:
        return None
    content = start_content(case.rational_A, case.rational_H, X0, case.classes)
    if content is None:
        return None
    if content.vanishes:
        return Outcome.UNDEFINED
    if content.at_consensus:
        return Outcome.TRIVIAL
    return outcome_of_sign(content.comparison)
