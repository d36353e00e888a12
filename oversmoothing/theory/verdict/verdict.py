"""The verdict: does X -> X + A X W oversmooth, and why (T1-T4, T6b).

One way: case -> spectra -> comparison -> limits -> `Verdict`. Exact input is decided exactly,
binary64 input numerically, with UNDECIDED wherever rounding could turn the answer.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from oversmoothing.theory.depth.ratios_at_depths import ratios_at
from oversmoothing.theory.layer.case import Case, make_case
from oversmoothing.theory.layer.input_checks import one_of
from oversmoothing.theory.numbers.rational import rows_of
from oversmoothing.theory.numbers.rounding import UNIT
from oversmoothing.theory.spectra.algebraic import CloseRootsError
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import DEPTH
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.comparison import Comparison, compare_radii
from oversmoothing.theory.verdict.limits import UNKNOWN
from oversmoothing.theory.verdict.nearest import NEAR, distance_to_tie
from oversmoothing.theory.verdict.outcome import Outcome
from oversmoothing.theory.verdict.start_limits import generic_limits, limits_of_start
from oversmoothing.theory.verdict.token_limits import UNKNOWN_TOKENS, all_zero
from oversmoothing.theory.verdict.words import (
    CLOSE_EIGENVALUES,
    ONE_TOKEN,
    ZERO_STATE,
    limit_words,
    near,
    repeated_one,
    token_words,
)


def given_case(A: Any, logits: Any, H: Any, W: Any, X0: Any) -> Case:
    """The case of the arguments of `theory.ask.verdict`."""
    if one_of(H, W) == "W" and isinstance(W, tuple) and len(W) == 2:
        return make_case(A, None, X0, logits=logits, factors=W)
    return make_case(A, H if W is None else _transpose(W), X0, logits=logits)


def _transpose(W: Any) -> Any:
    return [list(column) for column in zip(*rows_of(W, "W"), strict=True)]


def check_depths(depth: int | Iterable[int]) -> list[int]:
    """Depths as a sorted list of distinct integers from 0 to `sizes.DEPTH`.

    Raises `InputError` otherwise.
    """
    values: list[Any] = list(depth) if isinstance(depth, Iterable) else [depth]
    for value in values:
        # 1e6 is a number of layers, too.
        whole = isinstance(value, float) and value.is_integer()
        whole = whole or isinstance(value, int | np.integer)
        if isinstance(value, bool) or not whole or value < 0:
            raise InputError(f"depth {value!r} must be an integer >= 0: a number of layers")
        if value > DEPTH:
            raise InputError(f"a depth is more than {DEPTH:,} layers, the most that is computed")
    return sorted({int(value) for value in values})


def case_verdict(case: Case, depths: list[int], relative: float = UNIT) -> Verdict:
    """The verdict on a validated case, exactly where the input is exact and not too large.

    What binary64 leaves open is decided in fractions where the numbers are short ones that mean
    what they say (`Case.as_fractions`). relative: how well the entries of A and H are known.
    """
    try:
        found = _case_verdict(case, depths, relative)
    except CloseRootsError:
        return Verdict(
            Outcome.UNDECIDED,
            "exact",
            None,
            None,
            CLOSE_EIGENVALUES,
            verdict_x0=None if case.X0 is None else Outcome.UNDECIDED,
            hfc_lfc={} if case.X0 is None else ratios_at(case, depths),
            has_x0=case.X0 is not None,
        )
    left_open = Outcome.UNDECIDED in (found.verdict, found.verdict_x0)
    if relative == UNIT and (left_open or None in (found.tends_to, found.limit_rank)):
        exact = case.as_fractions()
        if exact is not None:
            return _case_verdict(exact, depths)
    return found


def _case_verdict(case: Case, depths: list[int], relative: float = UNIT) -> Verdict:
    found = compare_radii(case, relative)
    outcome, reason, rho_q = found.outcome, found.reason, found.rho_quotient
    status = found.status
    if case.n == 1:
        outcome, reason = Outcome.TRIVIAL, ONE_TOKEN
    elif len(case.classes) > 1:
        reason += repeated_one(len(case.classes))
    verdict_x0 = shows_from = None
    tokens = UNKNOWN_TOKENS
    if case.X0 is None:
        behaviour = generic_limits(case, found)
    elif case.starts_at_zero:
        behaviour, reason = UNKNOWN, ZERO_STATE
        outcome = verdict_x0 = Outcome.UNDEFINED
        status = "certified" if status == "numerical" else status
        tokens = all_zero(case.n)
    else:
        start = limits_of_start(case, found, outcome)
        behaviour, verdict_x0, tokens = start.limits, start.outcome, start.tokens
        shows_from = None if start.onset is None else start.onset.layer
        reason += start.words
    distance = _distance(case, outcome, found)
    if distance:
        reason += near(distance)
    if outcome is not Outcome.TRIVIAL:
        reason += limit_words(behaviour, case.X0 is not None)
    reason += token_words(tokens)
    return Verdict(
        outcome,
        status,
        found.rho_consensus,
        None if case.n == 1 else rho_q,
        reason,
        behaviour.tends_to,
        behaviour.limit,
        behaviour.limit_rank,
        verdict_x0,
        {} if case.X0 is None else ratios_at(case, depths),
        case.X0 is not None,
        found.attention,
        found.value,
        shows_from,
        distance,
        tokens.growth,
        tokens.cosines,
        tokens.cos_min,
        tokens.cos_mean,
        any(found.vague),
    )


def _distance(case: Case, outcome: Outcome, found: Comparison) -> float | None:
    """The distance to another verdict, for what is undecided or near a tie."""
    largest = max(found.rho_consensus, found.rho_quotient)
    if outcome is Outcome.TIE:
        return 0.0
    strict = outcome in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING)
    if strict and abs(found.rho_consensus - found.rho_quotient) > NEAR * largest:
        return None
    known = strict or outcome is Outcome.UNDECIDED
    return distance_to_tie(case.A, case.H) if known else None
