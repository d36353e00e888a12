"""The eigenvalues of a rational matrix, exactly: roots of integer polynomials and Jordan blocks.

Each root is enclosed in a ball of any precision; roots of one irreducible factor are conjugate and
share their multiplicity and their Jordan blocks (T6a).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import flint

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.exact_matrix import identity as identity_matrix
from oversmoothing.theory.numbers.rational import Matrix, to_flint
from oversmoothing.theory.support.errors import InputError

# Roots that agree to this many bits in all (the sum over pairs) are not isolated: iteration from
# far away takes minutes to part them. Looked at up to this degree, where such matrices are written.
_CLOSE, _CLOSE_DEGREE = 1500, 12


class CloseRootsError(InputError):
    """Eigenvalues of a rational matrix lie too close together to be isolated."""


@dataclass(frozen=True, eq=False)
class Factor:
    """An irreducible factor over Q of a characteristic polynomial: one Galois class of eigenvalues.

    polynomial: primitive, with integer coefficients. multiplicity: of each of its roots.
    jordan: sizes of the Jordan blocks of each root, largest first (the same for all roots, since
    Galois conjugation permutes them).
    """

    polynomial: flint.fmpz_poly
    multiplicity: int
    jordan: tuple[int, ...]
    _roots: dict[int, list[flint.acb]] = field(default_factory=dict, repr=False)

    @cached_property
    def degree(self) -> int:
        return int(self.polynomial.degree())

    @cached_property
    def leading(self) -> int:
        return abs(int(self.polynomial[self.degree]))

    @property
    def rational_root(self) -> flint.fmpq:
        """The root of a factor of degree 1."""
        return flint.fmpq(-int(self.polynomial[0]), int(self.polynomial[1]))

    def roots(self, bits: int) -> list[flint.acb]:
        """Disjoint balls around the roots, in an order that does not depend on `bits`."""
        if bits not in self._roots:
            with at_precision(bits):
                if self.degree == 1:
                    found = [flint.acb(self.rational_root)]
                else:
                    self._refuse_close_roots()
                    roots: list[Any] = self.polynomial.complex_roots()
                    found = [root for root, _ in roots]
                reference = self._roots.get(64)
                if reference is not None:
                    # Isolating balls: each finer one overlaps exactly one of the coarse ones.
                    found = [next(f for f in found if f.overlaps(r)) for r in reference]
            self._roots[bits] = found
        return self._roots[bits]

    def _refuse_close_roots(self) -> None:
        """By the discriminant, lead^(2D-2) times the product of the squared distances of roots.

        Raises `CloseRootsError`.
        """
        if not 2 < self.degree <= _CLOSE_DEGREE:
            return
        distances = abs(int(self.polynomial.discriminant())).bit_length()
        distances -= (2 * self.degree - 2) * self.leading.bit_length()
        if distances < -2 * _CLOSE:
            raise CloseRootsError(
                "eigenvalues agree to more digits than are parted here: A and H are not decided"
            )

    @cached_property
    def conjugate_index(self) -> list[int]:
        """For each root the index of its complex conjugate (itself where it is real).

        Parts are compared as they are: to mirror a ball rounds it, and it may then meet the balls
        of other roots as well, which are as close to it as they like.
        """
        roots = self.roots(64)
        return [
            next(
                k
                for k, other in enumerate(roots)
                if other.real.overlaps(root.real) and (other.imag + root.imag).contains(0)
            )
            for root in roots
        ]


@dataclass(frozen=True)
class Eigenvalue:
    """One root of a factor."""

    factor: Factor
    index: int

    def ball(self, bits: int) -> flint.acb:
        return self.factor.roots(bits)[self.index]

    @property
    def conjugate(self) -> Eigenvalue:
        return Eigenvalue(self.factor, self.factor.conjugate_index[self.index])

    @property
    def is_real(self) -> bool:
        return self.factor.conjugate_index[self.index] == self.index

    @property
    def is_zero(self) -> bool:
        return self.factor.degree == 1 and int(self.factor.polynomial[0]) == 0

    @property
    def is_one(self) -> bool:
        return self.factor.degree == 1 and int(self.factor.polynomial(1)) == 0


def factors(matrix: Matrix) -> list[Factor]:
    """The Galois classes of eigenvalues of a rational matrix with their Jordan block sizes."""
    if not matrix:
        return []
    M = to_flint(matrix)
    size = M.nrows()
    _, found = M.charpoly().numer().factor()
    result = []
    for polynomial, multiplicity in found:
        if multiplicity == 1:
            blocks: tuple[int, ...] = (1,)
        else:
            blocks = _jordan_sizes(M, polynomial, int(multiplicity), size)
        result.append(Factor(polynomial, int(multiplicity), blocks))
    return result


def _jordan_sizes(
    M: flint.fmpq_mat, polynomial: flint.fmpz_poly, multiplicity: int, size: int
) -> tuple[int, ...]:
    """Block sizes of each root of `polynomial`, from the nullities of its powers at M."""
    degree = int(polynomial.degree())
    identity = to_flint(identity_matrix(size))
    value = flint.fmpq_mat(size, size)
    for k in range(degree, -1, -1):
        value = value * M + identity * polynomial[k]
    nullities = [0]
    power = identity
    while nullities[-1] < multiplicity:
        power = power * value
        nullities.append((size - int(power.rank())) // degree)
    # nullities[k] - nullities[k-1] is the number of blocks of size >= k: the conjugate partition.
    at_least = [b - a for a, b in pairwise(nullities)]
    return tuple(sum(number > k for number in at_least) for k in range(at_least[0]))


def eigenvalues(classes: list[Factor]) -> list[Eigenvalue]:
    """The distinct eigenvalues."""
    return [Eigenvalue(f, k) for f in classes for k in range(f.degree)]
