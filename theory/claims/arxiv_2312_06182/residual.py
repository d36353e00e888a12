"""Similarity escalation with residual: the rate depends on the weights through both radii."""

import math
from typing import Any

from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import START, slope, t_falls
from oversmoothing.theory.claims.lemmas import BLOCKS, COUPLING, GROWTH, POSITIVE_SPECTRUM
from oversmoothing.theory.depth.rates_measured import layer_rows
from oversmoothing.theory.proofs.kit import A3, Claim, by, draw, exact, given


def _law(attention: Any, h: Any, point: Any) -> None:
    """One feature, two tokens: t falls by exactly |1 + ha| / |1 + h| per layer."""
    (A, a), (x, y) = attention, point
    assume(h != -1)
    t_falls(
        A, exact.from_integers([[x], [y]]), lambda X: exact.layer(A, [[h]], X), 1 + h * a, 1 + h, 5
    )


def _measured(effort: by.Effort) -> by.Measurements:
    # Eigenvalues of A: 1, 1/2, 1/5.
    for words, H, rate in (
        ("H = diag(1/2, 1/4): r = (5/4)/(3/2)", exact.matrix("1/2 0; 0 1/4"), 5 / 6),
        ("H = diag(1, -1/2): r = (3/2)/2", exact.matrix("1 0; 0 -1/2"), 3 / 4),
        ("H = diag(-3, 1/8): r = 9/16", exact.matrix("-3 0; 0 1/8"), (1 + 1 / 16) / 2),
    ):
        found = slope(layer_rows(A3, H), START, (200, 400))
        yield by.Measurement(words, math.log(rate), found, 1e-8)


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
            "the two blocks with residual",
            POSITIVE_SPECTRUM.covering(1, 2),
            BLOCKS.covering(1, 2),
            GROWTH.covering(1, 2),
            "[1, 2] The blocks are I + H and I + H (x) B, so t^(1/L) -> rho_Q/rho_C = r for X_0 "
            "outside two proper subspaces, one for each block (rho_C > 0; where rho_Q = 0, HFC is "
            "0 from some layer on).",
            COUPLING.covering(1, 2),
            "[1, 2] r < 1: t -> 0, (HFC/LFC)/t -> 1, and HFC/LFC has rate r. r > 1: t -> infinity "
            "and HFC/LFC >= 1/(k + 1/t), bounded below by a number that tends to 1/k.",
        ),
        by.searched(
            "two tokens: t falls by |1 + ha|/|1 + h| exactly",
            _law,
            draw.two_token_attention(),
            draw.fractions(-4, 3),
            st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
            at=lambda attention, h, point: (attention[0], [[h]]),
        ),
        by.Simulated("slope of log HFC/LFC, A with eigenvalues 1, 1/2, 1/5", _measured),
    ),
    further="r = 1: Jordan blocks decide (T6b).",
)
