"""What several chapters share: matrices of symbols, and softmax attention in fractions."""

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy as sp
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from oversmoothing.theory.numbers.exact import normalised_rows
from oversmoothing.theory.proofs.kit import Matrix, draw, exact, given


def symbolic_matrix(rows: int, columns: int, name: str) -> sp.Matrix:
    """A matrix of real symbols name_ij."""
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}{i + 1}{j + 1}", real=True))


def angle() -> sp.Expr:
    """1 - |cos| = sin^2/(1 + |cos|), and |x|^2 |y|^2 sin^2 = |x ^ y|^2 is the sum of
    the squared 2 x 2 minors of the rows x, y; over all pairs of tokens these are all of X ^ X."""
    x, y = symbolic_matrix(1, 3, "x"), symbolic_matrix(1, 3, "y")
    minors = [x[i] * y[j] - x[j] * y[i] for i in range(3) for j in range(i)]
    return sp.expand(x.dot(x) * y.dot(y) - x.dot(y) ** 2 - sum(m * m for m in minors))


# ------------------------------- softmax of integer logits times ln 2: every weight a power of 2


def logits(X: Matrix, M: Matrix) -> Matrix:
    """X M X^T [n, n]."""
    return exact.product(X, M, exact.transposed(X))


def binary_softmax(L: Matrix) -> Matrix:
    """A_ij proportional to 2^L_ij, L of integers: the softmax of L ln 2."""
    return normalised_rows([[Fraction(2) ** int(entry) for entry in row] for row in L])


def squared_frobenius(M: Matrix) -> Fraction:
    """||M||_F^2."""
    return sum((entry * entry for row in M for entry in row), Fraction(0))


@st.composite
def with_state(
    pick: st.DrawFn, A: SearchStrategy[Any], H: SearchStrategy[Any] | int, size: int = 0
) -> tuple[Any, ...]:
    """What A and H draw, matrices or matrices with what is known of them, and X_0 [n, d] in small
    integers, or of that size and in general position. Either may be a number, n or d, alone."""
    drawn = pick(A), H if isinstance(H, int) else pick(H)
    n, d = (x if isinstance(x, int) else len(x[0] if isinstance(x, tuple) else x) for x in drawn)
    X0 = draw.general_state(pick(draw.SEEDS), n, d, size) if size else pick(draw.states(n, d))
    return *(x for x in drawn if not isinstance(x, int)), X0


# The heads (A, W) of one layer.
Heads = list[tuple[Matrix, Matrix]]


@st.composite
def networks(
    pick: st.DrawFn, fewest: int, layers: int, heads: int = 2, causal: bool = False
) -> tuple[list[Heads], Matrix]:
    """One layer to `layers` of one head to `heads` on `fewest` to three tokens, and X_0."""
    n, d = pick(st.integers(fewest, 3)), pick(st.integers(1, 2))
    A = draw.causal_attention(n, n) if causal else draw.attention(n, n, zeros=True)
    return pick(draw.lists(draw.heads(A, d, heads), 1, layers)), pick(draw.states(n, d))


def layer_operator(heads: Heads, of: Callable[[Matrix], Matrix] = lambda A: A) -> Matrix:
    """I + sum W^T (x) of(A): one layer of these heads on the columns of X; of(A) = B': on the
    differences of tokens."""
    terms = (exact.kronecker(exact.transposed(W), of(A)) for A, W in heads)
    return exact.plus_identity(reduce(exact.plus, terms))


def of_first_head(layers: list[Heads], *_: object) -> tuple[Matrix, Matrix]:
    """The instance of a law about networks: the attention of one head."""
    return given.of_attention(layers[0][0][0])


# ---------------------------------------------------- how far apart tokens and rows of A are


def dobrushin(A: Matrix) -> Fraction:
    """tau(A) = max_{i,k} sum_j |A_ij - A_kj| / 2."""
    return max(
        sum((abs(x - y) for x, y in zip(p, q, strict=True)), Fraction(0)) / 2 for p in A for q in A
    )


def oscillation(x: list[Fraction]) -> Fraction:
    return max(x) - min(x)


def squared_diameter(X: Matrix) -> Fraction:
    """max ||x_i - x_k||_2^2 over the rows."""
    return max(
        sum(((x - y) ** 2 for x, y in zip(p, q, strict=True)), Fraction(0)) for p in X for q in X
    )


@st.composite
def rotations(pick: st.DrawFn) -> Matrix:
    """A rational rotation [[c, -s], [s, c]] from a Pythagorean triple."""
    t = pick(draw.fractions(-3, 3, 6))
    c, s = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    return [[c, -s], [s, c]]
