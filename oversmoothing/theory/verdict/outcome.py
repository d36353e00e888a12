"""The answers there are, and the one comparison of rho_C with rho_Q that gives them (T2, T3)."""

from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """Does HFC/LFC tend to 0? Each member is its own name, so it stands in JSON as it is.

    SMOOTHING: rho_C > rho_Q, it does for generic X_0. NON_SMOOTHING: rho_C < rho_Q, it does not.
    TIE: equal moduli, even where Jordan blocks then decide (T6b). TRIVIAL: n = 1, or X_0 at
    consensus. UNDEFINED: the state is 0, every metric 0/0. UNDECIDED: the method cannot tell.
    """

    SMOOTHING = "SMOOTHING"
    NON_SMOOTHING = "NON_SMOOTHING"
    TIE = "TIE"
    TRIVIAL = "TRIVIAL"
    UNDEFINED = "UNDEFINED"
    UNDECIDED = "UNDECIDED"


def outcome_of(low: Any, high: Any) -> Outcome:
    """The outcome where rho_C - rho_Q is known to lie in [low, high], in any ordered field.

    Both ends 0 is a tie; an interval that holds 0 beside other numbers decides nothing. Of two
    radii known by intervals, low = consensus.low - quotient.high, high the other way about.
    """
    if low > 0:
        return Outcome.SMOOTHING
    if high < 0:
        return Outcome.NON_SMOOTHING
    return Outcome.TIE if low == high == 0 else Outcome.UNDECIDED


def outcome_of_sign(sign: int | None) -> Outcome:
    """The outcome by the sign of rho_C - rho_Q, None where it is not known."""
    return Outcome.UNDECIDED if sign is None else outcome_of(sign, sign)
