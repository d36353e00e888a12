"""rho_C against rho_Q for several streams, decided exactly on fractions (T13a).

rho_C = max_j rho(R + h_j p q^T), rho_Q = max over i < n and j of rho(R + a_i h_j p q^T). With g, u,
v of `streams` the eigenvalues are the roots of g and those of prod (u - t v) = sum_k psi_k u^k
v^(D-k), psi the polynomial with the roots t: that of H for consensus, of H (x) B' for the rest.

Moduli of algebraic numbers are compared exactly, equality included, without a gap bound:
|x|^2 of a root x of f is a root of the polynomial of the products x_i x_j, i < j (of the squares,
where x is real). Of its irreducible factors one has |x|^2 as a root; two moduli are equal iff they
are the same root of the same factor.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import flint

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers import exact as exact
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.numbers.rounding import at_precision, doublings
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, apart, squared_modulus
from oversmoothing.theory.spectra.chains import companion
from oversmoothing.theory.streams.streams import Mixing, roots_of
from oversmoothing.theory.verdict.by_fractions import Leading, largest_modes

# Bits that moduli are parted with before they are asked whether they are equal, and at most.
_FIRST, _FINE, _MOST = 64, 1024, 2**15
# Products of roots of a polynomial with more of them are not factored: that takes minutes.
_MOST_PRODUCTS = 136


def compare_moduli(x: Eigenvalue, y: Eigenvalue) -> int | None:
    """The sign of |x| - |y|; None where the degrees are too large to decide an equality."""
    if x.structural == y.structural:
        return 0
    if sign := apart(x, y, _FIRST, _FINE):
        return sign
    first, second = (_as_root(z) for z in (x, y))
    if first is None or second is None:
        return None
    if first == second:
        return 0
    return apart(x, y, 2 * _FINE, _MOST) or None


def largest_modulus(values: list[Eigenvalue]) -> tuple[list[Eigenvalue], bool]:
    """All of largest modulus, and whether every comparison was decided."""
    best, decided, _ = largest_modes(values, lambda x, y: (compare_moduli(x, y), 0))
    return best, decided


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
    # x_i x_j, i < j, are the eigenvalues of the second compound of the companion matrix.
    C = companion(flint.fmpq_poly(list(coefficients)) / coefficients[-1])
    pairs = list(combinations(range(degree), 2))
    minors = [[C[i, k] * C[j, m] - C[i, m] * C[j, k] for k, m in pairs] for i, j in pairs]
    _, factors = (C * C if real else flint.fmpq_mat(minors)).charpoly().numer().factor()
    return [Factor(factor, int(power), ()) for factor, power in factors]


# Up to this degree of the polynomial of the quotient, s d (n - 1), cases are decided exactly.
EXACT_DEGREE = 48


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


def exact_modes(A: Matrix, H: Matrix, mixing: Mixing) -> Leading[Eigenvalue]:
    """rho_C against rho_Q for rational A (rows summing to 1), H and mixing; idle ones count."""
    B = rational_quotient(A)
    idle = mixing.idle_values
    consensus, sure = largest_modulus([*idle, *active_values(mixing, exact.characteristic(H))])
    if not B:
        return Leading(consensus, [], 1)
    psi = exact.characteristic(exact.kronecker(H, B))
    quotient, also = largest_modulus([*idle, *active_values(mixing, psi)])
    comparison = compare_moduli(consensus[0], quotient[0])
    return Leading(consensus, quotient, comparison if sure and also else None)
