"""Pairs of tokens whose leading sums turn together, so that their cosine is constant (T14h).

Where phases are no rational parts of a turn, equal values of a cosine at some depths prove nothing.
These do: the tokens are multiples of each other at every depth; their leading sums are, by one
real simple eigenvalue of A or by a rational factor; they have no feature in common; or one pair of
conjugate multipliers leads both and g_x . g_x = 0, so that sizes and inner product do not change.
"""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import isfinite

import flint

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.verdict.growth import Multipliers, compare_growth, growth_of
from oversmoothing.theory.verdict.leading import shared
from oversmoothing.theory.verdict.resolvent import Resolvent
from oversmoothing.theory.verdict.tokens import Token


def keep_their_angle(
    pair: tuple[int, int], tokens: tuple[Token, Token], found: Resolvent, multipliers: Multipliers
) -> bool:
    """Whether the cosine of two tokens, some of whose phases turn for ever, is known to be constant
    at the depths at which neither token is 0, from some depth on or in the limit.

    Raises `OutOfReachError`.
    """
    if not all(_is_never_small(token) for token in tokens):
        first, _ = tokens
        return _is_one_pair(first) and _are_parallel(tokens)
    return (
        _are_apart(tokens)
        or _keep_their_sizes(tokens)
        or _by_one_eigenvalue(tokens, multipliers)
        or _by_a_rational(pair, tokens, found, multipliers)
    )


def _is_never_small(token: Token) -> bool:
    """Whether the directions of the leading roots are independent: |y_i(L)| then stays away from 0,
    whatever the phases are."""
    bits = token.bits
    vectors = flint.acb_mat(list(token.directions(bits).values()))
    with at_precision(bits):
        gram = vectors * vectors.conjugate().transpose()
        return not gram.det().contains(0)


def _is_one_pair(token: Token) -> bool:
    """Whether one pair of conjugates leads. No power of it is real: the token is 0 at finitely many
    depths (Skolem-Mahler-Lech; in a progression of zeros the leading sum would cancel)."""
    roots = token.growth.roots
    return len(roots) == 2 and roots[0].conjugate == roots[1]


def _are_parallel(tokens: tuple[Token, Token]) -> bool:
    """Whether one token is a multiple of the other at every depth: their rows of the resolvent."""
    first, second = (token.part for token in tokens)
    if first.factors != second.factors:
        return False
    a = next(p for p in first.numerators if not p.is_zero())
    b = second.numerators[first.numerators.index(a)]
    top, bottom = int(a[int(a.degree())]), int(b[int(a.degree())])
    rows = zip(first.numerators, second.numerators, strict=True)
    return all(p * bottom == q * top for p, q in rows)


def _are_apart(tokens: tuple[Token, Token]) -> bool:
    """Whether no feature is in both tokens, or rational roots lead with orthogonal directions: the
    cosine tends to 0."""
    first, second = tokens
    features = list(zip(first.part.numerators, second.part.numerators, strict=True))
    if all(p.is_zero() or q.is_zero() for p, q in features):
        return True
    if any(x.factor.degree > 1 for token in tokens for x in token.growth.roots):
        return False
    pairs = product(*([_integer(x) for x in token.growth.roots] for token in tokens))
    return all(sum(p(x) * q(y) for p, q in features) == 0 for x, y in pairs)


def _integer(root: Eigenvalue) -> int:
    """A rational root of a monic polynomial."""
    return int(root.factor.rational_root.p)


def _keep_their_sizes(tokens: tuple[Token, Token]) -> bool:
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
        for pair in combinations_with_replacement((t.part.numerators for t in tokens), 2)
    )
    return all((product % root.factor.polynomial).is_zero() for product in products)


def _by_one_eigenvalue(tokens: tuple[Token, Token], multipliers: Multipliers) -> bool:
    """Whether one real simple eigenvalue a of A, with eigenvector v, leads both tokens, whatever h
    it leads with: y_i = v_i w and y_j = v_j w for one w."""
    first, second = (token.growth for token in tokens)
    if set(first.roots) != set(second.roots):
        return False
    return shared(first.roots, multipliers, "attention") is not None


def _by_a_rational(
    pair: tuple[int, int], tokens: tuple[Token, Token], found: Resolvent, multipliers: Multipliers
) -> bool:
    """Whether x_i - c x_j grows more slowly than x_i for some rational c."""
    factor = _factor(tokens)
    if not factor:
        return False
    i, j = pair
    n = found.table.nrows()
    row = [Fraction(int(k == i)) - factor * int(k == j) for k in range(n)]
    rest = found.part([row])
    first, _ = tokens
    return rest.dies or (
        compare_growth(growth_of(rest, multipliers), first.growth, multipliers) < 0
    )


def _factor(tokens: tuple[Token, Token]) -> Fraction | None:
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
