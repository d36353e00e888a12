"""What the project says of single tokens, of pairs of them, and of when the start shows what
decides, held against the oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from .angles import Angle, Bounds, Tokens
from .onset import window

# Of a rate, and of a cosine.
_NEAR = 1e-9
RIGHT, WRONG, UNDECIDED = "right", "wrong", "UNDECIDED"
Judged = tuple[str, str, object, object]


def judged_onset(answer: Any, tokens: Tokens) -> Iterator[Judged]:
    """(field, outcome, said, true) of `shows_from`, where there is something to show."""
    if answer.verdict_x0 in ("SMOOTHING", "NON_SMOOTHING", "TIE"):
        seen = window(tokens.start)
        outcome = seen.judged(answer.shows_from, answer.tends_to)
        yield "shows_from", outcome, answer.shows_from, seen.shown()


def judged_tokens(answer: Any, tokens: Tokens) -> Iterator[Judged]:
    """(field, outcome, said, true) of the growth of tokens and the limits of their cosines."""
    orders, angles = tokens.orders(), tokens.angles()
    said = answer.token_growth
    found = [(None if said is None else said[k], order) for k, order in enumerate(orders)]
    yield _worst("token_growth", [(_growth(*one), *one) for one in found])
    limits = answer.cosine_limits
    pairs = [
        (None if limits is None else limits[pair], angle)
        for pair, angle in angles.items()
        if angle.how != "open"
    ]
    if pairs:
        yield _worst("cosine_limits", [(_judged(*one), *one) for one in pairs])
    known = list(angles.values())
    if any(angle.how in ("open", "no limit") for angle in known):
        return
    for name, of in (("cos_min", min), ("cos_mean", _mean)):
        true = _over_pairs(known, of)
        yield name, _judged(getattr(answer, name), true), getattr(answer, name), true


def _worst(name: str, found: list[tuple[str, object, object]]) -> Judged:
    """One finding for all tokens, or pairs, of a case: the worst."""
    outcome, said, true = min(found, key=lambda one: [WRONG, UNDECIDED, RIGHT].index(one[0]))
    return name, outcome, said, true


def _growth(said: Any, true: tuple[Fraction, int]) -> str:
    if said is None:
        return UNDECIDED
    squared, power = true
    if not squared:
        return RIGHT if (said.rate, said.power) == (0.0, 0) else WRONG
    if not said.rate or said.power != power:
        return WRONG
    if math.isinf(said.rate) or said.rate < 1e-300:
        return RIGHT
    gap = abs(Fraction(said.rate) ** 2 - squared)
    return RIGHT if gap <= Fraction(_NEAR) * squared else WRONG


def _judged(said: Any, true: Angle) -> str:
    if said is None:
        return UNDECIDED
    words = {"a token is 0": "undefined", "no limit": "oscillates"}
    if true.how in words:
        return RIGHT if said.tends_to == words[true.how] else WRONG
    if said.tends_to not in ("constant", "periodic"):
        return WRONG
    if (said.tends_to == "constant") != (len(said.values) == 1):
        return WRONG
    period = math.lcm(len(said.values), len(true.bounds))
    pairs = (
        (said.values[r % len(said.values)], true.bounds[r % len(true.bounds)])
        for r in range(period)
    )
    return RIGHT if all(_near(value, bounds) for value, bounds in pairs) else WRONG


def _near(value: float | None, bounds: Bounds | None) -> bool:
    if value is None or bounds is None:
        # A constant is said of the depths at which the cosine is defined.
        return value is bounds
    return bounds[0] - Fraction(_NEAR) <= Fraction(value) <= bounds[1] + Fraction(_NEAR)


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _over_pairs(angles: list[Angle], of: Callable[[list[Fraction]], Fraction]) -> Angle:
    limits = [angle for angle in angles if angle.how == "limit"]
    if not limits:
        return Angle("a token is 0")
    bounds: list[Bounds | None] = []
    for r in range(math.lcm(*(len(angle.bounds) for angle in limits))):
        here = [b for angle in limits if (b := angle.bounds[r % len(angle.bounds)]) is not None]
        ends = ([b[side] for b in here] for side in (0, 1))
        bounds.append(tuple(map(of, ends)) if here else None)  # type: ignore[arg-type]
    return Angle("limit", tuple(bounds))
