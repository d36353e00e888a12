"""X_0 at every depth as one rational function: sum over L of X_L z^-(L+1) = N(z)/p(z) (T4e, T14).

With A = A'/s and H = H'/t, A', H' and Z_0 integer, Z' = st Z + A' Z H'^T has Z_L = (st)^L X_L up to
the scale of X_0. Its minimal polynomial p is monic with integer coefficients; the roots of p are st
times the multipliers mu = 1 + h a that X_0 contains, and a root of multiplicity e stands for the
growth L^(e-1) |mu|^L. A linear image of Z_L, such as P Z_L or the mean, has the image of N for its
numerator: the factors of p that divide all of it are those that the image does not contain.
Everything is decided in integers, without a threshold.

Growths |mu|^L L^k are compared in balls, and roots that 1024 bits do not separate as the pairs
(h, a) they can be, by the gap bound of `by_fractions`, on which the generic verdict rests too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import product
from math import ceil, factorial, prod
from typing import Any

import flint

from oversmoothing.theory.numbers.exact import Heads, Matrix, on_vectors, to_flint
from oversmoothing.theory.numbers.rounding import at_precision, doublings, largest
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, apart
from oversmoothing.theory.verdict.by_fractions import Mode, all_modes, compare, largest_modes

# (Degree of p)^4 times the bits of a layer's entries: up to the first all that follows from p takes
# seconds, up to the second p is computed where there is no other way. The seconds of a unit.
QUICK_WORK, LARGEST_WORK, _SECONDS = 4e8, 4e9, 7e-9
# Rank modulo a prime is at most the rank: a bad prime only sends the search to the next.
PRIMES = (2**62 - 57, 2**62 - 87, 2**62 - 117, 2**61 - 1)


@dataclass(frozen=True, eq=False)
class Part:
    """A linear image T Z_L [r, d] of the states: its numerators, row by row, over what p is left.

    factors: (irreducible factor, exponent >= 1) of the denominator in lowest terms; none where the
    image is 0 at every depth. order: whose `compare` tells moduli of its roots apart, `Multipliers`
    but for powers of roots.
    """

    numerators: tuple[flint.fmpz_poly, ...]
    factors: tuple[tuple[Factor, int], ...]
    order: Any = None

    @cached_property
    def denominator(self) -> flint.fmpz_poly:
        """prod factor^exponent, monic."""
        return prod((f.polynomial**e for f, e in self.factors), start=flint.fmpz_poly([1]))

    @property
    def is_zero(self) -> bool:
        return not self.factors

    @property
    def dies(self) -> bool:
        """Whether it is 0 from some depth on (or at every depth)."""
        return all(f.degree == 1 and f.polynomial[0] == 0 for f, _ in self.factors)

    def roots(self) -> Iterator[tuple[Eigenvalue, int]]:
        """Each root, st times a multiplier, with its multiplicity."""
        for f, e in self.factors:
            for k in range(f.degree):
                yield Eigenvalue(f, k), e

    @cached_property
    def growth(self) -> Growth:
        """Of a part that is not zero. Raises `OutOfReachError`."""
        multiplicity = dict(self.roots())
        top, _, _ = largest_modes(list(multiplicity), lambda x, y: (self.order.compare(x, y), 0))
        most = max(multiplicity[root] for root in top)
        return Growth(tuple(root for root in top if multiplicity[root] == most), most - 1)

    @cached_property
    def cofactor(self) -> flint.fmpz_poly:
        """q with q(x) = (denominator / (z - x)^e)(x) at each leading root x, of multiplicity e."""
        q, exponent = self.denominator, self.growth.power + 1
        for _ in range(exponent):
            q = q.derivative()
        return flint.fmpz_poly([c // factorial(exponent) for c in q.coeffs()])

    @cached_property
    def bits(self) -> int:
        return working_bits(self)

    def coefficients(self, root: Eigenvalue, bits: int) -> list[flint.acb]:
        """The entries of G = N(x) / q(x) at a leading root; zeros at one that does not lead."""
        if root not in self.growth.roots:
            return [flint.acb(0)] * len(self.numerators)
        with at_precision(bits):
            x = root.ball(bits)
            q = self.cofactor(x)
            return [numerator(x) / q for numerator in self.numerators]

    @cached_property
    def directions(self) -> Callable[[int], dict[Eigenvalue, list[flint.acb]]]:
        """bits -> the `coefficients` of each leading root."""
        return cache(lambda bits: {x: self.coefficients(x, bits) for x in self.growth.roots})

    @property
    def all_conjugates_lead(self) -> bool:
        roots = self.growth.roots
        return len(roots) == sum(f.degree for f in {root.factor for root in roots})

    def rational_sums(self) -> list[Iterator[Any]]:
        """The sums of x^k g_x over the leading x, entry by entry, where all conjugates lead."""
        over_q = flint.fmpq_poly(prod(f.polynomial for f in {r.factor for r in self.growth.roots}))
        _, inverse, _ = (flint.fmpq_poly(self.cofactor) % over_q).xgcd(over_q)
        weight = inverse * over_q.derivative()
        return [terms((n * weight) % over_q, over_q) for n in map(flint.fmpq_poly, self.numerators)]


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


def terms(numerator: Any, denominator: Any) -> Iterator[Any]:
    """term_L of numerator/denominator = sum over L of term_L z^-(L+1), the denominator monic and of
    higher degree."""
    last, z = int(denominator.degree()) - 1, type(denominator)([0, 1])
    while True:
        yield numerator[last]
        numerator = numerator * z % denominator


@dataclass(frozen=True)
class Resolvent:
    """N(z)/p(z) of one X_0 [n, d] (not 0).

    scale: st. table: [n, d * degree], the coefficient of z^k in N_ij at column j * degree + k.
    """

    scale: int
    factors: tuple[tuple[Factor, int], ...]
    table: flint.fmpz_mat
    degree: int
    order: Multipliers

    def part(self, image: Matrix) -> Part:
        """The part T Z_L for T [r, n] with rational entries (times their common denominator)."""
        T, _ = to_flint(image).numer_denom()
        entries = (T * self.table).tolist()
        rows = [
            flint.fmpz_poly(row[k : k + self.degree])
            for row in entries
            for k in range(0, len(row), self.degree)
        ]
        return in_lowest_terms(rows, self.factors, self.order)


def in_lowest_terms(
    numerators: list[flint.fmpz_poly], factors: Iterable[tuple[Factor, int]], order: Any
) -> Part:
    """The part with these numerators over prod factor^exponent, without what divides them all."""
    left = []
    for f, exponent in factors:
        while exponent and all((n % f.polynomial).is_zero() for n in numerators):
            numerators = [n // f.polynomial for n in numerators]
            exponent -= 1
        if exponent:
            left.append((f, exponent))
    return Part(tuple(numerators), tuple(left), order)


def resolvent_seconds(A: Matrix, H: Matrix, others: Heads = ()) -> float:
    """About how long an answer on an X_0 that contains every mode takes."""
    step, _ = in_integers(A, H, [[Fraction(1)] * len(H)] * len(A), others)
    return (len(A) * len(H)) ** 4 * step.bits * _SECONDS


def resolvent(
    A: Matrix, H: Matrix, X0: Matrix, others: Heads = (), work: float = LARGEST_WORK
) -> Resolvent | None:
    """The resolvent of X_0 [n, d], None where it would take more work to compute.

    A [n, n] and H [d, d] are rational; nothing else is asked of them.
    """
    step, start = in_integers(A, H, X0, others)
    most = int(min(start.nrows() * start.ncols(), (work / step.bits) ** 0.25 + 1))
    for prime in PRIMES:
        degree = _rank(step, start, prime, most)
        if degree**4 * step.bits > work:
            return None
        states = [start]
        for _ in range(degree):
            states.append(step(states[-1]))
        table = flint.fmpz_mat([state.entries() for state in states])
        kernel, nullity = table.transpose().nullspace()
        # Modulo a bad prime the rank is too small, and these states are still independent.
        if nullity:
            break
    else:
        raise ArithmeticError("no prime gave the rank of the Krylov vectors")
    # A vector of integers under a matrix of integers: its minimal polynomial has integers (Gauss).
    polynomial = flint.fmpz_poly([kernel[k, 0] // kernel[degree, 0] for k in range(degree + 1)])
    _, pairs = polynomial.factor()
    heads = (tuple(tuple(map(tuple, M)) for M in head) for head in ((A, H), *others))
    order = _multipliers(step.scale, *heads)
    factors = tuple((order.factor(f, int(e)), int(e)) for f, e in pairs)
    # z^k has the coefficient sum over j of p_(k+1+j) Z_j, where p ends at its degree.
    hankel = flint.fmpz_mat([[polynomial[k + 1 + j] for k in range(degree)] for j in range(degree)])
    krylov = flint.fmpz_mat(table.tolist()[:degree]).transpose()
    flat = (krylov * hankel).tolist()
    d = len(H)
    rows = [[x for row in flat[i : i + d] for x in row] for i in range(0, len(flat), d)]
    return Resolvent(step.scale, factors, flint.fmpz_mat(rows), degree, order)


@dataclass(frozen=True)
class _Step:
    """Z -> scale Z + A Z W in integers."""

    A: flint.fmpz_mat
    W: flint.fmpz_mat
    scale: int

    def __call__(self, Z: flint.fmpz_mat) -> flint.fmpz_mat:
        return Z * self.scale + self.A * Z * self.W

    @property
    def bits(self) -> int:
        """Bits by which the entries of Z grow in one layer, at most."""
        largest = [max(abs(int(x)) for x in M.entries()) for M in (self.A, self.W)]
        product = largest[0] * largest[1] * self.A.nrows() * self.W.nrows()
        return (self.scale + product).bit_length()


def in_integers(
    A: Matrix, H: Matrix, X0: Matrix, others: Heads = ()
) -> tuple[_Step, flint.fmpz_mat]:
    """The layer and Z_0, A and H times their common denominators; of several heads on vec X_0."""
    if others:
        A, H, X0 = on_vectors(A, H, X0, others)
    (a, s), (h, t), (start, _) = (to_flint(M).numer_denom() for M in (A, H, X0))
    return _Step(a, h.transpose(), int(s * t)), start


def _rank(step: _Step, start: flint.fmpz_mat, prime: int, most: int) -> int:
    """That of all states modulo a prime, most + 1 where it is larger."""
    # Of Z -> A Z W, which spans the same.
    A, W, state = (flint.nmod_mat(M, prime) for M in (step.A, step.W, start))
    entries, size, count, rank = list[flint.nmod](), start.nrows() * start.ncols(), 0, 0
    # Krylov vectors: once one depends on those before it, so do all that follow.
    while rank == count <= most:
        count = min(2 * count + 8, most + 1)
        while len(entries) < count * size:
            entries += state.entries()
            state = A * state * W
        rank = int(flint.nmod_mat(count, size, entries, prime).rank())
    return rank


# Bits from which on roots are compared, at which they are matched to the pairs that they can be,
# and up to which until all of these agree.
_FIRST, _FINE, _MOST = 64, 1024, 2**16


class OutOfReachError(ArithmeticError):
    """Two moduli agree to 1024 bits, and to prove them equal takes more bits than are spent."""


class Multipliers:
    """The multipliers mu = 1 + h a of rational A and H, to which roots of a resolvent are matched.

    scale: root = scale * mu. several: of several heads (A, H), no products 1 + h a.
    """

    def __init__(self, scale: int, *heads: Any) -> None:
        self._heads, self._scale, self.several = heads, scale, len(heads) > 1
        self.compare = cache(self._compare)
        self.pairs = cache(self._pairs)
        self._factors: dict[tuple[str, int], Factor] = {}

    def factor(self, polynomial: flint.fmpz_poly, exponent: int) -> Factor:
        """One factor of the p of any X_0: its roots are found once."""
        known = Factor(polynomial, exponent, (exponent,), self.roots)
        return self._factors.setdefault((known.text, exponent), known)

    @cached_property
    def _modes(self) -> tuple[Mode, ...]:
        (A, H), *others = self._heads
        return all_modes(A, H, others)

    def roots(self, bits: int) -> list[flint.acb]:
        """scale * mu for each."""
        with at_precision(bits):
            return [self._scale * mode.ball(bits) for mode in self._modes]

    def _pairs(self, root: Eigenvalue, bits: int = _FINE) -> list[Mode]:
        """The pairs (a, h) with scale * (1 + h a) in the root's ball, its own pairs among them."""
        with at_precision(bits):
            ball = root.ball(bits)
            return [m for m in self._modes if (m.ball(bits) * self._scale).overlaps(ball)]

    def _compare(self, first: Eigenvalue, second: Eigenvalue) -> int:
        """The sign of |first| - |second|. Raises `OutOfReachError`."""
        if second in (first, first.conjugate):
            return 0
        if sign := apart(first, second, _FIRST, _FINE):
            return sign
        # Each root is one of its pairs: what holds for all of them holds for it.
        for bits in doublings(_FINE, _MOST):
            pairs = product(self.pairs(first, bits), self.pairs(second, bits))
            signs = {compare(x, y)[0] for x, y in pairs}
            if len(signs) == 1 and None not in signs:
                return int(signs.pop() or 0)
        raise OutOfReachError


# Of the last few layers they are kept, with what is known of roots: a verdict asks thrice.
_multipliers = lru_cache(maxsize=4)(Multipliers)


@dataclass(frozen=True)
class Growth:
    """The leading terms of a part, sizes |root|^L L^power: of the roots of the largest modulus
    those that have the largest multiplicity."""

    roots: tuple[Eigenvalue, ...]
    power: int


def compare_growth(one: Part, other: Part) -> int:
    """The sign of one - other, by modulus and then by the power of L. Raises `OutOfReachError`."""
    first, second = one.growth, other.growth
    sign: int = one.order.compare(first.roots[0], second.roots[0])
    return sign or (first.power > second.power) - (first.power < second.power)
