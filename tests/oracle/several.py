"""The layer taken N at a time: Z -> M^N Z, for the depths of one residue modulo N alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .factoring import factors
from .matrices import Integers
from .polynomials import of_power_sums, power_sums
from .system import Polynomial, System


@dataclass(frozen=True)
class SeveralLayers:
    """N layers of a system at once; as far as `Start` asks, a system itself."""

    system: System
    layers: int

    @property
    def n(self) -> int:
        return self.system.n

    @property
    def d(self) -> int:
        return self.system.d

    def step(self, Z: Integers) -> Integers:
        for _ in range(self.layers):
            Z = self.system.step(Z)
        return Z

    @cached_property
    def exponents(self) -> dict[Polynomial, int]:
        """Of the N-th powers of the eigenvalues; no block becomes larger."""
        found: dict[Polynomial, int] = {}
        for q, k in self.system.exponents.items():
            degree = len(q) - 1
            sums = power_sums(q, degree * self.layers)[:: self.layers]
            for power, _ in factors(tuple(of_power_sums(sums))):
                found[power] = max(found.get(power, 0), k)
        return found
