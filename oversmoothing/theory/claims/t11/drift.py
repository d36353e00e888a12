"""T11.9: rounded row sums put consensus into HFC: iterate (Y, c), never X."""

import math
from fractions import Fraction

import numpy as np
import sympy as sp

from oversmoothing.theory.depth.ratios import ball_ratios, numerical_ratios
from oversmoothing.theory.layer.quotient import complement_basis
from oversmoothing.theory.layer.symbolic import complement, symbolic_attention, symbolic_matrix
from oversmoothing.theory.numbers.rational import to_float
from oversmoothing.theory.proofs.kit import AA, Claim, by, exact, given
from oversmoothing.theory.support.arrays import Array

_EPS = 2.0**-52


def _exact_saturation() -> None:
    """[1; instance] By the converse in T1b, C is not invariant and 1 is not an eigenvector of A~.
    Its Perron vector v > 0 has P v != 0 and mean v > 0. If the pair (v, h) is the only dominant
    one, X_L/mu^L -> v u^T and HFC/LFC -> ||P v||/(sqrt n |mean v|) (as in T1f). Executed in
    fractions: limit e/(2 + e)."""
    # A_ij v_i/v_j, v = (1, 1 + e), has the Perron vector v: HFC/LFC -> e/(2 + e), not 0.
    e = Fraction(1, 2**24)
    v = [Fraction(1), 1 + e]
    rounded = [[AA[i][j] * v[i] / v[j] for j in range(2)] for i in range(2)]
    assert sum(rounded[0]) != sum(rounded[1])
    assert all(abs(sum(row, Fraction(0)) - 1) <= e for row in rounded)
    H, X = exact.matrix("1/2"), exact.matrix("1; 2")
    hfc, lfc = exact.squared_norms(exact.layer(rounded, H, X, 200))
    floor = (e / (2 + e)) ** 2
    # The other mode has decayed by (5/6)^200 < 10^-15 of its start 1/3.
    assert abs(hfc / lfc / floor - 1) < Fraction(1, 10**7)
    hfc, lfc = exact.squared_norms(exact.layer(AA, H, X, 200))
    assert hfc / lfc == Fraction(1, 9) * Fraction(5, 6) ** 400 < floor / 10**16


def _first_order() -> list[sp.Expr]:
    """[2; fixed size] A simple eigenpair is analytic in the matrix: v = 1 + z with z of first order
    (the part of z along 1 is free), and A z + eta = z + (lam - 1) 1. Q^T of it is (I - B) Q^T z =
    Q^T eta, and ||P v|| = ||Q^T z||, |mean v| = 1 to this order."""
    A, G, Q = symbolic_attention(3), symbolic_matrix(3, 3, "g"), complement(3)
    z, lam = symbolic_matrix(3, 1, "z"), sp.Symbol("l")
    one, e = sp.ones(3, 1), sp.Symbol("e")
    whole = (A + e * G) * (one + e * z) - (1 + e * lam) * (one + e * z)
    order = whole.applyfunc(lambda x: sp.expand(x).coeff(e, 1))
    B = Q.T * A * Q
    claimed = Q.T * G * one - (sp.eye(2) - B) * Q.T * z
    return [sp.simplify(sp.expand(x)) for x in Q.T * order - claimed]


def _single(seed: int, n: int) -> Array:
    """A positive row-stochastic matrix whose entries are rounded to 24 bits."""
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, size=(n, n))
    A: Array = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32).astype(np.float64)
    return A


def _measure(effort: by.Effort) -> by.Measurements:
    """Iterating X with A rounded to single precision: saturation at ||Pv||/(sqrt n |mean v|)."""
    for n in (4, 8, 16):
        A = _single(effort.seed + n, n)
        x = np.random.default_rng(n).standard_normal(n) + 1
        for _ in range(300):
            x = x + 0.5 * (A @ x)
            x = x / np.abs(x).max()
        # Q^T (A - 1 mean) 1 = (I - B) Q^T z: the row sums are differences of 53-bit numbers.
        Q = complement_basis(n)
        excess = Q.T @ np.array([math.fsum([*row, -1.0]) for row in A])
        predicted = np.linalg.norm(np.linalg.solve(np.eye(n - 1) - Q.T @ A @ Q, excess))
        measured = np.linalg.norm(x - x.mean()) / (np.sqrt(n) * abs(x.mean()))
        # Rounding of float64 saturates at about n eps by the same law, and the second order is
        # 2^-24 of the first.
        allowed = 8 * n * _EPS + float(predicted) / np.sqrt(n) * n * 2.0**-23
        predicted_ratio = float(predicted / np.sqrt(n))
        yield by.Measurement(f"saturation, n = {n}", predicted_ratio, float(measured), allowed)


def _autonomous(effort: by.Effort) -> by.Measurements:
    """(Y, c) in float64 against balls at L = 300, where iterating X has long saturated."""
    A = exact.flat("1/2", 3)
    H, X = exact.matrix("1/2 0; 0 1/4"), exact.matrix("1 2; 3 5; 4 -2")
    depth = 300
    truth = ball_ratios(A, H, X, [Fraction(1, 3)] * 3, [depth])[depth].log
    found = numerical_ratios(to_float(A), to_float(H), to_float(X), [depth])[depth].log
    assert truth is not None and found is not None
    # n + d + 4 roundings a layer, in Y and in c, each of relative size eps: B and H are normal.
    tolerance = 2 * (3 + 2 + 4) * depth * _EPS + abs(truth) * _EPS
    return [by.Measurement("log HFC/LFC at L = 300 by (Y, c)", truth, found, tolerance)]


def _no_leak() -> None:
    """[3; instance] In (Y, c) coordinates HFC = Q Y and Y' = Y + B Y W, with any rounding of B:
    errors are relative to Y, and nothing of c enters."""
    # The same rounded entries, used through B' = A_11 - A_21 and c: no saturation.
    e = Fraction(1, 2**24)
    rounded = [[AA[0][0], AA[0][1] / (1 + e)], [AA[1][0] * (1 + e), AA[1][1]]]
    rate = (1 + (rounded[0][0] - rounded[1][0]) / 2) / Fraction(3, 2)
    assert Fraction(1, 3) * rate**200 < e / (2 + e) / 10**8


CLAIM = Claim(
    name="T11.9",
    clauses=(
        "Let A~ > 0 be an A rounded, with row sums that are not all equal. Then C is not "
        "invariant, and where the Perron mode v of A~ dominates, HFC/LFC tends to ||P v||/(sqrt "
        "n |mean v|) > 0, whatever the true rate:",
        "to first order ||(I - B)^{-1} Q^T eta||/sqrt n with eta = A~ 1 - 1, independent of H.",
        "So iterating X saturates near the rounding of the row sums (1e-7 in single, 1e-16 in "
        "double precision), and (Y, c) or (Y, m) must be iterated: there HFC = Q Y never sees c.",
    ),
    latex=r"\tilde A\mathbf 1 = \mathbf 1 + \eta:\quad \frac{\|\mathrm{HFC}\|}{\|\mathrm{LFC}\|}\to"
    r"\frac{\|(I-B)^{-1}Q^\top\eta\|}{\sqrt n} + O(\|\eta\|^2)",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "the Perron vector of the rounded matrix", _exact_saturation, _first_order, _no_leak
        ),
        by.Simulated("saturation of x + A x/2 with A in single precision", _measure),
        by.Simulated("float64 in (Y, c) against balls", _autonomous),
    ),
    further="The rounding of the products adds a term of the same size, which depends on their "
    "order.",
)
