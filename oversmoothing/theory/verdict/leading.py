"""What the leading terms of X_L do: HFC/LFC constant or oscillating, its limit and the rank (T4,
T5a), and the growth and direction of single tokens (T14e).

A leading term at the root x of multiplicity k + 1 is C(L, k) x^(L-k) G, G = N(x)/q(x), with N the
numerators of the part and q its cofactor there. Balls show what is not zero; that something is zero
is shown by structure (one root; one real simple eigenvalue shared by all), by rational arithmetic
where all conjugates lead, or by the gap of algebraic integers. Where none of these reaches, there
is no answer.

A token is row i of X_L, a part of the resolvent of X_0, whose poles in lowest terms are the
multipliers that it contains. Those of the largest modulus and multiplicity lead: x_i(L) = C(L, p)
rho^(L-p) (y_i(L) + O(1/L)), y_i(L) = sum (x/|x|)^(L-p) g_x over the leading x. Where some power of
a root is real, residues of L have limits of their own (T14h).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import islice, product
from math import comb, lcm, prod
from types import SimpleNamespace
from typing import Any

import flint

from oversmoothing.theory.numbers.exact import Number, dot, polynomial_at
from oversmoothing.theory.numbers.rounding import at_precision, largest, to_ball
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, eigenvalues, squared_modulus
from oversmoothing.theory.spectra.chains import companion
from oversmoothing.theory.verdict import resolvent
from oversmoothing.theory.verdict.by_fractions import embeddings, rank_bound
from oversmoothing.theory.verdict.resolvent import Multipliers, OutOfReachError, Part

# Equality of algebraic numbers is proved by balls of up to so many bits.
GAP_BITS = 2**17
# Coefficients of what leads: an `Eigenvalue` of the resolvent, or a `Mode`. Pairs of these with one
# x conj(y).
Table = dict[Any, list[flint.acb]]
Groups = list[list[tuple[Any, Any]]]


def ratio_limit(hfc: Part, mean: Part, n: int) -> tuple[str | None, Number | None]:
    """What HFC/LFC tends to where n P X and 1^T X grow alike (T5a): "constant" with its limit,
    "oscillates", or None where neither is proved. It is constant iff the coefficients of the two
    almost periodic sums at the frequencies x conj(y) are proportional."""
    parts = hfc, mean
    roots = list(dict.fromkeys(root for part in parts for root in part.growth.roots))
    bits = resolvent.working_bits(*parts)
    above, below = ({x: part.coefficients(x, bits) for x in roots} for part in parts)

    def settled(groups: Groups) -> bool:
        alone = len(roots) == 1 or shared(roots, hfc.order)
        return alone or proportional(parts, roots, groups)

    return ratio_of(above, below, n, bits, settled)


def ratio_of(
    hfc: Table, mean: Table, n: int, bits: int, settled: Callable[[Groups], bool]
) -> tuple[str | None, Number | None]:
    """The same by the coefficients of n P X and of 1^T X at all that leads.

    settled: whether the two sums are proportional, by the frequencies that balls tell apart.
    """
    groups = _frequencies(list(hfc), bits)
    with at_precision(bits):
        sums = [[_hermitian(table, group) for group in groups] for table in (hfc, mean)]
        # The group of |x|^2 stands first: there both sums are squared norms, hence positive.
        top, bottom = (series[0].real for series in sums)
        gaps = [s * bottom - t * top for s, t in zip(*sums, strict=True)]
        if any(not gap.contains(0) for gap in gaps):
            return "oscillates", None
        if not (bottom > 0 and settled(groups)):
            return None, None
        limit = Number.of((top / (bottom * n)).sqrt())
        # A constant that is not 0, though binary64 may not reach it.
        return "constant", limit if 0 < limit < math.inf else None


def _frequencies(roots: Sequence[Any], bits: int) -> Groups:
    """Pairs (x, y) grouped by x conj(y) as far as balls tell them apart, |x|^2 first."""
    groups: list[tuple[flint.acb, list[tuple[Any, Any]]]] = []
    with at_precision(bits):
        for x, y in [(x, x) for x in roots] + [(x, y) for x in roots for y in roots if x != y]:
            value = x.ball(bits) * y.ball(bits).conjugate()
            for known, members in groups:
                if known.overlaps(value):
                    members.append((x, y))
                    break
            else:
                groups.append((value, [(x, y)]))
    return [members for _, members in groups]


def _hermitian(table: Table, group: list[tuple[Any, Any]]) -> flint.acb:
    rows = ([flint.acb_mat([table[x]]) for x in pair] for pair in group)
    total = sum((x * y.conjugate().transpose() for x, y in rows), flint.acb_mat(1, 1))
    return total.trace()


def shared(roots: Sequence[Eigenvalue], multipliers: Multipliers) -> bool:
    """Whether one real simple eigenvalue of A is in the pairs of all roots: all leading terms then
    share its eigenvector."""
    first, *others = [pair.attention for root in roots for pair in multipliers.pairs(root)]
    alone = first is not None and first.is_real and first.factor.multiplicity == 1
    return alone and all(a == first for a in others)


def proportional(parts: tuple[Part, Part], roots: Sequence[Eigenvalue], groups: Groups) -> bool:
    """Whether the coefficients are proportional, by the gap of algebraic integers."""
    needed = proportionality_bits(parts, roots)
    if needed > GAP_BITS:
        return False
    bits = needed + resolvent.working_bits(*parts) * (4 * len(roots) + 4)
    with at_precision(bits):
        gap = flint.arb(2) ** (-needed)
        for group in groups:
            values = [x.ball(bits) * y.ball(bits).conjugate() for x, y in group]
            if any(not abs(value - values[0]) < gap for value in values):
                return False
        sums, scale = [], flint.arb(1)
        for part in parts:
            table = {x: part.coefficients(x, bits) for x in roots}
            sums.append([_hermitian(table, group) for group in groups])
            q = part.cofactor
            scale *= prod(abs(q(x.ball(bits))) ** 2 for x in part.growth.roots)
        return all(
            bool(abs((s * sums[1][0] - t * sums[0][0]) * scale) < gap)
            for s, t in zip(*sums, strict=True)
        )


def proportionality_bits(parts: tuple[Part, Part], roots: Sequence[Eigenvalue]) -> int:
    """Bits of the bound below which the differences of `ratio_limit` can only be zero: times |q|^2
    at all the roots that lead they are algebraic integers, with all conjugates below it."""
    size = largest([flint.arb(1), *(abs(r) for x in roots for r in x.factor.roots(64))])

    def height(polynomial: flint.fmpz_poly) -> flint.arb:
        powers = enumerate(polynomial.coeffs())
        return sum((abs(flint.arb(c)) * size**k for k, c in powers), flint.arb(1))

    bound = flint.arb(2 * len(roots) ** 4)
    for part in parts:
        total = sum((height(p) ** 2 for p in part.numerators), flint.arb(0))
        bound *= total * height(part.cofactor) ** (2 * len(roots))
    # A root of degree above 1 makes a q of 2 |x| and more: no |x conj(y)| exceeds this either.
    return (embeddings(roots) - 1) * resolvent.bits_of(bound) + 64


# Depths at which the rank of the leading sum is looked at for a lower bound; exactly.
_LOOKS, _MOST_LOOKS = 12, 4098


def leading_rank(whole: Part, shape: tuple[int, int]) -> int | None:
    """The asymptotic rank of X_L (T4c): the largest of the leading sum, None if unproved.

    Below by pivots that are not zero, above by how often the eigenvalues occur that lead; where
    these differ by rational arithmetic, or in the field of the one root that leads.
    """
    growth = whole.growth
    pairs = [pair for root in growth.roots for pair in whole.order.pairs(root)]
    upper = min(shape) if whole.order.several else rank_bound(pairs, growth.power)
    bits = resolvent.working_bits(whole)
    if has_rank(whole.directions(bits), shape[1], bits, upper):
        return upper
    if whole.all_conjugates_lead:
        return rational_rank(whole, shape)
    if len(growth.roots) == 1:
        return rank_in_field(whole, growth.roots[0].factor.polynomial, shape)
    return None


def has_rank(table: Table, d: int, bits: int, rank: int) -> bool:
    """Whether the leading sum [n, d], by its coefficients, is shown to have that rank somewhere."""
    depths = range(_LOOKS if len(table) > 1 else 1)
    with at_precision(bits):
        sums = (leading_sum(table, depth, bits) for depth in depths)
        return any(ball_rank([row[j::d] for j in range(d)]) >= rank for row in sums)


def leading_sum(table: Table, depth: int, bits: int) -> list[flint.acb]:
    """sum over the leading roots x of (x/|x|)^depth g_x, by the coefficients g_x of each."""
    with at_precision(bits):
        turned = flint.acb_mat([[x.ball(bits).sgn() ** depth for x in table]])
        entries: list[flint.acb] = (turned * flint.acb_mat(list(table.values()))).entries()
        return entries


def ball_rank(rows: list[list[flint.acb]]) -> int:
    """A lower bound of the rank: pivots that are certainly not zero."""
    rank = 0
    while rows and rows[0]:
        places = product(range(len(rows)), range(len(rows[0])))
        row, column = max(places, key=lambda at: float(abs(rows[at[0]][at[1]]).lower()))
        pivot, others = rows[row], rows[:row] + rows[row + 1 :]
        if pivot[column].contains(0):
            return rank
        rows = [
            [x - r[column] / pivot[column] * pivot[j] for j, x in enumerate(r) if j != column]
            for r in others
        ]
        rank += 1
    return rank


def rational_rank(whole: Part, shape: tuple[int, int]) -> int | None:
    """The rank where all conjugates of the leading roots lead, the leading sum is rational: minors
    that are 0 at as many depths as there are products of r roots are 0 at all."""
    sequences = whole.rational_sums()
    degree, rank = len(whole.growth.roots), 0
    for depth in range(_MOST_LOOKS):
        if depth >= comb(degree + rank, rank + 1) or rank == min(shape):
            return rank
        rank = max(rank, int(flint.fmpq_mat(*shape, list(map(next, sequences))).rank()))
    return None


def rank_in_field(whole: Part, polynomial: flint.fmpz_poly, shape: tuple[int, int]) -> int:
    """The rank of N(x) for one root x: each number of Q(x) as a table that acts on Q(x)."""
    C = companion(flint.fmpq_poly(polynomial) / polynomial[polynomial.degree()])
    tables = [polynomial_at(n, C).tolist() for n in whole.numerators]
    rows = [
        [x for table in tables[i : i + shape[1]] for x in table[k]]
        for i in range(0, len(tables), shape[1])
        for k in range(C.nrows())
    ]
    return int(flint.fmpq_mat(rows).rank()) // C.nrows()


# ----------------------------------------------------------------------------------- token by token

_TINY = 5e-324
# Evaluation takes many bits; of what comes out so many are kept.
SHOWN_BITS = 256


@dataclass(frozen=True)
class TokenGrowth:
    """The token grows like L^power rate^L, as the upper limit of its norm shows.

    rate: 0 where the token is exactly 0 from some depth on.
    """

    rate: float
    power: int


def growth_of(token: Part, scale: int) -> TokenGrowth:
    with at_precision(SHOWN_BITS):
        rate = squared_modulus(token.growth.roots[0], SHOWN_BITS).sqrt() / scale
        # What is not 0 and below the floats stays the smallest of them.
        return TokenGrowth(max(float(rate.mid()), _TINY), token.growth.power)


def direction(token: Part, depth: int, bits: int) -> list[flint.arb]:
    """y_i(L) [d], real balls: the leading roots come with their conjugates."""
    vector = leading_sum(token.directions(bits), depth - token.growth.power, bits)
    with at_precision(SHOWN_BITS):
        return [+c.real for c in vector]


def rational_direction(token: Part, depth: int) -> list[Fraction] | None:
    """y_i(L) [d] up to a positive factor, L >= the power; None where it is no vector of
    fractions."""
    if not token.all_conjugates_lead:
        return None
    first, sums = depth - token.growth.power, token.rational_sums()
    vector = [flint.fmpq(next(islice(entries, first, None))) for entries in sums]
    return [Fraction(int(x.p), int(x.q)) for x in vector]


def every(part: Part, period: int, first: int) -> Part | None:
    """The token at the depths first, first + period, ... alone: its poles are powers of those of
    the part, of which some may be gone. None where it is 0 from some depth on. Raises
    `OutOfReachError`."""
    q = part.denominator
    degree = int(q.degree())
    polynomial = power_polynomial(q, period)
    factors = [(factor, factor.multiplicity) for factor in factors_of(polynomial)]
    numerators = []
    for numerator in part.numerators:
        values = list(islice(resolvent.terms(numerator, q), first, first + period * degree, period))
        # Coefficient k: the sum over j of polynomial[k + 1 + j] values[j].
        whole = polynomial * flint.fmpz_poly(values[::-1])
        numerators.append(flint.fmpz_poly(whole.coeffs()[degree:]))
    slower = resolvent.in_lowest_terms(numerators, factors, _order_of_powers(part, period))
    return None if slower.dies else slower


def power_polynomial(q: flint.fmpz_poly, exponent: int) -> flint.fmpz_poly:
    """prod (z - x^exponent) over the roots x of a monic q, repeated as they are."""
    return (companion(flint.fmpq_poly(q)) ** exponent).charpoly().numer()


def factors_of(polynomial: flint.fmpz_poly) -> list[Factor]:
    """Its irreducible factors, as of a matrix with one Jordan block for each root."""
    _, pairs = polynomial.factor()
    return [Factor(polynomial=f, multiplicity=int(e), jordan=(int(e),)) for f, e in pairs]


def _order_of_powers(part: Part, period: int) -> SimpleNamespace:
    """Moduli of powers of the roots of a part: ordered as those of the roots themselves."""

    def roots_of(power: Eigenvalue, bits: int = 1024) -> list[Eigenvalue]:
        """The roots that it can be a power of, as far as balls tell."""
        with at_precision(bits):
            ball = power.ball(bits)
            return [x for x, _ in part.roots() if (x.ball(bits) ** period).overlaps(ball)]

    def compare(first: Eigenvalue, second: Eigenvalue) -> int:
        pairs = product(roots_of(first), roots_of(second))
        answers = {int(part.order.compare(x, y)) for x, y in pairs}
        if len(answers) != 1:
            raise OutOfReachError
        return answers.pop()

    return SimpleNamespace(compare=cache(compare))


# Roots of polynomials of a larger degree are not looked at: too many orders are possible.
_LARGEST_DEGREE = 12
# Periods in L up to which the limits are taken residue by residue.
LARGEST_PERIOD = 240
_BITS = 512


class UnknownPhaseError(ArithmeticError):
    """Whether a power of a root is real is not decided."""


@lru_cache(maxsize=256)
def real_power(x: Eigenvalue) -> int | None:
    """The least k >= 1 with x^k real, None where no power is. Raises `UnknownPhaseError`.

    Then x / conj(x) is a k-th root of unity in a field of degree m = D (D - 1) at most: phi(k) <=
    m, and phi(k) > k/6 for every k below 10^4, so that k < 6 m.
    """
    if x.is_real:
        return 1
    if x.factor.degree > _LARGEST_DEGREE:
        raise UnknownPhaseError
    with at_precision(_BITS):
        ball = x.ball(_BITS)
        for k in range(2, 6 * x.factor.degree * (x.factor.degree - 1)):
            power = ball**k
            if power.imag.contains(0):
                # It is one of the isolated roots of its polynomial: all that it can be are real.
                classes = factors_of(power_polynomial(x.factor.polynomial, k))
                near = (y for y in eigenvalues(classes) if y.ball(_BITS).overlaps(power))
                if {y.is_real for y in near} != {True}:
                    raise UnknownPhaseError
                return k
    return None


def period_of(tokens: tuple[Part, Part]) -> int | None:
    """A period N in L of the cosine of the two leading sums, None where they have none: all x^N are
    real and of one sign. Raises `UnknownPhaseError`, also where it is too long."""
    orders = [real_power(x) for token in tokens for x in token.growth.roots]
    if any(k is None for k in orders):
        return None
    period = lcm(*(k for k in orders if k is not None))
    if period > LARGEST_PERIOD:
        raise UnknownPhaseError
    first, second = (signs(token, period) for token in tokens)
    return period if first == second and len(first) == 1 else 2 * period


def signs(token: Part, period: int) -> set[bool]:
    """Of the real parts of x^period: whether they are positive, over the leading roots x."""
    with at_precision(_BITS):
        return {(x.ball(_BITS) ** period).real > 0 for x in token.growth.roots}


class Cosine(float):
    """A cosine whose square is rational. square: with the sign of the cosine."""

    square: Fraction

    @staticmethod
    def of(x: list[Fraction], y: list[Fraction]) -> "Cosine":
        """That of two vectors of fractions, neither 0."""
        along = dot(x, y)
        square = along * abs(along) / (dot(x, x) * dot(y, y))
        with at_precision(SHOWN_BITS):
            size = to_ball(abs(square)).sqrt()
            cosine = Cosine(rounded(-size if square < 0 else size))
        cosine.square = square
        return cosine


def cosine_of(vectors: list[list[flint.arb]]) -> flint.arb | None:
    """That of two vectors, None where one of them may be 0."""
    with at_precision(SHOWN_BITS):
        rows = flint.arb_mat(vectors)
        (xx, xy), (_, yy) = (rows * rows.transpose()).tolist()
        return xy / (xx * yy).sqrt() if xx > 0 and yy > 0 else None


def rounded(value: flint.arb) -> float:
    """The float of a cosine, 0 where the ball does not tell it from 0."""
    return 0.0 if value.contains(0) else min(1.0, max(-1.0, float(value.mid())))
