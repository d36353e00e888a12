"""HFC/LFC -> 0 implies angle convergence implies rank collapse; neither arrow turns round."""

import math

import numpy as np
import sympy as sp

from oversmoothing.theory.proofs.all_depths import L, around, induction, ratio_is
from oversmoothing.theory.proofs.kit import AA, Claim, by, draw, equal, exact
from oversmoothing.theory.support.arrays import Array


def _angle_without_smoothing() -> None:
    """[3; instance] No converse: A = [[3/4, 1/4], [1/4, 3/4]], X_0 = (1, 2). h = -4/3: HFC/LFC =
    1/3 for ever and both tokens have one sign, cos = 1."""
    mean, half = 3 * sp.Rational(-1, 3) ** L / 2, sp.Rational(1, 3) ** L / 2
    state = around(mean, half)
    induction(AA, exact.matrix("-4/3"), exact.column("1 2"), state)
    ratio_is(state, sp.Rational(1, 9))
    for depth in range(6):
        assert state[0].subs(L, depth) * state[1].subs(L, depth) > 0, "opposite signs"


def _rank_without_angle() -> None:
    """[3; instance] h = -1/2: rank 1, but (3/2) 2^-L -+ (1/2) (3/4)^L have opposite signs from
    layer 3 on: cos = -1."""
    mean, half = 3 * sp.Rational(1, 2) ** L / 2, sp.Rational(3, 4) ** L / 2
    state = around(mean, half)
    induction(AA, exact.matrix("-1/2"), exact.column("1 2"), state)
    equal(sp.limit(half / mean, L, sp.oo), sp.oo)
    assert state[0].subs(L, 3) * state[1].subs(L, 3) < 0, "equal signs"


def _law(X: Array) -> None:
    scale = np.abs(X).max()
    if scale == 0 or not np.isfinite(scale):
        return
    X = X / scale
    mean = X.mean(axis=0)
    lfc, hfc = math.sqrt(len(X)) * float(np.linalg.norm(mean)), float(np.linalg.norm(X - mean))
    if lfc == 0:
        return
    ratio = hfc / lfc
    sigma = np.linalg.svd(X, compute_uv=False)
    if len(sigma) > 1:
        assert sigma[1] <= ratio * sigma[0] * (1 + 1e-9) + 1e-14
    if len(X) * ratio**2 <= 1:
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        assert (unit @ unit.T).min() >= 1 - 2 * len(X) * ratio**2 - 1e-12


CLAIM = Claim(
    name="P-2401.04301v3-notions",
    clauses=(
        "HFC/LFC -> 0 implies angle convergence (every cosine -> 1),",
        "which implies rank collapse (sigma_2/sigma_1 -> 0, effective rank -> 1);",
        "neither converse holds (v3's notions; this order of theirs is our reading).",
    ),
    latex=r"\cos(x_i,x_k) \ge 1 - 2nr^2,\quad \sigma_2/\sigma_1 \le r,\quad "
    r"r = \mathrm{HFC}/\mathrm{LFC}",
    source="arXiv 2401.04301 v3, three notions of oversmoothing (public summary), our reading",
    on_record=by.WRITTEN,
    evidence=(
        by.written(
            "inequalities for any state",
            "[1] x_i = m + e_i with ||e_i|| <= ||HFC|| = r sqrt(n) ||m||. If e = r sqrt(n) <= 1 "
            "the angle between x_i and m is at most arcsin e, between two tokens 2 arcsin e: cos "
            ">= 1 - 2 e^2 = 1 - 2 n r^2.",
            "[2] If all cosines tend to 1, unit rows u_i satisfy u_i - u_1 -> 0, so X = (||x_i||) "
            "u_1^T + o(||X||): sigma_2 = o(sigma_1) (Eckart, Young). The effective rank, "
            "continuous in the normalised singular values, tends to 1. Directly: LFC has rank 1, "
            "so sigma_2 <= ||HFC||, and sigma_1 >= ||LFC||: sigma_2/sigma_1 <= r.",
            _angle_without_smoothing,
            _rank_without_angle,
        ),
        by.searched(
            "both inequalities, scales and spreads over 300 orders", _law, draw.token_states()
        ),
    ),
    further="cos -> +-1 (absolute) already implies rank collapse; a mean cosine near 1 does not "
    "certify angle convergence for many tokens (T4b).",
)
