"""What one X_0 contains: its component at each irreducible polynomial, and how long that lasts.

X_L of the integer layer is a sum over polynomials q of components v_q(L), annihilated by q^m for a
least m: for the whole state, for HFC, for the mean over the tokens, and for each token (T4e, T6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from .matrices import Integers, Rationals, cleared
from .moduli import compare, largest
from .polynomials import divided, inverse, power, scaled, times
from .roots import Root, roots
from .system import Polynomial, System

Part = Callable[[Integers], list[int]]


def whole(Z: Integers) -> list[int]:
    return [x for row in Z for x in row]


def spread(Z: Integers) -> list[int]:
    """n HFC."""
    n, sums = len(Z), mean(Z)
    return [n * x - s for row in Z for x, s in zip(row, sums, strict=True)]


def mean(Z: Integers) -> list[int]:
    """n times the mean over the tokens."""
    return [sum(column) for column in zip(*Z, strict=True)]


def token(k: int) -> Part:
    return lambda Z: list(Z[k])


@dataclass(frozen=True)
class Growth:
    """|mu|^L L^(m-1): roots mu of the greatest modulus, of those the ones with the greatest m."""

    roots: list[Root]
    multiplicity: int

    def compare(self, other: Growth) -> int:
        """The sign of this growth minus the other."""
        sign = compare(self.roots[0], other.roots[0])
        m, k = self.multiplicity, other.multiplicity
        return sign or (m > k) - (m < k)


class Start:
    """The components of one X_0 under one (A, H)."""

    def __init__(self, system: System, X0: Rationals) -> None:
        self.system = system
        first, self.denominator = cleared(X0)
        annihilator: list = [1]
        for q, k in system.exponents.items():
            annihilator = times(annihilator, power(q, k))
        self._annihilator = annihilator
        self.powers = [first]
        for _ in range(len(annihilator) - 1):
            self.powers.append(system.step(self.powers[-1]))
        assert not any(whole(self._applied(annihilator))), "not annihilated"

    def _applied(self, p: list) -> Integers:
        n, d = self.system.n, self.system.d
        terms = [(c, Z) for c, Z in zip(p, self.powers, strict=False) if c]
        return [[sum(c * Z[i][j] for c, Z in terms) for j in range(d)] for i in range(n)]

    @cached_property
    def present(self) -> list[Polynomial]:
        """The q whose component is not 0."""
        found = []
        for q, k in self.system.exponents.items():
            cofactor = divided(self._annihilator, power(q, k))[0]
            if any(whole(self._applied(cofactor))):
                found.append(q)
        return found

    @cached_property
    def components(self) -> dict[Polynomial, tuple[list[Integers], int]]:
        """q -> ([r v_q, q(M) r v_q, ...] up to the last that is not 0, r): r v_q integer."""
        result = {}
        for q in self.present:
            block = power(q, self.system.exponents[q])
            cofactor = divided(self._annihilator, block)[0]
            unit = inverse(divided(cofactor, block)[1], block)
            cleared_unit, r = cleared([unit])
            projector = times(cofactor, cleared_unit[0])
            chain = [self._applied(projector)]
            while True:
                following = self._polynomial(q, chain[-1])
                if not any(whole(following)):
                    break
                chain.append(following)
            result[q] = (chain, r)
        return result

    def _polynomial(self, p: Polynomial, Z: Integers) -> Integers:
        """p(M) Z."""
        total = scaled_matrix(Z, p[0])
        for c in p[1:]:
            Z = self.system.step(Z)
            total = [
                [x + c * y for x, y in zip(*rows, strict=True)]
                for rows in zip(total, Z, strict=True)
            ]
        return total

    def multiplicity(self, q: Polynomial, part: Part) -> int:
        """The least m for which q^m annihilates the sequence of this part of the component."""
        chain, _ = self.components[q]
        degree = len(q) - 1
        for k in range(len(chain), 0, -1):
            # The states q(M)^(k-1) v_q span so many dimensions under M.
            Z = chain[k - 1]
            for i in range(degree * (len(chain) - k + 1)):
                if i:
                    Z = self.system.step(Z)
                if any(part(Z)):
                    return k
        return 0

    def growth(self, part: Part) -> Growth | None:
        """Of a part of the state; None where it is 0 from some depth on."""
        found = {
            q: m for q in self.present if q != (0, 1) and (m := self.multiplicity(q, part)) > 0
        }
        if not found:
            return None
        top = largest([root for q in sorted(found) for root in roots(q)])
        most = max(found[root.polynomial] for root in top)
        return Growth([root for root in top if found[root.polynomial] == most], most)

    @cached_property
    def hfc(self) -> Growth | None:
        return self.growth(spread)

    @cached_property
    def lfc(self) -> Growth | None:
        return self.growth(mean)

    @cached_property
    def state(self) -> Growth | None:
        return self.growth(whole)

    def radius(self, part: Part) -> Root | None:
        """A root of the greatest modulus with a part that is not 0, the root 0 among them."""
        found = [q for q in self.present if self.multiplicity(q, part)]
        candidates = [root for q in sorted(found) for root in roots(q)]
        return largest(candidates)[0] if candidates else None


def scaled_matrix(Z: Integers, factor: int) -> Integers:
    return [scaled(row, factor) or [0] * len(row) for row in Z]
