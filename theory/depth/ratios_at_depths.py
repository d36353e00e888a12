"""HFC/LFC at the depths a user asks for, each by the most exact of the available methods."""

from __future__ import annotations

from fractions import Fraction

from oversmoothing.theory.depth.ratios import (
    BALL_SIZE,
    EXACT_DEPTH,
    Ratio,
    ball_ratios,
    exact_state,
    numerical_ratios,
    ratio_of_squares,
    squared_norms,
)
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.numbers.rational import Matrix


def ratios_at(
    case: Case, A: Matrix, H: Matrix, X0: Matrix, pi: list[Fraction], depths: list[int]
) -> dict[int, Ratio]:
    """HFC/LFC at each depth: in fractions to EXACT_DEPTH (for exact input), then in balls."""
    shallow = [depth for depth in depths if depth <= EXACT_DEPTH] if case.exact else []
    found = {
        depth: ratio_of_squares(*squared_norms(state))
        for depth, state in exact_state(A, H, X0, shallow).items()
    }
    rest = [depth for depth in depths if depth not in found]
    if rest and (case.n - 1) * case.d <= BALL_SIZE:
        found |= ball_ratios(A, H, X0, pi, rest)
    elif rest and case.X0 is not None:
        found |= numerical_ratios(case.A, case.H, case.X0, rest)
    return dict(sorted(found.items()))
