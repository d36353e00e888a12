"""T14a: the eigenvalue 1 of A, once for each closed class of tokens."""

from fractions import Fraction

import flint
from hypothesis import strategies as st

from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.numbers.rational import exact_stationary, to_flint, to_float
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, equal, exact, given


@st.composite
def reducible(draw: st.DrawFn) -> Matrix:
    """A row-stochastic A of two or three closed classes and up to two tokens that are in none."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=2, max_size=3))
    total = sum(sizes) + draw(st.integers(0, 2))
    rows: Matrix = []
    for size in sizes:
        before = len(rows)
        for _ in range(size):
            weights = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
            row = [0] * before + weights + [0] * (total - before - size)
            rows.append([Fraction(w, sum(weights)) for w in row])
    while len(rows) < total:
        weights = draw(st.lists(st.integers(1, 3), min_size=total, max_size=total))
        rows.append([Fraction(w, sum(weights)) for w in weights])
    return rows


def families(A: Matrix) -> tuple[list[list[Fraction]], Matrix]:
    """The stationary distribution of each closed class, and where tokens end: W [n, m]."""
    classes = [members.tolist() for members in closed_classes(to_float(A))]
    pi = [exact_stationary(A, [members]) for members in classes]
    n = len(A)
    inside = [k for k in range(n) if not any(k in members for members in classes)]
    W = [[Fraction(int(k in members)) for members in classes] for k in range(n)]
    if inside:
        left = [[Fraction(int(i == j)) - A[i][j] for j in inside] for i in inside]
        right = [[sum((A[i][j] for j in m), Fraction(0)) for m in classes] for i in inside]
        found = to_flint(left).solve(to_flint(right)).tolist()
        for i, row in zip(inside, found, strict=True):
            W[i] = [Fraction(int(x.p), int(x.q)) for x in row]
    return pi, W


def _families() -> None:
    """[2; instance] w_k(i), the probability that the walk from i ends in class k, is harmonic: A
    w_k = w_k. They add up to 1, and pi_k^T w_l = 1 if k = l, else 0: m independent eigenvectors on
    each side."""
    A = exact.matrix("1 0 0; 0 1 0; 1/8 3/8 1/2")
    pi, W = families(A)
    assert exact.matrix("1 0; 0 1; 1/4 3/4") == W
    equal(exact.product(A, W), W)
    equal(exact.product(pi, W), exact.identity(2))


def _semisimple() -> None:
    """[1; instance] A v = v + w_k for no v: pi_k^T would give 0 = 1. So the eigenvalue 1 is
    semisimple. A token in no class leaves for good with positive probability within n steps, so
    that the block of these tokens has spectral radius below 1, and each class has 1 once
    (Perron-Frobenius): m in all."""
    A = exact.matrix("1/2 1/2 0 0; 1/2 1/2 0 0; 0 0 1 0; 1/4 1/4 1/4 1/4")
    assert int((to_flint(A) - to_flint(exact.identity(4))).rank()) == 2
    # x (x - 1/4) (x - 1)^2
    x = flint.fmpq_poly([0, 1])
    assert exact.characteristic(A) == x * (x - flint.fmpq(1, 4)) * (x - 1) ** 2


def _law(A: Matrix) -> None:
    pi, W = families(A)
    m, n = len(pi), len(A)
    equal(exact.product(A, W), W)
    equal(exact.product(pi, A), pi)
    equal(exact.product(pi, W), exact.identity(m))
    assert all(sum(row) == 1 and min(row) >= 0 for row in W)
    minus = to_flint(A) - to_flint(exact.identity(n))
    assert n - int(minus.rank()) == n - int((minus * minus).rank()) == m


CLAIM = Claim(
    name="T14a",
    clauses=(
        "Let A be row-stochastic with m closed classes of tokens (groups that attend only "
        "within), pi_k the stationary distribution of class k, and w_k(i) the probability that a"
        " walk by A from token i ends in class k. The eigenvalue 1 of A has multiplicity m, is "
        "semisimple;",
        "pi_1 ... pi_m are its left and w_1 ... w_m its right eigenvectors, pi_k^T w_l = 1 if k "
        "= l, else 0, and w_1 + ... + w_m = 1.",
    ),
    latex=r"A\,w_k=w_k,\quad \pi_k^\top A=\pi_k^\top,\quad \pi_k^\top w_l=\delta_{kl},\quad "
    r"\sum_k w_k=\mathbf 1",
    source="finite Markov chains (Kemeny, Snell); as used here ours",
    on_record=by.WRITTEN,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.written("absorption and stationary vectors", _families, _semisimple),
        by.searched(
            "both families and the multiplicity, exactly", _law, reducible(), at=given.of_attention
        ),
    ),
)
