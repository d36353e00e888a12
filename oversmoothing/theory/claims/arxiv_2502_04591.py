"""What the claims of arxiv_2502_04591.md execute."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import dobrushin, squared_frobenius
from oversmoothing.theory.proofs.checks import L, induction, squared_ratio
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search

# N-2502.04591-nonnegative
Layers = list[tuple[Matrix, Matrix]]


@st.composite
def _networks(pick: st.DrawFn) -> tuple[Matrix, Layers]:
    if pick(st.booleans()):
        # Two tokens that mostly look at themselves: the bound is nearly attained.
        eps = pick(draw.inside(0, 1)) / 2
        return exact.column("1 0"), [([[1 - eps, eps], [eps, 1 - eps]], exact.identity(1))]
    n, d = pick(st.integers(1, 4)), pick(st.integers(1, 2))
    weights = draw.matrices(draw.fractions(0, 9, 4), d, d)
    layers = pick(draw.lists(st.tuples(draw.attention(n, n), weights), 1, 4))
    return exact.from_integers(pick(draw.matrices(st.integers(0, 9), n, d))), layers


def signed() -> None:
    X, last = exact.identity(2), exact.matrix("1 0; -1 0")
    for depth in range(1, 6):
        X = exact.product(exact.AA, X)
        equal(exact.product(X, last), exact.scaled(Fraction(1, 2**depth), last))
        equal(exact.squared_norms(exact.product(X, last))[1], 0)


@search(_networks(), at=lambda X, layers: given.of_attention(layers[0][0]))
def law_nonnegative(X: Matrix, layers: Layers) -> None:
    eps, tau = min(min(map(min, A)) for A, _ in layers), Fraction(1)
    for A, W in layers:
        X, tau = exact.product(A, X, W), tau * dobrushin(A)
        hfc, lfc = exact.squared_norms(X)
        assert hfc * (2 * eps) ** 2 <= tau**2 * lfc


# N-2502.04591-rank
@search(draw.cases(), at="A H X")
def law_rank(A: Matrix, H: Matrix, X: Matrix) -> None:
    """sigma_1^2 >= ||LFC||^2, two features: not both eigenvalues of X^T X are below it."""
    X = [[*row, Fraction(0)][:2] for row in X]
    hfc, lfc = exact.squared_norms(X)
    equal(hfc + lfc, squared_frobenius(X))
    G = exact.product(exact.transposed(X), X)
    below = exact.plus(exact.identity(2, lfc), G, -1)
    assert 2 * lfc <= G[0][0] + G[1][1] or exact.determinant(below) <= 0


# N-2502.04591-rank-alone
def _state(a: sp.Expr, b: sp.Expr, c: sp.Expr) -> sp.Matrix:
    """m - d and m + d, m = (a, b), d = (c, 2 a)."""
    mean, half = sp.Matrix([[a, b]]), sp.Matrix([[c, 2 * a]])
    return sp.Matrix.vstack(mean - half, mean + half)


_BASES = [sp.Rational(base) for base in ("3/4", "1/2", "7/8")]
_ANY = sp.symbols("a b c", positive=True)


def closed(A: Matrix, H: Matrix, X0: Matrix) -> None:
    induction(A, H, X0, _state(*(base**L for base in _BASES)))


def rank() -> sp.Matrix:
    (a, b, c), (p, q, r) = _ANY, _BASES
    X = _state(a, b, c)
    assert p / r == sp.Rational(6, 7) and q * r < p * p
    squares = sum(entry**2 for entry in X) - (10 * a**2 + 2 * b**2 + 2 * c**2)
    return sp.Matrix([X.det() - (4 * a**2 - 2 * b * c), squares])


def apart() -> sp.Expr:
    a, b, c = _ANY
    return squared_ratio(_state(a, b, c)) - (c**2 + 4 * a**2) / (a**2 + b**2)
