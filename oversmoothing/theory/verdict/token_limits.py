"""What the tokens of one X_0 do: growth, cosines pair by pair, cos_min and cos_mean (T14e-T14h)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import fsum, lcm

from oversmoothing.theory.verdict.cosine_limits import UNDEFINED, CosineLimit, Pair, TokensOfStart
from oversmoothing.theory.verdict.phases import LARGEST_PERIOD
from oversmoothing.theory.verdict.tokens import TokenGrowth


@dataclass(frozen=True)
class TokenLimits:
    """growth: of each token. cosines: of each pair (i, j), i < j. cos_min, cos_mean: over the pairs
    of tokens that are not 0. None is what is not decided; of cos_min and cos_mean also where there
    is no limit."""

    growth: tuple[TokenGrowth | None, ...] | None
    cosines: dict[Pair, CosineLimit | None] | None
    cos_min: CosineLimit | None
    cos_mean: CosineLimit | None


UNKNOWN_TOKENS = TokenLimits(None, None, None, None)


def token_limits(tokens: TokensOfStart, features: int) -> TokenLimits:
    """features: d."""
    cosines = tokens.cosines
    limits = list(cosines.values())
    least, average = smallest(limits, features), mean(limits, features)
    return TokenLimits(tokens.growth, cosines, least, average)


def all_zero(n: int) -> TokenLimits:
    """Of X_0 = 0 [n, d]."""
    pairs: dict[Pair, CosineLimit | None] = {(i, j): UNDEFINED for j in range(n) for i in range(j)}
    return TokenLimits((TokenGrowth(0.0, 0),) * n, pairs, UNDEFINED, UNDEFINED)


def smallest(limits: Iterable[CosineLimit | None], features: int) -> CosineLimit | None:
    """The limit of cos_min; None where it is not decided, or where there is none."""
    known = list(limits)
    steady = [limit for limit in known if limit is not None and limit.values]
    if features == 1 and steady:
        # The cosine of two numbers is 1 or -1: one pair at -1 decides, whatever the others do.
        found = _by_residues(steady, min, features)
        if found is not None and set(found.values) == {-1.0}:
            return found
    return _combined(known, min, features)


def mean(limits: Iterable[CosineLimit | None], features: int) -> CosineLimit | None:
    """The limit of cos_mean over the pairs of tokens that are not 0; None as for cos_min."""
    return _combined(list(limits), lambda values: fsum(values) / len(values), features)


def _combined(
    limits: list[CosineLimit | None], of: Callable[[list[float]], float], features: int
) -> CosineLimit | None:
    steady = []
    for limit in limits:
        if limit is None or limit.tends_to == "oscillates":
            return None
        if limit.values:
            steady.append(limit)
    return _by_residues(steady, of, features) if steady else UNDEFINED


def _by_residues(
    limits: list[CosineLimit], of: Callable[[list[float]], float], features: int
) -> CosineLimit | None:
    period = lcm(*(len(limit.values) for limit in limits))
    if period > LARGEST_PERIOD:
        return None
    values: list[float | None] = []
    for residue in range(period):
        here = [v for x in limits if (v := x.values[residue % len(x.values)]) is not None]
        values.append(of(here) if here else None)
    # Of one feature all cosines are 1 or -1, exactly; else equal floats are no equal limits.
    if period == 1 or (features == 1 and len(set(values)) == 1):
        return CosineLimit("constant", (values[0],))
    return CosineLimit("periodic", tuple(values))
