"""rho_C against rho_Q for several streams, decided exactly on fractions (T13a).

rho_C = max_j rho(R + h_j p q^T), rho_Q = max over i < n and j of rho(R + a_i h_j p q^T). With g, u,
v of `mixing` the eigenvalues are the roots of g and those of prod (u - t v) = sum_k psi_k u^k
v^(D-k), psi the polynomial with the roots t: that of H for consensus, of H (x) B' for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import flint

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers import exact as exact
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.streams.mixing import Mixing, roots_of
from oversmoothing.theory.streams.root_moduli import compare_moduli, largest_modulus

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
        found = self.consensus if consensus else self.quotient
        with at_precision(bits):
            return abs(found[0].ball(bits)) if found else flint.arb(0)

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
    found: list[Eigenvalue] = []
    seen: set[tuple[int, ...]] = set()
    for root in roots_of(psi):
        coefficients = tuple(int(c) for c in root.factor.polynomial.coeffs())
        if coefficients not in seen:
            seen.add(coefficients)
            found += roots_of(_homogenised(coefficients, u, v))
    return found


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
