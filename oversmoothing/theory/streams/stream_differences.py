"""Which eigenvalues differences between streams have (T13a)."""

from __future__ import annotations

from fractions import Fraction

import flint

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.spectra.algebraic import Eigenvalue
from oversmoothing.theory.streams.mixing import Mixing, roots_of


def differences_alone(mixing: Mixing, H: Matrix) -> list[Eigenvalue] | None:
    """The eigenvalues of differences between streams, where no branch has part in them: H = 0 adds
    nothing to any stream (a nilpotent H does)."""
    branch = any(x for row in H for x in row)
    c = mixing.keeps_equal_streams if branch else mixing.common_row_sum
    if c is None:
        return None
    one = flint.fmpq_poly([flint.fmpq(-c.numerator, c.denominator), 1])
    return roots_of(mixing.characteristic // one)


def lone_family(mixing: Mixing) -> tuple[Fraction, Fraction] | None:
    """(mu, t) with (R + t p q^T) 1 = mu 1, where there is just one such t; else None."""
    ones = sum(mixing.q)
    sums = [sum(row) for row in mixing.R]
    k = next((k for k, x in enumerate(mixing.p) if x != mixing.p[0]), None)
    if k is None or ones == 0:
        return None
    t = -(sums[k] - sums[0]) / (ones * (mixing.p[k] - mixing.p[0]))
    moved = {total + t * ones * x for total, x in zip(sums, mixing.p, strict=True)}
    return (moved.pop(), t) if len(moved) == 1 else None
