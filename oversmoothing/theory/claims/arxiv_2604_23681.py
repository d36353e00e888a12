"""What the claims of arxiv_2604_23681.md execute."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.numbers.exact import to_flint
from oversmoothing.theory.proofs.kit import Matrix, draw, equal, exact, given, search


# normalising
def rank(X: Matrix) -> int:
    """The linear rank."""
    return int(to_flint(X).rank()) if X else 0


def affine_rank(X: Matrix) -> int:
    """The dimension of the affine hull of the rows."""
    return rank(exact.differences(X))


def centred_rows(X: Matrix) -> Matrix:
    """X C: every token without the mean of its features."""
    return exact.transposed(exact.centred(exact.transposed(X)))


# N-2604.23681-affine-rank
_DIVISORS = exact.diagonal("1 1/2 1/2")
NOT_CONSTANT = given.Hypothesis(
    "no token has equal features: LayerNorm is defined without an epsilon",
    lambda case: case.X0 is not None and all(len(set(row)) > 1 for row in case.X0),
    (given.case(X0="1 1; 1 2"), given.case()),
)


# N-2604.23681-linear-rank
@st.composite
def _drawn(pick: st.DrawFn) -> tuple[Matrix, list[Fraction], list[Fraction]]:
    """X of low rank often, positive factors for its rows, gamma without zeros."""
    n, k, d = (pick(st.integers(1, 4)) for _ in range(3))
    X = exact.product(pick(draw.states(n, k)), pick(draw.states(k, d)))
    factors = pick(draw.lists(draw.fractions(Fraction(1, 4), 4, 4), n))
    gamma = pick(draw.lists(draw.fractions(-2, 2, 4).filter(bool), d))
    return X, factors, gamma


@search(_drawn())
def law_linear_rank(X: Matrix, factors: list[Fraction], gamma: list[Fraction]) -> None:
    centred = centred_rows(X)
    normalised = exact.product(exact.diagonal(factors), centred, exact.diagonal(gamma))
    r = rank(centred)
    equal(rank(normalised), r)
    for Y in (centred, normalised):
        assert affine_rank(Y) in (r, r - 1)
    assert abs(affine_rank(normalised) - affine_rank(centred)) <= 1
