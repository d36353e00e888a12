"""GRAFF's rule on any undirected graph: the normalised adjacency and the walk have one spectrum."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact, is_zero


@st.composite
def _graphs(pick: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Edges of integer weight of a connected graph (a path and more, loops too), and states."""
    n = pick(st.integers(2, 4))
    E = exact.zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            E[i][j] = E[j][i] = Fraction(pick(st.integers(int(j == i - 1), 3)))
    return E, pick(draw.states(n, 2))


def _law(E: Matrix, Y: Matrix) -> None:
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


def _unequal() -> None:
    """[2; general] The path of three nodes with loops has the degrees 2, 3, 2: sqrt(2), sqrt(3),
    sqrt(2) are not equal."""
    E = exact.matrix("1 1 0; 1 1 1; 0 1 1")
    equal([sum(row) for row in E], [2, 3, 2])


CLAIM = Claim(
    name="N-2206.10991-graphs",
    clauses=(
        "An undirected connected graph with weights E >= 0, degrees D, and N = D^(-1/2) E D^(-1/2) "
        "in GRAFF's layer X' = X + tau N X W. With X = D^(1/2) Y it is Y' = Y + tau A Y W, A = "
        "D^(-1) E the walk, row-stochastic: the same eigenvalues and verdict, so that "
        "N-2206.10991-rule holds for N on every such graph with a negative eigenvalue above -1.",
        "GRAFF's energy is tr(X^T (I - N) X) = (1/2) sum E_ij |y_i - y_j|^2, 0 iff Y is at "
        "consensus. Where low frequencies dominate, X/||X|| tends to D^(1/2) 1 u^T: tokens of one "
        "direction, and equal only where all degrees are.",
    ),
    latex=r"D^{-1/2}ED^{-1/2}=D^{1/2}(D^{-1}E)D^{-1/2},\qquad "
    r"\operatorname{tr}X^\top(I-N)X=\tfrac12\sum_{ij}E_{ij}|y_i-y_j|^2",
    source="ours, for the normalised adjacency of arXiv 2206.10991 (our reading)",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "a change of coordinates",
            "[1] D^(-1/2) N D^(1/2) = D^(-1) E, and D acts on tokens, W on features. The verdict "
            "reads eigenvalues alone (T1a). The rule's proof uses that A is diagonalisable with "
            "real eigenvalues, and that 1 is simple.",
            "[2] tr(X^T (I - N) X) = tr(Y^T (D - E) Y), the graph's quadratic form. Y/||Y|| -> 1 "
            "u^T/sqrt(n) where 1 dominates, so X is along D^(1/2) 1 u^T.",
            _unequal,
        ),
        by.searched("drawn graphs in fractions", _law, _graphs()),
    ),
)
