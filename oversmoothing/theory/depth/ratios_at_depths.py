"""HFC/LFC at the depths a user asks for, each by the most exact of the available methods."""

import math

from oversmoothing.theory.depth.ratios import (
    BALL_SIZE,
    EXACT_DEPTH,
    Ratio,
    ball_ratios,
    exact_state,
    numerical_ratios,
    ratio_of_log,
    ratio_of_squares,
    squared_norms,
)
from oversmoothing.theory.depth.ratios_from_logits import softmax_ratios
from oversmoothing.theory.layer.layer import Case
from oversmoothing.theory.support.errors import InputError

# Depth beyond which a state too large for balls is evaluated in its eigenbases, not iterated.
ITERATED_DEPTH = 5000


def ratios_at(case: Case, depths: list[int]) -> dict[int, Ratio]:
    """HFC/LFC of a case with X_0: in fractions to EXACT_DEPTH (for exact input), then in balls.

    In float64 where the state is too large for balls: by iteration, and by the closed form beyond
    ITERATED_DEPTH where the eigenbases allow it.
    """
    small = (case.n - 1) * case.d <= BALL_SIZE
    if small and case.n > 1 and case.logits is not None:
        return dict(sorted(softmax_ratios(case, depths).items()))
    found: dict[int, Ratio] = {}
    if case.decidable or small:
        A, H, X0 = case.rational_A, case.rational_H, case.rational_X0
        assert X0 is not None
        shallow = [depth for depth in depths if depth <= EXACT_DEPTH] if case.exact else []
        for depth, state in exact_state(A, H, X0, shallow).items():
            found[depth] = ratio_of_squares(*squared_norms(state))
        if small:
            rest = [depth for depth in depths if depth not in found]
            found |= ball_ratios(A, H, X0, case.rational_pi, rest)
    rest = [depth for depth in depths if depth not in found]
    return dict(sorted((found | floating_ratios(case, rest)).items()))


def floating_ratios(case: Case, depths: list[int]) -> dict[int, Ratio]:
    """By iteration, and by the closed form beyond ITERATED_DEPTH where the eigenbases allow it."""
    assert case.X0 is not None
    deep = [depth for depth in depths if depth > ITERATED_DEPTH]
    found: dict[int, Ratio] = {}
    if deep:
        from oversmoothing.theory.depth.closed_form import closed_form

        try:
            for state in closed_form(A=case.A, H=case.H, X0=case.X0, depths=deep):
                log = state.log_hfc_lfc
                found[state.depth] = Ratio(None, None) if math.isnan(log) else ratio_of_log(log)
        except InputError:
            # No well-conditioned eigenbasis: there is only iteration left.
            found = {}
    shallow = [depth for depth in depths if depth not in found]
    return dict(sorted((found | numerical_ratios(case.A, case.H, case.X0, shallow)).items()))
