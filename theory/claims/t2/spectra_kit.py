"""Spectra of exact instances, decided exactly, and verdicts from lists of eigenvalues."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import flint

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import Matrix, from_flint, to_flint
from oversmoothing.theory.proofs.claim import Hypothesis, Instance
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, eigenvalues, factors
from oversmoothing.theory.verdict.exact_comparison import Mode, compare

# A complex number in fractions.
Gaussian = tuple[Fraction, Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


def matrix(*rows: str) -> Matrix:
    """Rows of fractions, written "1/2 -3"."""
    return [[Fraction(entry) for entry in row.split()] for row in rows]


def identity(size: int) -> Matrix:
    return [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]


def uniform(n: int) -> Matrix:
    """11^T/n."""
    return [[Fraction(1, n)] * n for _ in range(n)]


def flat_attention(a: Fraction, n: int) -> Matrix:
    """a I + (1-a) 11^T/n: positive for 0 <= a < 1, with all its eigenvalues but 1 equal to a."""
    return [
        [a * int(i == j) + (1 - a) * entry for j, entry in enumerate(row)]
        for i, row in enumerate(uniform(n))
    ]


# ------------------------------------------------------------------------- verdicts from lists


def named(consensus: Fraction, quotient: Fraction) -> str:
    """The verdict for rho_C^2 and rho_Q^2."""
    if consensus == quotient:
        return "TIE"
    return "SMOOTHING" if consensus > quotient else "NON_SMOOTHING"


def by_squares(h_values: Iterable[Fraction], a_values: Iterable[Fraction]) -> str:
    """The verdict from all pairs of real eigenvalues, a_values without one copy of 1."""
    h, a = list(h_values), list(a_values)
    return named(max((1 + x) ** 2 for x in h), max((1 + x * b) ** 2 for x in h for b in a))


def squared_modulus(h: Gaussian, a: Gaussian) -> Fraction:
    """|1 + h a|^2."""
    (x, y), (u, v) = h, a
    real, imaginary = 1 + x * u - y * v, x * v + y * u
    return real * real + imaginary * imaginary


def by_squared_moduli(h_values: Iterable[Gaussian], a_values: Iterable[Gaussian]) -> str:
    """The verdict from all pairs of complex eigenvalues, each list closed under conjugation."""
    h, a = list(h_values), list(a_values)
    return named(
        max(squared_modulus(x, (ONE, ZERO)) for x in h),
        max(squared_modulus(x, b) for x in h for b in a),
    )


# ---------------------------------------------------------------------- hypotheses on instances


def spectrum(M: Matrix) -> list[Eigenvalue]:
    """The distinct eigenvalues, exactly."""
    return eigenvalues(factors(M))


def attention_values(A: Matrix) -> list[Eigenvalue]:
    """The distinct eigenvalues of A without one copy of 1."""
    return eigenvalues(factors(rational_quotient(A)))


def is_real(M: Matrix) -> bool:
    return all(value.is_real for value in spectrum(M))


def spectral_projector(M: Matrix, factor: Factor) -> Matrix:
    """The projector onto the generalised eigenspaces of the roots of one factor, along the rest."""
    here, others = flint.fmpq_poly([1]), flint.fmpq_poly([1])
    for other in factors(M):
        power = flint.fmpq_poly(other.polynomial) ** max(other.jordan)
        if other.polynomial == factor.polynomial:
            here = power
        else:
            others = others * power
    # others s + here t = 1: others s is 1 modulo here and 0 modulo the rest.
    _, s, _ = others.xgcd(here)
    coefficients = (others * s).coeffs()
    value, unit = flint.fmpq_mat(len(M), len(M)), to_flint(identity(len(M)))
    for coefficient in reversed(coefficients):
        value = value * to_flint(M) + unit * coefficient
    return from_flint(value)


def sign_beside(value: Eigenvalue, at: Fraction) -> int:
    """Sign of a real eigenvalue minus a fraction, exactly."""
    bits = 64
    while True:
        with at_precision(bits):
            gap = value.ball(bits).real - flint.arb(flint.fmpq(at.numerator, at.denominator))
        if gap > 0:
            return 1
        if gap < 0:
            return -1
        # A rational root belongs to a factor of degree 1; an irrational one is separated in time.
        if value.factor.degree == 1:
            return 0
        bits *= 2


def real_between(M: Matrix, low: int | Fraction, high: int | Fraction, *, open_high: bool) -> bool:
    """Whether every eigenvalue is real and in [low, high], or in [low, high)."""
    below = 0 if open_high else 1
    return all(
        value.is_real
        and sign_beside(value, Fraction(low)) >= 0
        and sign_beside(value, Fraction(high)) < below
        for value in spectrum(M)
    )


def is_positive(A: Matrix) -> bool:
    """Entrywise positive with rows that sum to 1."""
    return all(min(row) > 0 and sum(row) == 1 for row in A)


def _norm_at_most_one(doubled: Eigenvalue) -> bool:
    """|1 + 2h| <= 1 for the eigenvalue 2h."""
    sign, _ = compare(Mode(None, doubled), Mode(None, spectrum([[ZERO]])[0]))
    return sign is not None and sign <= 0


def _doubled(M: Matrix) -> list[Eigenvalue]:
    return spectrum([[2 * entry for entry in row] for row in M])


def in_disc(M: Matrix) -> bool:
    """Whether every eigenvalue h has |h + 1/2| <= 1/2 and h != 0."""
    return all(not value.is_zero and _norm_at_most_one(value) for value in _doubled(M))


def value_in_disc(M: Matrix, value: Eigenvalue) -> bool:
    """Whether this eigenvalue h of M has |h + 1/2| <= 1/2 and h != 0."""
    if value.is_zero:
        return False
    bits = 64
    while True:
        with at_precision(bits):
            same = [v for v in _doubled(M) if v.ball(bits).overlaps(2 * value.ball(bits))]
        if len(same) == 1:
            return _norm_at_most_one(same[0])
        bits *= 2


POSITIVE = Hypothesis(
    "A is row-stochastic and entrywise positive (A+)", lambda instance: is_positive(instance.A)
)
TWO_TOKENS = Hypothesis("n >= 2", lambda instance: len(instance.A) >= 2)
REAL_A = Hypothesis("spec(A) is real", lambda instance: is_real(instance.A))
REAL_H = Hypothesis("spec(H) is real", lambda instance: is_real(instance.H))


def one_value(instance: Instance) -> bool:
    return len(spectrum(instance.H)) == 1


ONE_VALUE = Hypothesis("H has a single eigenvalue h", one_value)
