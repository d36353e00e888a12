"""GRAFF without a residual: low frequencies always, except on bipartite graphs."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, given


def _energy(A: Matrix, X: Matrix) -> Fraction:
    """tr(X^T (I - A) X)."""
    rest = exact.product(exact.transposed(X), exact.plus_identity(exact.scaled(-1, A)), X)
    return sum((rest[k][k] for k in range(len(rest))), Fraction(0))


def _size(X: Matrix) -> Fraction:
    return sum((x * x for row in X for x in row), Fraction(0))


def _law(walsh: draw.Known, x: list[int]) -> None:
    """W = I: the energy's share falls by max a_i^2 at least, exactly, while the mean stays."""
    A, values = walsh
    X = exact.from_integers([x[2 * i : 2 * i + 2] for i in range(len(A))])
    bound = max(a * a for a in values)
    moved = exact.product(A, X)
    assert _energy(A, moved) <= bound * _energy(A, X)
    equal(exact.squared_norms(moved)[1], exact.squared_norms(X)[1])


def _bipartite() -> None:
    """[2; general] The walk on one edge has the eigenvalues 1 and -1. From (1, 3) it goes to (3, 1)
    and back, with energy 2 (3 - 1)^2/2 = 4 of 10 in every layer."""
    A = exact.matrix("0 1; 1 0")
    for X in (exact.column("1 3"), exact.product(A, exact.column("1 3"))):
        equal((_energy(A, X), _size(X)), (4, 10))


_SYMMETRIC = given.Hypothesis(
    "A is symmetric",
    lambda case: exact.transposed(case.A) == case.A,
    (given.case("1/2 1/2; 1/4 3/4"),),
)

CLAIM = Claim(
    name="N-2206.10991-no-residual",
    clauses=(
        "Without a residual, X' = A X W, A symmetric and row-stochastic with |a_i| < 1 for i < n "
        "(a connected graph that is not bipartite), H not nilpotent, X_0 outside a proper subspace:"
        " the normalised energy tr(X^T (I - A) X)/||X||^2 tends to 0. Low frequencies dominate, "
        "whatever W is (recalled; our reading).",
        "Bipartite graphs are an exception: with a_1 = -1 the energy need not fall.",
    ),
    latex=r"X_L=A^LX_0W^L:\qquad \frac{\operatorname{tr}X_L^\top(I-A)X_L}{\|X_L\|^2}\to0",
    source="arXiv 2206.10991 (GRAFF), recalled, our reading",
    on_record=by.WRITTEN,
    hypotheses=(_SYMMETRIC, given.IRREDUCIBLE, given.NOT_NILPOTENT),
    setting="(1) and a_1 > -1",
    evidence=(
        by.written(
            "the quotient falls behind",
            "[1] A commutes with P = I - 11^T/n, and the energy is at most 2 ||P X||^2: ||P "
            "X_L||_F <= max |a_i|^L ||P X_0||_F ||W^L||. The mean is c_0 W^L, of the order of "
            "||W^L|| for c_0 outside a proper subspace (an eigenvalue of H of largest modulus with "
            "its largest Jordan block, not 0).",
            _bipartite,
        ),
        by.searched(
            "symmetric A with rational eigenvalues",
            _law,
            draw.walsh_attention(),
            draw.lists(st.integers(-9, 9), 16),
            at=lambda walsh, _: given.of_attention(walsh[0]),
        ),
    ),
    further="A that is not symmetric: T9a, HFC/LFC like |lambda_2|^L.",
)
