"""The cosine of each pair of tokens in the limit, where each token has one dominant real root.

A token without the dominant mode of the others turns by its own next one (T4b): each has its own
growth, and x_k / (|mu|^L L^(m-1)) tends to a multiple of G_mu, up to the sign of mu^(L-m+1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from .balls import Ball, ball
from .leading import evaluated, leading
from .matrices import Rationals
from .moduli import vanishes
from .roots import Root
from .start import Growth, Start, token
from .system import System

# The interval around a cosine is no wider than 2^-_DIGITS.
_DIGITS = 80


@dataclass(frozen=True)
class Angle:
    """How a pair of tokens ends: "limit" with bounds of the cosine, "alternates" between it and its
    negative, "a token is 0" from some depth on, or "several phases", which is left open."""

    how: str
    bounds: tuple[Fraction, Fraction] | None = None


@dataclass(frozen=True)
class _Direction:
    root: Root
    multiplicity: int
    entries: list[list[int]]


def limit_angles(A: Rationals, H: Rationals, X0: Rationals) -> dict[tuple[int, int], Angle]:
    """(i, k), i < k -> how the pair ends."""
    start = Start(System(A, H), X0)
    growths = [start.growth(token(k)) for k in range(len(A))]
    return {
        (i, k): _angle(start, (i, k), (growths[i], growths[k]))
        for k in range(len(A))
        for i in range(k)
    }


def _angle(start: Start, pair: tuple[int, int], growths: tuple[Growth | None, ...]) -> Angle:
    if None in growths:
        return Angle("a token is 0")
    sides = []
    for k, growth in zip(pair, growths, strict=True):
        assert growth is not None
        if len(growth.roots) > 1:
            return Angle("several phases")
        root = growth.roots[0]
        entries = leading(start, growth)[root.polynomial].entries(token(k))
        sides.append(_Direction(root, growth.multiplicity, entries))
    first, second = sides
    at = list(dict.fromkeys([first.root, second.root]))

    def inner(one: _Direction, two: _Direction, values: Sequence[Ball]) -> Ball:
        known = dict(zip(at, values, strict=True))
        total = ball(0, values[0].bits)
        for x, y in zip(one.entries, two.entries, strict=True):
            total = total + evaluated(x, known[one.root]) * evaluated(y, known[two.root])
        return total

    if vanishes(lambda values: inner(first, second, values), at):
        return Angle("limit", (Fraction(0), Fraction(0)))
    signs = [root.ball(64 + 2**k).re > 0 for k, root in enumerate((first.root, second.root))]
    turned = -1 if not signs[0] and (first.multiplicity + second.multiplicity) % 2 else 1
    bits = 256
    while True:
        values = [root.ball(bits) for root in at]
        product = inner(first, second, values)
        sizes = inner(first, first, values), inner(second, second, values)
        if all(size.re > size.error for size in sizes) and abs(product.re) > product.error:
            low, high = (
                _cosine(abs(product.re) + sign * product.error,
                        [size.re - sign * size.error for size in sizes])
                for sign in (-1, 1)
            )  # fmt: skip
            if (high - low) * 2**_DIGITS <= 1:
                break
        bits *= 2
    high = min(high, Fraction(1))
    how = "limit" if signs[0] == signs[1] else "alternates"
    positive = (product.re > 0) == (turned > 0)
    return Angle(how, (low, high) if positive else (-high, -low))


def _cosine(product: int, sizes: Sequence[int]) -> Fraction:
    """product / sqrt(size size'), to 2^-(2 _DIGITS)."""
    shift = 2 * _DIGITS
    return Fraction(isqrt((product**2 << (2 * shift)) // (sizes[0] * sizes[1])), 1 << shift)
