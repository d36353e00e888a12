"""Without the residual attention is low-pass, whatever the weights."""

from oversmoothing.theory.proofs.kit import Claim, by, given

CLAIM = Claim(
    name="P-2401.04301v1-no-residual",
    clauses=(
        "Without the residual, X' = A X W, the family lambda_j^H lambda_n^A always dominates and"
        " the model is always low-pass (v1; in part from public reviews). It holds for every A >"
        " 0 and H not nilpotent, real or complex, defective or not, for X_0 outside a proper "
        "subspace.",
    ),
    latex=r"X_L = A^L X_0 W^L,\ A > 0,\ H\ \text{not nilpotent} \implies "
    r"\mathrm{HFC}/\mathrm{LFC} \to 0",
    source="arXiv 2401.04301 v1, remark on the residual (public reviews); our reading of its scope",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.NOT_NILPOTENT),
    evidence=(
        by.written(
            "the rate is below 1",
            "[1] n >= 2: (HFC/LFC)^(1/L) -> |lambda_2| < 1 for X_0 outside a null set, whatever H "
            "(T9a). For HFC/LFC -> 0 c_0 outside a proper subspace is enough: there ||c_L|| >= "
            "const rho(H)^L, and ||HFC_L|| = O(L^q (rho(H) |lambda_2|)^L) for every X_0. n = 1: "
            "HFC = 0.",
        ),
    ),
    further="The rate is |lambda_2| whatever H (T9a, N-2312.06182-escalation).",
)
