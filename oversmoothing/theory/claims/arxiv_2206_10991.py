"""What the claims of arxiv_2206_10991.md execute."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import squared_frobenius, with_state
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, is_zero, search


# N-2206.10991-graphs
@st.composite
def _graphs(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Edges of integer weight of a connected graph (a path and more, loops too), and states."""
    n = pick(st.integers(2, 4))
    E = exact.zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            E[i][j] = E[j][i] = Fraction(pick(st.integers(int(j == i - 1), 3)))
    return E, pick(draw.states(n, 2))


@search(_graphs())
def law_graphs(E: Matrix, Y: Matrix) -> None:
    """With X = D^(1/2) Y, so that no root appears: both energies, and the operator."""
    degrees = [sum(row, Fraction(0)) for row in E]
    D, inverse = exact.diagonal(degrees), exact.diagonal([1 / x for x in degrees])
    laplacian = exact.plus(D, E, -1)
    energy = exact.product(exact.transposed(Y), laplacian, Y)
    pairs = [
        E[i][k] * sum((p - q) ** 2 for p, q in zip(Y[i], Y[k], strict=True))
        for i in range(len(E))
        for k in range(len(E))
    ]
    equal(2 * sum((energy[k][k] for k in range(2)), Fraction(0)), sum(pairs, Fraction(0)))
    # D A = E is symmetric: A = D^-1 E is self-adjoint for the weights D, as D^-1/2 E D^-1/2 is.
    A = exact.product(inverse, E)
    assert all(sum(row) == 1 for row in A)
    equal(exact.product(D, A), exact.transposed(exact.product(D, A)))
    flat = is_zero(exact.differences(Y))
    assert (sum(pairs) == 0) == flat


# N-2206.10991-no-residual
def _energy(A: Matrix, X: Matrix) -> Fraction:
    """tr(X^T (I - A) X)."""
    rest = exact.product(exact.transposed(X), exact.plus_identity(exact.scaled(-1, A)), X)
    return sum((rest[k][k] for k in range(len(rest))), Fraction(0))


def bipartite() -> None:
    A = exact.matrix("0 1; 1 0")
    for X in (exact.column("1 3"), exact.product(A, exact.column("1 3"))):
        equal((_energy(A, X), squared_frobenius(X)), (4, 10))


SYMMETRIC = given.Hypothesis(
    "A is symmetric",
    lambda case: exact.transposed(case.A) == case.A,
    (given.case("1/2 1/2; 1/4 3/4"),),
)


@search(with_state(draw.walsh_attention(), 2), at="A")
def law_no_residual(A: Matrix, values: list[Fraction], X: Matrix) -> None:
    """W = I: the energy's share falls by max a_i^2 at least, exactly, while the mean stays."""
    bound = max(a * a for a in values)
    moved = exact.product(A, X)
    assert _energy(A, moved) <= bound * _energy(A, X)
    equal(exact.squared_norms(moved)[1], exact.squared_norms(X)[1])


# N-2206.10991-rule
SYMMETRIC_RULE = given.Hypothesis(
    "A and H are symmetric",
    lambda case: SYMMETRIC.holds(case) and exact.transposed(case.H) == case.H,
    (given.case("1/2 1/2; 1/4 3/4"), given.case(H="0 1; 0 0")),
)
