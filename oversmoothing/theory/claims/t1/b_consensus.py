"""T1b: states in which all tokens agree stay so, whatever the attention."""

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given


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
            "[2] Conversely let s = A 1. The image of 1 c^T is 1 c^T + s (H c)^T, whose rows i and"
            " k differ by (s_i - s_k)(H c)^T. If H is not 0, some c has H c != 0, and the image "
            "lies in C only if all s_i are equal.",
        ),
        by.searched("one layer in fractions", _law, draw.exact_cases(), at=lambda *case: case),
    ),
)
