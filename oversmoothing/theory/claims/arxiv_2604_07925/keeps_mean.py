"""Doubly stochastic attention keeps the mean: no layer of it lowers similarity."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.clustering_2026.averaging import DOUBLY
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given


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


def _law(A: Matrix, w: list[int], x: list[int]) -> None:
    """Two features: the mean follows W alone, and A itself never raises HFC."""
    X = exact.from_integers([x[2 * i : 2 * i + 2] for i in range(len(A))])
    W = exact.from_integers([w[:2], w[2:]])
    equal(_mean(exact.product(A, X, W)), exact.product(_mean(X), W))
    moved = exact.plus(X, exact.product(A, X, W))
    equal(_mean(moved), exact.product(_mean(X), exact.plus_identity(W)))
    through = exact.product(A, exact.centred(X), W)
    equal(exact.centred(moved), exact.plus(exact.centred(X), through))
    assert exact.squared_norms(exact.product(A, X))[0] <= exact.squared_norms(X)[0]


CLAIM = Claim(
    name="N-2604.07925-keeps-mean",
    clauses=(
        "A doubly stochastic, X' = A X W: the mean of the tokens follows W alone, m' = m W, and "
        "HFC(X') = A HFC(X) W. With W = I the mean stays, and ||HFC||_F never grows: no layer "
        "lowers the similarity ||LFC||/||X||.",
        "With a residual, m' = m (I + W) and HFC(X') = HFC(X) + A HFC(X) W: mean and differences "
        "evolve apart, in every layer, and when A follows the state too, as Sinkhorn's does.",
    ),
    latex=r"\mathbf 1^\top A=\mathbf 1^\top\implies m'=mW,\quad "
    r"\|\mathrm{HFC}(AX)\|_F\le\|\mathrm{HFC}(X)\|_F",
    source="ours, for the doubly stochastic attention of arXiv 2604.07925",
    on_record=by.WRITTEN,
    hypotheses=(DOUBLY, given.TWO_TOKENS),
    evidence=(
        by.written(
            "A commutes with the mean",
            "[1, 2] A 1 = 1 and 1^T A = 1^T give J A = A J = J, J = 11^T/n; so J A X W = J X W, "
            "and with P = I - J, P A = A P.",
            "[1] A is a mean of permutations (Birkhoff), each of which keeps ||P X||_F: ||A P "
            "X||_F <= ||P X||_F.",
        ),
        by.searched(
            "means of permutations, in fractions",
            _law,
            _doubly(),
            draw.lists(st.integers(-5, 5), 4),
            draw.lists(st.integers(-9, 9), 8),
            at=lambda A, *_: given.of_attention(A),
        ),
    ),
    further="A row-stochastic A can take the mean away in one layer: N-2312.06182-every-layer.",
)
