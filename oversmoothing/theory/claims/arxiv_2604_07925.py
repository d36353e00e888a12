"""What the claims of arxiv_2604_07925.md execute."""

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import with_state
from oversmoothing.theory.proofs.checks import symbolic
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, search


# N-2604.07925-always
def attention(A: Matrix) -> None:
    m = sp.log(3) / 2
    K = sp.Matrix(2, 2, lambda i, j: sp.exp(m * (1 if i == j else -1)))
    weights = K / (K[0, 0] + K[0, 1])
    equal(weights.applyfunc(sp.simplify), symbolic(A))


# N-2604.07925-keeps-mean
@st.composite
def _doubly(pick: st.DrawFn) -> Matrix:
    """A mean of permutations: every doubly stochastic matrix is one (Birkhoff)."""
    n = pick(st.integers(2, 4))
    A, total = exact.zeros(n, n), 0
    for order in pick(draw.lists(st.permutations(range(n)), 1, 4)):
        weight = pick(st.integers(1, 5))
        total += weight
        P = [[Fraction(int(order[i] == j)) for j in range(n)] for i in range(n)]
        A = exact.plus(A, P, weight)
    return exact.scaled(Fraction(1, total), A)


def _mean(X: Matrix) -> Matrix:
    return exact.product([[Fraction(1, len(X))] * len(X)], X)


@search(with_state(_doubly(), 2), draw.states(2, 2), at="A")
def law_keeps_mean(A: Matrix, X: Matrix, W: Matrix) -> None:
    """Two features: the mean follows W alone, and A itself never raises HFC."""
    equal(_mean(exact.product(A, X, W)), exact.product(_mean(X), W))
    moved = exact.plus(X, exact.product(A, X, W))
    equal(_mean(moved), exact.product(_mean(X), exact.plus_identity(W)))
    through = exact.product(A, exact.centred(X), W)
    equal(exact.centred(moved), exact.plus(exact.centred(X), through))
    assert exact.squared_norms(exact.product(A, X))[0] <= exact.squared_norms(X)[0]


# N-2604.07925-two-tokens
def closed_form() -> list[sp.Expr]:
    p, q, r, s = sp.symbols("l11 l12 l21 l22", real=True)
    t = p + s - q - r
    share = sp.exp(t / 2) / (1 + sp.exp(t / 2))
    ratio = sp.exp(p + s) - sp.exp(q + r) * (share / (1 - share)) ** 2
    return [ratio, (2 * share - 1 - sp.tanh(t / 4)).rewrite(sp.exp)]
