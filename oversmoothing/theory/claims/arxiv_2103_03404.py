"""What the claims of arxiv_2103_03404.md execute."""

from fractions import Fraction
from functools import reduce
from itertools import product
from math import comb, prod

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import (
    Heads,
    binary_softmax,
    dobrushin,
    logits,
    networks,
    of_first_head,
    oscillation,
    squared_diameter,
    squared_frobenius,
)
from oversmoothing.theory.claims.t8 import attention
from oversmoothing.theory.proofs.checks import symbolic
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search, vanishes


# N-2103.03404-any-weights
def attention_any_weights(A: Matrix) -> None:
    computed = attention(sp.eye(2), sp.log(3) * sp.eye(2), sp.zeros(2))
    vanishes(computed - symbolic(A))


# N-2103.03404-doubly-exponential
def attained() -> sp.Expr:
    m, s, w = sp.symbols("m s w", positive=True)
    X = sp.Matrix([s, -s])
    A = attention(X, sp.Matrix([[m]]), sp.zeros(2))
    z = m * s**2
    bound = (sp.exp(2 * z) - 1) / (sp.exp(2 * z) + 1)
    return A * X * w - w * bound * X


@st.composite
def heads_on_a_state(pick: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    """(X, M, W): a state in small integers, M in even ones, W in fractions."""
    n, d = pick(st.integers(2, 4)), pick(st.integers(1, 2))
    X, M = (pick(draw.matrices(st.integers(-2, 2), k, d)) for k in (n, d))
    W = pick(draw.matrices(draw.fractions(-2, 2, 4), d, d))
    return exact.from_integers(X), exact.scaled(2, exact.from_integers(M)), W


@search(heads_on_a_state())
def law_doubly_exponential(X: Matrix, M: Matrix, W: Matrix) -> None:
    """tanh(s ln 2/4) = (r - 1)/(r + 1) with r = 2^(s/2): in fractions for even s."""
    L, A = logits(X, M), binary_softmax(logits(X, M))
    diameter, most = squared_diameter(X), Fraction(0)
    for i in range(len(X)):
        for k in range(i):
            # How far two rows of logits are apart, up to a constant.
            s = oscillation([p - q for p, q in zip(L[i], L[k], strict=True)])
            r = Fraction(2) ** int(s / 2)
            apart = dobrushin([A[i], A[k]])
            assert s**2 <= squared_frobenius(M) * diameter**2
            assert apart * (r + 1) <= r - 1
            most = max(most, apart)
    assert squared_diameter(exact.product(A, X, W)) <= squared_frobenius(W) * most**2 * diameter


# N-2103.03404-paths
@search(networks(1, 3), draw.states(3, 2), st.booleans(), at=of_first_head)
def law_paths(layers: list[Heads], X: Matrix, rows: Matrix, skip: bool) -> None:
    biases = [row[: len(X[0])] for row in rows[: len(layers)]]
    # The heads that each path takes, without its skips.
    taken = product(*([*heads, *[None] * skip] for heads in layers))
    paths = [[head for head in path if head is not None] for path in taken]
    total = exact.zeros(len(X), len(X[0]))
    for path in paths:
        moved = X
        for A, W in path:
            moved = exact.product(A, moved, W)
        total = exact.plus(total, moved)
        bound = prod((dobrushin(A) ** 2 * squared_frobenius(W) for A, W in path), start=Fraction(1))
        assert squared_diameter(moved) <= bound * squared_diameter(X)
    end = X
    for heads, bias in zip(layers, biases, strict=True):
        terms = [exact.product(A, end, W) for A, W in heads] + [end] * skip
        end = [[x + b for x, b in zip(row, bias, strict=True)] for row in reduce(exact.plus, terms)]
    assert given.consensus(exact.plus(end, total, -1))
    if skip and len({len(heads) for heads in layers}) == 1:
        depth, many = len(layers), len(layers[0])
        for k in range(depth + 1):
            equal(sum(len(path) == k for path in paths), comb(depth, k) * many**k)
