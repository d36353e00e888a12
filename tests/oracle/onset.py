"""From which layer on an X_0 shows what decides (`shows_from`), layer by layer in integers.

0 where the leading terms of X_L are at least as large as the rest at every layer (of terms that
turn: the root of their mean square); else, where HFC/LFC tends to 0 (infinity), the first layer
from which it falls (rises) in every layer, if there is one; else the first layer from which the
leading terms are at least as large as the rest. A window of layers shows it. Sizes that agree to
twelve digits may count as equal, and leading multipliers within 1e-7 of one another count as one,
as the documentation of the number says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb

from .balls import Ball, ball
from .depths import norms
from .leading import evaluated, leading_terms
from .matrices import Integers, product, transpose
from .roots import Root
from .start import Start, whole

# So many layers are looked at, and at so many bits; behind them where HFC/LFC may turn back.
WINDOW, _BITS, _BEHIND = 160, 768, 2048
# Far layers: so many bits, of which so many may be lost to the larger of HFC and LFC (squared), and
# so many layers in a row.
_FAR_BITS, _LOST, _AFTER = 4096, 4096, 12
# Squares that differ by less than one part in this belong to sizes that agree to twelve digits.
_EQUAL = 10**12 // 2
# Multipliers that differ by less than one part in this turn together.
_TOGETHER = 10**7
RIGHT, WRONG, UNDECIDED = "right", "wrong", "UNDECIDED"


@dataclass(frozen=True)
class Window:
    """outweighs, moves: for each layer whether the leading terms are as large as the rest (None: as
    far as can be seen they are equally large), and whether HFC/LFC rises (1) or falls (-1); what is
    infinite rises, what is 0 falls."""

    outweighs: list[bool | None]
    moves: list[int]
    start: Start

    def judged(self, said: float | None, tends_to: str | None) -> str:
        """What is said against what the layers show; UNDECIDED where they show too little."""
        if said is None:
            return UNDECIDED
        outweighs = {_first(self.outweighs, unclear) for unclear in (True, False)}
        if said == 0 and 0 in outweighs:
            return RIGHT
        # What begins near the end of the window may end after it.
        end = len(self.moves) // 2
        if tends_to in ("zero", "infinity"):
            sign = 1 if tends_to == "infinity" else -1
            first = _first([move == sign for move in self.moves], True)
            if said >= len(self.moves) and first != len(self.moves):
                return self._judged_far(round(said), sign, first)
            if said == first < len(self.moves):
                return RIGHT if outweighs != {0} or not said else WRONG
            if first < end and not (said in outweighs and self._turns_back(sign)):
                return WRONG
            if first < end:
                return RIGHT
        # It moves the other way again and again, or the window is too short to say.
        if max(outweighs) >= end:
            return RIGHT if said >= end else WRONG
        return RIGHT if said in outweighs or said >= len(self.moves) else WRONG

    def _turns_back(self, sign: int) -> bool:
        """Whether HFC/LFC moves the other way in a layer behind the window."""
        Z = self.start.powers[0]
        for _ in range(len(self.moves)):
            Z = self.start.system.step(Z)
        before = norms(Z)
        for _ in range(_BEHIND):
            Z = self.start.system.step(Z)
            after = norms(Z)
            if _move(before, after) == -sign:
                return True
            before = after
        return False

    def shown(self) -> str:
        """The last layers at which the leading terms are smaller, and HFC/LFC falls, or rises."""
        listed = [L for L, x in enumerate(self.outweighs) if not x]
        ways = [[L for L, x in enumerate(self.moves) if x == way] for way in (-1, 1)]
        last = [str(found[-1]) if found else "none" for found in (listed, *ways)]
        return "smaller until {}, falls until {}, rises until {}".format(*last)

    def _judged_far(self, said: int, sign: int, first: int) -> str:
        """Whether the way changes at the layer that is said, in numbers of `_FAR_BITS` bits."""
        # Beyond 2^53 a float names no single layer: those a little before and after it are asked,
        # within what ten digits of "about" mean.
        margin = said >> 30 if said > 2**53 else 0
        first_two = self._squares(said - 1 - margin, 2)
        others = self._squares(said + margin, _AFTER)
        if any(min(pair) * 2**_LOST < max(pair) for pair in first_two + others):
            return UNDECIDED
        before = _move(*first_two) == sign
        after = all(_move(a, b) == sign for a, b in pairwise(others))
        turning = first >= len(self.moves) // 2 and not after
        return RIGHT if turning or (not before and after) else WRONG

    def _squares(self, layer: int, count: int) -> list[tuple[int, int]]:
        """(||HFC||^2, ||LFC||^2), up to a factor, at so many layers from this one on."""
        Z, found = _far(self.start, layer), []
        for _ in range(count):
            found.append(norms(Z))
            Z = self.start.system.step(Z)
        return found


def _first(right: list[bool | None], unclear: bool) -> int:
    wrong = [L for L, x in enumerate(right) if not (unclear if x is None else x)]
    return wrong[-1] + 1 if wrong else 0


def window(start: Start, layers: int = WINDOW) -> Window:
    """What the layers of an X_0 that does not become 0 show."""
    growth = start.state
    assert growth is not None
    k = growth.multiplicity - 1
    terms, r = leading_terms(start, growth)
    at = {root: root.ball(_BITS) for root in growth.roots}
    G = {
        root: [evaluated(x, mu) for x in zip(*map(whole, terms[root.polynomial]), strict=True)]
        for root, mu in at.items()
    }
    turns = {root: ball(1, _BITS) for root in at}
    groups = _together(at)
    outweighs, squares, Z = [], [], start.powers[0]
    for L in range(layers + 1):
        leading = [ball(0, _BITS)] * len(whole(Z))
        size = [0, 0]
        if k <= L:
            for group in groups:
                together = [ball(0, _BITS)] * len(leading)
                for root in group:
                    entries = [turns[root] * x * comb(L, k) for x in G[root]]
                    together = [x + y for x, y in zip(together, entries, strict=True)]
                    turns[root] = turns[root] * at[root]
                leading = [x + y for x, y in zip(leading, together, strict=True)]
                size = [x + y for x, y in zip(size, _square(together), strict=True)]
        rest = _square([ball(r * z, _BITS) - x for z, x in zip(whole(Z), leading, strict=True)])
        outweighs.append(_at_least(size, rest))
        squares.append(norms(Z))
        Z = start.system.step(Z)
    return Window(outweighs[:-1], [_move(a, b) for a, b in pairwise(squares)], start)


def _together(at: dict[Root, Ball]) -> list[list[Root]]:
    """The roots by the first of those that they are next to."""
    groups: list[list[Root]] = []
    for root, mu in at.items():
        for group in groups:
            if (mu - at[group[0]]).upper * _TOGETHER < mu.lower:
                group.append(root)
                break
        else:
            groups.append([root])
    return groups


def _far(start: Start, layers: int) -> Integers:
    """A positive multiple of Z_L, to `_FAR_BITS` bits of its largest entry, by squaring."""
    first = start.powers[0]
    n, d = len(first), len(first[0])
    units = [[[int(i * d + j == k) for j in range(d)] for i in range(n)] for k in range(n * d)]
    M = transpose([whole(start.system.step(unit)) for unit in units])
    v = [[x] for x in whole(first)]
    while layers:
        if layers & 1:
            v = _cut(product(M, v))
        layers >>= 1
        M = _cut(product(M, M))
    v = [[x << _FAR_BITS] for (x,) in v]
    return [[v[i * d + j][0] for j in range(d)] for i in range(n)]


def _cut(M: Integers) -> Integers:
    excess = max(abs(x).bit_length() for row in M for x in row) - _FAR_BITS
    return [[x >> excess for x in row] for row in M] if excess > 0 else M


def _move(before: tuple[int, int], after: tuple[int, int]) -> int:
    (hfc, lfc), (then, below) = before, after
    gap = then * lfc - hfc * below
    if not gap and 0 in (hfc + then, lfc + below):
        return 1 if lfc + below == 0 else -1
    return (gap > 0) - (gap < 0)


def _at_least(size: list[int], rest: list[int]) -> bool | None:
    """Whether the leading terms are as large as the rest; None where they are less by a share that
    the balls, or twelve digits, do not show."""
    if rest[1] <= size[0]:
        return True
    return False if rest[0] * (_EQUAL - 1) > size[1] * _EQUAL else None


def _square(entries: Sequence[Ball]) -> list[int]:
    """A lower and an upper bound of the sum of squares."""
    return [sum(x.lower**2 for x in entries), sum(x.upper**2 for x in entries)]
