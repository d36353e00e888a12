"""T1b: states in which all tokens agree stay so, whatever the attention."""

import sympy as sp

from oversmoothing.theory.layer import symbolic
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


def _consensus(n: int, d: int) -> tuple[sp.Matrix, sp.Matrix]:
    """(1 c^T, c) in symbols."""
    c = symbolic.symbolic_matrix(d, 1, "c")
    return sp.ones(n, 1) * c.T, c


def _converse() -> list[sp.Expr]:
    """[2; fixed size] Conversely let s = A 1. The image of 1 c^T is 1 c^T + s (H c)^T, whose rows i
    and k differ by (s_i - s_k)(H c)^T. If H is not 0, some c has H c != 0, and the image lies in C
    only if all s_i are equal."""
    A, H = symbolic.symbolic_matrix(3, 3, "a"), symbolic.symbolic_matrix(2, 2, "h")
    X, c = _consensus(3, 2)
    moved, sums = A * X * H.T, A * sp.ones(3, 1)
    return [
        entry
        for i in range(3)
        for k in range(i)
        for entry in (moved.row(i) - moved.row(k)) - (sums[i] - sums[k]) * (H * c).T
    ]


def _law(A: Matrix, H: Matrix, X: Matrix) -> None:
    c = X[0]
    moved = exact.layer(A, H, [c] * len(A))
    expected = [sum(x * y for x, y in zip(row, c, strict=True)) for row in exact.plus_identity(H)]
    assert all(row == expected for row in moved)


CLAIM = Claim(
    name="T1b",
    clauses=(
        "The consensus states C = {1 c^T} are invariant under the layer for every A with A 1 = 1"
        " (zeros in A are allowed), and there the layer is c -> (I + H) c.",
        "Conversely, if C is invariant for one H other than 0, all row sums of A are equal.",
    ),
    latex=r"A\mathbf 1 = \mathbf 1 \implies \mathbf 1c^\top + A\mathbf 1c^\top W = "
    r"\mathbf 1\bigl((I+H)c\bigr)^\top",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(given.ROW_STOCHASTIC,),
    evidence=(
        by.Formal("T1_blocks.consensus_invariant", (1,)),
        by.Formal("T3_matrix.consensus_converse", (2,)),
        by.written(
            "one line each way",
            "[1] A (1 c^T) W = (A 1) (c^T H^T) = 1 (H c)^T, so 1 c^T -> 1 (c + H c)^T: C is mapped"
            " into itself, by I + H in the coordinate c.",
            _converse,
        ),
        by.searched("one layer in fractions", _law, draw.exact_cases(), at=lambda *case: case),
    ),
)
