"""rho_C against rho_Q for several streams, decided exactly on fractions (T13a).

rho_C = max_j rho(R + h_j p q^T), rho_Q = max over i < n and j of rho(R + a_i h_j p q^T). With g, u,
v of `streams` the eigenvalues are the roots of g and those of prod (u - t v) = sum_k psi_k u^k
v^(D-k), psi the polynomial with the roots t: that of H for consensus, of H (x) B' for the rest.

Moduli of algebraic numbers are compared exactly, equality included, without a gap bound:
|x|^2 of a root x of f is a root of the polynomial of the products x_i x_j, i < j (of the squares,
where x is real), which power sums give. Of its irreducible factors one has |x|^2 as a root; two
moduli are equal iff they are the same root of the same factor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import flint

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers import exact as exact
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.numbers.rounding import at_precision, doublings
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.streams.streams import Mixing, roots_of
from oversmoothing.theory.verdict.by_fractions import squared_modulus

# Bits that moduli are parted with before they are asked whether they are equal, and at most.
_FIRST, _FINE, _MOST = 64, 1024, 2**15
# Products of roots of a polynomial with more of them are not factored: that takes minutes.
_MOST_PRODUCTS = 136


def compare_moduli(x: Eigenvalue, y: Eigenvalue) -> int | None:
    """The sign of |x| - |y|; None where the degrees are too large to decide an equality."""
    if _key(x.factor) == _key(y.factor) and x.index in (y.index, y.conjugate.index):
        return 0
    sign = _apart(x, y, _FIRST, _FINE)
    if sign:
        return sign
    first, second = (_as_root(z) for z in (x, y))
    if first is None or second is None:
        return None
    if first == second:
        return 0
    return _apart(x, y, 2 * _FINE, _MOST) or None


def largest_modulus(values: Iterable[Eigenvalue]) -> tuple[list[Eigenvalue], bool]:
    """All of largest modulus, and whether every comparison was decided."""
    best: list[Eigenvalue] = []
    decided = True
    for value in values:
        sign = compare_moduli(value, best[0]) if best else 1
        decided = decided and sign is not None
        if sign is not None and sign > 0:
            best = []
        if sign is None or sign >= 0:
            best.append(value)
    return best, decided


def _apart(x: Eigenvalue, y: Eigenvalue, first: int, last: int) -> int:
    """The sign of |x| - |y| as far as so many bits part them, else 0."""
    for bits in doublings(first, last):
        with at_precision(bits):
            difference = squared_modulus(x, bits) - squared_modulus(y, bits)
            if difference > 0:
                return 1
            if difference < 0:
                return -1
    return 0


Coefficients = tuple[int, ...]


def _key(factor: Factor) -> Coefficients:
    return tuple(int(c) for c in factor.polynomial.coeffs())


def _as_root(x: Eigenvalue) -> tuple[Coefficients, int] | None:
    """Which root |x|^2 is, of which irreducible polynomial; None where there are too many."""
    polynomials = _squares(_key(x.factor), x.is_real)
    if polynomials is None:
        return None
    for bits in doublings(_FIRST, _MOST):
        with at_precision(bits):
            ball = squared_modulus(x, bits)
            near = [
                (_key(factor), k)
                for factor in polynomials
                for k, root in enumerate(factor.roots(bits))
                if root.overlaps(flint.acb(ball))
            ]
        if len(near) == 1:
            return near[0]
    return None


@lru_cache(maxsize=256)
def _squares(coefficients: Coefficients, real: bool) -> list[Factor] | None:
    """Irreducible polynomials, one of which has |x|^2 as a root, x a (real) root of the given."""
    degree = len(coefficients) - 1
    number = degree if real else degree * (degree - 1) // 2
    if number > _MOST_PRODUCTS:
        return None
    sums = _power_sums(coefficients, 2 * number)
    if real:
        wanted = [sums[2 * m] for m in range(1, number + 1)]
    else:
        wanted = [(sums[m] * sums[m] - sums[2 * m]) / 2 for m in range(1, number + 1)]
    _, factors = _from_power_sums(wanted).numer().factor()
    return [Factor(factor, int(power), ()) for factor, power in factors]


def _power_sums(coefficients: Coefficients, most: int) -> list[flint.fmpq]:
    """sum_i x_i^m, m = 0 ... most, over the roots of the polynomial (Newton's identities)."""
    degree = len(coefficients) - 1
    monic = [flint.fmpq(c, coefficients[-1]) for c in coefficients]
    sums = [flint.fmpq(degree)]
    for m in range(1, most + 1):
        total = flint.fmpq(0)
        for k in range(1, min(m, degree + 1)):
            total -= monic[degree - k] * sums[m - k]
        if m <= degree:
            total -= m * monic[degree - m]
        sums.append(total)
    return sums


def _from_power_sums(sums: list[flint.fmpq]) -> flint.fmpq_poly:
    """The monic polynomial whose roots have these power sums, m = 1, 2, ..."""
    elementary = [flint.fmpq(1)]
    for m in range(1, len(sums) + 1):
        total = flint.fmpq(0)
        for k in range(1, m + 1):
            total += (-1) ** (k - 1) * elementary[m - k] * sums[k - 1]
        elementary.append(total / m)
    number = len(sums)
    return flint.fmpq_poly([(-1) ** k * elementary[k] for k in range(number, -1, -1)])


# Up to this degree of the polynomial of the quotient, s d (n - 1), cases are decided exactly.
EXACT_DEGREE = 48


@dataclass(frozen=True)
class StreamModes:
    """The eigenvalues of largest modulus on each side, and which side wins.

    consensus, quotient: those of largest modulus (quotient empty for one token), idle ones among
    them. comparison: 1 consensus, -1 quotient, 0 equal, None undecided.
    """

    consensus: list[Eigenvalue]
    quotient: list[Eigenvalue]
    comparison: int | None

    def radius(self, consensus: bool, bits: int = 128) -> flint.arb:
        """A ball around rho_C or rho_Q; 0 where there are no modes."""
        modes = self.consensus if consensus else self.quotient
        with at_precision(bits):
            return abs(modes[0].ball(bits)) if modes else flint.arb(0)

    def dominant(self) -> list[Eigenvalue]:
        """Those of largest modulus over both sides; none where the comparison is undecided."""
        if self.comparison is None:
            return []
        kept = self.consensus if self.comparison >= 0 else []
        return kept + (self.quotient if self.comparison <= 0 else [])


def active_values(mixing: Mixing, psi: flint.fmpq_poly) -> list[Eigenvalue]:
    """The active eigenvalues for all roots t of psi."""
    u, v = mixing.active
    if u.degree() < 1:
        return []
    # Factor by factor of psi: their polynomials in mu have smaller degrees.
    values: list[Eigenvalue] = []
    seen: set[tuple[int, ...]] = set()
    for root in roots_of(psi):
        coefficients = _key(root.factor)
        if coefficients not in seen:
            seen.add(coefficients)
            values += roots_of(_homogenised(coefficients, u, v))
    return values


def _homogenised(
    coefficients: tuple[int, ...], u: flint.fmpq_poly, v: flint.fmpq_poly
) -> flint.fmpq_poly:
    """sum_k psi_k u^k v^(D-k)."""
    total, power = flint.fmpq_poly([0]), flint.fmpq_poly([1])
    for c in reversed(coefficients):
        total = total * u + c * power
        power = power * v
    return total


def exact_modes(A: Matrix, H: Matrix, mixing: Mixing) -> StreamModes:
    """Decide rho_C against rho_Q for rational A (rows summing to 1), H and mixing."""
    B = rational_quotient(A)
    idle = mixing.idle_values
    consensus, sure = largest_modulus([*idle, *active_values(mixing, exact.characteristic(H))])
    if not B:
        return StreamModes(consensus, [], 1)
    psi = exact.characteristic(exact.kronecker(H, B))
    quotient, also = largest_modulus([*idle, *active_values(mixing, psi)])
    comparison = compare_moduli(consensus[0], quotient[0])
    return StreamModes(consensus, quotient, comparison if sure and also else None)
