"""Sinkhorn attention of two tokens in closed form: where collapse is doubly exponential."""

import math

import numpy as np
import sympy as sp

from oversmoothing.theory.proofs.kit import Claim, by
from oversmoothing.theory.support.arrays import Array


def _closed_form() -> list[sp.Expr]:
    """S = [[p, 1 - p], [1 - p, p]] has the cross ratio of exp(logits), and 2p - 1 = tanh(t/4)."""
    p, q, r, s = sp.symbols("l11 l12 l21 l22", real=True)
    t = p + s - q - r
    share = sp.exp(t / 2) / (1 + sp.exp(t / 2))
    ratio = sp.exp(p + s) - sp.exp(q + r) * (share / (1 - share)) ** 2
    return [ratio, (2 * share - 1 - sp.tanh(t / 4)).rewrite(sp.exp)]


def _scaled(logits: Array, rounds: int = 400) -> Array:
    """Sinkhorn's rounds: rows to sum 1, then columns."""
    K: Array = np.exp(logits - logits.max())
    for _ in range(rounds):
        K /= K.sum(axis=1, keepdims=True)
        K /= K.sum(axis=0, keepdims=True)
    return K


def _measured(effort: by.Effort) -> by.Measurements:
    """w = 3/2 and m = 8/3: D* = 1.0987; two starts below it and one above."""
    for d, mean in ((0.5, 0.3), (0.9, -1.0), (1.15, 0.2)):
        w, m, x, predicted = 1.5, 8 / 3, np.array([mean + d / 2, mean - d / 2]), d
        for layer in range(3):
            x = _scaled(m * np.outer(x, x)) @ x * w
            predicted *= w * math.tanh(m * predicted**2 / 4)
            yield by.Measurement(
                f"D_0 = {d}, layer {layer + 1}", predicted, float(x[0] - x[1]), 1e-12
            )


CLAIM = Claim(
    name="N-2604.07925-two-tokens",
    clauses=(
        "Sinkhorn's matrix of logits l, the doubly stochastic diag(r) exp(l) diag(c) with r, c > "
        "0, does not change when a constant is added to a row or to a column of l. So with logits "
        "x_i^T M x_j it depends on differences of tokens alone.",
        "Two tokens: its second eigenvalue is tanh((l_11 + l_22 - l_12 - l_21)/4), for x_i^T M x_j "
        "tanh(delta^T M delta/4), delta = x_1 - x_2; without a residual delta' is this times W^T "
        "delta.",
        "One feature, k = |w m| > 0: |D'| <= k |D|^3/4, so with u_0 = sqrt(k) |D_0|/2 < 1 collapse "
        "is doubly exponential: |D_L| <= (2/sqrt k) u_0^(3^L).",
        "|w| <= 1: D_L -> 0 from every start. |w| > 1 and m != 0: with |w| tanh(|m| D*^2/4) = 1, "
        "D_L -> 0 if |D_0| < D*, |D_L| = D* if |D_0| = D*, and |D_L| -> infinity if |D_0| > D*.",
    ),
    latex=r"D'=w\,\tanh\!\bigl(\tfrac{mD^2}{4}\bigr)D,\qquad "
    r"|D_L|\le\tfrac{2}{\sqrt k}\Bigl(\tfrac{\sqrt k\,|D_0|}{2}\Bigr)^{3^L},\quad k=|wm|",
    source="ours, for the rank decay of arXiv 2604.07925 (abstract)",
    on_record=by.WRITTEN,
    setting="pure Sinkhorn attention X' = S(X) X W, the limit of the rounds; no residual, no norm",
    evidence=(
        by.written(
            "scalings, and the factor as a function of |D|",
            "[1] Such a matrix is unique (Sinkhorn), and exp(l + a 1^T + 1 b^T) is exp(l) with "
            "both scalings changed. x_i = m + y_i: x_i^T M x_j = y_i^T M y_j + (a term of i) + (a "
            "term of j).",
            "[2] A doubly stochastic 2 x 2 matrix is [[p, 1 - p], [1 - p, p]], eigenvalues 1 and "
            "2p - 1. Scalings keep the cross ratio of a 2 x 2 matrix, and p in (0, 1) is fixed by "
            "it: p/(1 - p) = exp(t/2). The identities below. delta is in the second eigenvector.",
            "[3] |tanh x| <= |x|: |D'| <= k |D|^3/4; times sqrt(k)/2, u' <= u^3.",
            "[4] g = |w| tanh(|m| D^2/4) grows with |D|. g(D_0) < 1: |D| falls, g with it, so "
            "|D_L| <= g(D_0)^L |D_0|; g(D_0) > 1: the same the other way. |w| <= 1 has g < 1 "
            "always; |w| > 1 has one D* with g = 1.",
        ),
        by.Symbolic(
            "cross ratio and eigenvalue", _closed_form, covers=(2,), scope=by.Scope.GENERAL
        ),
        by.Simulated("400 rounds in each of three layers", _measured),
    ),
    further="With |w| > 1 the doubly exponential bound holds near collapse only: "
    "N-2604.07925-always.",
)
