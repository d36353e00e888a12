"""What the cosine of each pair of tokens tends to, from one X_0 (T14g, T14h).

The cosine of x_i and x_j goes with that of their leading sums y_i(L) and y_j(L). Where all leading
multipliers have a real power, each residue of L has a limit of its own: one, or two of opposite
signs, where they are real. Else all phases recur together, so that the cosine comes near each of
its values again: two different ones are no limit, equal ones are where structure says so.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, combinations_with_replacement, product
from math import isfinite, lcm
from statistics import fmean
from typing import Any

import flint

from oversmoothing.theory.numbers.exact import identity
from oversmoothing.theory.numbers.rounding import at_precision, doublings
from oversmoothing.theory.verdict import leading
from oversmoothing.theory.verdict.resolvent import OutOfReachError, Part, Resolvent, compare_growth


def keep_their_angle(pair: tuple[int, int], tokens: tuple[Part, Part], series: Resolvent) -> bool:
    """Whether the cosine of two tokens, some of whose phases turn for ever, is known to be constant
    where neither is 0, from some depth on or in the limit. Raises `OutOfReachError`."""
    if not all(_is_never_small(token) for token in tokens):
        first, _ = tokens
        return _is_one_pair(first) and _are_parallel(tokens)
    return (
        _are_apart(tokens)
        or _keep_their_sizes(tokens)
        or _by_one_eigenvalue(tokens)
        or _by_a_rational(pair, tokens, series)
    )


def _is_never_small(token: Part) -> bool:
    """Whether the directions of the leading roots are independent: |y_i(L)| then stays away from 0,
    whatever the phases are."""
    bits = token.bits
    vectors = flint.acb_mat(list(token.directions(bits).values()))
    with at_precision(bits):
        return not (vectors * vectors.conjugate().transpose()).det().contains(0)


def _is_one_pair(token: Part) -> bool:
    """Whether one pair of conjugates leads. No power of it is real: the token is 0 at finitely many
    depths (Skolem-Mahler-Lech; in a progression of zeros the leading sum would cancel)."""
    roots = token.growth.roots
    return len(roots) == 2 and roots[0].conjugate == roots[1]


def _are_parallel(tokens: tuple[Part, Part]) -> bool:
    """Whether one token is a multiple of the other at every depth: their rows of the resolvent."""
    first, second = tokens
    if first.factors != second.factors:
        return False
    powers = range(int(first.denominator.degree()))
    rows = [[p[k] for p in token.numerators for k in powers] for token in tokens]
    return int(flint.fmpz_mat(rows).rank()) == 1


def _are_apart(tokens: tuple[Part, Part]) -> bool:
    """Whether no feature is in both tokens, or rational roots lead with orthogonal directions: the
    cosine tends to 0."""
    first, second = tokens
    features = list(zip(first.numerators, second.numerators, strict=True))
    if all(p.is_zero() or q.is_zero() for p, q in features):
        return True
    if any(x.factor.degree > 1 for token in tokens for x in token.growth.roots):
        return False
    # Roots of monic polynomials: integers.
    roots = ([int(x.factor.rational_root.p) for x in token.growth.roots] for token in tokens)
    return all(sum(p(x) * q(y) for p, q in features) == 0 for x, y in product(*roots))


def _keep_their_sizes(tokens: tuple[Part, Part]) -> bool:
    """Whether one pair x, conj(x) leads both tokens, with g . g = g . g' = g' . g' = 0 at x.

    |y_i|^2 = 2 |g|^2 + 2 Re((x/|x|)^(2(L-p)) g . g), and so on: what turns with L is gone. The
    products are numbers of Q(x): 0 where the polynomial of x divides that of the numerators.
    """
    first, second = tokens
    if not _is_one_pair(first) or set(first.growth.roots) != set(second.growth.roots):
        return False
    root, _ = first.growth.roots
    products = (
        sum((p * q for p, q in zip(*pair, strict=True)), flint.fmpz_poly([]))
        for pair in combinations_with_replacement((t.numerators for t in tokens), 2)
    )
    return all((product % root.factor.polynomial).is_zero() for product in products)


def _by_one_eigenvalue(tokens: tuple[Part, Part]) -> bool:
    """Whether one real simple eigenvalue a of A, with eigenvector v, leads both tokens, whatever h
    it leads with: y_i = v_i w and y_j = v_j w for one w."""
    first, second = (token.growth for token in tokens)
    if set(first.roots) != set(second.roots):
        return False
    return leading.shared(first.roots, tokens[0].order)


def _by_a_rational(pair: tuple[int, int], tokens: tuple[Part, Part], series: Resolvent) -> bool:
    """Whether x_i - c x_j grows more slowly than x_i for some rational c."""
    factor = _factor(tokens)
    if not factor:
        return False
    i, j = pair
    n = series.table.nrows()
    row = [Fraction(int(k == i)) - factor * int(k == j) for k in range(n)]
    rest = series.part([row])
    return rest.dies or compare_growth(rest, tokens[0]) < 0


def _factor(tokens: tuple[Part, Part]) -> Fraction | None:
    """The ratio of two entries of the directions as a short fraction, None where there is none."""
    first, second = (token.directions(token.bits) for token in tokens)
    root = next(iter(first))
    if root not in second:
        return None
    for a, b in zip(first[root], second[root], strict=True):
        if not b.contains(0):
            ratio = float((a / b).real.mid())
            return Fraction(ratio).limit_denominator() if isfinite(ratio) else None
    return None


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

    def __init__(self, series: Resolvent, sides: tuple[Part, Part] | None = None) -> None:
        """sides: n P X_L and 1^T X_L."""
        self._series, self._sides, self._n = series, sides, int(series.table.nrows())
        self._at_residue = cache(self._every)
        self._looked_at = cache(lambda token, depth: leading.direction(token, depth, token.bits))

    @cached_property
    def _tokens(self) -> list[Part | OutOfReachError | None]:
        return [self._token(row) for row in identity(self._n)]

    def _token(self, row: list[Fraction]) -> Part | OutOfReachError | None:
        """None for a token that becomes 0, the error for one whose growth is not decided."""
        try:
            token = self._series.part([row])
            return token if not token.dies and token.growth else None
        except OutOfReachError as error:
            return error

    @cached_property
    def _together(self) -> Part | None:
        """The mean, where the differences to it grow more slowly and no phases make it small: every
        token goes like it."""
        if self._sides is None:
            return None
        hfc, mean = self._sides
        with suppress(OutOfReachError):
            if not mean.dies and _is_never_small(mean):
                return mean if hfc.dies or compare_growth(hfc, mean) < 0 else None
        return None

    @cached_property
    def growth(self) -> tuple[leading.TokenGrowth | None, ...]:
        """Of each token; None where it is not decided."""
        scale, still = self._series.scale, leading.TokenGrowth(0.0, 0)
        if self._together is not None:
            return (leading.growth_of(self._together, scale),) * self._n
        return tuple(
            leading.growth_of(token, scale) if isinstance(token, Part) else None if token else still
            for token in self._tokens
        )

    @cached_property
    def cosines(self) -> dict[Pair, CosineLimit | None]:
        """(i, j), i < j -> what their cosine tends to; None where it is not decided."""
        pairs = combinations(range(self._n), 2)
        if self._together is not None:
            return dict.fromkeys(pairs, CosineLimit("constant", (1.0,)))
        return {pair: self._limit(pair) for pair in pairs}

    def _limit(self, pair: Pair) -> CosineLimit | None:
        first, second = (self._tokens[k] for k in pair)
        if first is None or second is None:
            return UNDEFINED
        if not (isinstance(first, Part) and isinstance(second, Part)):
            return None
        tokens, period, turns = (first, second), None, False
        with suppress(OutOfReachError, _UnsettledError):
            # Of phases that are not known two values may be those of two residues.
            with suppress(leading.UnknownPhaseError):
                period, turns = leading.period_of(tokens), True
            if period is not None:
                return self._by_residue(pair, tokens, period)
            last, (low, high) = None, (flint.arb("-inf"), flint.arb("inf"))
            for depth in _DEPTHS:
                cosine = leading.cosine_of([self._looked_at(token, depth) for token in tokens])
                if cosine is None:
                    continue
                with at_precision(leading.SHOWN_BITS):
                    low, high = low.max(cosine.lower()), high.min(cosine.upper())
                last = cosine
                if low > high:
                    return OSCILLATES if turns else None
            if last is not None and keep_their_angle(pair, tokens, self._series):
                return CosineLimit("constant", (leading.rounded(last),))
        return None

    def _by_residue(self, pair: Pair, tokens: tuple[Part, Part], period: int) -> CosineLimit | None:
        try:
            values = tuple(self._residue(tokens, period, r) for r in range(period))
        except _UnsettledError:
            # What is slower than a sum that cancels may turn with another sign.
            period *= 2
            values = tuple(self._residue(tokens, period, r) for r in range(period))
        if not any(value is not None for value in values):
            return UNDEFINED
        if _are_different(values):
            return CosineLimit("periodic", values)
        # Of one feature a cosine is 1 or -1; else equal floats are no equal limits.
        alike = 1 in (len(values), len(tokens[0].numerators)) or _known_squares(values) == 1
        if alike or keep_their_angle(pair, tokens, self._series):
            return CosineLimit("constant", values[:1])
        return None

    def _residue(self, tokens: tuple[Part, Part], period: int, residue: int) -> float | None:
        """The limit over the depths of one residue, None where a token is 0 there."""
        shown = [self._at_residue(token, period, residue) for token in tokens]
        parts = [part for part in shown if part is not None]
        if len(parts) < len(tokens):
            return None
        # At one depth: both may turn their signs in every layer.
        depth = residue + period * max(token.growth.power for token in tokens)
        x, y = (leading.rational_direction(p, max(depth, p.growth.power)) for p in parts)
        if x is not None and y is not None:
            return leading.Cosine.of(x, y)
        for bits in doublings(max(token.bits for token in tokens), _MOST_BITS):
            vectors = [leading.direction(part, residue, max(bits, part.bits)) for part in parts]
            value = leading.cosine_of(vectors)
            if value is not None and value.rad() < flint.arb(2) ** -_KNOWN_BITS:
                return leading.rounded(value)
        raise _UnsettledError

    def _every(self, token: Part, period: int, residue: int) -> Part | None:
        """What has the direction of a token at the depths of a residue, None where it is 0 there.

        Raises `_UnsettledError` where its sign turns.
        """
        if any(not c.contains(0) for c in self._looked_at(token, residue)):
            return token
        # The leading sum cancels at this residue: what grows more slowly shows there.
        slower = leading.every(token, period, residue)
        if slower is None:
            return None
        turns = {*leading.signs(token, period), *leading.signs(slower, 1)} != {True}
        # Where one positive root leads, the direction is the same at every depth.
        if turns or len(slower.growth.roots) > 1:
            raise _UnsettledError
        return slower


class _UnsettledError(ArithmeticError):
    """The sign of a direction turns, or a cosine takes more bits than are spent."""


@dataclass(frozen=True)
class TokenLimits:
    """As a `Verdict` has them; None is what is not decided."""

    token_growth: tuple[leading.TokenGrowth | None, ...] | None
    cosine_limits: dict[Pair, CosineLimit | None] | None
    cos_min: CosineLimit | None
    cos_mean: CosineLimit | None


def token_limits(
    growth: tuple[leading.TokenGrowth | None, ...],
    cosines: dict[Pair, CosineLimit | None],
    features: int,
) -> TokenLimits:
    """features: d."""
    limits = list(cosines.values())
    return TokenLimits(growth, cosines, *(over_pairs(limits, of, features) for of in (min, fmean)))


def all_zero(n: int) -> TokenLimits:
    """Of X_0 = 0 [n, d]."""
    pairs = combinations(range(n), 2)
    return token_limits((leading.TokenGrowth(0.0, 0),) * n, dict.fromkeys(pairs, UNDEFINED), 1)


def over_pairs(
    limits: Sequence[CosineLimit | None], of: Callable[[list[float]], float], features: int
) -> CosineLimit | None:
    """The limit of the smallest cosine, or of the mean, over the pairs of tokens that are not 0;
    None where it is not decided, or where there is none."""
    steady = [limit for limit in limits if limit is not None and limit.values]
    combined = _by_residues(steady, of, features) if steady else UNDEFINED
    if all(limit is not None and limit.tends_to != "oscillates" for limit in limits):
        return combined
    # The cosine of two numbers is 1 or -1: one pair at -1 decides, whatever the others do.
    least = of is min and features == 1 and combined is not None and set(combined.values) == {-1.0}
    return combined if least else None


def _by_residues(
    limits: list[CosineLimit], of: Callable[[list[float]], float], features: int
) -> CosineLimit | None:
    period = lcm(*(len(limit.values) for limit in limits))
    if period > leading.LARGEST_PERIOD:
        return None
    values: list[float | None] = []
    # What a value comes from: its square, or its place among the limits.
    sources = set[Any]()
    for residue in range(period):
        here = [
            (v, getattr(v, "square", (i, residue % len(x.values))))
            for i, x in enumerate(limits)
            if (v := x.values[residue % len(x.values)]) is not None
        ]
        values.append(of([v for v, _ in here]) if here else None)
        kept = [source for v, source in here if of is not min or v == values[-1]]
        sources.add(frozenset(Counter(kept).items() if of is not min else kept))
    # Of one feature all cosines are 1 or -1, exactly; else equal floats are no equal limits.
    if period == 1 or (len(set(values)) == 1 and (features == 1 or len(sources) == 1)):
        return CosineLimit("constant", (values[0],))
    return CosineLimit("periodic", tuple(values)) if _are_different(values) else None


# Cosines, and their means, are floats known to less than half of this.
_UNSEEN = 2.0**-51


def _known_squares(values: Sequence[float | None]) -> int:
    """How many different numbers these are, 0 where they are not all `leading.Cosine`s."""
    squares = {getattr(x, "square", None) for x in values}
    return 0 if None in squares else len(squares)


def _are_different(values: Sequence[float | None]) -> bool:
    """Whether cosines are known not to be one number; None beside a number is none."""
    known = [x for x in values if x is not None]
    if len(known) < len(values):
        return bool(known)
    return _known_squares(known) > 1 or max(known) - min(known) > _UNSEEN
