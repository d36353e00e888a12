"""The path decomposition: a network of attention alone is a sum over paths through its heads."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import comb, prod

from hypothesis import strategies as st

from oversmoothing.theory.claims.binary_softmax import squared_frobenius
from oversmoothing.theory.claims.t7 import dobrushin, squared_diameter
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given

Heads = list[tuple[Matrix, Matrix]]


def _forward(X: Matrix, layers: list[Heads], biases: Matrix, skip: bool) -> Matrix:
    for heads, bias in zip(layers, biases, strict=True):
        moved = X if skip else exact.zeros(len(X), len(X[0]))
        for A, W in heads:
            moved = exact.plus(moved, exact.product(A, X, W))
        X = [[x + b for x, b in zip(row, bias, strict=True)] for row in moved]
    return X


def _paths(layers: list[Heads], skip: bool) -> Iterator[Heads]:
    """The heads that each path takes, without its skips."""
    for taken in product(*([*heads, *[None] * skip] for heads in layers)):
        yield [head for head in taken if head is not None]


def _along(X: Matrix, path: Heads) -> Matrix:
    for A, W in path:
        X = exact.product(A, X, W)
    return X


def _law(X: Matrix, layers: list[Heads], biases: Matrix, skip: bool) -> None:
    paths = list(_paths(layers, skip))
    total = exact.zeros(len(X), len(X[0]))
    for path in paths:
        moved = _along(X, path)
        total = exact.plus(total, moved)
        bound = prod((dobrushin(A) ** 2 * squared_frobenius(W) for A, W in path), start=Fraction(1))
        assert squared_diameter(moved) <= bound * squared_diameter(X)
    rest = exact.plus(_forward(X, layers, biases, skip), total, -1)
    assert given.consensus(rest)
    if skip and len({len(heads) for heads in layers}) == 1:
        depth, many = len(layers), len(layers[0])
        for k in range(depth + 1):
            equal(sum(len(path) == k for path in paths), comb(depth, k) * many**k)


@st.composite
def _networks(pick: st.DrawFn) -> tuple[Matrix, list[Heads], Matrix, bool]:
    n, d = pick(st.integers(1, 3)), pick(st.integers(1, 2))
    layers = pick(draw.lists(draw.heads(draw.attention(n, n, zeros=True), d, 2), 1, 3))
    biases = pick(draw.states(len(layers), d))
    return pick(draw.states(n, d)), layers, biases, pick(st.booleans())


CLAIM = Claim(
    name="N-2103.03404-paths",
    clauses=(
        "X_l = sum_h A_(l,h) X_(l-1) W_(l,h) + 1 b_l^T, H heads, every A row-stochastic, also "
        "computed from the state: X_L is the sum of A_(L,h_L) ... A_(1,h_1) X_0 W_(1,h_1) ... "
        "W_(L,h_L) over all paths (h_1, ..., h_L), and 1 b^T with one b. (Such a sum: "
        "abstract; this form is our reading, clause 3 is ours.)",
        "With a skip connection each h_l may also be 0, A = W = I: C(L, k) H^k paths have k heads.",
        "tau(A) <= tau (Dobrushin) and ||W||_2 <= w for every head: a path of k heads has "
        "diameter (tau w)^k diam(X_0) at most, so diam(X_L) <= (s + H tau w)^L diam(X_0), s = 1 "
        "with the skip and 0 without it. So without it tau w < 1/H makes all tokens equal in the "
        "limit, geometrically; with it the path of all skips keeps the differences of X_0.",
    ),
    latex=r"X_L=\sum_{h_1,\dots,h_L}A_{L,h_L}\cdots A_{1,h_1}X_0W_{1,h_1}\cdots W_{L,h_L}+"
    r"\mathbf 1b^\top",
    source="arXiv 2103.03404, path decomposition (abstract), our reading; the bound is ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC.said("A of each head is row-stochastic: A >= 0, A 1 = 1"),),
    evidence=(
        by.written(
            "distribute, layer by layer",
            "[1] Put the sum for X_(l-1) into layer l: each path gets one more head, and A 1 "
            "b^T W = 1 (W^T b)^T stays a multiple of 1, since A 1 = 1. What A was computed from "
            "does not enter.",
            "[2] The skip is one more head with A = W = I; k places of L for heads, H choices in "
            "each.",
            "[3] Rows p, q of A: sum_j (p_j - q_j) x_j is t <= tau times a difference of two "
            "means of tokens, so diam(A X) <= tau diam(X), and diam(X W) <= ||W||_2 diam(X). "
            "The triangle inequality over the paths: sum over k of C(L, k) (H tau w)^k, or the "
            "last term alone. 1 b^T has no differences.",
        ),
        by.searched(
            "up to three layers of two heads, in fractions",
            _law,
            _networks(),
            at=lambda X, layers, *_: given.of_attention(layers[0][0][0]),
        ),
    ),
    further="How the norms of paths compare in a trained network is a measurement, not a theorem.",
)
