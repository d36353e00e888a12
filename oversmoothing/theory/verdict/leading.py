"""What the leading terms of X_L do: HFC/LFC constant or oscillating, and its limit (T4, T5a).

A leading term at the root x of multiplicity k + 1 is C(L, k) x^(L-k) G, G = N(x)/q(x), with N the
numerators of the part and q its cofactor there. Balls show what is not zero; that something is zero
is shown by structure (one root; one real simple eigenvalue shared by all), by rational arithmetic
where all conjugates lead, or by the gap of algebraic integers. Where none of these reaches, there
is no answer.
"""

import math
from collections.abc import Sequence
from math import ceil, prod

import flint

from oversmoothing.theory.numbers.balls import at_precision, largest
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.verdict.growth import Growth, Multipliers
from oversmoothing.theory.verdict.resolvent import Part

# Equality of algebraic numbers is proved by balls of up to so many bits.
GAP_BITS = 2**17


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


def coefficients(part: Part, growth: Growth, root: Eigenvalue, bits: int) -> list[flint.acb]:
    """The entries of G at a leading root; zeros at a root that is not one of this part."""
    if root not in growth.roots:
        return [flint.acb(0)] * len(part.numerators)
    with at_precision(bits):
        x = root.ball(bits)
        q = part.cofactor(growth.power + 1)(x)
        return [numerator(x) / q for numerator in part.numerators]


def ratio_limit(
    hfc: Part, mean: Part, growths: tuple[Growth, Growth], n: int, multipliers: Multipliers
) -> tuple[str | None, float | None]:
    """What HFC/LFC tends to where n P X and 1^T X grow alike (T5a): "constant" with its limit,
    "oscillates", or None where neither is proved.

    The squared ratio of the two almost periodic sums is constant iff their coefficients at the
    frequencies x conj(y) are proportional.
    """
    parts = hfc, mean
    roots = list(dict.fromkeys(root for growth in growths for root in growth.roots))
    bits = working_bits(*parts)
    tables = [
        {x: coefficients(part, growth, x, bits) for x in roots}
        for part, growth in zip(parts, growths, strict=True)
    ]
    groups = _frequencies(roots, bits)
    with at_precision(bits):
        sums = [[_hermitian(table, group) for group in groups] for table in tables]
        # The group of |x|^2 stands first: there both sums are squared norms, hence positive.
        top, bottom = (found[0].real for found in sums)
        gaps = [s * bottom - t * top for s, t in zip(*sums, strict=True)]
        if any(not gap.contains(0) for gap in gaps):
            return "oscillates", None
        settled = len(roots) == 1 or shared(roots, multipliers, "attention") is not None
        if not settled and not _proportional(parts, growths, roots, groups):
            return None, None
        limit = float((top / (bottom * n)).sqrt().mid())
        # A constant that is not 0, though binary64 may not reach it.
        return "constant", limit if 0 < limit < math.inf else None


def _frequencies(
    roots: Sequence[Eigenvalue], bits: int
) -> list[list[tuple[Eigenvalue, Eigenvalue]]]:
    """Pairs (x, y) grouped by x conj(y) as far as balls tell them apart, |x|^2 first."""
    groups: list[tuple[flint.acb, list[tuple[Eigenvalue, Eigenvalue]]]] = []
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


def _hermitian(
    table: dict[Eigenvalue, list[flint.acb]], group: list[tuple[Eigenvalue, Eigenvalue]]
) -> flint.acb:
    rows = ([flint.acb_mat([table[x]]) for x in pair] for pair in group)
    total = sum((x * y.conjugate().transpose() for x, y in rows), flint.acb_mat(1, 1))
    return total.trace()


def shared(roots: Sequence[Eigenvalue], multipliers: Multipliers, side: str) -> object | None:
    """The one real simple eigenvalue of A ("attention") or H ("value") in the pairs of all roots.

    All leading terms then share its eigenvector. None where there is no such eigenvalue.
    """
    pairs = [pair for root in roots for pair in multipliers.pairs(root)]
    first = getattr(pairs[0], side)
    if first is None or not first.is_real or first.factor.multiplicity > 1:
        return None
    found: object = first
    return found if all(getattr(pair, side) == first for pair in pairs) else None


def _proportional(
    parts: tuple[Part, Part],
    growths: tuple[Growth, Growth],
    roots: Sequence[Eigenvalue],
    groups: list[list[tuple[Eigenvalue, Eigenvalue]]],
) -> bool:
    """Whether the coefficients are proportional, by the gap of algebraic integers."""
    needed = proportionality_bits(parts, growths, roots)
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
        for part, growth in zip(parts, growths, strict=True):
            table = {x: coefficients(part, growth, x, bits) for x in roots}
            sums.append([_hermitian(table, group) for group in groups])
            q = part.cofactor(growth.power + 1)
            scale *= prod(abs(q(x.ball(bits))) ** 2 for x in growth.roots)
        return all(
            bool(abs((s * sums[1][0] - t * sums[0][0]) * scale) < gap)
            for s, t in zip(*sums, strict=True)
        )


def proportionality_bits(
    parts: tuple[Part, Part], growths: tuple[Growth, Growth], roots: Sequence[Eigenvalue]
) -> int:
    """Bits of the bound below which the differences of `ratio_limit` can only be zero.

    Times |q|^2 at all the roots that lead they are algebraic integers, and no conjugate of them is
    larger than the bound.
    """
    size = largest([flint.arb(1), *(abs(r) for x in roots for r in x.factor.roots(64))])

    def height(polynomial: flint.fmpz_poly) -> flint.arb:
        powers = enumerate(polynomial.coeffs())
        return sum((abs(flint.arb(c)) * size**k for k, c in powers), flint.arb(1))

    bound = flint.arb(2 * len(roots) ** 4)
    for part, growth in zip(parts, growths, strict=True):
        total = sum((height(p) ** 2 for p in part.numerators), flint.arb(0))
        bound *= total * height(part.cofactor(growth.power + 1)) ** (2 * len(roots))
    # A root of degree above 1 makes a q of 2 |x| and more: no |x conj(y)| exceeds this either.
    return (embeddings(roots) - 1) * bits_of(bound) + 64


def embeddings(roots: Sequence[Eigenvalue]) -> int:
    """At most so many conjugates has a number of the field that the roots generate."""
    used: dict[Factor, set[int]] = {}
    for root in roots:
        used.setdefault(root.factor, set()).update((root.index, root.conjugate.index))
    return prod(
        prod(range(f.degree - len(indices) + 1, f.degree + 1)) for f, indices in used.items()
    )
