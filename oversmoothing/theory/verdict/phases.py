"""Which power of a root is real: where residues of L have limits of their own (T14h)."""

from collections.abc import Callable
from math import lcm

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.spectra.algebraic import Eigenvalue, eigenvalues
from oversmoothing.theory.verdict.tokens import Token, factors_of, power_polynomial

# Roots of polynomials of a larger degree are not looked at: too many orders are possible.
_LARGEST_DEGREE = 12
# phi(k) > k/6 for every k below 10^4: of that degree no order reaches 6 * 12 * 11.
_ORDERS = range(2, 792)
# Periods in L up to which the limits are taken residue by residue.
LARGEST_PERIOD = 240
_BITS = 512


class UnknownPhaseError(ArithmeticError):
    """Whether a power of a root is real is not decided."""


def real_power(x: Eigenvalue) -> int | None:
    """The least k >= 1 with x^k real, None where no power is. Raises `UnknownPhaseError`.

    x^k is real iff x / conj(x) is a k-th root of unity; it lies in a field of degree m = D (D - 1)
    at most, so that its order k has phi(k) <= m.
    """
    if x.is_real:
        return 1
    if x.factor.degree > _LARGEST_DEGREE:
        raise UnknownPhaseError
    with at_precision(_BITS):
        ball = x.ball(_BITS)
        for k in _ORDERS:
            if (ball**k).imag.contains(0):
                if not _is_real(x, k):
                    raise UnknownPhaseError
                return k
    return None


def _is_real(x: Eigenvalue, k: int) -> bool:
    """Whether x^k is real: it is one of the isolated roots of its polynomial, and all that it can
    be are real.

    False where it is not, or where the balls do not say.
    """
    classes = factors_of(power_polynomial(x.factor.polynomial, k))
    with at_precision(_BITS):
        power = x.ball(_BITS) ** k
        near = {y.is_real for y in eigenvalues(classes) if y.ball(_BITS).overlaps(power)}
    return near == {True}


def period_of(tokens: tuple[Token, Token], order: Callable[[Eigenvalue], int | None]) -> int | None:
    """A period N in L of the cosine of the two leading sums, by their phases alone; None where they
    have none. Raises `UnknownPhaseError`, also where it is too long.

    order: `real_power`.

    All x^N of one token are real and of one sign, and the signs of the two tokens agree.
    """
    orders = [order(x) for token in tokens for x in token.growth.roots]
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
