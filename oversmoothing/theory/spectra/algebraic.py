"""The eigenvalues of a rational matrix, exactly: roots of integer polynomials and Jordan blocks.

Each root is enclosed in a ball of any precision; roots of one irreducible factor are conjugate and
share their multiplicity and their Jordan blocks (T6a).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import isqrt, prod
from typing import Any

import flint

from oversmoothing.theory.numbers.exact import identity, polynomial_at, to_flint
from oversmoothing.theory.numbers.rounding import around, at_precision, doublings
from oversmoothing.theory.support.errors import CloseRootsError

# Bits that roots agree to in all (the sum over pairs): from so many on they are found as
# eigenvalues, since iteration from far away takes minutes to part them. Given up where this takes
# more bits, times the degree, than so many (seconds). Looked at up to this degree, where such
# matrices are written.
_CLOSE, _TOO_CLOSE, _CLOSE_DEGREE = 128, 50_000, 12
# Above this degree further digits of the roots come by Newton's steps, not from the start.
_REFINED = 8


@dataclass(frozen=True, eq=False)
class Factor:
    """An irreducible factor over Q of a characteristic polynomial: one Galois class of eigenvalues.

    polynomial: primitive, with integer coefficients. multiplicity: of each of its roots. jordan:
    sizes of the Jordan blocks of each root, largest first. near: where they are known, balls of a
    given precision among which all the roots are.
    """

    polynomial: flint.fmpz_poly
    multiplicity: int
    jordan: tuple[int, ...]
    near: Callable[[int], Sequence[flint.acb]] | None = field(default=None, repr=False)
    _roots: dict[int, list[flint.acb]] = field(default_factory=dict, repr=False)

    @cached_property
    def degree(self) -> int:
        return int(self.polynomial.degree())

    @cached_property
    def text(self) -> str:
        return str(self.polynomial)

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
                    balls = [flint.acb(self.rational_root)]
                elif self._agreement > _CLOSE or (bits > 64 and self.degree > _REFINED):
                    balls = self._close_roots(bits)
                else:
                    roots: list[Any] = self.polynomial.complex_roots()
                    balls = [root for root, _ in roots]
                if 64 in self._roots:
                    # Isolating balls: each finer one overlaps exactly one of the coarse ones.
                    balls = [next(f for f in balls if f.overlaps(r)) for r in self._roots[64]]
            self._roots[bits] = balls
        return self._roots[bits]

    @cached_property
    def _agreement(self) -> float:
        """About how many bits pairs of roots agree to in all, 0 where that is not looked at.

        By the discriminant, lead^(2D-2) times the product of the squared distances of roots, beside
        the largest root as its coefficients bound it.
        """
        D, lead = self.degree, self.leading.bit_length()
        if D > _CLOSE_DEGREE:
            return 0.0
        heights = [abs(int(c)).bit_length() for c in self.polynomial.coeffs()]
        largest = max((h - lead) / (D - k) for k, h in enumerate(heights[:D]))
        distances = abs(int(self.polynomial.discriminant())).bit_length() / 2
        return D * (D - 1) / 2 * largest + (D - 1) * lead - distances

    def _close_roots(self, bits: int) -> list[flint.acb]:
        """Disjoint balls, computed with at least so many bits, around roots that agree to many.

        Around any x the disc of radius D |p(x) / p'(x)| holds a root: where D such discs are
        disjoint, each holds one. x: eigenvalues of the companion matrix, improved by Newton's
        steps. Raises `CloseRootsError` where this takes too many bits.
        """
        known = self.roots(64) if bits > 64 else None
        working = max(bits, round(self._agreement))
        while known or self.degree * working <= _TOO_CLOSE:
            with at_precision(working):
                p = flint.acb_poly(self.polynomial)
                slope = p.derivative()
                points = [root.mid() for root in known or self._approximations()]
                for _ in range(working.bit_length()):
                    points = [(x - p(x) / slope(x)).mid() for x in points]
                radii = [(self.degree * abs(p(x) / slope(x))).upper() for x in points]
                balls = [around(x, r) for x, r in zip(points, radii, strict=True)]
            apart = not any(x.overlaps(y) for x, y in combinations(balls, 2))
            if len(balls) == self.degree and all(x.is_finite() for x in balls) and apart:
                return balls
            working *= 2
        raise CloseRootsError(
            "eigenvalues agree to more digits than are parted here: A and H are not decided"
        )

    def _approximations(self) -> list[flint.acb]:
        """The roots about as the present precision has them: those of the balls that may hold one.

        Without such balls as distances from the integer next to their mean, which those of
        attention that hardly mixes are close to: small eigenvalues of a companion matrix are found
        to their own size.
        """
        D = self.degree
        if self.near:
            p = flint.acb_poly(self.polynomial)
            apart: list[flint.acb] = []
            for ball in self.near(flint.ctx.prec):
                if p(ball).contains(0) and not any(ball.overlaps(x) for x in apart):
                    apart.append(ball)
            return [ball.mid() for ball in apart]
        centre = round(Fraction(-int(self.polynomial[D - 1]), D * int(self.polynomial[D])))
        moved = self.polynomial(flint.fmpz_poly([centre, 1]))
        last = [flint.acb(flint.fmpq(-int(moved[i]), int(moved[D]))) for i in range(D)]
        companion = [[int(i == j + 1) for j in range(D - 1)] + [last[i]] for i in range(D)]
        return [centre + root.mid() for root in flint.acb_mat(companion).eig(algorithm="approx")]

    @cached_property
    def conjugate_index(self) -> list[int]:
        """For each root the index of its complex conjugate (itself where it is real)."""
        roots = self.roots(64)

        # Parts are compared as they are: to mirror a ball rounds it, and it may then meet others.
        def mirrored(x: flint.acb, y: flint.acb) -> bool:
            return bool(x.real.overlaps(y.real) and (x.imag + y.imag).contains(0))

        return [next(k for k, y in enumerate(roots) if mirrored(y, x)) for x in roots]


@dataclass(frozen=True)
class Eigenvalue:
    """One root of a factor."""

    factor: Factor
    index: int

    def ball(self, bits: int) -> flint.acb:
        return self.factor.roots(bits)[self.index]

    @property
    def conjugate(self) -> "Eigenvalue":
        index = self.factor.conjugate_index[self.index]
        return self if index == self.index else Eigenvalue(self.factor, index)

    @property
    def key(self) -> tuple[str, int]:
        """Equal for equal numbers, eigenvalues of different matrices too."""
        return self.factor.text, self.index

    @cached_property
    def structural(self) -> frozenset[object]:
        """Equal keys mean equal moduli by structure: one number, or its conjugate."""
        return frozenset([self.key, self.conjugate.key])

    @property
    def is_real(self) -> bool:
        return self.factor.conjugate_index[self.index] == self.index

    @property
    def is_zero(self) -> bool:
        return self.factor.degree == 1 and int(self.factor.polynomial[0]) == 0

    @property
    def is_one(self) -> bool:
        return self.factor.degree == 1 and int(self.factor.polynomial(1)) == 0


def rational_modulus(roots: Sequence[Eigenvalue]) -> Fraction | None:
    """|1 + the product of the roots| where it is known to be a fraction: all roots are rational, or
    all but one x of a complex pair, with |1 + c x|^2 = (1 + c x)(1 + c conj x) a square."""
    rest = [root for root in roots if root.factor.degree > 1]
    one = flint.fmpq(1)
    c = prod((root.factor.rational_root for root in roots if root not in rest), start=one)
    if not rest or c == 0:
        return Fraction(abs(int((one + c).p)), int((one + c).q)) if c else Fraction(1)
    if len(rest) > 1 or rest[0].factor.degree > 2 or rest[0].is_real:
        return None
    p = rest[0].factor.polynomial
    square = one - c * flint.fmpq(p[1], p[2]) + c * c * flint.fmpq(p[0], p[2])
    top, bottom = isqrt(int(square.p)), isqrt(int(square.q))
    return Fraction(top, bottom) if flint.fmpq(top, bottom) ** 2 == square else None


def squared_modulus(x: Any, bits: int) -> flint.arb:
    """A ball around |x|^2 of a root or of a multiplier of roots, exactly 0 for the root 0."""
    with at_precision(bits):
        ball: flint.acb = x.ball(bits)
        return ball.real * ball.real + ball.imag * ball.imag


def apart(x: Any, y: Any, first: int, last: int) -> int:
    """The sign of |x| - |y| as far as so many bits part them, else 0."""
    for bits in doublings(first, last):
        with at_precision(bits):
            difference = squared_modulus(x, bits) - squared_modulus(y, bits)
            if not difference.contains(0):
                return 1 if difference > 0 else -1
    return 0


def factors(matrix: Sequence[Sequence[Fraction]]) -> list[Factor]:
    """The Galois classes of eigenvalues of a rational matrix with their Jordan block sizes."""
    if not matrix:
        return []
    M = to_flint(matrix)
    _, pairs = M.charpoly().numer().factor()
    return [Factor(f, int(m), (1,) if m == 1 else _jordan_sizes(M, f, int(m))) for f, m in pairs]


def _jordan_sizes(
    M: flint.fmpq_mat, polynomial: flint.fmpz_poly, multiplicity: int
) -> tuple[int, ...]:
    """Block sizes of each root of `polynomial`, from the nullities of its powers at M."""
    size, degree = M.nrows(), int(polynomial.degree())
    value, power = polynomial_at(polynomial, M), to_flint(identity(size))
    # By k = 1, 2, ... the number of blocks of size >= k: the conjugate partition.
    at_least: list[int] = []
    while (left := multiplicity - sum(at_least)) > 0:
        if 1 in (left, *at_least[-1:]):
            # One block has all that is left.
            at_least += [1] * left
            break
        power = power * value
        at_least.append((size - int(power.rank())) // degree - sum(at_least))
    return tuple(sum(number > k for number in at_least) for k in range(at_least[0]))


def eigenvalues(classes: list[Factor]) -> list[Eigenvalue]:
    """The distinct eigenvalues."""
    return [Eigenvalue(f, k) for f in classes for k in range(f.degree)]
