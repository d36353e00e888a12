"""How fast a part of X_L grows: |mu|^L L^k, by exact comparison of the multipliers it contains.

Roots of the resolvent are compared in balls; those that 1024 bits do not separate are compared as
the pairs (h, a) they can be, by the gap bound of exact_comparison: the verdict for one X_0 and the
generic one rest on the same decision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Protocol

import flint

from oversmoothing.theory.numbers.balls import at_precision, doublings
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.verdict.exact_comparison import Mode, all_modes, compare
from oversmoothing.theory.verdict.resolvent import Part

# Bits from which on roots are compared, at which they are matched to the pairs that they can be,
# and up to which until all of these agree.
_FIRST, _FINE, _MOST = 64, 1024, 2**16


class OutOfReachError(ArithmeticError):
    """Two moduli agree to 1024 bits, and to prove them equal takes more bits than are spent."""


class Multipliers:
    """The multipliers mu = 1 + h a of rational A and H, to which roots of a resolvent are matched.

    scale: root = scale * mu.
    """

    def __init__(self, A: Matrix, H: Matrix, scale: int) -> None:
        self._A, self._H, self._scale = A, H, scale
        self.compare = cache(self._compare)
        self.pairs = cache(self._pairs)

    @cached_property
    def _modes(self) -> list[Mode]:
        return all_modes(self._A, self._H)

    def _pairs(self, root: Eigenvalue, bits: int = _FINE) -> list[Mode]:
        """The pairs (a, h) with scale * (1 + h a) in the root's ball, its own pairs among them."""
        with at_precision(bits):
            ball = root.ball(bits)
            return [m for m in self._modes if (m.multiplier(bits) * self._scale).overlaps(ball)]

    def _compare(self, first: Eigenvalue, second: Eigenvalue) -> int:
        """The sign of |first| - |second|. Raises `OutOfReachError` where it cannot be decided."""
        if second in (first, first.conjugate):
            return 0
        for bits in doublings(_FIRST, _FINE):
            with at_precision(bits):
                difference = squared_modulus(first, bits) - squared_modulus(second, bits)
                if not difference.contains(0):
                    return 1 if difference > 0 else -1
        # Each root is one of its pairs: what holds for all of them holds for it.
        for bits in doublings(_FINE, _MOST):
            pairs = product(self.pairs(first, bits), self.pairs(second, bits))
            signs = {compare(x, y)[0] for x, y in pairs}
            if len(signs) == 1 and None not in signs:
                return int(signs.pop() or 0)
        raise OutOfReachError


def squared_modulus(root: Eigenvalue, bits: int) -> flint.arb:
    """A ball around |root|^2, exactly 0 for the root 0."""
    with at_precision(bits):
        x = root.ball(bits)
        return x.real * x.real + x.imag * x.imag


@dataclass(frozen=True)
class Growth:
    """The leading terms of a part: like |root|^L L^power, the sum over the leading roots.

    roots: those of the largest modulus that have the largest multiplicity among them.
    """

    roots: tuple[Eigenvalue, ...]
    power: int


class Moduli(Protocol):
    """What tells moduli of roots apart."""

    @property
    def compare(self) -> Callable[[Eigenvalue, Eigenvalue], int]: ...


def growth_of(part: Part, multipliers: Moduli) -> Growth:
    """The growth of a part that is not zero. Raises `OutOfReachError`."""
    top: list[tuple[Eigenvalue, int]] = []
    for root, multiplicity in part.roots():
        sign = multipliers.compare(root, top[0][0]) if top else 1
        if sign > 0:
            top = []
        if sign >= 0:
            top.append((root, multiplicity))
    largest = max(multiplicity for _, multiplicity in top)
    return Growth(tuple(root for root, m in top if m == largest), largest - 1)


def compare_growth(first: Growth, second: Growth, multipliers: Multipliers) -> int:
    """The sign of first - second, by modulus and then by the power of L. Raises OutOfReachError."""
    sign = multipliers.compare(first.roots[0], second.roots[0])
    return sign or (first.power > second.power) - (first.power < second.power)
