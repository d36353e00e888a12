"""What the cosine of each pair of tokens tends to, from one X_0 (T14g, T14h).

The cosine of x_i and x_j goes with that of their leading sums y_i(L) and y_j(L) (tokens). Where all
leading multipliers have a real power, each residue of L has a limit of its own; one real multiplier
each is the common case, with one residue or, of opposite signs, two. Else the cosine comes again
and again near each of its values over the depths, since all phases recur together: two different
values are no limit, and equal ones are a limit where structure says so.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

import flint

from oversmoothing.theory.numbers.balls import at_precision, doublings
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.verdict.collinear import keep_their_angle
from oversmoothing.theory.verdict.growth import Multipliers, OutOfReachError
from oversmoothing.theory.verdict.phases import UnknownPhaseError, period_of, real_power, signs
from oversmoothing.theory.verdict.resolvent import Resolvent
from oversmoothing.theory.verdict.tokens import (
    SHOWN_BITS,
    Token,
    TokenGrowth,
    every,
    token_of,
    unit_row,
)

# Depths of the leading sums at which a cosine is looked at: far apart too, for slow phases.
_DEPTHS = sorted({round(1.25**k) for k in range(72)})
# A cosine is known to so many bits, or not at all when that takes more working bits than the most.
_KNOWN_BITS, _MOST_BITS = 60, 2**16

Pair = tuple[int, int]


@dataclass(frozen=True)
class CosineLimit:
    """What a cosine tends to as L grows, over the depths at which it is defined.

    tends_to: "constant"; "periodic", one limit for each residue of L modulo the number of values
    (None where a token is 0 at all of those depths from some on); "oscillates", several limit
    points and none by residues; "undefined", from some depth on a token is 0 at every depth.
    """

    tends_to: str
    values: tuple[float | None, ...] = ()


UNDEFINED, OSCILLATES = CosineLimit("undefined"), CosineLimit("oscillates")


class TokensOfStart:
    """The tokens of one X_0 [n, d], by its resolvent."""

    def __init__(self, found: Resolvent, multipliers: Multipliers, n: int) -> None:
        self._found, self._multipliers, self._n = found, multipliers, n
        self._order: Callable[[Eigenvalue], int | None] = cache(real_power)
        self._at_residue = cache(self._every)

    @cached_property
    def _tokens(self) -> list[Token | OutOfReachError | None]:
        """None for a token that becomes 0, the error for one whose growth is not decided."""
        result: list[Token | OutOfReachError | None] = []
        for i in range(self._n):
            try:
                part = self._found.part(unit_row(i, self._n))
                result.append(token_of(part, self._multipliers))
            except OutOfReachError as error:
                result.append(error)
        return result

    @cached_property
    def growth(self) -> tuple[TokenGrowth | None, ...]:
        """Of each token; None where it is not decided."""
        scale, still = self._found.scale, TokenGrowth(0.0, 0)
        return tuple(
            token.measured(scale) if isinstance(token, Token) else None if token else still
            for token in self._tokens
        )

    @cached_property
    def cosines(self) -> dict[Pair, CosineLimit | None]:
        """(i, j), i < j -> what their cosine tends to; None where it is not decided."""
        return {pair: self._limit(pair) for pair in combinations(range(self._n), 2)}

    def _limit(self, pair: Pair) -> CosineLimit | None:
        first, second = (self._tokens[k] for k in pair)
        if first is None or second is None:
            return UNDEFINED
        if not (isinstance(first, Token) and isinstance(second, Token)):
            return None
        tokens = first, second
        try:
            period = period_of(tokens, self._order)
            if period is not None:
                return self._by_residue(pair, tokens, period)
            cosines = list(_shown(tokens))
            if any(not a.overlaps(b) for a, b in combinations(cosines, 2)):
                return OSCILLATES
            if cosines and keep_their_angle(pair, tokens, self._found, self._multipliers):
                return CosineLimit("constant", (_rounded(cosines.pop()),))
        except (UnknownPhaseError, OutOfReachError, _UnsettledError):
            pass
        return None

    def _by_residue(self, pair: Pair, tokens: tuple[Token, Token], period: int) -> CosineLimit:
        try:
            values = tuple(self._residue(pair, tokens, period, r) for r in range(period))
        except _UnsettledError:
            # What is slower than a sum that cancels may turn with another sign.
            period *= 2
            values = tuple(self._residue(pair, tokens, period, r) for r in range(period))
        if not any(value is not None for value in values):
            return UNDEFINED
        alike = len(set(values)) == 1
        # Of one feature a cosine is 1 or -1; else equal floats are no equal limits.
        if alike and (len(values) == 1 or self._keep_their_angle(pair, tokens)):
            return CosineLimit("constant", values[:1])
        return CosineLimit("periodic", values)

    def _keep_their_angle(self, pair: Pair, tokens: tuple[Token, Token]) -> bool:
        return len(tokens[0].part.numerators) == 1 or keep_their_angle(
            pair, tokens, self._found, self._multipliers
        )

    def _residue(
        self, pair: Pair, tokens: tuple[Token, Token], period: int, residue: int
    ) -> float | None:
        """The limit over the depths of one residue, None where a token is 0 there."""
        found = [
            self._at_residue(k, token, period, residue)
            for k, token in zip(pair, tokens, strict=True)
        ]
        directions = [direction for direction in found if direction is not None]
        if len(directions) < len(tokens):
            return None
        for bits in doublings(max(token.bits for token in tokens), _MOST_BITS):
            value = _cosine([direction(bits) for direction in directions])
            if value is not None and value.rad() < flint.arb(2) ** -_KNOWN_BITS:
                return _rounded(value)
        raise _UnsettledError

    def _every(self, k: int, token: Token, period: int, residue: int) -> "Direction | None":
        """The direction of token k at the depths of a residue, None where it is 0 there.

        Raises `_UnsettledError` where its sign turns.
        """
        sum_here = token.leading_sum(residue, token.bits)
        if any(not c.contains(0) for c in sum_here):
            return lambda bits: token.leading_sum(residue, bits)
        # The leading sum cancels at this residue: what grows more slowly shows there.
        slower = every(token.part, period, residue, self._multipliers)
        if slower is None:
            return None
        turns = {*signs(token, period), *signs(slower, 1)} != {True}
        if turns or len(slower.growth.roots) > 1:
            raise _UnsettledError
        # One positive root leads: the direction is the same at every depth.
        return lambda bits: slower.leading_sum(residue, max(bits, slower.bits))


Direction = Callable[[int], list[flint.arb]]


class _UnsettledError(ArithmeticError):
    """The sign of a direction turns, or a cosine takes more bits than are spent."""


def _shown(tokens: tuple[Token, Token]) -> Iterator[flint.arb]:
    """The cosine of the leading sums at some depths at which neither is 0."""
    for depth in _DEPTHS:
        value = _cosine([token.leading_sum(depth, token.bits) for token in tokens])
        if value is not None:
            yield value


def _cosine(vectors: list[list[flint.arb]]) -> flint.arb | None:
    """That of two vectors, None where one of them may be 0."""
    with at_precision(SHOWN_BITS):
        rows = flint.arb_mat(vectors)
        (xx, xy), (_, yy) = (rows * rows.transpose()).tolist()
        return xy / (xx * yy).sqrt() if xx > 0 and yy > 0 else None


def _rounded(value: flint.arb) -> float:
    return min(1.0, max(-1.0, float(value.mid())))
