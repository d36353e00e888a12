"""T1c: the differences between tokens evolve by themselves."""

import flint
import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.layer import symbolic
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.layer.symbolic import complement
from oversmoothing.theory.numbers.rational import from_flint, to_flint
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


def _orthonormal() -> list[sp.Expr]:
    """[2; fixed size] Q^T Q = I, Q Q^T = P and Q^T 1 = 0. So HFC = P X = Q Y, and Q^T A X = Q^T A P
    X + Q^T A 1 (1^T X/n) = B Y + Q^T 1 (1^T X/n) = B Y. Hence Y' = Q^T X + Q^T A X W = Y + B Y
    W."""
    # Y' - (Y + B Y W) and HFC - Q Y for three tokens, with Helmert's basis.
    A, H = symbolic.symbolic_attention(3), symbolic.symbolic_matrix(2, 2, "h")
    X, Q = symbolic.symbolic_matrix(3, 2, "x"), complement(3)
    Y, B = Q.T * X, Q.T * A * Q
    moved = Q.T * (X + A * X * H.T)
    high = X - sp.ones(3) * X / 3
    residual = [*(moved - Y - B * Y * H.T), *(high - Q * Y)]
    return [sp.simplify(sp.expand(entry)) for entry in residual]


def _triangular_form() -> list[sp.Expr]:
    """[3; fixed size] S = [1/sqrt n, Q] is orthogonal, and S^T A S has first column S^T A 1/sqrt n
    = e_1 and lower right block B: det(x - A) = (x - 1) det(x - B)."""
    A, Q = symbolic.symbolic_attention(3), complement(3)
    S = sp.Matrix.hstack(sp.ones(3, 1) / sp.sqrt(3), Q)
    moved = (S.T * A * S).applyfunc(sp.expand)
    return [moved[0, 0] - 1, moved[1, 0], moved[2, 0], *(S.T * S - sp.eye(3))]


def _similar() -> sp.Matrix:
    """[4; fixed size] Let D = [I, -1] (n-1 rows), so that D X has rows x_i - x_n and D 1 = 0. With
    R = [I; 0], X - R D X = 1 x_n, so D A X = D A R D X + D 1 x_n = B' D X with B' = D A R, whose
    entries are A_ij - A_nj. D = D P = (D Q) Q^T has rank n-1, so D Q is invertible, and B' (D Q) =
    D A Q = D P A Q = (D Q) B."""
    A, Q = symbolic.symbolic_attention(3), complement(3)
    D = sp.Matrix.hstack(sp.eye(2), -sp.ones(2, 1))
    B = symbolic.quotient_matrix(A)
    assert (D * A - B * D).applyfunc(sp.expand).is_zero_matrix
    assert sp.simplify((D * Q).det()) != 0
    return (B * D * Q - D * Q * (Q.T * A * Q)).applyfunc(sp.expand)


def _law(case: tuple[Matrix, Matrix, Matrix], depth: int) -> None:
    A, H, X = case
    B = rational_quotient(A)
    moved = exact.layer(A, H, X, depth)
    if B:
        y = to_flint(exact.differences(X))
        for _ in range(depth):
            y = y + to_flint(B) * y * to_flint(H).transpose()
        assert from_flint(y) == exact.differences(moved)
        assert exact.characteristic(A) == exact.characteristic(B) * flint.fmpq_poly([-1, 1])


CLAIM = Claim(
    name="T1c",
    clauses=(
        "With P = I - 11^T/n: P A = P A P for every A with A 1 = 1, so P X is autonomous.",
        "In an orthonormal basis Q of the vectors orthogonal to 1, Y = Q^T X obeys Y' = Y + B Y "
        "W with B = Q^T A Q, and HFC = Q Y.",
        "spec(B) is spec(A) without one copy of 1.",
        "B is similar to B'_ij = A_ij - A_nj, i, j < n, which belongs to the coordinates x_i - "
        "x_n and has no square roots.",
    ),
    latex=r"PA = PAP,\qquad Y' = Y + BYW,\qquad \det(x-A) = (x-1)\det(x-B) = (x-1)\det(x-B')",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.Formal("T1_blocks.quotient", (1,)),
        by.Formal("T1_blocks.HFC_autonomous", (1,)),
        by.Formal("T1c_quotient.quotient_layer", (2,)),
        by.Formal("T1c_quotient.quotient_spectrum", (3,)),
        by.Formal("T1c_quotient.quotient_rational", (4,)),
        by.Formal("T1_blocks.no_consensus_no_HFC", ()),
        by.Formal("T1_blocks.char_poly_quotient", ()),
        by.written(
            "block triangular form",
            "[1] P A - P A P = P A 11^T/n = P 1 1^T/n = 0, since A 1 = 1 and P 1 = 0.",
            _orthonormal,
            _triangular_form,
            _similar,
        ),
        by.searched(
            "trajectories of differences and characteristic polynomials in fractions",
            _law,
            draw.exact_cases(),
            st.integers(0, 4),
            at=lambda case, depth: case,
        ),
    ),
)
