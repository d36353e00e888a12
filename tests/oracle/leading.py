"""The leading sum of a part of X_L: sum of mu^L G_mu over the dominant mu, G_mu in the field of mu.

With q irreducible, w = q(M)^(m-1) v_q and q(x) / (x - mu) = sum_i b_i(mu) x^i, the coefficient of
C(L, m-1) mu^(L-m+1) is G_mu = sum_i b_i(mu) M^i w / q'(mu)^m, for each part of which q^m is the
least annihilator. G is kept as integer matrices B_j with G_mu = sum_j mu^j B_j / r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd, isqrt, lcm

from .balls import Ball, ball
from .matrices import Integers, rank
from .moduli import vanishes
from .polynomials import derivative, divided, inverse, plus, power, power_sums, scaled, times
from .roots import Root
from .start import Growth, Part, Start, mean, scaled_matrix, spread, whole
from .system import Polynomial

# Depths at which a rank is looked at, when the number of minors' frequencies asks for more.
_MOST_DEPTHS = 60
# A limit is known to a share of 2^-_DIGITS.
_DIGITS = 80


@dataclass(frozen=True)
class Leading:
    """G_mu for the roots of one polynomial, as integer matrices B_j, over one r for all."""

    polynomial: Polynomial
    matrices: list[Integers]

    def entries(self, part: Part) -> list[list[int]]:
        """[k][j]: the entries of a part of G_mu as polynomials in mu."""
        return [list(column) for column in zip(*map(part, self.matrices), strict=True)]


def leading(start: Start, growth: Growth) -> dict[Polynomial, Leading]:
    """For the polynomials of the dominant roots, up to one factor for all."""
    whole_numbers, _ = leading_terms(start, growth)
    # Only the common direction matters: what all entries share would cost precision.
    content = gcd(
        *(x for matrices in whole_numbers.values() for B in matrices for row in B for x in row)
    )
    return {
        q: Leading(q, [[[x // content for x in row] for row in B] for B in matrices])
        for q, matrices in whole_numbers.items()
    }


def leading_terms(start: Start, growth: Growth) -> tuple[dict[Polynomial, list[Integers]], int]:
    """({q: the B_j}, r) for the polynomials of the dominant roots: r G_mu = sum_j mu^j B_j, of the
    state that the integer layer begins with."""
    raw = {q: _leading(start, q, growth.multiplicity) for q in _polynomials(growth)}
    common = lcm(*(r for _, r in raw.values()))
    return {
        q: [scaled_matrix(B, common // r) for B in matrices] for q, (matrices, r) in raw.items()
    }, common


def _polynomials(growth: Growth) -> list[Polynomial]:
    return sorted({root.polynomial for root in growth.roots})


def _leading(start: Start, q: Polynomial, m: int) -> tuple[list[Integers], int]:
    chain, denominator = start.components[q]
    degree = len(q) - 1
    unit = inverse(divided(power(derivative(q), m), q)[1], q)
    powers = [chain[m - 1]]
    for _ in range(degree - 1):
        powers.append(start.system.step(powers[-1]))
    # b_i(x) = sum of q_l x^(l-i-1) over l > i, divided by q'(x)^m in the field.
    weights = []
    for i in range(degree):
        b = [q[k] for k in range(i + 1, degree + 1)]
        w = divided(times(b, unit), q)[1]
        weights.append([*w, *[0] * (degree - len(w))])
    r = lcm(*(Fraction(x).denominator for w in weights for x in w))
    n, d = start.system.n, start.system.d
    matrices = [
        [
            [sum(int(weights[i][j] * r) * powers[i][k][c] for i in range(degree)) for c in range(d)]
            for k in range(n)
        ]
        for j in range(degree)
    ]
    return matrices, r * denominator


def evaluated(entry: Sequence[int], mu: Ball) -> Ball:
    total = ball(0, mu.bits)
    for c in reversed(entry):
        total = total * mu + c
    return total


class Form:
    """<U_L, V_L> = sum over (mu, nu) of (mu nu)^L b(mu, nu), b bilinear, for real sums U and V."""

    def __init__(
        self,
        first: dict[Polynomial, list[list[int]]],
        second: dict[Polynomial, list[list[int]]],
        roots: Sequence[Root],
        partners: Sequence[Root] | None = None,
    ) -> None:
        self._first, self._second = first, second
        self.roots = list(dict.fromkeys([*roots, *(partners or roots)]))
        self._pairs = [(mu, nu) for mu in roots for nu in (partners or roots)]

    def classes(self) -> list[list[tuple[Root, Root]]]:
        """Pairs with the same product mu nu; that of product rho^2 comes first."""
        found: list[list[tuple[Root, Root]]] = []
        # mu times its conjugate is rho^2: such pairs go first.
        ordered = sorted(self._pairs, key=lambda pair: pair[0].conjugate != pair[1])
        for pair in ordered:
            for group in found:
                if _same_product(pair, group[0]):
                    group.append(pair)
                    break
            else:
                found.append([pair])
        return found

    def value(self, pairs: Sequence[tuple[Root, Root]], at: dict[Root, Ball]) -> Ball:
        bits = next(iter(at.values())).bits
        total = ball(0, bits)
        for mu, nu in pairs:
            one, two = self._first[mu.polynomial], self._second[nu.polynomial]
            for x, y in zip(one, two, strict=True):
                total = total + evaluated(x, at[mu]) * evaluated(y, at[nu])
        return total


def _same_product(first: tuple[Root, Root], second: tuple[Root, Root]) -> bool:
    if set(first) == set(second) and len(set(first)) == len(set(second)):
        return True
    if first[0].conjugate == first[1] and second[0].conjugate == second[1]:
        return True
    at = list(dict.fromkeys([*first, *second]))

    def gap(values: Sequence[Ball]) -> Ball:
        known = dict(zip(at, values, strict=True))
        return known[first[0]] * known[first[1]] - known[second[0]] * known[second[1]]

    return vanishes(gap, at)


def squared_limit(start: Start, growth: Growth) -> tuple[Fraction, Fraction] | None:
    """An interval for the limit of (HFC/LFC)^2 where both grow alike; None where it oscillates."""
    parts = leading(start, growth)
    hfc = {q: p.entries(spread) for q, p in parts.items()}
    lfc = {q: p.entries(mean) for q, p in parts.items()}
    n = start.system.n
    # `spread` is n HFC and `mean` n times the mean: the limit is |spread|^2 / (n |mean|^2).
    above, below = Form(hfc, hfc, growth.roots), Form(lfc, lfc, growth.roots)
    groups = above.classes()
    for group in groups[1:]:

        def mismatch(values: Sequence[Ball], group: list = group) -> Ball:
            at = dict(zip(above.roots, values, strict=True))
            return above.value(group, at) * below.value(groups[0], at) - below.value(
                group, at
            ) * above.value(groups[0], at)

        if not vanishes(mismatch, above.roots):
            return None

    bits = 256
    while True:
        at = {root: root.ball(bits) for root in above.roots}
        top, bottom = above.value(groups[0], at), below.value(groups[0], at)
        if bottom.re > bottom.error and top.re > top.error:
            low = Fraction(top.re - top.error, n * (bottom.re + bottom.error))
            high = Fraction(top.re + top.error, n * (bottom.re - bottom.error))
            if (high - low) * 2**_DIGITS <= low:
                return low, high
        bits *= 2


def limit_rank(start: Start, growth: Growth) -> int:
    """The greatest rank that sum of mu^L G_mu takes: that of X_L / ||X_L|| in the limit (T4c)."""
    n, d = start.system.n, start.system.d
    if min(n, d) == 1:
        return 1
    parts = leading(start, growth)
    if len(growth.roots) == 1:
        return _rank_in_field(growth.roots[0].polynomial, next(iter(parts.values())).matrices)
    most = min(n, d, _rank_of_directions(parts))
    complete = all(sum(root.polynomial == q for root in growth.roots) == len(q) - 1 for q in parts)
    if complete:
        return _greatest(most, growth, 0, lambda L: _rational_rank(parts, L))
    entries = {q: part.entries(whole) for q, part in parts.items()}

    def rank_at(is_zero: Callable[..., bool]) -> Callable[[int], int]:
        return lambda L: _rank_of_minors(entries, growth.roots, L, is_zero, (n, d))

    # First what numbers show, then whether that is all.
    shown = _greatest(most, growth, 0, rank_at(_seems_zero))
    return _greatest(most, growth, shown, rank_at(vanishes))


def _greatest(most: int, growth: Growth, found: int, rank_at: Callable[[int], int]) -> int:
    """The greatest rank over the depths, at least `found`."""
    for L in range(_MOST_DEPTHS):
        # A minor of size k is a sum of so many powers at most: 0 at as many depths in a row only
        # where it is 0 at every depth.
        if found == most or comb(len(growth.roots) + found, found + 1) <= L:
            break
        found = max(found, rank_at(L))
    return found


def _rank_of_directions(parts: dict[Polynomial, Leading]) -> int:
    """No sum has a greater rank than its terms' rows, or columns, together, taken over Q."""
    matrices = [B for part in parts.values() for B in part.matrices]
    rows = [row for B in matrices for row in B]
    columns = [column for B in matrices for column in zip(*B, strict=True)]
    return min(rank(rows), rank(columns))


def _seems_zero(expression: Callable[[Sequence[Ball]], Ball], at: Sequence[Root]) -> bool:
    return expression([root.ball(512) for root in at]).lower == 0


def _rational_rank(parts: dict[Polynomial, Leading], L: int) -> int:
    """Of the sum over all roots, rational by its traces."""
    total: list[list[int]] = []
    for q, part in parts.items():
        sums = power_sums(q, L + len(part.matrices))
        for j, B in enumerate(part.matrices):
            term = scaled_matrix(B, sums[j + L])
            total = (
                [
                    [x + y for x, y in zip(*rows, strict=True)]
                    for rows in zip(total, term, strict=True)
                ]
                if total
                else term
            )
    return rank(total)


def _rank_in_field(q: Polynomial, matrices: list[Integers]) -> int:
    """Of sum_j mu^j B_j over Q(mu), by elimination."""
    rows = [
        [_reduced([B[i][k] for B in matrices]) for k in range(len(matrices[0][0]))]
        for i in range(len(matrices[0]))
    ]
    found = 0
    for j in range(len(rows[0])):
        pivot = next((i for i in range(found, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        unit = inverse(rows[found][j], q)
        for i in range(found + 1, len(rows)):
            if rows[i][j]:
                factor = scaled(divided(times(rows[i][j], unit), q)[1], -1)
                rows[i] = [
                    plus(x, divided(times(factor, y), q)[1])
                    for x, y in zip(rows[i], rows[found], strict=True)
                ]
        found += 1
    return found


def _reduced(entry: list[int]) -> list:
    return plus(entry, [])


def _rank_of_minors(
    entries: dict[Polynomial, list[list[int]]],
    roots: Sequence[Root],
    L: int,
    is_zero: Callable[..., bool],
    shape: tuple[int, int],
) -> int:
    """Of the sum at depth L: a regular minor that no row and column extend is of the full rank."""
    n, d = shape
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    while len(rows) < min(n, d):
        larger = next(
            (
                ((*rows, i), (*columns, j))
                for i in range(n)
                if i not in rows
                for j in range(d)
                if j not in columns
                if not is_zero(_minor(entries, roots, L, (*rows, i), (*columns, j), d), roots)
            ),
            None,
        )
        if larger is None:
            break
        rows, columns = larger
    return len(rows)


def _minor(
    entries: dict[Polynomial, list[list[int]]],
    roots: Sequence[Root],
    L: int,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    d: int,
) -> Callable[[Sequence[Ball]], Ball]:
    def determinant(values: Sequence[Ball]) -> Ball:
        bits = values[0].bits
        table = []
        for i in rows:
            line = []
            for j in columns:
                total = ball(0, bits)
                for root, mu in zip(roots, values, strict=True):
                    term = evaluated(entries[root.polynomial][i * d + j], mu)
                    for _ in range(L):
                        term = term * mu
                    total = total + term
                line.append(total)
            table.append(line)
        return _expanded(table)

    return determinant


def _expanded(table: list[list[Ball]]) -> Ball:
    if len(table) == 1:
        return table[0][0]
    total = ball(0, table[0][0].bits)
    for j, x in enumerate(table[0]):
        rest = [[*row[:j], *row[j + 1 :]] for row in table[1:]]
        term = x * _expanded(rest)
        total = total + (term if j % 2 == 0 else -term)
    return total


def square_root(bounds: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """An interval around the square root of a positive number in `bounds`, hardly wider."""
    low, high = bounds
    size = low.denominator.bit_length() - low.numerator.bit_length()
    shift = max(0, size // 2) + _DIGITS
    one = 1 << shift
    return (
        Fraction(isqrt(low.numerator * one**2 // low.denominator), one),
        Fraction(isqrt(high.numerator * one**2 // high.denominator) + 1, one),
    )
