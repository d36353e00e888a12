"""What sums of Kronecker products can do: make any state, of any rank, the dominant one."""

from fractions import Fraction

import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, equal, exact


def _law(star: Matrix, X: Matrix) -> None:
    """The rearranged operator has rank r^2, and one layer ends at a multiple of X*."""
    n, d = len(star), len(star[0])
    assume(any(map(any, star)))
    x = [star[i][k] for k in range(d) for i in range(n)]
    # One row for a pair of features, one column for a pair of tokens: H_k in rows, A_k in columns.
    rearranged = [
        [x[k * n + i] * x[m * n + j] for i in range(n) for j in range(n)]
        for k in range(d)
        for m in range(d)
    ]
    equal(int(to_flint(rearranged).rank()), int(to_flint(star).rank()) ** 2)
    total = exact.zeros(n, d)
    for k in range(d):
        for m in range(d):
            # A_km = x_k x_m^T of the columns of X*, W_km takes feature m to feature k.
            A = [[star[i][k] * star[j][m] for j in range(n)] for i in range(n)]
            W = [[Fraction(int((p, q) == (m, k))) for q in range(d)] for p in range(d)]
            total = exact.plus(total, exact.product(A, X, W))
    inner = sum(
        (p * q for r, s in zip(star, X, strict=True) for p, q in zip(r, s, strict=True)),
        Fraction(0),
    )
    equal(total, exact.scaled(inner, star))


def _two() -> list[sp.Expr]:
    """[3; general] A_1 = diag(1, 0), A_2 = diag(0, 1), W_1 = diag(1, 1/2), W_2 = diag(1/2, 1):
    from any X_0 the entries beside the diagonal are halved in each layer and the others stay. X_L
    tends to diag(x_11, x_22), of rank 2 unless one of them is 0."""
    X = sp.Matrix(2, 2, sp.symbols("x11 x12 x21 x22"))
    first, second = sp.diag(1, 0), sp.diag(0, 1)
    half = sp.Rational(1, 2)
    moved = first * X * sp.diag(1, half) + second * X * sp.diag(half, 1)
    return [*(moved - X.multiply_elementwise(sp.Matrix([[1, half], [half, 1]])))]


CLAIM = Claim(
    name="N-2308.16800-any-state",
    clauses=(
        "Layers X' = sum_k A_k X W_k: every linear map of the states X [n, d] is such a sum, of at "
        "most min(n^2, d^2) terms.",
        "For every X* != 0, of rank r, the map X -> tr(X*^T X) X* is a sum of r^2 terms and of no "
        "fewer. X* is its one dominant state: from X_0 with tr(X*^T X_0) != 0 every X_L is a "
        "multiple of X*. So sums can keep any rank, where one term keeps rank one "
        "(N-2407.11876-power).",
        "Two terms can keep rank 2 from almost every X_0, others do not: it is the dominant state "
        "of the sum that decides, not the number of terms.",
    ),
    latex=r"\sum_{k=1}^{r^2}H_k\otimes A_k="
    r"\operatorname{vec}(X^\ast)\operatorname{vec}(X^\ast)^\top,\qquad r=\operatorname{rank}X^\ast",
    source="ours, for the sums of Kronecker products of arXiv 2308.16800; the rearrangement is Van "
    "Loan's",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "the rearranged operator",
            "[1, 2] Write sum_k H_k (x) A_k with one row for each pair of features and one column "
            "for each pair of tokens: sum_k vec(H_k) vec(A_k)^T, a linear bijection onto matrices "
            "[d^2, n^2]. The least number of terms is the rank of that matrix.",
            "[2] Of vec(X*) vec(X*)^T it is X*^T (x) X*^T, of rank r^2. Its one eigenvalue that is "
            "not 0 is tr(X*^T X*), of X*.",
            _two,
            "[3] The residual layer X + A X W is a sum of two terms too, and where it smooths with "
            "one simple dominant eigenvalue its limit has rank one (T4c).",
        ),
        by.searched(
            "rearranged ranks and one layer, in fractions",
            _law,
            st.tuples(st.integers(1, 3), st.integers(1, 3)).flatmap(
                lambda size: st.tuples(draw.states(*size), draw.states(*size))
            ),
        ),
    ),
)
