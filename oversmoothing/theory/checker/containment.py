"""Whether a stated interval contains a number known in a ball: with all of the ball, or not."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint


@dataclass(frozen=True)
class Bounds:
    """A closed interval, None where it has no end on that side."""

    low: Fraction | None
    high: Fraction | None


def contained(
    ball: Any, stated: Bounds, at_least: Fraction | None = None, at_most: Fraction | None = None
) -> bool | None:
    """Whether every number of the ball is in the interval: None where some are and some are not.

    at_least, at_most: the number is known to lie between these.
    """
    if not ball.is_finite():
        return None
    low, high = fraction_of(ball.lower()), fraction_of(ball.upper())
    if at_least is not None:
        low, high = max(low, at_least), max(high, at_least)
    if at_most is not None:
        low, high = min(low, at_most), min(high, at_most)
    if (stated.low is not None and high < stated.low) or (
        stated.high is not None and low > stated.high
    ):
        return False
    inside = (stated.low is None or stated.low <= low) and (
        stated.high is None or high <= stated.high
    )
    return True if inside else None


def fraction_of(end: Any) -> Fraction:
    """An end of a ball, a ball without a radius, exactly."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def to_fmpq(x: Fraction) -> flint.fmpq:
    """The same number as FLINT's."""
    return flint.fmpq(x.numerator, x.denominator)


def show(ball: Any) -> str:
    """A ball in a message, without its radius."""
    return str(ball.str(15, radius=False))
