"""Thm 3 of arXiv 2401.04301: low-pass if and only if the consensus family dominates."""

from typing import Any

from hypothesis import assume

from oversmoothing.theory.proofs.kit import Claim, by, draw, given, verdict


def _law(A: Any, value: Any) -> None:
    H, _ = value
    found = verdict(A=A, H=H)
    assume(found.verdict in ("SMOOTHING", "NON_SMOOTHING"))
    assume(found.tends_to is not None)
    assert (found.tends_to == "zero") == (found.verdict == "SMOOTHING")


CLAIM = Claim(
    name="P-2401.04301v1-thm3",
    clauses=(
        "Thm 3 (v1, poster): HFC/LFC tends to 0 if an eigenvalue of the family 1 + lambda_j^H "
        "lambda_n^A dominates, and does not if one of the other family does. It holds for every "
        "A > 0 and every H (complex and defective ones too) under strict dominance, rho_C > "
        "rho_Q or rho_C < rho_Q, for X_0 outside a proper subspace (our reading of 'some X').",
    ),
    latex=r"\rho_C > \rho_Q \Rightarrow \mathrm{HFC}/\mathrm{LFC} \to 0,\qquad "
    r"\rho_C < \rho_Q \Rightarrow \liminf \mathrm{HFC}/\mathrm{LFC} > 0",
    source="arXiv 2401.04301 v1, Thm 3 (poster; genericity in public reviews)",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.Formal("Verdicts.v1_thm3", (1,)),
        by.written(
            "the two verdicts",
            "[1] rho_C > rho_Q: HFC/LFC -> 0 outside a proper subspace (T4a).",
            "[1] rho_C < rho_Q: liminf HFC/LFC >= 1/(sqrt n delta) > 0 outside a proper subspace, "
            "w^T y_0 = 0 (T1f).",
        ),
        by.searched(
            "verdict against limit, exact input",
            _law,
            draw.attention(2, 3),
            draw.value_projections(2),
            at=lambda A, value: (A, value[0]),
        ),
    ),
    further="Equal moduli: decided by Jordan blocks (T6b), a constant where there are none (T4d). "
    "Special X_0: P-2401.04301v1-thm3-every-state.",
)
