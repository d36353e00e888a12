"""Ties: two squared moduli are equal when a determinant leaves no room between them."""

from fractions import Fraction
from math import lcm, log2
from typing import Any

import flint

from oversmoothing.theory.checker.reading import Check, Given, Matrix
from oversmoothing.theory.checker.spectra import TIE_SIZE, exact, maximum, radii

# Side of the largest operator whose minimal polynomial is computed.
JORDAN_SIDE = 100
# Bits spent on the proof of a tie.
TIE_BITS = 2**19


def check_tie(given: Given, claim: dict[str, Any]) -> Check:
    """rho_C^2 - rho_Q^2 is an eigenvalue of a rational Kronecker matrix K.

    C = I + H and M = I + H (x) A: rho_C^2 and rho_Q^2 are eigenvalues of C (x) C and M (x) M, so
    their difference is one of K = (C (x) C) (x) I - I (x) (M (x) M), of side N = d^2 (n d)^2. With
    q the common denominator squared, the product of the non-zero eigenvalues of q K is a non-zero
    integer, so a non-zero difference is at least 1 / (q (q S)^(N-1)), S a bound on the eigenvalues.
    """
    if given.A is None or not given.H:
        return Check(False, "a tie is confirmed for A and H in fractions or binary64 only")
    A, H = given.A, given.H
    n, d = given.n, given.d
    needed = tie_bits(A, H)
    if needed > TIE_BITS:
        return Check(False, f"the tie would take {needed:.0f} bits to confirm, more than are spent")
    enclosed = radii(given, int(needed) + 256, TIE_SIZE)
    if enclosed is None:
        return Check(False, "the spectra could not be enclosed by the checker's own means")
    with flint.ctx.workprec(int(needed) + 256):
        gap = enclosed[0] * enclosed[0] - enclosed[1] * enclosed[1]
        small = bool(abs(gap).upper() < flint.arb(2) ** (-int(needed)))
    if not (gap.contains(0) and small):
        return Check(False, "no tie: the squared radii differ")
    stated = (claim.get("jordan_consensus"), claim.get("jordan_quotient"))
    words = f"TIE: the squared radii agree to {needed:.0f} bits, hence are equal"
    if stated == (None, None):
        return Check(True, words)
    if n * d > JORDAN_SIDE:
        return Check(
            False, f"Jordan blocks of a {n * d} x {n * d} operator are beyond this checker"
        )
    found = _jordan_sizes(A, H)
    if found != stated:
        return Check(False, f"the largest Jordan blocks at the tie are {found}, not {stated}")
    return Check(True, f"{words}; largest Jordan blocks {found[0]} and {found[1]}")


def tie_bits(A: Matrix, H: Matrix) -> float:
    """Bits at which two different squared moduli of modes must have separated (_check_tie)."""
    n, d = len(A), len(H)
    side = d * d * (n * d) ** 2
    size = 1 + max(sum((abs(x) for x in row), Fraction(0)) for row in H)
    q = lcm(*(x.denominator for row in H for x in row)) ** 2
    q *= lcm(*(x.denominator for row in A for x in row)) ** 2
    return log2(q) + (side - 1) * (log2(q) + float(2 * _log2(size) + 1)) + 8


def _jordan_sizes(A: Matrix, H: Matrix) -> tuple[int, int]:
    """Largest Jordan blocks of I + H and of I + H (x) B at their largest modulus.

    The largest block of an eigenvalue is its multiplicity in the minimal polynomial.
    """
    first = A[0]
    B = [[x - y for x, y in zip(row[1:], first[1:], strict=True)] for row in A[1:]]
    k, d = len(B), len(H)
    consensus = [[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(H)]
    quotient = [
        [H[p][q] * B[i][j] + (p == q and i == j) for q in range(d) for j in range(k)]
        for p in range(d)
        for i in range(k)
    ]
    return _largest_block(consensus), _largest_block(quotient)


def _largest_block(M: Matrix) -> int:
    """The largest multiplicity in the minimal polynomial among the roots of largest modulus.

    Roots whose moduli 1024 bits do not tell apart count as equal; a wrong count there can only
    make the checker refuse.
    """
    with flint.ctx.workprec(1024):
        roots: list[Any] = exact(M).minpoly().numer().complex_roots()
        top = maximum([abs(root) for root, _ in roots])
        return max(int(count) for root, count in roots if abs(root).overlaps(top))


def _log2(x: Fraction) -> float:
    return log2(x.numerator) - log2(x.denominator)
