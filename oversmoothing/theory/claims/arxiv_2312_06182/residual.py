"""Similarity escalation with residual: the rate depends on the weights through both radii."""

from typing import Any

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import t_falls
from oversmoothing.theory.proofs.kit import Claim, by, draw, exact, given


def _law(attention: Any, h: Any, point: Any) -> None:
    """One feature, two tokens: t falls by exactly |1 + ha| / |1 + h| per layer."""
    (A, a), (x, y) = attention, point
    assume(h != -1)
    t_falls(
        A, exact.from_integers([[x], [y]]), lambda X: exact.layer(A, [[h]], X), 1 + h * a, 1 + h, 5
    )


CLAIM = Claim(
    name="N-2312.06182-residual",
    clauses=(
        "With residual, X' = X + A X W with one A > 0 and X_0 outside two proper subspaces, the "
        "rate of escalation depends on the weights: (HFC/LFC)^(1/L) -> r = rho_Q/rho_C where r <"
        " 1, rho_C = max |1 + h_j|, rho_Q = max over i < n of |1 + h_j a_i|;",
        "where r > 1 there is no escalation, liminf HFC/LFC > 0. (The paper treats "
        "self-attention with residual; this form is ours.)",
    ),
    latex=r"(\mathrm{HFC}/\mathrm{LFC})^{1/L} \to "
    r"\frac{\max_{j,\,i<n}|1+h_ja_i|}{\max_j|1+h_j|}\quad (<1)",
    source="ours, for arXiv 2312.06182 v2 (self-attention with residual)",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "the rate of T5a",
            "[1] r < 1 is SMOOTHING: (HFC/LFC)^(1/L) -> r (T5a), for X_0 outside two proper "
            "subspaces, one for each block: w^T X_0 z = 0, w and z left eigenvectors for |mu| = "
            "rho_Q, and z^T c_0^T = 0 for |mu| = rho_C. Where rho_Q = 0, HFC is 0 from some layer "
            "on.",
            "[2] r > 1 is NON_SMOOTHING: liminf HFC/LFC >= 1/(sqrt n delta) (T5a), infinity where "
            "delta = 0.",
        ),
        by.searched(
            "two tokens: t falls by |1 + ha|/|1 + h| exactly",
            _law,
            draw.two_token_attention(),
            draw.fractions(-4, 3),
            st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
            at=lambda attention, h, point: (attention[0], [[h]]),
        ),
    ),
    further="r = 1: Jordan blocks decide (T6b).",
)
