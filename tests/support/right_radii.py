"""The radii of a verdict from 250 digits, apart from its code."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import mpmath

# Of eigenvalues that differ by 1e-40, and of Jordan blocks of side 4, 20 digits are left.
WORKED_IN = 250


def right_radii(A: Iterable[Iterable[Any]], H: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """rho_C, rho_Q, their difference and quotient from 250 digits, each rounded once."""
    rows = [[Fraction(x) for x in row] for row in A]
    if len(rows) == 1:
        return {}
    # B'_ij = A_ij - A_nj has the eigenvalues of A but one 1 (T1c).
    quotient = [[x - y for x, y in zip(row[:-1], rows[-1], strict=False)] for row in rows[:-1]]
    with mpmath.workdps(WORKED_IN):
        a, h = eigenvalues(quotient), eigenvalues([[Fraction(x) for x in row] for row in H])
        consensus = max(abs(1 + y) for y in h)
        quotients = max(abs(1 + y * x) for y in h for x in a)
        margin = consensus - quotients
        if abs(margin) < mpmath.mpf(10) ** (-WORKED_IN // 5):
            margin, quotients = mpmath.mpf(0), consensus
        found = {"rho_consensus": consensus, "rho_quotient": quotients, "margin": margin}
        if consensus or quotients:
            found["rate"] = quotients / consensus if consensus else mpmath.inf
        return {name: "inf" if mpmath.isinf(x) else float(x) for name, x in found.items()}


def eigenvalues(M: list[list[Fraction]]) -> list[Any]:
    matrix = mpmath.matrix([[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in M])
    if len(M) == 1:
        return [matrix[0, 0]]
    return list(mpmath.eig(matrix, left=False, right=False))
