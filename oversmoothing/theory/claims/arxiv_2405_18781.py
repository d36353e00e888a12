"""What the claims of arxiv_2405_18781.md execute."""

from fractions import Fraction

import flint
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import binary_softmax, logits, rotations, squared_diameter
from oversmoothing.theory.numbers.exact import from_flint, to_flint
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search


# N-2405.18781-equilibria
def _fixed(sizes: list[int], power: int, E: Matrix) -> None:
    """Attention computed from X: every layer gives X again."""
    norm = exact.dot(E[0], E[0])
    X = [E[a] for a, size in enumerate(sizes) for _ in range(size)]
    L = exact.scaled(power / norm, logits(X, exact.identity(len(E[0]))))
    # W = E^T B^-1 E/|e|^2, B the weights between the groups.
    rows = [[size * 2 ** (power * (a == b)) for b, size in enumerate(sizes)] for a in range(len(E))]
    inverse: flint.fmpq_mat = to_flint([draw.shares(row) for row in rows]).inv()
    W = exact.scaled(1 / norm, exact.product(exact.transposed(E), from_flint(inverse), E))
    equal(exact.product(binary_softmax(L), X, W), X)
    equal(to_flint(X).rank(), len(sizes))


def centred() -> None:
    _fixed([1, 1, 1], 1, exact.matrix("1 1 -1 -1; 1 -1 1 -1; 1 -1 -1 1"))


@search(draw.lists(st.integers(1, 3), 1, 4), st.integers(1, 4), st.integers(0, 2))
def law_equilibria(sizes: list[int], power: int, extra: int) -> None:
    k = len(sizes)
    E = [[Fraction(int(a == j)) for j in range(k + extra)] for a in range(k)]
    _fixed(sizes, power, E)


# N-2405.18781-hemisphere
def _shadow(X: Matrix, v: list[Fraction]) -> tuple[Matrix, list[Fraction]]:
    """The rows x/<x, v>, and the <x, v>."""
    heights = [exact.dot(row, v) for row in X]
    return [[x / s for x in row] for row, s in zip(X, heights, strict=True)], heights


@st.composite
def _hemisphere(pick: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    A = pick(draw.attention(1, 4, zeros=True))
    slopes = pick(draw.lists(draw.inside(-1, 1, 6), len(A)))
    if pick(st.booleans()):
        # The worst case of two tokens: each looks at itself, and they lie on either side of v.
        eps = pick(draw.inside(0, 1)) / len(A)
        A = [[eps] * len(A) for _ in A]
        for i, row in enumerate(A):
            row[i % 2] = 1 - (len(A) - 1) * eps
        slopes = [slopes[0] * (-1) ** i for i in range(len(A))]
    X = [[(1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)] for t in slopes]
    return A, X, pick(rotations())


@search(_hemisphere(), at="A W X")
def law_hemisphere(A: Matrix, X: Matrix, W: Matrix) -> None:
    """One layer from unit tokens of positive first entry, before the division by the norms."""
    v = [Fraction(1), Fraction(0)]
    before, heights = _shadow(X, v)
    delta, eps = min(heights), min(map(min, A))
    Z, turned = exact.product(A, X, W), exact.product([v], W)[0]
    after, moved = _shadow(Z, turned)
    for height, row in zip(moved, Z, strict=True):
        assert height >= delta and height**2 >= delta**2 * exact.dot(row, row)
    n = len(A)
    rate = (1 - n * eps) / (1 - (n - 2) * eps)
    assert squared_diameter(after) <= rate**2 * squared_diameter(before)
    assert squared_diameter(before) * delta**2 <= 4 * (1 - delta**2)


# N-2405.18781-masks
def attained() -> sp.Matrix:
    e, x = sp.Symbol("e"), sp.Matrix([0, 1, -1])
    return sp.Matrix([[1, 0, 0], [e, 1 - e, 0], [e, 0, 1 - e]]) * x - (1 - e) * x


def _steps(parents: list[int]) -> int:
    """The largest number of steps from a token to token 0."""
    depth = [0]
    for parent in parents:
        depth.append(depth[parent] + 1)
    return max(depth)


@st.composite
def _masked(pick: st.DrawFn) -> tuple[list[int], list[Matrix], Matrix]:
    n = pick(st.integers(2, 4))
    parents = [pick(st.integers(0, i)) for i in range(n - 1)]
    layers = []
    for _ in range(2 * _steps(parents)):
        rows = pick(draw.matrices(st.integers(0, 3), n, n))
        for i, row in enumerate(rows):
            for j in {i, parents[i - 1] if i else 0}:
                row[j] += pick(st.integers(1, 6))
        layers.append([draw.shares(row) for row in rows])
    return parents, layers, pick(draw.states(n, 2))


@search(_masked(), at=lambda parents, layers, X: given.of_attention(layers[0]))
def law_masks(parents: list[int], layers: list[Matrix], X: Matrix) -> None:
    """Edges of the graph: to oneself and to the parent; other weights are at will."""
    r, n = _steps(parents), len(X)
    edges = [(i, i) for i in range(n)] + [(i + 1, p) for i, p in enumerate(parents)]
    eps = min(A[i][j] for A in layers for i, j in edges)
    for first in range(0, len(layers) - r + 1, r):
        whole = exact.identity(n)
        for A in layers[first : first + r]:
            whole = exact.product(A, whole)
        assert min(row[0] for row in whole) >= eps**r
        moved = exact.product(whole, X)
        assert squared_diameter(moved) <= (1 - eps**r) ** 2 * squared_diameter(X)
        assert 2 * exact.squared_norms(moved)[0] <= (n - 1) * squared_diameter(moved)
        X = moved
