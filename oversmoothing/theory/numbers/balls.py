"""Ball arithmetic: the few operations on FLINT's balls that the theory needs everywhere."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import reduce
from typing import Any

import flint


def at_precision(bits: int) -> AbstractContextManager[Any]:
    """A context in which ball arithmetic works with `bits` bits."""
    context: AbstractContextManager[Any] = flint.ctx.workprec(bits)
    return context


def doublings(first: int, most: int) -> Iterator[int]:
    """Working precisions to try one after the other: first, 2 first, 4 first ... up to most."""
    while first <= most:
        yield first
        first *= 2


def to_ball(x: Fraction) -> flint.arb:
    """A ball around a fraction, at the precision of the context."""
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def largest(values: Iterable[flint.arb]) -> flint.arb:
    """A ball around the largest of several real numbers, each known by a ball; 0 of none."""
    known = list(values)
    if not known:
        return flint.arb(0)
    low = reduce(lambda x, y: x.max(y), (value.lower() for value in known))
    return low.union(reduce(lambda x, y: x.max(y), (value.upper() for value in known)))


def norm(entries: Iterable[flint.acb]) -> flint.arb:
    """sqrt(sum |x|^2) of complex balls."""
    return sum((x.real * x.real + x.imag * x.imag for x in entries), flint.arb(0)).sqrt()
