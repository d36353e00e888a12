"""|mu| against |nu| for algebraic integers, and which expressions in them are 0: both for certain.

A value f(mu, nu, ...) with integer coefficients is an algebraic integer. If it is not 0, the
product over all choices of roots of the same polynomials, those with value 0 left out, is an
integer other than 0: so |f| is at least 1 over the product of the other values above 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key, lru_cache
from itertools import permutations, product
from math import comb, perm, prod

from .balls import Ball, log2_upper
from .roots import Root, roots

# Beyond this many choices of roots, or bits, the oracle says so instead of waiting.
_CHOICES = 4000
_BITS = 2**15
# To so many bits numbers are told apart where their equality is out of reach.
_APART = 2**13


class TooHard(Exception):
    """To prove an equality would take more than the oracle spends."""


def compare(first: Root, second: Root) -> int:
    """The sign of |first| - |second|."""
    if first == second or first == second.conjugate:
        return 0
    if first.degree == second.degree == 1:
        x, y = abs(first.polynomial[0]), abs(second.polynomial[0])
        return (x > y) - (x < y)
    key = (
        (first, second)
        if (first.polynomial, first.index) < (second.polynomial, second.index)
        else (second, first)
    )
    sign = _compared(*key)
    return sign if key[0] is first else -sign


@lru_cache(maxsize=20000)
def _compared(first: Root, second: Root) -> int:
    # Real roots of one modulus are opposite: if the polynomials are not, they differ.
    differ = first.is_real and second.is_real and not _mirrored(first, second)
    needed = None if differ else _gap_bits(first, second)
    bits = 64
    while True:
        gap = _squared(first, bits) - _squared(second, bits)
        if gap.lower > 0:
            return 1 if gap.re > 0 else -1
        if needed is not None and gap.upper.bit_length() < bits - needed:
            return 0
        if bits > (2 * _BITS if needed is not None and needed < _BITS else _APART):
            raise TooHard(f"{needed} bits for an equality")
        bits *= 2


def _squared(root: Root, bits: int) -> Ball:
    z = root.ball(bits)
    return z * z.conjugate


def _mirrored(first: Root, second: Root) -> bool:
    sign = -1 if first.degree % 2 else 1
    return second.polynomial == tuple(sign * (-1) ** k * c for k, c in enumerate(first.polynomial))


def _gap_bits(first: Root, second: Root) -> int:
    """Bits b such that |first|^2 - |second|^2 is 0 if it is below 2^-b."""
    sizes = [0 if r.is_real else 1 for r in (first, second)]
    if first.polynomial == second.polynomial:
        k = first.degree
        count = perm(k, 2 + sum(sizes)) // 2 ** sum(sizes)
    else:
        count = prod(comb(r.degree, 1 + s) for r, s in zip((first, second), sizes, strict=True))
    largest = max(
        log2_upper(r.ball(16).upper, 16) for q in (first, second) for r in roots(q.polynomial)
    )
    return count * (1 + 2 * max(0, int(largest) + 1)) + 4


def vanishes(expression: Callable[[Sequence[Ball]], Ball], at: Sequence[Root]) -> bool:
    """Whether a polynomial with integer coefficients is 0 at these distinct roots."""
    needed: int | None = None
    bits = 128
    while True:
        found = expression([root.ball(bits) for root in at])
        if found.lower > 0:
            return False
        if bits > 256:
            needed = _norm_bits(expression, at) if needed is None else needed
            if found.upper.bit_length() < bits - needed:
                return True
            if bits > 4 * needed:
                raise TooHard(f"{bits} bits do not do for {needed}")
            bits = max(2 * bits, needed + 64) if bits > 1000 else 2 * bits
        else:
            bits *= 2


def _norm_bits(expression: Callable[[Sequence[Ball]], Ball], at: Sequence[Root]) -> int:
    groups: dict[tuple[int, ...], list[int]] = {}
    for position, root in enumerate(at):
        groups.setdefault(root.polynomial, []).append(position)
    count = prod(perm(len(q) - 1, len(places)) for q, places in groups.items())
    if count > _CHOICES:
        raise TooHard(f"{count} choices of roots")
    total, bits = 0, 64
    choices = [permutations(roots(q), len(places)) for q, places in groups.items()]
    for chosen in product(*choices):
        values: list[Ball | None] = [None] * len(at)
        for places, taken in zip(groups.values(), chosen, strict=True):
            for place, root in zip(places, taken, strict=True):
                values[place] = root.ball(bits)
        total += max(0, int(log2_upper(expression(values).upper, bits)) + 1)  # type: ignore[arg-type]
    if total > _BITS:
        raise TooHard(f"{total} bits")
    return total + 2


def largest(found: Sequence[Root]) -> list[Root]:
    """Those of the greatest modulus."""
    best: list[Root] = []
    for root in found:
        sign = compare(root, best[0]) if best else 1
        if sign > 0:
            best = [root]
        elif sign == 0:
            best.append(root)
    return best


by_modulus = cmp_to_key(compare)
