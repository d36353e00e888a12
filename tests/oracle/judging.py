"""Whether what was said of a case is true, field by field."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from .depths import log_ratio
from .truth import Truth

RIGHT, WRONG, UNDECIDED, CRASHED = "right", "wrong", "UNDECIDED", "crashed"
# Not true of the floats given, and true of the fractions that were rounded to them.
AS_MEANT = "as meant"
# UNDECIDED where cases that round to the same floats have different answers: two of them are shown.
RIGHTLY = "rightly"
OUTCOMES = RIGHT, WRONG, UNDECIDED, CRASHED, AS_MEANT, RIGHTLY
# A claimed error may be too small by this factor.
_SLACK = 10
# Nothing is said about the last digits of a float.
_FLOOR = 1e-13
# Errors above this are no answer.
_USELESS = 1e-6


def judged(answer: Any, expected: Truth, exact: bool) -> dict[str, str]:
    """Outcomes by field, of one X_0."""
    assert expected.verdict_x0 is not None
    return {
        "verdict": _outcome(answer.verdict, expected.verdict),
        "verdict_x0": _outcome(answer.verdict_x0, expected.verdict_x0),
        "tends_to": _same(answer.tends_to, expected.tends_to),
        "limit": _limit(answer.limit, expected, exact),
        "limit_rank": _same(answer.limit_rank, expected.limit_rank),
    }


def _outcome(said: Any, true: frozenset[str]) -> str:
    if said in true:
        return RIGHT
    return UNDECIDED if said == "UNDECIDED" else WRONG


def _same(said: object, true: object) -> str:
    if said == true:
        return RIGHT
    return UNDECIDED if said is None else WRONG


def _limit(said: float | None, expected: Truth, exact: bool) -> str:
    if not isinstance(expected.limit, tuple):
        return _same(said, expected.limit)
    if said is None:
        return UNDECIDED
    if not math.isfinite(said):
        return WRONG
    low, high = expected.limit
    near = Fraction(1, 10**9 if exact else 10**6)
    return RIGHT if low * (1 - near) <= Fraction(said) <= high * (1 + near) else WRONG


def ratio(said: Any, squared: Fraction | float | None, exact: bool) -> str:
    """HFC/LFC at a depth against its square."""
    if squared is None:
        return RIGHT if said.value is None and said.log is None else WRONG
    if said.log is None:
        return UNDECIDED
    if exact and isinstance(squared, Fraction) and said.squared != squared:
        return WRONG
    true = squared if squared == math.inf else log_ratio(squared.numerator, squared.denominator)
    return _close(said.log, true, 1e-9 if exact else 1e-6)


def _close(said: float, true: float, tolerance: float) -> str:
    if math.isinf(true) or math.isinf(said):
        return RIGHT if said == true else WRONG
    return RIGHT if abs(said - true) <= tolerance * max(1.0, abs(true)) else WRONG


def judged_generic(answer: Any, expected: Truth, exact: bool) -> dict[str, str]:
    """Outcomes by field, of generic X_0; a limit that depends on X_0 is None on both sides."""
    fields = {
        "tends_to": _same(answer.tends_to, expected.tends_to),
        "limit": _limit(answer.limit, expected, exact),
        "limit_rank": _same(answer.limit_rank, expected.limit_rank),
    }
    if answer.tends_to is None and fields["limit"] == RIGHT and expected.tends_to is not None:
        fields["limit"] = UNDECIDED
    return fields


def claimed(said: float, true: float, error: float) -> str:
    """Whether a number is as exact as is said of it."""
    if math.isfinite(true) and not error <= _USELESS:
        return UNDECIDED
    if math.isnan(true) or math.isinf(true) or not math.isfinite(said):
        return RIGHT if said == true or (math.isnan(said) and math.isnan(true)) else WRONG
    return RIGHT if abs(said - true) <= _SLACK * error + _FLOOR * max(1.0, abs(true)) else WRONG
