"""What HFC/LFC and the rank of X_L do, from the modes that lead: one analysis, however modes are
enclosed, by discs (`disc_modes`) or in balls (`by_cells`) (T1f, T3f, T4, T5a).

One direction of tokens leads, times whatever H does, or one of H times what A does: HFC/LFC is then
that of the tokens' directions. What needs more, and means that may be 0, are left open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oversmoothing.theory.numbers.rounding import UNIT, Bounded, inflated, mean_of
from oversmoothing.theory.verdict.formulas import Outcome


@dataclass(frozen=True)
class Limits:
    """What HFC/LFC does as L grows, and the asymptotic rank of X_L (T4c).

    tends_to: "zero", "constant", "infinity", "oscillates" or None. limit: of HFC/LFC (inf where it
    diverges), None where there is none. reached: from which depth on HFC/LFC is what it tends to,
    "every" or "some"; empty where it only tends to it, or that is not known.
    """

    tends_to: str | None
    limit: float | None
    limit_rank: int | None
    reached: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing is left open."""
        missing = self.tends_to == "constant" and self.limit is None
        return not missing and None not in (self.tends_to, self.limit_rank)


UNKNOWN, ZERO = Limits(None, None, None), Limits("zero", 0.0, 1)


def infinite(rank: int | None, reached: str = "") -> Limits:
    """HFC/LFC grows without bound, or is infinite."""
    return Limits("infinity", math.inf, rank, reached)


@dataclass(frozen=True)
class Decided:
    """The outcome that all cases of a cell share, or UNDECIDED, and what is known of the limits.

    Of one X_0 (not None where they are known) also a sentence about it, from which layer on it
    shows what decides (an `Onset`), and what its tokens do (`TokenLimits`).
    """

    outcome: Outcome
    limits: Limits = UNKNOWN
    words: str = ""
    onset: Any = None
    tokens: Any = None


def agreed(first: Limits, second: Limits) -> Limits:
    """What two draws of X_0 have in common: None where they differ."""
    a, b = first.limit, second.limit
    same = a is not None and b is not None and (a == b or abs(a - b) <= 1e-8 * min(a, b))
    return Limits(
        first.tends_to if first.tends_to == second.tends_to else None,
        a if same else None,
        first.limit_rank if first.limit_rank == second.limit_rank else None,
    )


def merged(first: Limits, second: Limits) -> Limits:
    """What either knows, what the first knows first; a limit only to the same tends_to."""
    known = first if first.tends_to is not None else second
    limit = known.limit
    if limit is None and known.tends_to == second.tends_to:
        limit = second.limit
    rank = first.limit_rank if first.limit_rank is not None else second.limit_rank
    return Limits(known.tends_to, limit, rank)


# A limit is a number where it is known up to this (relative).
_KNOWN = 1e-7


@dataclass(frozen=True)
class Tokens:
    """One direction w of the tokens, up to scale: `spread` = P w [n], and its mean."""

    spread: Bounded
    mean: Bounded

    def ratio(self) -> Limits:
        """HFC/LFC -> ||P w|| / (sqrt n |mean w|), rank 1 (T1f)."""
        if not (self.mean.nonzero and self.spread.nonzero.any()):
            return Limits(None, None, 1)
        return Limits("constant", ratio_of(self.spread, self.mean, len(self.spread.value)), 1)

    @property
    def turning(self) -> bool:
        """Whether ||HFC||^2 and ||LFC||^2 turn differently with e^(2 i L phase): whether
        (s.s) / |s|^2 - m^2 / |m|^2 is not 0 for the spread s and the mean m, nor m (T3f)."""
        mean, off = complex(self.mean.value), float(self.mean.error)
        low, high = self.spread.norm()
        if not (abs(mean) > 2 * off and low > 0):
            return False
        square = self.spread @ self.spread
        around, other = square.value / (low * high), mean**2 / abs(mean) ** 2
        error = (square.error + abs(square.value) * (high / low - 1)) / low**2
        error = error + 4 * off / (abs(mean) - off) + 32 * UNIT
        return bool(Bounded(np.asarray(around - other), inflated(np.asarray(error), 16)).nonzero)

    @property
    def complex(self) -> bool:
        """Whether w is no multiple of a real vector."""
        s, m, e = self.spread.value, self.mean.value, self.spread.error + self.mean.error
        w = Bounded(s + m, inflated(e + UNIT * np.abs(s + m), 4))
        turned = w[:, None] @ Bounded(w.value.conj(), w.error)[None]
        return bool((np.abs(turned.value.imag) > turned.error).any())


def ratio_of(spread: Bounded, mean: Bounded, n: int) -> float | None:
    """||spread|| / (sqrt n ||mean||) where its bounds leave a number."""
    (low, high), (least, most) = spread.norm(), mean.norm()
    if not least > 0:
        return None
    low, high = low / most / math.sqrt(n), high / least / math.sqrt(n)
    middle = (low + high) / 2
    return middle if high - low <= 2 * _KNOWN * middle and 0 < middle < math.inf else None


def limits_of_state(X: Bounded, rank: int | None) -> Limits:
    """Where X_L goes like X [n, d]."""
    mean = mean_of(X)
    tends = "constant" if mean.nonzero.any() else None
    return Limits(tends, ratio_of(X - mean, mean, len(X.value)), rank)


@dataclass(frozen=True, eq=False)
class Group:
    """Eigenvalues that are not told apart, of discs as `spectra.blocks.Block` is in balls.

    real, conjugate, zero: as there. consensus: of A, all are 1 exactly.
    """

    columns: tuple[int, ...]
    real: bool
    conjugate: tuple[int, ...] = ()
    zero: bool = False
    consensus: bool = False

    def __len__(self) -> int:
        return len(self.columns)


def limits_of(modes: Any, outcome: Outcome) -> Limits:
    """What all that some modes stand for has in common; None where it differs or may do so.

    modes: a `DiscModes` or `CellModes`. Its `leading` has the modes that lead, of equal moduli or
    too close to tell, and while none of them is there for certain and lasts also those that lead
    where all of these are missing. `generic`: X_0 is, and contains everything. Of a mode some part
    is there if it is `sure`; if it is `quarter`, 1 + h a may be real or imaginary: then
    e^(2 i L phase) is real. `tokens` and `feature` are the eigenvectors of one that leads, `summed`
    the tokens of a given X_0 on one h where all mu are one.
    """
    if outcome is Outcome.SMOOTHING:
        return ZERO
    common: Limits | None = None
    for top in modes.leading():
        limits = _by_directions(modes, top) if top else UNKNOWN
        if top and limits.tends_to is None:
            falls = all(modes.without_mean(mode.attention) for mode in top)
            limits = infinite(limits.limit_rank) if falls else limits
        common = limits if common is None else agreed(common, limits)
    common = common or UNKNOWN
    # A state of one feature has no other rank.
    return replace(common, limit_rank=1) if min(modes.shape) == 1 and modes.lasts() else common


def _by_directions(modes: Any, top: list[Any]) -> Limits:
    sides = _distinct(mode.attention for mode in top)
    values = _distinct(mode.value for mode in top)
    side, value = sides[0], values[0]
    consensus = all(x.consensus for x in sides)
    if len(sides) == 1 and consensus and len(side) == modes.classes == 1:
        return ZERO
    if modes.generic and all(x.zero for x in values):
        # X_L tends to the part of X_0 on which H is 0.
        return Limits("constant", None, min(modes.shape[0], sum(map(len, values))))
    one_value = len(values) == 1 and value.real and len(value) == 1
    # Where one h = 0 leads, its part of X_0 stays as it is, whatever A does.
    still = len(top) == 1 and value.zero
    if len(sides) == 1 and not consensus and not still:
        # X_L goes like w y_L^T, of rank 1.
        tokens: Tokens | None = modes.tokens(top) if side.real else None
        if tokens is not None:
            return tokens.ratio()
        if side.real and len(side) == 1:
            return Limits(None, None, 1)
        if not one_value:
            return UNKNOWN
    turned = len(top) == 2 and side.conjugate == sides[-1].columns != ()
    if one_value:
        return _of_one_value(modes, top, consensus, turned)
    if len(values) == 1 and value.real and (turned or len(sides) == 1) and modes.one_feature(top):
        return Limits(None, None, 1)
    if len(values) == 2 and value.conjugate == values[1].columns:
        if consensus:
            return _of_pair(modes, [x for x in top if x.value is value])
        if turned:
            return _of_pair(modes, top[:1])
    return UNKNOWN


def _of_one_value(modes: Any, top: list[Any], consensus: bool, turned: bool) -> Limits:
    """X_L goes like w_L u^T, u the eigenvector of a real h: rank 1, and w_L decides."""
    if modes.generic and consensus:
        # Generic X_0 has other means of several closed classes: a constant that depends on it.
        return Limits("constant", None, 1)
    tokens: Tokens | None = None if modes.generic else modes.summed(top)
    if tokens is not None:
        return tokens.ratio()
    return replace(_of_pair(modes, top[:1]), limit_rank=1) if turned else Limits(None, None, 1)


def _of_pair(modes: Any, half: list[Any]) -> Limits:
    """Re(mu^L w u^T), w from one side or from all of a = 1, of a mode that turns, or several:
    rank 2 where neither w nor u is real up to a factor.

    ||HFC||^2 and ||LFC||^2 turn differently where (w.w)(u.u) / (|w|^2 |u|^2) differs between
    P w and the mean of w in the place of w: that is what e^(2 i L phase) comes with.
    """
    first, rank = half[0], None
    side, value = first.attention, first.value
    if not first.sure:
        return UNKNOWN
    u = None if value.real else modes.feature(value)
    turns = not first.quarter and (value.real or (u is not None and bool((u @ u).nonzero)))
    if not side.consensus:
        rank = 1 if value.real else 2
        tokens = modes.tokens(half)
    elif modes.generic:
        # Several closed classes (of one HFC/LFC -> 0), of which generic X_0 has means w with no
        # phase in common.
        return Limits("oscillates" if turns else None, None, 2)
    else:
        tokens = modes.summed(half)
        rank = 2 if tokens is not None and tokens.complex else None
    oscillates = turns and tokens is not None and tokens.turning
    return Limits("oscillates" if oscillates else None, None, rank)


def _distinct(items: Iterable[Any]) -> list[Any]:
    return list({id(x): x for x in items}.values())
