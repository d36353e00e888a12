"""The control statement on [-1, 0), with what it needs: fixed A, tied weights, generic X_0."""

from collections import Counter

from oversmoothing.theory.claims.lemmas import POSITIVE_SPECTRUM
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, given
from oversmoothing.theory.verdict.exact_comparison import exact_dominance


def _law(A: Matrix, H: Matrix) -> None:
    assert exact_dominance(A, H).comparison == -1


# Equal values are joined into one Jordan block.
_JORDAN = (
    draw.lists(draw.fractions(-1, 0).filter(bool), 1, 3)
    .map(lambda values: sorted(Counter(values).items()))
    .flatmap(draw.with_jordan_blocks)
)

CLAIM = Claim(
    name="P-2401.04301v3-control-negative",
    clauses=(
        "lambda_j^H in [-1, 0) for all j and A > 0, both perhaps complex or defective: a "
        "high-frequency mode dominates, rho_C < rho_Q (a public summary and a review: the "
        "half-open interval).",
        "Then there is no oversmoothing, liminf HFC/LFC > 0, for one A and one H in every layer "
        "and X_0 outside a proper subspace.",
        "With a real spectrum of A that mode is lambda_1^A's.",
    ),
    latex=r"\lambda_j^H \in [-1,0)\ \forall j \implies \rho_C < \rho_Q,\ "
    r"\liminf \mathrm{HFC}/\mathrm{LFC} > 0",
    source="arXiv 2401.04301 (public summary and review; the version of the wording is unknown)",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.HALF_OPEN),
    evidence=(
        by.Formal("Control.perron", (1,)),
        by.Formal("Control.control", (1,)),
        by.Formal("Verdicts.v3_control_negative", (1, 2)),
        by.Formal("Verdicts.smallest_dominates", (3,)),
        by.written(
            "every mode beats consensus",
            POSITIVE_SPECTRUM.covering(1, 2),
            "[1] Take j with the largest |1 + h_j|, and any i < n. |1 + h_j a_i| >= 1 - |h_j| "
            "|a_i| > 1 - |h_j| = |1 + h_j| = rho_C (T3d): rho_Q > rho_C.",
            "[2] So the layer is NON_SMOOTHING, and T1f gives liminf HFC/LFC >= 1/(sqrt n delta).",
            "[3] With real a_1 <= ... <= 1 and h in [-1, 0), 1 + h a falls with a and is at least "
            "0: the largest is 1 + h a_1, for every j.",
        ),
        by.searched(
            "positive A, any Jordan blocks, decided exactly",
            _law,
            draw.attention(2, 4),
            _JORDAN,
            at=lambda *case: case,
        ),
    ),
    further="Not for special X_0 (P-2401.04301v3-control-every-state) nor for weights that differ "
    "by layer (P-2401.04301v3-clip-untied); the largest such set is T2d's and T3c's.",
)
