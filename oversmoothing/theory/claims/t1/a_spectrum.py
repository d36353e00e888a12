"""T1a: the spectrum of a layer is {1 + h_j a_i}, with algebraic multiplicity, always."""

from fractions import Fraction
from typing import Any

import flint
from hypothesis import strategies as st

from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.proofs.kit import DEFECTIVE, Claim, Matrix, by, draw, exact


def _pairs_polynomial(A: Matrix, values: list[Fraction]) -> Any:
    """The product over pairs of x - (1 + h a): charpoly of I + h A, over the h."""
    result = exact.characteristic(exact.plus_identity(A, values[0]))
    for h in values[1:]:
        result = result * exact.characteristic(exact.plus_identity(A, h))
    return result


def _defective() -> None:
    """[4; general] Not every eigenvector is a product: with a defective A (eigenvalue 1/5 of a
    positive 3 x 3 matrix) and H = J_2(-1/2) the eigenvalue 9/10 of M has multiplicity 4 and two
    eigenvectors, A and H one each."""
    H = exact.matrix("-1/2 1; 0 -1/2")
    M = exact.plus_identity(exact.kronecker(H, DEFECTIVE))
    assert exact.characteristic(M) == _pairs_polynomial(DEFECTIVE, [Fraction(-1, 2)] * 2)
    # mu = 1 - 1/2 * 1/5 = 9/10: algebraic multiplicity 4, two eigenvectors, one of them a product.
    shifted = to_flint(exact.plus_identity(M, Fraction(-10, 9)))
    assert exact.characteristic(M)(flint.fmpq(9, 10)) == 0 and 6 - shifted.rank() == 2
    assert 3 - to_flint(exact.plus_identity(DEFECTIVE, -5)).rank() == 1
    assert 2 - to_flint(exact.plus_identity(H, 2)).rank() == 1


def _law(A: Matrix, value: draw.Known) -> None:
    H, values = value
    assert exact.characteristic(exact.plus_identity(exact.kronecker(H, A))) == _pairs_polynomial(
        A, values
    )


@st.composite
def _jordan(pick: st.DrawFn) -> draw.Known:
    """H with known Jordan blocks, and its eigenvalues with multiplicity."""
    blocks = pick(draw.lists(st.tuples(draw.fractions(-3, 2, 6), st.integers(1, 2)), 1, 2))
    H = pick(draw.with_jordan_blocks(blocks))
    return H, [value for value, size in blocks for _ in range(size)]


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
    on_record=by.MACHINE,
    evidence=(
        by.Formal("Dynamics.vec_layer", (1,)),
        by.Formal("T1a_spectrum.spectrum_with_multiplicity", (2,)),
        by.Formal("Dynamics.product_eigenvector", (3,)),
        by.Formal("Dynamics.eigenvector_no_product", (4,)),
        by.written(
            "Schur forms",
            "[1] Column j of A X W is sum_k W_kj A x_k, and block (j, k) of H (x) A is H_jk A = "
            "W_kj A: vec(A X W) = (H (x) A) vec(X).",
            "[2] (V (x) U)* (H (x) A) (V (x) U) = (V* H V) (x) (U* A U): block (j, k) of the left "
            "side is sum_{l,m} conj(V_lj) H_lm V_mk U* A U.",
            "[2] By Schur's theorem A = U T U*, H = V S V* with U, V unitary and T, S upper "
            "triangular, their diagonals the a_i and the h_j with multiplicity. V (x) U is "
            "unitary, so M is similar to I + S (x) T. Block (j, k) of S (x) T is S_jk T: 0 below "
            "the diagonal, h_j T on it. So I + S (x) T is upper triangular with diagonal 1 + h_j "
            "a_i, and its characteristic polynomial is the product.",
            "[3] M (u (x) v) = u (x) v + (H u) (x) (A v), which is (1 + h a) (u (x) v) for "
            "eigenvectors; u (x) v is vec(v u^T).",
            _defective,
        ),
        by.searched(
            "characteristic polynomials in fractions, H with drawn Jordan blocks",
            _law,
            draw.attention(1, 4, zeros=True),
            _jordan(),
        ),
    ),
    further="Jordan block sizes of M are T6a.",
)
