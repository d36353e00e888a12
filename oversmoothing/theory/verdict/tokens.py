"""The tokens of X_L from one X_0, each by itself: its growth L^p rho^L and its direction (T14e).

Row i of X_L is a part of the resolvent of X_0; in lowest terms its poles are the multipliers that
the token contains, whatever the others contain. Those of the largest modulus and multiplicity lead:
x_i(L) = C(L, p) rho^(L-p) (y_i(L) + O(1/L)), y_i(L) = sum (x/|x|)^(L-p) g_x over the leading x.

Where some power of a root is real, residues of L have limits of their own (T14h).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import islice
from math import lcm

import flint

from oversmoothing.theory.numbers.exact import dot
from oversmoothing.theory.numbers.rounding import at_precision, to_ball
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, eigenvalues, squared_modulus
from oversmoothing.theory.spectra.chains import companion
from oversmoothing.theory.verdict import leading
from oversmoothing.theory.verdict.resolvent import Growth, OutOfReachError, Part, in_lowest_terms

_TINY = 5e-324
# Evaluation takes many bits; of what comes out so many are kept.
SHOWN_BITS = 256


@dataclass(frozen=True)
class TokenGrowth:
    """The token grows like L^power rate^L, as the upper limit of its norm shows.

    rate: 0 where the token is exactly 0 from some depth on.
    """

    rate: float
    power: int


@dataclass(frozen=True, eq=False)
class Token:
    """A row of X_L that is not 0 from some depth on, and its growth."""

    part: Part
    growth: Growth

    @cached_property
    def bits(self) -> int:
        """Bits that leave over 100 of a direction."""
        return leading.working_bits(self.part)

    @cached_property
    def directions(self) -> Callable[[int], dict[Eigenvalue, list[flint.acb]]]:
        """bits -> the coefficient g_x [d] of each leading root x."""
        part, roots = self.part, self.growth.roots
        return cache(lambda bits: {x: leading.coefficients(part, x, bits) for x in roots})

    @cached_property
    def leading_sum(self) -> Callable[[int, int], list[flint.arb]]:
        """(L, bits) -> y_i(L) [d], real balls: the leading roots come with their conjugates."""

        def at(depth: int, bits: int) -> list[flint.arb]:
            vector = leading.leading_sum(self.directions(bits), depth - self.growth.power, bits)
            with at_precision(SHOWN_BITS):
                return [+c.real for c in vector]

        return cache(at)

    def rational_sum(self, depth: int) -> list[Fraction] | None:
        """y_i(L) [d] up to a positive factor, L >= the power; None where it is no vector of
        fractions."""
        if not leading.all_conjugates_lead(self.growth):
            return None
        first, sums = depth - self.growth.power, leading.rational_sums(self.part)
        vector = [flint.fmpq(next(islice(entries, first, None))) for entries in sums]
        return [Fraction(int(x.p), int(x.q)) for x in vector]

    def measured(self, scale: int) -> TokenGrowth:
        with at_precision(SHOWN_BITS):
            rate = squared_modulus(self.growth.roots[0], SHOWN_BITS).sqrt() / scale
            # What is not 0 and below the floats stays the smallest of them.
            return TokenGrowth(max(float(rate.mid()), _TINY), self.growth.power)


def token_of(part: Part) -> Token | None:
    """The token with this row of the resolvent, None where it is 0 from some depth on.

    Raises `OutOfReachError`.
    """
    return None if part.dies else Token(part, part.growth)


def every(part: Part, period: int, first: int) -> Token | None:
    """The token at the depths first, first + period, first + 2 period ... alone, as a sequence.

    Its poles are powers of those of the part: some may be gone, and what grows more slowly leads.
    None where it is 0 from some depth on. Raises `OutOfReachError`.
    """
    q = part.denominator
    degree = int(q.degree())
    polynomial = power_polynomial(q, period)
    factors = [(factor, factor.multiplicity) for factor in factors_of(polynomial)]
    numerators = []
    for numerator in part.numerators:
        values = list(islice(leading.terms(numerator, q), first, first + period * degree, period))
        # Coefficient k: the sum over j of polynomial[k + 1 + j] values[j].
        whole = polynomial * flint.fmpz_poly(values[::-1])
        numerators.append(flint.fmpz_poly(whole.coeffs()[degree:]))
    return token_of(in_lowest_terms(numerators, factors, _Powers(part, period)))


def power_polynomial(q: flint.fmpz_poly, exponent: int) -> flint.fmpz_poly:
    """prod (z - x^exponent) over the roots x of a monic q, repeated as they are."""
    return (companion(flint.fmpq_poly(q)) ** exponent).charpoly().numer()


def factors_of(polynomial: flint.fmpz_poly) -> list[Factor]:
    """Its irreducible factors, as of a matrix with one Jordan block for each root."""
    _, pairs = polynomial.factor()
    return [Factor(polynomial=f, multiplicity=int(e), jordan=(int(e),)) for f, e in pairs]


class _Powers:
    """Moduli of powers of the roots of a part: ordered as those of the roots themselves."""

    def __init__(self, part: Part, period: int) -> None:
        self._roots = [root for root, _ in part.roots()]
        self._period, self._order = period, part.order
        self.compare = cache(self._compare)

    def _compare(self, first: Eigenvalue, second: Eigenvalue) -> int:
        signs = {int(self._order.compare(x, y)) for x in self._of(first) for y in self._of(second)}
        if len(signs) != 1:
            raise OutOfReachError
        return signs.pop()

    def _of(self, power: Eigenvalue) -> list[Eigenvalue]:
        """The roots that it can be a power of, as far as balls tell."""
        bits = 1024
        with at_precision(bits):
            ball = power.ball(bits)
            return [x for x in self._roots if (x.ball(bits) ** self._period).overlaps(ball)]


# Roots of polynomials of a larger degree are not looked at: too many orders are possible.
_LARGEST_DEGREE = 12
# Periods in L up to which the limits are taken residue by residue.
LARGEST_PERIOD = 240
_BITS = 512


class UnknownPhaseError(ArithmeticError):
    """Whether a power of a root is real is not decided."""


@lru_cache(maxsize=256)
def real_power(x: Eigenvalue) -> int | None:
    """The least k >= 1 with x^k real, None where no power is. Raises `UnknownPhaseError`.

    x^k is real iff x / conj(x) is a k-th root of unity; it lies in a field of degree m = D (D - 1)
    at most, so that its order k has phi(k) <= m. phi(k) > k/6 for every k below 10^4: k < 6 m.
    """
    if x.is_real:
        return 1
    if x.factor.degree > _LARGEST_DEGREE:
        raise UnknownPhaseError
    with at_precision(_BITS):
        ball = x.ball(_BITS)
        for k in range(2, 6 * x.factor.degree * (x.factor.degree - 1)):
            power = ball**k
            if power.imag.contains(0):
                # It is one of the isolated roots of its polynomial: all that it can be are real.
                classes = factors_of(power_polynomial(x.factor.polynomial, k))
                near = (y for y in eigenvalues(classes) if y.ball(_BITS).overlaps(power))
                if {y.is_real for y in near} != {True}:
                    raise UnknownPhaseError
                return k
    return None


def period_of(tokens: tuple[Token, Token]) -> int | None:
    """A period N in L of the cosine of the two leading sums, by their phases alone; None where they
    have none. Raises `UnknownPhaseError`, also where it is too long.

    All x^N of one token are real and of one sign, and the signs of the two tokens agree.
    """
    orders = [real_power(x) for token in tokens for x in token.growth.roots]
    if any(k is None for k in orders):
        return None
    period = lcm(*(k for k in orders if k is not None))
    if period > LARGEST_PERIOD:
        raise UnknownPhaseError
    first, second = (signs(token, period) for token in tokens)
    return period if first == second and len(first) == 1 else 2 * period


def signs(token: Token, period: int) -> set[bool]:
    """Of the real parts of x^period: whether they are positive, over the leading roots x."""
    with at_precision(_BITS):
        return {(x.ball(_BITS) ** period).real > 0 for x in token.growth.roots}


class Cosine(float):
    """A cosine whose square is rational. square: with the sign of the cosine."""

    square: Fraction

    @staticmethod
    def of(x: list[Fraction], y: list[Fraction]) -> "Cosine":
        """That of two vectors of fractions, neither 0."""
        along = dot(x, y)
        square = along * abs(along) / (dot(x, x) * dot(y, y))
        with at_precision(SHOWN_BITS):
            size = to_ball(abs(square)).sqrt()
        cosine = Cosine(rounded(-size if square < 0 else size))
        cosine.square = square
        return cosine


def same(values: Sequence[float | None]) -> bool:
    """Whether cosines are known to be the same number."""
    squares = [x.square if isinstance(x, Cosine) else None for x in values]
    return None not in squares and len(set(squares)) == 1


def cosine_of(vectors: list[list[flint.arb]]) -> flint.arb | None:
    """That of two vectors, None where one of them may be 0."""
    with at_precision(SHOWN_BITS):
        rows = flint.arb_mat(vectors)
        (xx, xy), (_, yy) = (rows * rows.transpose()).tolist()
        return xy / (xx * yy).sqrt() if xx > 0 and yy > 0 else None


def rounded(value: flint.arb) -> float:
    return min(1.0, max(-1.0, float(value.mid())))
