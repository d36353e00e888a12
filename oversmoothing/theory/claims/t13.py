"""What the claims of t13.md execute."""

from fractions import Fraction
from typing import Any

import flint
from hypothesis import strategies as st

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, search

# T13a
Vector = list[Any]


def _outer(p: Vector, q: Vector) -> Matrix:
    return [[x * y for y in q] for x in p]


def _families(M: Matrix, R: Matrix, p: Vector, q: Vector) -> Any:
    """prod over the eigenvalues t of M of det(x - R - t p q^T), from chi and N."""
    psi, chi = exact.characteristic(M), exact.characteristic(R)
    N = chi - exact.characteristic(exact.plus(R, _outer(p, q)))
    total, power = flint.fmpq_poly([0]), flint.fmpq_poly([1])
    for c in reversed(psi.coeffs()):
        total, power = total * chi + c * power, power * N
    return total


@st.composite
def _mixing(pick: st.DrawFn) -> tuple[Matrix, Vector, Vector]:
    s = pick(st.integers(1, 3))
    vector = draw.lists(draw.fractions(-2, 2, 4), s)
    return pick(draw.lists(vector, s)), pick(vector), pick(vector)


@search(
    draw.attention(1, 3, zeros=True),
    st.integers(1, 2).flatmap(lambda d: draw.matrices(draw.fractions(-2, 2, 4), d, d)),
    _mixing(),
)
def spectrum_law(A: Matrix, H: Matrix, R: Matrix, p: Vector, q: Vector) -> None:
    n, d = len(A), len(H)
    whole = exact.plus(
        exact.kronecker(R, exact.identity(n * d)),
        exact.kronecker(_outer(p, q), exact.kronecker(H, A)),
    )
    rest = _families(exact.kronecker(H, rational_quotient(A)), R, p, q)
    assert exact.characteristic(whole) == _families(H, R, p, q) * rest


# T13c
@search(
    draw.attention(1, 4, zeros=True),
    draw.lists(draw.fractions(-2, 2, 4), 4),
    draw.fractions(-3, 3, 4),
    st.booleans(),
)
def law_c(R: Matrix, free: Vector, t: Fraction, left: bool) -> None:
    """R 1 = 1 and p = 1, or the transpose: chi_R/(x - 1) (x - 1 - kappa t)."""
    free, ones = free[: len(R)], [Fraction(1)] * len(R)
    p, q = (free, ones) if left else (ones, free)
    M = exact.transposed(R) if left else R
    moved = exact.characteristic(exact.plus(M, _outer(p, q), t))
    one, active = (exact.characteristic([[x]]) for x in (Fraction(1), 1 + exact.dot(p, q) * t))
    assert moved * one == exact.characteristic(M) * active


# T13d
def rotation() -> None:
    R, half = exact.matrix("24/25 -7/25; 7/25 24/25"), exact.matrix("1/2 1/2; 1/2 1/2")
    assert exact.AA[0][0] - exact.AA[1][0] == Fraction(1, 2)
    assert exact.product(exact.transposed(R), R) == exact.identity(2)
    turned = [exact.plus(R, half, Fraction(-1, k)) for k in (1, 2)]
    consensus, rest = map(exact.characteristic, turned)
    assert consensus(flint.fmpq(4, 5)) < 0
    assert rest[0] == flint.fmpq(13, 25) < flint.fmpq(16, 25)
    assert rest[1] * rest[1] < 4 * rest[0]
