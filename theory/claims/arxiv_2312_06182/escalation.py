"""Similarity escalation without residual: a geometric rate |lambda_2|, whatever the weights."""

from __future__ import annotations

import math
from typing import Any

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.arxiv_2312_06182.measure import log_ratios, slope
from oversmoothing.theory.claims.lemmas import BLOCKS, COUPLING, GROWTH, POSITIVE_SPECTRUM
from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.numbers.exact_matrix import matrix, product, transposed
from oversmoothing.theory.proofs import strategies as draw
from oversmoothing.theory.proofs.checks import equal
from oversmoothing.theory.proofs.claim import Claim, Effort, Hypothesis, Status
from oversmoothing.theory.proofs.evidence import (
    Measurement,
    Searched,
    Simulated,
    Symbolic,
)
from oversmoothing.theory.proofs.hypotheses import POSITIVE, TWO_TOKENS
from oversmoothing.theory.proofs.written import written
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors

_NOT_NILPOTENT = Hypothesis(
    "H is not nilpotent",
    lambda case: not all(value.is_zero for value in eigenvalues(factors(case.H))),
)
_A3 = matrix("4/5 1/10 1/10; 3/10 3/5 1/10; 1/2 1/5 3/10")
_X0 = matrix("1 2; 2 -1; 4 1")


def _two_tokens() -> sp.Matrix:
    """P A X W = a P X W for two tokens, in symbols: every H, every X."""
    p, q = sp.symbols("p q", positive=True)
    A = sp.Matrix([[1 - p, p], [q, 1 - q]])
    X = sp.Matrix(2, 2, sp.symbols("x0:4"))
    W = sp.Matrix(2, 2, sp.symbols("w0:4"))
    P = sp.eye(2) - sp.ones(2, 2) / 2
    return P * A * X * W - (1 - p - q) * P * X * W


def _similarity() -> sp.Expr:
    """1 - t_sim^2 = r^2 / (1 + r^2) for t_sim = LFC / ||X||, r = HFC/LFC."""
    hfc, lfc = sp.symbols("hfc lfc", positive=True)
    r = hfc / lfc
    return sp.simplify(1 - lfc**2 / (hfc**2 + lfc**2) - r**2 / (1 + r**2))


def _law(drawn: Any) -> None:
    """One feature, two tokens: t_L = ||HFC|| / (sqrt 2 |c|) falls by exactly |a| per layer."""
    (A, a), w, (x, y) = drawn
    X, total = [[x], [y]], A[0][1] + A[1][0]
    pi = [[A[1][0] / total, A[0][1] / total]]
    for _ in range(6):
        moved = product(product(A, X), transposed([[w]]))
        before, after = product(pi, X)[0][0], product(pi, moved)[0][0]
        hfc, moved_hfc = squared_norms(X)[0], squared_norms(moved)[0]
        equal(moved_hfc * before**2, a**2 * hfc * after**2)
        X = moved


def _measured(effort: Effort) -> list[Measurement]:
    depths, rows = [150, 300], []
    # A Jordan block is approached like 1/L: its slope is off by a multiple of 1/(150 300).
    for words, H, tolerance in (
        ("H = diag(1/2, -3)", matrix("1/2 0; 0 -3"), 1e-9),
        ("H a rotation by 90 degrees", matrix("0 -1; 1 0"), 1e-9),
        ("H defective", matrix("2 1; 0 2"), 1e-3),
    ):
        logs = log_ratios(_A3, H, _X0, depths, residual=False)
        rows.append(Measurement(words, math.log(1 / 2), slope(logs, depths), tolerance))
    return rows


CLAIM = Claim(
    name="N-2312.06182-escalation",
    statement="Without residual, X' = A X W with one A > 0: token similarity escalates at a "
    "linear, that is geometric, rate set by |lambda_2(A)|, whatever the weights (abstract and a "
    "summary; the rate as a limit is our reading). (HFC/LFC)^(1/L) -> |lambda_2| for H not "
    "nilpotent and X_0 outside a proper subspace; 1 - t_sim^2 then falls like |lambda_2|^(2L) "
    "(t_sim = LFC/||X||, our reading). If lambda_2 = 0 HFC is 0 after n - 1 layers.",
    latex=r"\lim_{L\to\infty} (\mathrm{HFC}/\mathrm{LFC})^{1/L} = |\lambda_2(A)|",
    source="arXiv 2312.06182 v2, token similarity escalation (abstract; a summary)",
    on_record=Status.WRITTEN,
    hypotheses=(POSITIVE, TWO_TOKENS, _NOT_NILPOTENT),
    evidence=(
        written(
            "both blocks carry the same weights",
            POSITIVE_SPECTRUM,
            BLOCKS,
            "Without residual Y' = B Y W and c' = c W: blocks H (x) B and H, of radii "
            "rho(H) |lambda_2| and rho(H).",
            GROWTH,
            "So ||HFC_L||^(1/L) -> rho(H) |lambda_2| and ||c_L||^(1/L) -> rho(H) for X_0 "
            "outside a proper subspace: t^(1/L) -> |lambda_2| < 1 (for lambda_2 = 0, "
            "B^(n-1) = 0 and HFC = 0).",
            COUPLING,
            "t -> 0, so (HFC/LFC)/t -> 1 and HFC/LFC has the same rate.",
        ),
        Symbolic("two tokens: HFC' = lambda_2 HFC W", _two_tokens, complete=False),
        Symbolic("similarity and HFC/LFC", _similarity, complete=False),
        Searched(
            "two tokens, one feature: t falls by |lambda_2| exactly",
            st.tuples(
                draw.two_token_attention(),
                draw.fractions(-3, 3).filter(bool),
                st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
            ),
            _law,
        ),
        Simulated("slope of log HFC/LFC, A with lambda_2 = 1/2", _measured),
    ),
    further="The paper's own theorem bounds the expectation of its rate r(X, Y) from below; its "
    "form was not at hand. Layers that differ: N-2312.06182-changing.",
)
