"""T1a: the spectrum of a layer is {1 + h_j a_i}, with algebraic multiplicity, always."""

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.layer import symbolic
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import Matrix, normalised_rows, to_flint
from oversmoothing.theory.proofs.instances import DEFECTIVE
from oversmoothing.theory.proofs.kit import Claim, Status, by, draw, exact, vanishes


@by.fixed_size(2)
def _mixed_product() -> sp.Matrix:
    """(V (x) U)* (H (x) A) (V (x) U) = (V* H V) (x) (U* A U): block (j, k) of the left side is
    sum_{l,m} conj(V_lj) H_lm V_mk U* A U."""
    U, A = symbolic.symbolic_matrix(2, 2, "u"), symbolic.symbolic_matrix(2, 2, "a")
    V, H = symbolic.symbolic_matrix(2, 2, "v"), symbolic.symbolic_matrix(2, 2, "h")
    both = sp.kronecker_product(V, U)
    left = both.T * sp.kronecker_product(H, A) * both
    return (left - sp.kronecker_product(V.T * H * V, U.T * A * U)).applyfunc(sp.expand)


@by.fixed_size(2)
def _triangular() -> None:
    """By Schur's theorem A = U T U*, H = V S V* with U, V unitary and T, S upper triangular, their
    diagonals the a_i and the h_j with multiplicity. V (x) U is unitary, so M is similar to I + S
    (x) T. Block (j, k) of S (x) T is S_jk T: 0 below the diagonal, h_j T on it. So I + S (x) T is
    upper triangular with diagonal 1 + h_j a_i, and its characteristic polynomial is the product."""
    T = sp.Matrix(3, 3, lambda i, j: sp.Symbol(f"t{i}{j}") if j >= i else 0)
    S = sp.Matrix(2, 2, lambda i, j: sp.Symbol(f"s{i}{j}") if j >= i else 0)
    M = symbolic.layer_matrix(T, S)
    assert M.is_upper
    assert [M[k, k] for k in range(6)] == [
        1 + S[j, j] * T[i, i] for j in range(2) for i in range(3)
    ]


@by.fixed_size(3)
def _eigenvector() -> list[sp.Expr]:
    """M (u (x) v) = u (x) v + (H u) (x) (A v), which is (1 + h a) (u (x) v) for eigenvectors; u (x)
    v is vec(v u^T)."""
    A, H = symbolic.symbolic_matrix(3, 3, "a"), symbolic.symbolic_matrix(2, 2, "h")
    v, u = symbolic.symbolic_matrix(2, 1, "v"), symbolic.symbolic_matrix(3, 1, "u")
    vector = sp.kronecker_product(v, u)
    moved = symbolic.layer_matrix(A, H) * vector - vector - sp.kronecker_product(H * v, A * u)
    return [*moved, *(symbolic.unvec(vector, 3) - u * v.T)]


def _pairs_polynomial(A: Matrix, values: list[Fraction]) -> Any:
    """The product over pairs of x - (1 + h a): charpoly of I + h A, over the h."""
    result = exact.characteristic(exact.plus_identity(A, values[0]))
    for h in values[1:]:
        result = result * exact.characteristic(exact.plus_identity(A, h))
    return result


@by.general(4)
def _defective() -> None:
    """Not every eigenvector is a product: with a defective A (eigenvalue 1/5 of a positive 3 x 3
    matrix) and H = J_2(-1/2) the eigenvalue 9/10 of M has multiplicity 4 and two eigenvectors, A
    and H one each."""
    H = exact.matrix("-1/2 1; 0 -1/2")
    M = exact.plus_identity(exact.kronecker(H, DEFECTIVE))
    assert exact.characteristic(M) == _pairs_polynomial(DEFECTIVE, [Fraction(-1, 2)] * 2)
    # mu = 1 - 1/2 * 1/5 = 9/10: algebraic multiplicity 4, two eigenvectors, one of them a product.
    shifted = to_flint(exact.plus_identity(M, Fraction(-10, 9)))
    assert exact.characteristic(M)(flint.fmpq(9, 10)) == 0 and 6 - shifted.rank() == 2
    assert 3 - to_flint(exact.plus_identity(DEFECTIVE, -5)).rank() == 1
    assert 2 - to_flint(exact.plus_identity(H, 2)).rank() == 1


def _law(A: Matrix, value: tuple[Matrix, list[Fraction]]) -> None:
    H, values = value
    assert exact.characteristic(exact.plus_identity(exact.kronecker(H, A))) == _pairs_polynomial(
        A, values
    )


@st.composite
def _jordan(pick: st.DrawFn) -> tuple[Matrix, list[Fraction]]:
    """H with known Jordan blocks, and its eigenvalues with multiplicity."""
    blocks = pick(draw.lists(st.tuples(draw.fractions(-3, 2, 6), st.integers(1, 2)), 1, 2))
    H = pick(draw.with_jordan_blocks(blocks))
    return H, [value for value, size in blocks for _ in range(size)]


def _certify(effort: by.Effort) -> by.Settled:
    """Balls around the eigenvalues of the dense operator against balls around all pairs."""
    rng = np.random.default_rng(effort.seed)
    for _ in range(12):
        n, d = (int(k) for k in rng.integers(2, 5, size=2))
        A = normalised_rows(exact.from_integers(rng.integers(1, 100, size=(n, n))))
        H = [[Fraction(int(x), 16) for x in row] for row in rng.integers(-40, 24, size=(d, d))]
        with at_precision(256):
            a = flint.acb_mat(to_flint(A)).eig(nonstop=True)
            h = flint.acb_mat(to_flint(H)).eig(nonstop=True)
            dense = flint.acb_mat(to_flint(exact.plus_identity(exact.kronecker(H, A)))).eig(
                nonstop=True
            )
            pairs = [1 + x * y for y in h for x in a]
            if not all(ball.is_finite() for ball in [*pairs, *dense]):
                yield False
                continue
            meets = [[ball.overlaps(pair) for pair in pairs] for ball in dense]
        if any(not any(row) for row in meets):
            yield f"A = {by.show(A)}, H = {by.show(H)}"
        # One to one: the enclosures of n d different eigenvalues match the n d pairs.
        yield all(sum(row) == 1 for row in [*meets, *zip(*meets, strict=True)])


CLAIM = Claim(
    name="T1a",
    clauses=(
        "vec(X + A X W) = M vec(X) with M = I + H (x) A, H = W^T.",
        "For every square A and H (positivity, row sums and diagonalisability are not needed) "
        "the eigenvalues of M are 1 + h_j a_i over all pairs, with algebraic multiplicity.",
        "If A v = a v and H u = h u then u (x) v, that is X = v u^T, is an eigenvector for 1 + h"
        " a;",
        "where A or H is defective there can be eigenvectors that are no products.",
    ),
    latex=r"\det\bigl(xI - I - H\otimes A\bigr) = \prod_{i,j}\bigl(x - 1 - h_j a_i\bigr)",
    source="arXiv 2401.04301, Theorem 1, for diagonalisable matrices; here without that hypothesis",
    on_record=Status.WRITTEN,
    evidence=(
        by.Formal("T1a_spectrum.spectrum_with_multiplicity", (2,)),
        by.written(
            "Schur forms",
            by.Step(
                "Column j of A X W is sum_k W_kj A x_k, and block (j, k) of H (x) A is "
                "H_jk A = W_kj A: vec(A X W) = (H (x) A) vec(X).",
                lambda: vanishes(
                    symbolic.vec_residual(
                        symbolic.symbolic_matrix(3, 3, "a"),
                        symbolic.symbolic_matrix(2, 2, "h"),
                        symbolic.symbolic_matrix(3, 2, "x"),
                    )
                ),
                scope=by.Scope.SIZE,
                covers=(1,),
            ),
            _mixed_product,
            _triangular,
            _eigenvector,
            _defective,
        ),
        by.Certified("balls around the dense spectrum meet the pairs one to one", _certify),
        by.searched(
            "characteristic polynomials in fractions, H with drawn Jordan blocks",
            _law,
            draw.attention(1, 4, zeros=True),
            _jordan(),
        ),
    ),
    further="Jordan block sizes of M are T6a.",
)
