"""Spectra in balls: exact characteristic polynomials, or discs from left eigenvectors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np

# Characteristic polynomials up to this size; discs beyond.
POLYNOMIAL_SIZE = 40


def to_fmpq(x: Fraction) -> flint.fmpq:
    return flint.fmpq(x.numerator, x.denominator)


def exact(M: list[list[Fraction]]) -> flint.fmpq_mat:
    return flint.fmpq_mat([[to_fmpq(x) for x in row] for row in M])


def eigenvalues(M: list[list[Fraction]], stochastic: bool, bits: int) -> list[Any] | None:
    """Balls that contain the spectrum (for stochastic M without one copy of 1), one each."""
    if len(M) <= POLYNOMIAL_SIZE:
        polynomial = exact(M).charpoly()
        if stochastic:
            polynomial, rest = divmod(polynomial, flint.fmpq_poly([-1, 1]))
            if not rest.is_zero():
                return None
        with flint.ctx.workprec(bits):
            roots: list[Any] = polynomial.numer().complex_roots()
            return [root for root, multiplicity in roots for _ in range(multiplicity)]
    return _by_left_eigenvectors(M, stochastic, bits)


def _by_left_eigenvectors(M: list[list[Fraction]], stochastic: bool, bits: int) -> list[Any] | None:
    """Gershgorin discs of U M U^-1 in balls, U approximate left eigenvectors.

    For a stochastic M the consensus is removed first: with z_i = x_1 - x_(i+1), the first token as
    reference, the matrix is A_(i+1)(j+1) - A_1(j+1).
    """
    if stochastic:
        first = M[0]
        M = [[x - y for x, y in zip(row[1:], first[1:], strict=True)] for row in M[1:]]
    k = len(M)
    floating = np.array([[float(x) for x in row] for row in M])
    with flint.ctx.workprec(min(bits, 256)):
        _, left = np.linalg.eig(floating.T)
        U = flint.acb_mat([[complex(x) for x in column] for column in left.T])
        middle = flint.acb_mat(exact(M))
        try:
            # (U M) U^-1, from the transposed system U^T X = (U M)^T.
            similar = U.transpose().solve((U * middle).transpose()).transpose()
        except ZeroDivisionError:
            return None
        table = similar.tolist()
        balls = []
        for i in range(k):
            radius = sum((abs(table[i][j]).upper() for j in range(k) if j != i), flint.arb(0))
            balls.append((table[i][i], radius.upper()))
        return _merged(balls)


def _merged(balls: list[tuple[Any, Any]]) -> list[Any]:
    """Discs as balls; discs that meet are replaced by one box around their union, once each."""
    boxes = []
    for centre, radius in balls:
        spread = flint.arb(0, radius)
        boxes.append(flint.acb(centre.real + spread, centre.imag + spread))
    group = list(range(len(boxes)))
    floats = np.array([complex(b.mid()) for b in boxes])
    widths = np.array([float(b.real.rad()) + float(b.imag.rad()) for b in boxes])
    for i in range(len(boxes)):
        near = np.flatnonzero(np.abs(floats - floats[i]) <= 2 * (widths + widths[i]) + 1e-300)
        for j in near:
            if j != i and boxes[i].overlaps(boxes[int(j)]):
                old, new = group[int(j)], group[i]
                group = [new if g == old else g for g in group]
    result = []
    for i in range(len(boxes)):
        members = [boxes[j] for j in range(len(boxes)) if group[j] == group[i]]
        box = members[0]
        for other in members[1:]:
            box = flint.acb(box.real.union(other.real), box.imag.union(other.imag))
        result.append(box)
    return result


def radii(A: list[list[Fraction]], H: list[list[Fraction]], bits: int) -> tuple[Any, Any] | None:
    """Balls around rho_C and rho_Q."""
    a, h = eigenvalues(A, True, bits), eigenvalues(H, False, bits)
    if a is None or h is None:
        return None
    with flint.ctx.workprec(bits):
        return maximum([abs(1 + x) for x in h]), maximum([abs(1 + x * y) for x in h for y in a])


def maximum(values: list[Any]) -> Any:
    """A ball around the largest of several real numbers, each known by a ball."""
    low = max((x.lower() for x in values), key=float)
    high = max((x.upper() for x in values), key=float)
    for x in values:
        low, high = low.max(x.lower()), high.max(x.upper())
    return low.union(high)


def show(ball: Any) -> str:
    return str(ball.str(15, radius=False))
