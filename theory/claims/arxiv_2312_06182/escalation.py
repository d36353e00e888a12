"""Similarity escalation without residual: a geometric rate |lambda_2|, whatever the weights."""

import math
from fractions import Fraction
from typing import Any

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import START, slope, t_falls
from oversmoothing.theory.claims.lemmas import BLOCKS, COUPLING, GROWTH, POSITIVE_SPECTRUM
from oversmoothing.theory.depth.rates_measured import layer_rows
from oversmoothing.theory.proofs.kit import A3, Claim, by, draw, exact, given


def _similarity() -> sp.Expr:
    """1 - t_sim^2 = r^2 / (1 + r^2) for t_sim = LFC / ||X||, r = HFC/LFC."""
    hfc, lfc = sp.symbols("hfc lfc", positive=True)
    r = hfc / lfc
    return sp.simplify(1 - lfc**2 / (hfc**2 + lfc**2) - r**2 / (1 + r**2))


def _law(attention: Any, w: Any, h: Any) -> None:
    """One feature, two tokens: t_L = ||HFC|| / (sqrt 2 |c|) falls by exactly |a| per layer."""
    (A, a), (x, y) = attention, h
    t_falls(
        A, exact.from_integers([[x], [y]]), lambda X: exact.product(A, X, [[w]]), a, Fraction(1), 6
    )


def _measured(effort: by.Effort) -> by.Measurements:
    # A Jordan block is approached like 1/L: its slope is off by a multiple of 1/(150 300).
    for words, H, tolerance in (
        ("H = diag(1/2, -3)", exact.matrix("1/2 0; 0 -3"), 1e-9),
        ("H a rotation by 90 degrees", exact.matrix("0 -1; 1 0"), 1e-9),
        ("H defective", exact.matrix("2 1; 0 2"), 1e-3),
    ):
        found = slope(layer_rows(A3, H, residual=False), START, (150, 300))
        yield by.Measurement(words, math.log(1 / 2), found, tolerance)


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
            "both blocks carry the same weights",
            POSITIVE_SPECTRUM.covering(1),
            BLOCKS.covering(1),
            "[1] Without residual Y' = B Y W and c' = c W: blocks H (x) B and H, of radii rho(H) "
            "|lambda_2| and rho(H).",
            GROWTH.covering(1),
            "[1, 3] So ||HFC_L||^(1/L) -> rho(H) |lambda_2| and ||c_L||^(1/L) -> rho(H) for X_0 "
            "outside two proper subspaces, one for each block: t^(1/L) -> |lambda_2| < 1 (for "
            "lambda_2 = 0, B^(n-1) = 0 and HFC = 0).",
            COUPLING.covering(1),
            "[1] t -> 0, so (HFC/LFC)/t -> 1 and HFC/LFC has the same rate.",
        ),
        by.Symbolic("similarity and HFC/LFC", _similarity, covers=(2,), scope=by.Scope.GENERAL),
        by.searched(
            "two tokens, one feature: t falls by |lambda_2| exactly",
            _law,
            draw.two_token_attention(),
            draw.fractions(-3, 3).filter(bool),
            st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
            at=lambda attention, w, h: (attention[0], [[w]]),
        ),
        by.Simulated("slope of log HFC/LFC, A with lambda_2 = 1/2", _measured),
    ),
    further="The paper's own theorem bounds the expectation of its rate r(X, Y) from below; its "
    "form was not at hand. Layers that differ: N-2312.06182-changing.",
)
