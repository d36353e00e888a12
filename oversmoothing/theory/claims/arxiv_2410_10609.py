"""What the claims of arxiv_2410_10609.md execute."""

from fractions import Fraction

import sympy as sp
from hypothesis import assume

from oversmoothing.theory.claims.lemmas import rotations, squared_frobenius, with_state
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search


# N-2410.10609-bound
def _skipped(A: Matrix, W: Matrix, Y: Matrix, skip: Fraction) -> Matrix:
    return exact.plus(exact.product(A, Y, W), Y, skip)


@search(
    with_state(draw.walsh_attention().filter(lambda known: len(known[0]) < 8), 2),
    rotations(),
    draw.fractions(-2, 2, 4),
    draw.fractions(-4, 4, 4),
    at="A",
)
def law_bound(
    A: Matrix, values: list[Fraction], Y: Matrix, turn: Matrix, w: Fraction, skip: Fraction
) -> None:
    """Symmetric A with rational eigenvalues and W = w times a rotation: k = max |a_i|, s = |w|."""
    factor = abs(skip) - max(map(abs, values)) * abs(w)
    assume(factor > 0)
    W = exact.scaled(w, turn)
    for _ in range(3):
        moved = _skipped(A, W, Y, skip)
        assert exact.squared_norms(moved)[0] >= factor**2 * exact.squared_norms(Y)[0]
        Y = moved


# N-2410.10609-cancels
_H = exact.diagonal("0 -2")
_X0 = exact.matrix("3/5 4/5; 3/5 -4/5")


def _least_input(lam: int, n: int, d: int, sc: sp.Expr, a: sp.Rational, depth: int) -> sp.Expr:
    """b of Theorem 4.1 as public reviews quote it, sc = S C_M."""
    return 2 * lam * n * d * sc / (a**depth * (lam**2 - a * (sc + abs(lam)) ** 2))


def condition_cancels() -> None:
    equal((squared_frobenius(_H), squared_frobenius(exact.AA)), (4, Fraction(5, 4)))
    # S C_M = sqrt(5): (sqrt(5) + 1)^2 = 6 + 2 sqrt(5), and 2 sqrt(5) < 5.
    assert 4 * 4 * Fraction(5, 4) < 5**2
    assert 6 + 5 <= 11


def input() -> sp.Matrix:
    least = [_least_input(1, 2, 2, sc, sp.Rational(1, 11), 1) for sc in (sp.Integer(2), sp.sqrt(5))]
    assert all(b > sp.Rational(32, 25) for b in least)
    return sp.Matrix([least[0] - 968, sp.radsimp(least[1]) - 968 * (2 + sp.sqrt(5))])
