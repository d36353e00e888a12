"""T1c: the differences between tokens evolve by themselves."""

import flint
from hypothesis import strategies as st

from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.numbers.rational import from_flint, to_flint
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


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
            "[2] Q^T Q = I, Q Q^T = P and Q^T 1 = 0. So HFC = P X = Q Y, and Q^T A X = Q^T A P X +"
            " Q^T A 1 (1^T X/n) = B Y + Q^T 1 (1^T X/n) = B Y. Hence Y' = Q^T X + Q^T A X W = Y + "
            "B Y W.",
            "[3] S = [1/sqrt n, Q] is orthogonal, and S^T A S has first column S^T A 1/sqrt n = "
            "e_1 and lower right block B: det(x - A) = (x - 1) det(x - B).",
            "[4] Let D = [I, -1] (n-1 rows), so that D X has rows x_i - x_n and D 1 = 0. With R = "
            "[I; 0], X - R D X = 1 x_n, so D A X = D A R D X + D 1 x_n = B' D X with B' = D A R, "
            "whose entries are A_ij - A_nj. D = D P = (D Q) Q^T has rank n-1, so D Q is "
            "invertible, and B' (D Q) = D A Q = D P A Q = (D Q) B.",
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
