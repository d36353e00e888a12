"""The asymptotic rank of X_L for one X_0, from its leading terms (T4c).

A lower bound by pivots that are certainly not zero, an upper one by how often the eigenvalues occur
that lead; where they differ, by rational arithmetic if all conjugates lead, or by elimination in
the field of the one root that leads.
"""

from collections.abc import Callable
from math import comb, prod

import flint

from oversmoothing.theory.numbers.balls import at_precision, largest
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.verdict.exact_comparison import Mode, maximum_matching
from oversmoothing.theory.verdict.growth import Growth, Multipliers
from oversmoothing.theory.verdict.leading import coefficients, working_bits
from oversmoothing.theory.verdict.resolvent import Part

# Depths at which the rank of the leading sum is looked at for a lower bound.
_LOOKS = 12


def leading_rank(
    whole: Part, growth: Growth, shape: tuple[int, int], multipliers: Multipliers
) -> int | None:
    """The asymptotic rank of X_L (T4c): the largest of the leading sum, None if unproved."""
    upper = _rank_bound(growth, multipliers)
    bits = working_bits(whole)
    table = {x: coefficients(whole, growth, x, bits) for x in growth.roots}
    with at_precision(bits):
        depths = range(_LOOKS if len(growth.roots) > 1 else 1)
        sums = (_sum_at(table, depth, bits) for depth in depths)
        lower = max(_ball_rank([row[j :: shape[1]] for j in range(shape[1])]) for row in sums)
    if lower == upper:
        return lower
    if len(growth.roots) == sum(f.degree for f in {root.factor for root in growth.roots}):
        return _rational_rank(whole, growth, shape)
    if len(growth.roots) == 1:
        return _rank_in_field(whole, growth.roots[0].factor.polynomial, shape)
    return None


def _sum_at(table: dict[Eigenvalue, list[flint.acb]], depth: int, bits: int) -> list[flint.acb]:
    powers = {x: x.ball(bits) ** depth for x in table}
    size = largest(abs(p) for p in powers.values()).mid()
    return [
        sum((powers[x] * values[i] / size for x, values in table.items()), flint.acb(0))
        for i in range(len(next(iter(table.values()))))
    ]


def _ball_rank(rows: list[list[flint.acb]]) -> int:
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


def _rank_bound(growth: Growth, multipliers: Multipliers) -> int:
    """An upper bound: rows are eigenvectors of A, columns of H, each as often as it can occur.

    A sum of blocks E_a X E_h^T has at most the rank of a maximum flow from the a to the h over the
    pairs of the roots, with the multiplicities for capacities (T4c); of a block that grows like L^k
    beside a semisimple partner only the image of the k-th power of its nilpotent part is left.
    """
    pairs = [pair for root in growth.roots for pair in multipliers.pairs(root)]
    rows: dict[object, int] = {}
    columns: dict[object, int] = {}
    edges = set()
    for pair in pairs:
        a, h = _key(pair, "attention"), _key(pair, "value")
        blocks_a = (1,) if pair.attention is None else pair.attention.factor.jordan
        blocks_h = pair.value.factor.jordan
        k_a = growth.power if blocks_h[0] == 1 else 0
        k_h = growth.power if blocks_a[0] == 1 else 0
        rows[a] = max(rows.get(a, 0), sum(max(size - k_a, 0) for size in blocks_a))
        columns[h] = max(columns.get(h, 0), sum(max(size - k_h, 0) for size in blocks_h))
        edges.add((a, h))
    # Each as often as it can occur, a maximum flow is a maximum matching.
    return maximum_matching(
        {
            (a, i): [(h, j) for b, h in edges if b == a for j in range(columns[h])]
            for a, count in rows.items()
            for i in range(count)
        }
    )


def _key(pair: Mode, side: str) -> object:
    value = getattr(pair, side)
    return None if value is None else (id(value.factor), value.index)


def _rational_rank(whole: Part, growth: Growth, shape: tuple[int, int]) -> int | None:
    """The rank where all conjugates of the leading roots lead: the leading sum is rational.

    Its r x r minors are sums of powers of products of r roots: zero at as many depths as there are
    such products, they are zero at all.
    """
    over_q = flint.fmpq_poly(prod(f.polynomial for f in {r.factor for r in growth.roots}))
    cofactor = flint.fmpq_poly(whole.cofactor(growth.power + 1))
    _, inverse, _ = (cofactor % over_q).xgcd(over_q)
    weight = inverse * over_q.derivative()
    sequences = [
        _series((n * weight) % over_q, over_q) for n in map(flint.fmpq_poly, whole.numerators)
    ]
    degree, rank, depth = over_q.degree(), 0, 0
    while depth < comb(degree + rank, rank + 1):
        if depth > 4096:
            return None
        entries = [sequence(depth) for sequence in sequences]
        rank = max(rank, int(flint.fmpq_mat(*shape, entries).rank()))
        if rank == min(shape):
            return rank
        depth += 1
    return rank


def _series(
    numerator: flint.fmpq_poly, denominator: flint.fmpq_poly
) -> Callable[[int], flint.fmpq]:
    """The terms of numerator/denominator = sum over L of term_L z^-(L+1), denominator monic."""
    degree = denominator.degree()
    terms: list[flint.fmpq] = []

    def term(depth: int) -> flint.fmpq:
        while len(terms) <= depth:
            k = len(terms)
            # Coefficients beyond the polynomial, on either side, are 0.
            value = numerator[degree - 1 - k]
            for i in range(1, min(k, degree) + 1):
                value -= denominator[degree - i] * terms[k - i]
            terms.append(value)
        return terms[depth]

    return term


def _rank_in_field(whole: Part, polynomial: flint.fmpz_poly, shape: tuple[int, int]) -> int:
    """The rank of N(x) for one root x, by elimination in Q(x)."""
    field = flint.fmpq_poly(polynomial)
    entries = [flint.fmpq_poly(n) % field for n in whole.numerators]
    rows = [entries[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    rank = 0
    for column in range(shape[1]):
        pivot = next((row for row in rows if not row[column].is_zero()), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        _, inverse, _ = pivot[column].xgcd(field)
        scaled = [(x * inverse) % field for x in pivot]
        rows = [
            [(x - row[column] * s) % field for x, s in zip(row, scaled, strict=True)]
            for row in rows
        ]
        rank += 1
    return rank
