"""Spectra of exact instances, decided exactly, and verdicts from lists of eigenvalues."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.layer.attention import closed_classes, rational_quotient
from oversmoothing.theory.numbers.exact import (
    Matrix,
    dot,
    exact_stationary,
    from_flint,
    polynomial_at,
    product,
    to_flint,
    to_float,
    transposed,
)
from oversmoothing.theory.proofs.instances import scaled
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, eigenvalues, factors
from oversmoothing.theory.verdict.by_fractions import Mode, compare
from oversmoothing.theory.verdict.formulas import outcome_of

# A complex number in fractions, (Re, Im); and one that may be real.
Gaussian = tuple[Fraction, Fraction]
Number = Gaussian | Fraction | int


# --------------------------------------------------------------------------- the Perron vector


def stationary(A: Matrix) -> list[Fraction]:
    """pi^T A = pi^T, pi^T 1 = 1 in fractions (the mean over the closed classes)."""
    return exact_stationary(A, [list(map(int, members)) for members in closed_classes(to_float(A))])


def squared_deviation(pi: list[Fraction]) -> Fraction:
    """delta^2 = ||pi - 1/n||^2."""
    return dot(pi, pi) - Fraction(1, len(pi))


# ------------------------------------------------------------------------------------- spectra


def spectrum(M: Matrix) -> list[Eigenvalue]:
    """The distinct eigenvalues, exactly."""
    return eigenvalues(factors(M))


def attention_values(A: Matrix) -> list[Eigenvalue]:
    """The distinct eigenvalues of A without one copy of 1."""
    return eigenvalues(factors(rational_quotient(A)))


def rational(value: Eigenvalue) -> Fraction | None:
    """The eigenvalue, where it is rational."""
    if value.factor.degree != 1:
        return None
    c = value.factor.polynomial
    return Fraction(-int(c[0]), int(c[1]))


def values(M: Matrix) -> list[Fraction]:
    """The eigenvalues with multiplicity, ascending, all rational (raises otherwise)."""
    numbers: list[Fraction] = []
    for value in spectrum(M):
        number = rational(value)
        assert number is not None, "an eigenvalue is irrational"
        numbers += [number] * value.factor.multiplicity
    return sorted(numbers)


def is_real(M: Matrix) -> bool:
    return all(value.is_real for value in spectrum(M))


def diagonalisable(M: Matrix) -> bool:
    return all(size == 1 for factor in factors(M) for size in factor.jordan)


def simple(M: Matrix) -> bool:
    return all(factor.multiplicity == 1 for factor in factors(M))


def _satisfies(value: Eigenvalue, condition: Callable[[Any], bool]) -> bool:
    number = rational(value)
    # An irrational number is separated from every rational end point by its ball.
    return value.is_real and condition(value.ball(256).real if number is None else number)


def within(M: Matrix, condition: Callable[[Any], bool]) -> bool:
    """Every eigenvalue of M is real and satisfies a condition whose end points are rational."""
    return all(_satisfies(value, condition) for value in spectrum(M))


def has_value(M: Matrix, condition: Callable[[Any], bool]) -> bool:
    """Some eigenvalue of M is real and satisfies the condition."""
    return any(_satisfies(value, condition) for value in spectrum(M))


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
    return from_flint(polynomial_at(others * s, to_flint(M)))


def projector(M: Matrix, at: Fraction) -> Matrix:
    """The same for a rational eigenvalue."""
    (factor,) = (value.factor for value in spectrum(M) if rational(value) == at)
    return spectral_projector(M, factor)


def block(A: Matrix, a: Fraction, X: Matrix, H: Matrix, h: Fraction) -> Matrix:
    """E_a X E_h^T for rational eigenvalues: the part of X in the pair (a, h)."""
    return product(projector(A, a), X, transposed(projector(H, h)))


# ------------------------------------------------------------- the disc with diameter [-1, 0]


def in_universal_disc(x: Fraction, y: Fraction) -> bool:
    """Whether h = x + iy has |h + 1/2| <= 1/2 and h != 0."""
    return bool(x or y) and x * x + y * y + x <= 0


def in_disc(M: Matrix) -> bool:
    """Whether every eigenvalue h has |h + 1/2| <= 1/2 and h != 0."""
    one = Mode(None, spectrum([[Fraction(0)]])[0])
    for doubled in spectrum(scaled(2, M)):
        # |1 + 2h| <= 1
        sign, _ = compare(Mode(None, doubled), one)
        if doubled.is_zero or sign is None or sign > 0:
            return False
    return True


# ------------------------------------------------------------------------- verdicts from lists


def squared_modulus(h: Number, a: Number) -> Fraction:
    """|1 + h a|^2."""
    (x, y), (u, v) = (z if isinstance(z, tuple) else (z, 0) for z in (h, a))
    real, imaginary = 1 + x * u - y * v, x * v + y * u
    return Fraction(real * real + imaginary * imaginary)


def by_moduli(h_values: Sequence[Number], a_values: Sequence[Number]) -> str:
    """The verdict from all pairs of eigenvalues, each list closed under conjugation, a_values
    without one copy of 1."""
    consensus = max(squared_modulus(h, 1) for h in h_values)
    gap = consensus - max(squared_modulus(h, a) for h in h_values for a in a_values)
    return outcome_of(gap, gap)
