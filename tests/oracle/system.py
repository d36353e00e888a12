"""The layer X' = X + A X H^T over the integers: its eigenvalues with their irreducible polynomials.

With q_A A and q_H H integer, the layer times D = q_A q_H is Z' = D Z + (q_A A) Z (q_H H)^T. All
eigenvalues here are D times those of the layer: algebraic integers, their moduli ordered alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from .factoring import factors
from .matrices import Integers, Rationals, characteristic, cleared, product, transpose
from .moduli import compare, largest
from .polynomials import composed_product, divided, scaled, shifted, value
from .roots import Root, roots

Polynomial = tuple[int, ...]


@dataclass(frozen=True)
class System:
    """One (A, H), A row-stochastic; rational entries."""

    A: Rationals
    H: Rationals

    @property
    def n(self) -> int:
        return len(self.A)

    @property
    def d(self) -> int:
        return len(self.H)

    @cached_property
    def _attention(self) -> tuple[Integers, int]:
        return cleared(self.A)

    @cached_property
    def _value(self) -> tuple[Integers, int]:
        return cleared(self.H)

    @cached_property
    def scale(self) -> int:
        """D."""
        return self._attention[1] * self._value[1]

    @cached_property
    def _transposed(self) -> Integers:
        return transpose(self._value[0])

    def step(self, Z: Integers) -> Integers:
        """D Z + (q_A A) Z (q_H H)^T."""
        moved = product(product(self._attention[0], Z), self._transposed)
        return [
            [self.scale * x + y for x, y in zip(*rows, strict=True)]
            for rows in zip(Z, moved, strict=True)
        ]

    @cached_property
    def attention_factors(self) -> dict[Polynomial, int]:
        """Those of q_A A with their exponents."""
        return dict(factors(tuple(characteristic(self._attention[0]))))

    @cached_property
    def value_factors(self) -> dict[Polynomial, int]:
        """Those of q_H H."""
        return dict(factors(tuple(characteristic(self._value[0]))))

    @cached_property
    def _one(self) -> Polynomial:
        return -self._attention[1], 1

    @cached_property
    def classes(self) -> int:
        """How often A has the eigenvalue 1: as often as it has closed classes of tokens."""
        return self.attention_factors[self._one]

    def multipliers(self, f: Polynomial, g: Polynomial) -> list[Polynomial]:
        """Irreducible polynomials of D (1 + h a), h and a with the polynomials f and g."""
        if len(g) == 2:
            pairs = shifted(_stretched(f, -g[0]), self.scale)
        else:
            pairs = shifted(composed_product(f, g), self.scale)
        return [q for q, _ in factors(tuple(pairs))]

    @cached_property
    def exponents(self) -> dict[Polynomial, int]:
        """q -> k with the product of q^k annihilating the layer: blocks have size p + q - 1."""
        found: dict[Polynomial, int] = {}
        for f, s in self.value_factors.items():
            for g, t in self.attention_factors.items():
                t = 1 if g == self._one else t
                for q in self.multipliers(f, g):
                    found[q] = max(found.get(q, 0), s + t - 1)
        return found

    @cached_property
    def consensus(self) -> list[Root]:
        """D (1 + h), the greatest in modulus."""
        return self._largest([self._one])

    @cached_property
    def quotient(self) -> list[Root]:
        """D (1 + h a) for the other eigenvalues of A, the greatest in modulus."""
        others = [g for g in self.attention_factors if g != self._one or self.classes > 1]
        return self._largest(others)

    def _largest(self, attention: list[Polynomial]) -> list[Root]:
        found = {q for f in self.value_factors for g in attention for q in self.multipliers(f, g)}
        return largest([root for q in sorted(found) for root in roots(q)])

    @cached_property
    def comparison(self) -> int:
        """The sign of rho_C - rho_Q, n > 1."""
        return compare(self.consensus[0], self.quotient[0])

    @cached_property
    def fixed(self) -> list[list[Fraction]]:
        """The projector on the eigenvalue 1 of A: g(A) / g(1), g(x) = det(x - A) / (x - 1)^m.

        That eigenvalue is semisimple, since the powers of A are bounded.
        """
        whole, q = self._attention
        g = characteristic(whole)
        for _ in range(self.classes):
            g = divided(g, list(self._one))[0]
        total = [[0] * self.n for _ in whole]
        for c in reversed(g):
            total = product(whole, total)
            for i in range(self.n):
                total[i][i] += c
        at_one = value(g, q)
        return [[Fraction(x, at_one) for x in row] for row in total]

    @cached_property
    def closed_classes(self) -> list[list[int]]:
        """Classes of tokens that reach one another and nothing else."""
        n = self.n
        reach = [{i} | {j for j in range(n) if self.A[i][j]} for i in range(n)]
        for k in range(n):
            for i in range(n):
                if k in reach[i]:
                    reach[i] |= reach[k]
        return sorted(
            {tuple(sorted(reach[i])) for i in range(n) if all(i in reach[j] for j in reach[i])}
        )  # type: ignore[return-value]


def _stretched(f: Polynomial, by: int) -> Polynomial:
    """The monic polynomial of `by` times the roots of f."""
    degree = len(f) - 1
    return tuple(scaled([c * by ** (degree - k) for k, c in enumerate(f)], 1))
