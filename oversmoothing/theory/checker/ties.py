"""Ties: two radii are equal when the norm of their difference leaves no room between them.

|1 + h a|^2 and |1 + h' a'|^2 differ by nothing, or by more than an integer allows: h, h', a, a' and
their conjugates are roots of irreducible integer polynomials f with leading coefficients l. The
product of l over the polynomials used (l^2 for a real root, which then occurs squared) makes q of
the difference delta an algebraic integer; delta has at most as many conjugates as there are ways,
D, to choose other roots of the same polynomials, each at most S = 2 (1 + |h|)^2. The norm of
q delta is an integer, so |delta| < 1 / (q (q S)^(D-1)) leaves only delta = 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log2, prod
from typing import Any

import flint

from oversmoothing.theory.checker.reading import Check, Given, Matrix
from oversmoothing.theory.checker.spectra import TIE_SIZE, exact, maximum, with_polynomials


@dataclass(frozen=True)
class Polynomial:
    """An irreducible factor of a characteristic polynomial; power is its exponent in the minimal
    polynomial: the largest Jordan block of its roots."""

    poly: Any
    power: int

    @property
    def degree(self) -> int:
        return int(self.poly.degree())

    def has_root(self, x: int) -> bool:
        """Whether this integer is its one root."""
        return self.degree == 1 and self.poly(x) == 0


@dataclass(frozen=True)
class Root:
    """A root in a ball; index, conjugate: its place and its conjugate's among those of `of`."""

    of: Polynomial
    number: int
    index: int
    conjugate: int
    ball: Any

    @property
    def real(self) -> bool:
        return self.index == self.conjugate


@dataclass(frozen=True)
class Pair:
    """A mode: h, and a or None where it is consensus. modulus: a ball around |1 + h a|."""

    h: Root
    a: Root | None
    multiplier: Any
    modulus: Any

    @property
    def key(self) -> frozenset[Any]:
        """Equal for modes of equal moduli by their form alone: h a = 0, a = 1, joint conjugates."""
        if self.h.of.has_root(0) or (self.a is not None and self.a.of.has_root(0)):
            return frozenset(["one"])
        a = None if self.a is None or self.a.of.has_root(1) else self.a
        straight = (self.h.number, self.h.index, *((a.number, a.index) if a else (-1, -1)))
        mirrored = (self.h.number, self.h.conjugate, *((a.number, a.conjugate) if a else (-1, -1)))
        return frozenset((straight, mirrored))

    @property
    def block(self) -> int:
        """The largest Jordan block of 1 + h a in I + H (x) A: that of h N' + a N + N N'."""
        p = self.h.of.power
        if self.a is None:
            return p
        q = self.a.of.power
        if self.h.of.has_root(0):
            return min(p, q) if self.a.of.has_root(0) else p
        return q if self.a.of.has_root(0) else p + q - 1


def polynomials(M: Matrix, without_one: bool = False) -> list[Polynomial]:
    """The irreducible factors of the characteristic polynomial of M, of attention without one 1."""
    dense = exact(M)
    factors = least = dense.charpoly().numer().factor()[1]
    if any(multiplicity > 1 for _, multiplicity in factors):
        least = dense.minpoly().numer().factor()[1]
    powers = {str(f): int(e) for f, e in least}
    pairs = [(Polynomial(f, powers[str(f)]), multiplicity) for f, multiplicity in factors]
    return [
        f for f, multiplicity in pairs if not (without_one and f.has_root(1) and multiplicity == 1)
    ]


Sides = tuple[list[Pair], list[Pair]]


class Modes:
    """The modes of rational A and H, at any precision."""

    def __init__(self, A: Matrix, H: Matrix) -> None:
        self._h, self._a = polynomials(H), polynomials(A, without_one=True)

    def pairs(self, bits: int, of: Sides | None = None) -> Sides:
        """The modes of consensus and of the quotient: all, or those of some known at another
        precision, and no others but what is as near to them."""
        with flint.ctx.workprec(bits):
            kept = None if of is None else {
                root.number for side in of for p in side for root in (p.h, p.a) if root
            }  # fmt: skip
            h_roots = self._roots(self._h, 0, kept)
            a_roots = self._roots(self._a, len(self._h), kept)

            def near(k: int, h: Root, a: Root | None) -> bool:
                return of is None or any(_same(p.h, h) and _same(p.a, a) for p in of[k])

            return (
                [_pair(h, None) for h in h_roots if near(0, h, None)],
                [_pair(h, a) for h in h_roots for a in a_roots if near(1, h, a)],
            )

    def _roots(self, factors: list[Polynomial], first: int, kept: set[int] | None) -> list[Root]:
        roots = []
        for number, factor in enumerate(factors, first):
            if kept is not None and number not in kept:
                continue
            balls = [root for root, _ in factor.poly.complex_roots()]
            for index, ball in enumerate(balls):
                # Part by part: a mirrored ball is rounded, and may meet those of close roots.
                (conjugate,) = (
                    k
                    for k, other in enumerate(balls)
                    if other.real.overlaps(ball.real) and (other.imag + ball.imag).contains(0)
                )
                roots.append(Root(factor, number, index, conjugate, ball))
        return roots


def _same(first: Root | None, second: Root | None) -> bool:
    """Whether two balls may hold one root."""
    if first is None or second is None:
        return first is second
    return first.number == second.number and bool(first.ball.overlaps(second.ball))


def _pair(h: Root, a: Root | None) -> Pair:
    if a is None or a.of.has_root(1):
        multiplier = 1 + h.ball
    elif h.of.degree == a.of.degree == 1:
        # Rounded once: 1 + h a = 0 has to be exactly that.
        (p, q), (r, s) = h.of.poly, a.of.poly
        multiplier = flint.acb(1 + flint.fmpq(p * r, q * s))
    else:
        multiplier = 1 + h.ball * a.ball
    return Pair(h, a, multiplier, abs(multiplier))


def largest(pairs: list[Pair]) -> list[Pair]:
    """Those that may be of the largest modulus, by their balls."""
    top = maximum([pair.modulus for pair in pairs])
    return [pair for pair in pairs if not pair.modulus < top]


def equality_bits(first: Pair, second: Pair) -> float:
    """Bits of the bound below which the difference of the squared moduli can only be 0."""
    if first.key == second.key:
        return 0.0
    used: dict[int, tuple[Polynomial, set[int], int]] = {}
    for root in (first.h, second.h, first.a, second.a):
        if root is not None:
            factor, indices, power = used.get(root.number, (root.of, set(), 1))
            indices |= {root.index, root.conjugate}
            used[root.number] = factor, indices, max(power, 2 if root.real else 1)
    ways = prod(
        prod(range(factor.degree - len(indices) + 1, factor.degree + 1))
        for factor, indices, _ in used.values()
    )
    q = sum(
        power * log2(abs(int(factor.poly[factor.degree]))) for factor, _, power in used.values()
    )
    with flint.ctx.workprec(64):
        roots = (root for pair in (first, second) for root, _ in pair.h.of.poly.complex_roots())
        size = maximum([abs(root) for root in roots])
        # The ball is narrower than the 1e-6 that is added.
        largest_log = float((1 + size).log() / flint.arb(2).log())
    return q + (ways - 1) * (q + 2 * largest_log + 1 + 1e-6) + 2


def equal(first: Pair, second: Pair, bits: int) -> bool | None:
    """Whether the moduli are equal; None where these balls, of that precision, do not tell."""
    if first.key == second.key:
        return True
    with flint.ctx.workprec(bits):
        gap = first.modulus * first.modulus - second.modulus * second.modulus
        if not gap.contains(0):
            return False
        small = abs(gap).upper() < flint.arb(2) ** -int(equality_bits(first, second) + 1)
    return True if small else None


# Bits spent on the proof of a tie.
TIE_BITS = 2**20
# Tried first: most pairs that are not equal separate there.
_FIRST_BITS = (320, 1280, 5120)


def check_tie(
    given: Given, jordan: tuple[int, int] | None, structure: Check | None = None
) -> Check:
    """rho_C = rho_Q, and the largest Jordan blocks there where they are stated.

    structure: what was found if the radii are known to be equal to the last bit.
    """
    if jordan is None and structure is not None:
        return Check(True, f"{structure.words}, equal by structure")
    if not given.rational:
        return Check(
            False, "a tie is confirmed for A and H in fractions or binary64 only", beyond=True
        )
    both = with_polynomials(given)
    if both is None:
        words = f"a tie is confirmed up to n, d = {TIE_SIZE} only, and with no endless numbers"
        return Check(False, words, beyond=True)
    answer = tied(Modes(*both), lambda sides, bits: (largest(sides[0]), largest(sides[1])))
    if isinstance(answer, float):
        words = f"the tie would take {answer:.0f} bits to confirm, more than are spent"
        return Check(False, words, beyond=True)
    if answer is None:
        return Check(False, "no tie: the squared radii differ")
    blocks = tuple(max(pair.block for pair in side) for side in answer)
    if jordan is not None and blocks != jordan:
        return Check(False, f"the largest Jordan blocks at the tie are {blocks}, not {jordan}")
    words = "TIE: the squared radii are equal"
    if jordan is not None:
        words += f"; largest Jordan blocks {blocks[0]} and {blocks[1]}"
    return Check(True, words)


def tied(modes: Modes, chosen: Callable[[Sides, int], Sides]) -> Sides | float | None:
    """The modes of both sides that tie; None where they do not; the bits it would take if too many.

    chosen: of the modes of consensus and of the quotient, known to that many bits, those that may
    be the largest. Each of one side must equal each of the other: then whichever are the largest
    are equal.
    """
    sides, needed = modes.pairs(_FIRST_BITS[0]), 0.0
    for bits in (*_FIRST_BITS, None):
        if bits is None:
            needed = max(equality_bits(c, q) for c in sides[0] for q in sides[1])
            if needed > TIE_BITS:
                break
            # Balls lose some bits to cancellation.
            bits = max(_FIRST_BITS[-1], int(needed) + 512)
        sides = chosen(modes.pairs(bits, sides), bits)
        answers = {equal(c, q, bits) for c in sides[0] for q in sides[1]}
        if answers in ({False}, {True}):
            return sides if answers == {True} else None
    return needed
