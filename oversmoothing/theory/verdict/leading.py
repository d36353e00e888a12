"""What the leading terms of X_L do: HFC/LFC constant or oscillating, and its limit (T4, T5a).

A leading term at the root x of multiplicity k + 1 is C(L, k) x^(L-k) G, G = N(x)/q(x), with N the
numerators of the part and q its cofactor there. Balls show what is not zero; that something is zero
is shown by structure (one root; one real simple eigenvalue shared by all), by rational arithmetic
where all conjugates lead, or by the gap of algebraic integers. Where none of these reaches, there
is no answer.

The asymptotic rank (T4c): a lower bound by pivots that are certainly not zero, an upper one by how
often the eigenvalues occur that lead; where they differ, by rational arithmetic if all conjugates
lead, or in the field of the one root that leads.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from math import ceil, comb, prod
from typing import Any

import flint

from oversmoothing.theory.numbers.exact import Number, polynomial_at
from oversmoothing.theory.numbers.rounding import at_precision, largest
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.spectra.chains import companion
from oversmoothing.theory.verdict.by_fractions import embeddings, rank_bound
from oversmoothing.theory.verdict.resolvent import Growth, Multipliers, Part

# Equality of algebraic numbers is proved by balls of up to so many bits.
GAP_BITS = 2**17
# Coefficients of what leads: an `Eigenvalue` of the resolvent, or a `Mode`. Pairs of these with one
# x conj(y).
Table = dict[Any, list[flint.acb]]
Groups = list[list[tuple[Any, Any]]]


def working_bits(*parts: Part) -> int:
    """Bits that leave over 100 of a coefficient: what evaluation of the polynomials can cost."""
    costs = [
        polynomial.height_bits() + 8 * polynomial.degree()
        for part in parts
        for polynomial in (part.denominator, *part.numerators)
    ]
    roots = largest(abs(r) for part in parts for f, _ in part.factors for r in f.roots(64))
    degree = max(part.denominator.degree() for part in parts)
    return 128 + max(costs) + int(degree * bits_of(roots + 2))


def bits_of(x: flint.arb) -> int:
    """log2 of a number >= 1, rounded up."""
    with at_precision(64):
        return ceil(float((x.log() / flint.arb(2).log()).upper()))


def coefficients(part: Part, root: Eigenvalue, bits: int) -> list[flint.acb]:
    """The entries of G at a leading root; zeros at a root that is not one of this part."""
    if root not in part.growth.roots:
        return [flint.acb(0)] * len(part.numerators)
    with at_precision(bits):
        x = root.ball(bits)
        q = part.cofactor(part.growth.power + 1)(x)
        return [numerator(x) / q for numerator in part.numerators]


def ratio_limit(hfc: Part, mean: Part, n: int) -> tuple[str | None, Number | None]:
    """What HFC/LFC tends to where n P X and 1^T X grow alike (T5a): "constant" with its limit,
    "oscillates", or None where neither is proved.

    The squared ratio of the two almost periodic sums is constant iff their coefficients at the
    frequencies x conj(y) are proportional.
    """
    parts = hfc, mean
    roots = list(dict.fromkeys(root for part in parts for root in part.growth.roots))
    bits = working_bits(*parts)
    above, below = ({x: coefficients(part, x, bits) for x in roots} for part in parts)

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
    bits = needed + working_bits(*parts) * (4 * len(roots) + 4)
    with at_precision(bits):
        gap = flint.arb(2) ** (-needed)
        for group in groups:
            values = [x.ball(bits) * y.ball(bits).conjugate() for x, y in group]
            if any(not abs(value - values[0]) < gap for value in values):
                return False
        sums, scale = [], flint.arb(1)
        for part in parts:
            table = {x: coefficients(part, x, bits) for x in roots}
            sums.append([_hermitian(table, group) for group in groups])
            q = part.cofactor(part.growth.power + 1)
            scale *= prod(abs(q(x.ball(bits))) ** 2 for x in part.growth.roots)
        return all(
            bool(abs((s * sums[1][0] - t * sums[0][0]) * scale) < gap)
            for s, t in zip(*sums, strict=True)
        )


def proportionality_bits(parts: tuple[Part, Part], roots: Sequence[Eigenvalue]) -> int:
    """Bits of the bound below which the differences of `ratio_limit` can only be zero.

    Times |q|^2 at all the roots that lead they are algebraic integers, and no conjugate of them is
    larger than the bound.
    """
    size = largest([flint.arb(1), *(abs(r) for x in roots for r in x.factor.roots(64))])

    def height(polynomial: flint.fmpz_poly) -> flint.arb:
        powers = enumerate(polynomial.coeffs())
        return sum((abs(flint.arb(c)) * size**k for k, c in powers), flint.arb(1))

    bound = flint.arb(2 * len(roots) ** 4)
    for part in parts:
        total = sum((height(p) ** 2 for p in part.numerators), flint.arb(0))
        bound *= total * height(part.cofactor(part.growth.power + 1)) ** (2 * len(roots))
    # A root of degree above 1 makes a q of 2 |x| and more: no |x conj(y)| exceeds this either.
    return (embeddings(roots) - 1) * bits_of(bound) + 64


# Depths at which the rank of the leading sum is looked at for a lower bound.
_LOOKS = 12


def leading_rank(whole: Part, shape: tuple[int, int]) -> int | None:
    """The asymptotic rank of X_L (T4c): the largest of the leading sum, None if unproved."""
    growth = whole.growth
    pairs = [pair for root in growth.roots for pair in whole.order.pairs(root)]
    upper = min(shape) if whole.order.several else rank_bound(pairs, growth.power)
    bits = working_bits(whole)
    table = {x: coefficients(whole, x, bits) for x in growth.roots}
    lower = rank_seen(table, shape[1], bits, upper)
    if lower == upper:
        return lower
    if all_conjugates_lead(growth):
        return rational_rank(whole, shape)
    if len(growth.roots) == 1:
        return rank_in_field(whole, growth.roots[0].factor.polynomial, shape)
    return None


def rank_seen(table: Table, d: int, bits: int, most: int) -> int:
    """A lower bound of the rank of the leading sum [n, d] by its coefficients; `most` is enough."""
    rank = 0
    with at_precision(bits):
        for depth in range(_LOOKS if len(table) > 1 else 1):
            row = leading_sum(table, depth, bits)
            rank = max(rank, ball_rank([row[j::d] for j in range(d)]))
            if rank >= most:
                break
    return rank


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
        row, column = max(
            ((i, j) for i in range(len(rows)) for j in range(len(rows[0]))),
            key=lambda at: float(abs(rows[at[0]][at[1]]).lower()),
        )
        if rows[row][column].contains(0):
            return rank
        pivot = rows[row]
        rows = [
            [x - r[column] / pivot[column] * pivot[j] for j, x in enumerate(r) if j != column]
            for i, r in enumerate(rows)
            if i != row
        ]
        rank += 1
    return rank


def rational_rank(whole: Part, shape: tuple[int, int]) -> int | None:
    """The rank where all conjugates of the leading roots lead: the leading sum is rational.

    Its r x r minors are sums of powers of products of r roots: zero at as many depths as there are
    such products, they are zero at all.
    """
    sequences = rational_sums(whole)
    degree, rank, depth = len(whole.growth.roots), 0, 0
    while depth < comb(degree + rank, rank + 1):
        if depth > 4096:
            return None
        rank = max(rank, int(flint.fmpq_mat(*shape, list(map(next, sequences))).rank()))
        if rank == min(shape):
            return rank
        depth += 1
    return rank


def all_conjugates_lead(growth: Growth) -> bool:
    return len(growth.roots) == sum(f.degree for f in {root.factor for root in growth.roots})


def rational_sums(part: Part) -> list[Iterator[Any]]:
    """The terms sum of x^k g_x over the leading roots x, entry by entry: all conjugates lead."""
    over_q = flint.fmpq_poly(prod(f.polynomial for f in {r.factor for r in part.growth.roots}))
    cofactor = flint.fmpq_poly(part.cofactor(part.growth.power + 1))
    _, inverse, _ = (cofactor % over_q).xgcd(over_q)
    weight = inverse * over_q.derivative()
    return [terms((n * weight) % over_q, over_q) for n in map(flint.fmpq_poly, part.numerators)]


def terms(numerator: Any, denominator: Any) -> Iterator[Any]:
    """The terms of numerator/denominator = sum over L of term_L z^-(L+1), denominator monic."""
    degree = int(denominator.degree())
    values: list[Any] = []
    for k in count():
        # Coefficients beyond the polynomial, on either side, are 0.
        value = numerator[degree - 1 - k]
        for i in range(1, min(k, degree) + 1):
            value -= denominator[degree - i] * values[k - i]
        values.append(value)
        yield value


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
