"""Similarity escalation without residual: a geometric rate |lambda_2|, whatever the weights."""

import sympy as sp

from oversmoothing.theory.proofs.kit import Claim, by, given


def _similarity() -> sp.Expr:
    """1 - t_sim^2 = r^2 / (1 + r^2) for t_sim = LFC / ||X||, r = HFC/LFC."""
    hfc, lfc = sp.symbols("hfc lfc", positive=True)
    r = hfc / lfc
    return sp.simplify(1 - lfc**2 / (hfc**2 + lfc**2) - r**2 / (1 + r**2))


CLAIM = Claim(
    name="N-2312.06182-escalation",
    clauses=(
        "Without residual, X' = A X W with one A > 0: token similarity escalates at a linear, "
        "that is geometric, rate set by |lambda_2(A)|, whatever the weights (abstract and a "
        "summary; the rate as a limit is our reading). (HFC/LFC)^(1/L) -> |lambda_2| for H not "
        "nilpotent and X_0 outside two proper subspaces.",
        "1 - t_sim^2 then falls like |lambda_2|^(2L) (t_sim = LFC/||X||, our reading).",
        "If lambda_2 = 0 HFC is 0 after n - 1 layers.",
    ),
    latex=r"\lim_{L\to\infty} (\mathrm{HFC}/\mathrm{LFC})^{1/L} = |\lambda_2(A)|",
    source="arXiv 2312.06182 v2, token similarity escalation (abstract; a summary)",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.NOT_NILPOTENT),
    evidence=(
        by.written(
            "the rate of T9a",
            "[1] (HFC/LFC)^(1/L) -> |lambda_2| whatever H (T9a), for X_0 outside two proper "
            "subspaces, one for each block: there HFC_L and c_L have the rates rho(H) |lambda_2| "
            "and rho(H).",
            "[3] lambda_2 = 0: B^(n-1) = 0, and HFC_L = Q B^L Y_0 W^L (T9a).",
        ),
        by.Symbolic("similarity and HFC/LFC", _similarity, covers=(2,), scope=by.Scope.GENERAL),
    ),
    further="The paper's own theorem bounds the expectation of its rate r(X, Y) from below; its "
    "form was not at hand. Layers that differ: N-2312.06182-changing.",
)
