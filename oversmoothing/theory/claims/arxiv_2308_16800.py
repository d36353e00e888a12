"""What the claims of arxiv_2308_16800.md execute."""

from fractions import Fraction

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.numbers.exact import to_flint
from oversmoothing.theory.proofs.checks import L, induction
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search, vanishes


# N-2308.16800-any-state
def two() -> list[sp.Expr]:
    X = sp.Matrix(2, 2, sp.symbols("x11 x12 x21 x22"))
    first, second = sp.diag(1, 0), sp.diag(0, 1)
    half = sp.Rational(1, 2)
    moved = first * X * sp.diag(1, half) + second * X * sp.diag(half, 1)
    return [*(moved - X.multiply_elementwise(sp.Matrix([[1, half], [half, 1]])))]


@search(
    st.tuples(st.integers(1, 3), st.integers(1, 3)).flatmap(
        lambda size: st.tuples(draw.states(*size), draw.states(*size))
    )
)
def law_any_state(star: Matrix, X: Matrix) -> None:
    """The rearranged operator has rank r^2, and one layer ends at a multiple of X*."""
    n, d = len(star), len(star[0])
    assume(any(map(any, star)))
    x = [star[i][k] for k in range(d) for i in range(n)]
    # One row for a pair of features, one column for a pair of tokens: H_k in rows, A_k in columns.
    rearranged = [
        [x[k * n + i] * x[m * n + j] for i in range(n) for j in range(n)]
        for k in range(d)
        for m in range(d)
    ]
    equal(int(to_flint(rearranged).rank()), int(to_flint(star).rank()) ** 2)
    total = exact.zeros(n, d)
    for k in range(d):
        for m in range(d):
            # A_km = x_k x_m^T of the columns of X*, W_km takes feature m to feature k.
            A = [[star[i][k] * star[j][m] for j in range(n)] for i in range(n)]
            W = [[Fraction(int((p, q) == (m, k))) for q in range(d)] for p in range(d)]
            total = exact.plus(total, exact.product(A, X, W))
    inner = sum((exact.dot(r, s) for r, s in zip(star, X, strict=True)), Fraction(0))
    equal(total, exact.scaled(inner, star))


# N-2308.16800-sums
def _scalar(M: Matrix) -> bool:
    return exact.identity(len(M), M[0][0]) == M


INDEPENDENT = given.Hypothesis(
    "I (x) I and H (x) A are linearly independent",
    lambda case: not (_scalar(case.A) and _scalar(case.H)),
    (given.case("1 0; 0 1", "1/2"),),
)


def state(A: Matrix, H: Matrix, X0: Matrix) -> None:
    two, three, five = sp.Integer(2) ** L, sp.Rational(3, 2) ** L, sp.Rational(5, 4) ** L
    state = sp.Matrix([[two + three, three - five], [two - three, three + five]]) / 2
    induction(A, H, X0, state)
    slow, fast = sp.Rational(3, 4) ** L, sp.Rational(5, 8) ** L
    shares = sp.Matrix([[1 + slow, slow - fast], [1 - slow, slow + fast]]) / 2
    vanishes([*(state - shares * two).applyfunc(sp.powsimp)])
