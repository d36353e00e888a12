"""I + H (x) A in sympy: built from symbols, its structure checked identically (T1a-d).

vec stacks columns, so vec(A X W) = (W^T (x) A) vec(X) = (H (x) A) vec(X).
"""

import sympy as sp


def vec(X: sp.Matrix) -> sp.Matrix:
    """Columns of X stacked: [n, d] -> [n d, 1]."""
    return sp.Matrix([X[i, j] for j in range(X.cols) for i in range(X.rows)])


def layer_matrix(A: sp.Matrix, H: sp.Matrix) -> sp.Matrix:
    """M = I + H (x) A, [n d, n d] (arXiv 2401.04301; T1)."""
    return sp.eye(A.rows * H.rows) + sp.kronecker_product(H, A)


def symbolic_attention(n: int) -> sp.Matrix:
    """A row-stochastic A in symbols: the last entry of each row is 1 minus the others."""
    free = [[sp.Symbol(f"a{i + 1}{j + 1}", positive=True) for j in range(n - 1)] for i in range(n)]
    return sp.Matrix([[*row, 1 - sum(row)] for row in free])


def symbolic_matrix(rows: int, columns: int, name: str) -> sp.Matrix:
    """A matrix of real symbols name_ij."""
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}{i + 1}{j + 1}", real=True))


def vec_residual(A: sp.Matrix, H: sp.Matrix, X: sp.Matrix) -> sp.Matrix:
    """vec(X + A X H^T) - (I + H (x) A) vec(X): zero identically."""
    return (vec(X + A * X * H.T) - layer_matrix(A, H) * vec(X)).applyfunc(sp.expand)


def characteristic_residual(A: sp.Matrix, H: sp.Matrix) -> sp.Expr:
    """charpoly of I + H (x) A minus the product over all pairs of x - (1 + h a) (T1a).

    The product is a resultant of the two characteristic polynomials, so no eigenvalue is ever
    written down and no diagonalisability is assumed; zero identically, also for symbolic entries.
    """
    x, t = sp.symbols("x t")
    d = H.rows
    left = layer_matrix(A, H).charpoly(x).as_expr()
    p_h = H.charpoly(t).as_expr()
    # prod over i of det((x - 1) I - a_i H), as the resultant of charpoly(A) in s with that form.
    s = sp.Symbol("s")
    form = sp.expand(s**d * p_h.subs(t, (x - 1) / s))
    right = sp.resultant(A.charpoly(s).as_expr(), sp.expand(form), s)
    return sp.expand(left - right)


def quotient_matrix(A: sp.Matrix) -> sp.Matrix:
    """B'_ij = A_ij - A_nj, i, j < n, for the coordinates y_i = x_i - x_n (T1c)."""
    n = A.rows
    return sp.Matrix(n - 1, n - 1, lambda i, j: A[i, j] - A[n - 1, j])


def quotient_residual(A: sp.Matrix, H: sp.Matrix, X: sp.Matrix) -> sp.Matrix:
    """y(X') - (y + B' y H^T) with y_i = x_i - x_n: zero identically when A 1 = 1 (T1c)."""

    def differences(state: sp.Matrix) -> sp.Matrix:
        last = state.rows - 1
        return sp.Matrix(last, state.cols, lambda i, j: state[i, j] - state[last, j])

    y = differences(X)
    moved = differences(X + A * X * H.T)
    return (moved - y - quotient_matrix(A) * y * H.T).applyfunc(sp.expand)


def stationary_row(A: sp.Matrix) -> sp.Matrix:
    """pi^T [1, n] with pi^T A = pi^T and pi^T 1 = 1, for an A whose eigenvalue 1 is simple."""
    kernel = (A.T - sp.eye(A.rows)).nullspace()
    if len(kernel) != 1:
        raise ValueError("the eigenvalue 1 of A is not simple, so pi is not unique")
    row = kernel[0].T
    return (row / sum(row)).applyfunc(sp.simplify)


def consensus_residual(A: sp.Matrix, H: sp.Matrix, X: sp.Matrix) -> sp.Matrix:
    """pi^T X' - (pi^T X)(I + H^T): zero identically (T1d)."""
    pi = stationary_row(A)
    c = pi * X
    return (pi * (X + A * X * H.T) - c - c * H.T).applyfunc(lambda e: sp.simplify(sp.expand(e)))


def complement(n: int) -> sp.Matrix:
    """Q [n, n-1] in sympy: Helmert's orthonormal basis of the vectors orthogonal to 1."""
    columns = [
        sp.Matrix([1] * k + [-k] + [0] * (n - k - 1)) / sp.sqrt(k * (k + 1)) for k in range(1, n)
    ]
    return sp.Matrix.hstack(*columns)
