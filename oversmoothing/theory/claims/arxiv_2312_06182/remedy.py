"""The remedy X <- (I - tau J) X: what it does to both radii, and from which tau it acts."""

import math
from fractions import Fraction
from itertools import product as pairs
from typing import Any

import sympy as sp

from oversmoothing.theory.claims.arxiv_2312_06182.escalating import AFTER, BEFORE, operator, step
from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.proofs.kit import A3, AA, Claim, by, draw, equal, exact, given


def _law(attention: Any, tau: Any) -> None:
    """Spectrum and HFC of both compositions, exactly, for any row-stochastic A and any H."""
    A, H, X0 = attention
    expected = exact.characteristic(exact.scaled(1 - tau, exact.plus_identity(H)))
    if len(A) > 1:
        expected *= exact.characteristic(
            exact.plus_identity(exact.kronecker(H, rational_quotient(A)))
        )
    for place in (AFTER, BEFORE):
        equal(exact.characteristic(operator(A, H, tau, place)), expected)
        X = X0
        for depth in range(1, 4):
            X = step(A, H, X, tau, place)
            equal(exact.centred(X), exact.centred(exact.layer(A, H, X0, depth)))


def _growth() -> list[sp.Expr]:
    """[2; instance] For a real square T of spectral radius rho > 0, with largest Jordan block s at
    modulus rho, ||T^L y|| lies between two positive multiples of L^(s-1) rho^L for every y
    outside a proper subspace: T^L y = sum over eigenvalues and k < s of C(L, k) lambda^(L-k) N^k E
    y, and the leading terms N^(s-1) E y of different eigenvalues lie in independent subspaces, so
    they cannot cancel. The subspace to avoid is the kernel of one non-zero N^(s-1) E."""
    L = sp.Symbol("L", integer=True, nonnegative=True)
    block = sp.Matrix([[2, 1], [0, 2]])
    power = sp.Matrix([[2**L, L * 2 ** (L - 1)], [0, 2**L]])
    return [*(power.subs(L, 0) - sp.eye(2)), *(power.subs(L, L + 1) - power * block)]


def _thresholds() -> None:
    """[2, 3, 4; instance] tau = 1 after: m' = 0. |1 - tau| = 1 at tau = 2. Without residual the
    blocks are (1 - tau) H and H (x) B. For a = h = 1/2 (r = 5/6) one layer multiplies HFC/LFC by
    exactly r/|1 - tau|: 1 at tau = 1/6 and 11/6."""
    rate, taus = Fraction(5, 6), map(Fraction, ["0", "1/12", "1/6", "1/2", "11/6", "2", "3"])
    for t, place in pairs(taus, (AFTER, BEFORE)):
        X = exact.column("1 2")
        for _ in range(4):
            Z = step(AA, exact.matrix("1/2"), X, t, place)
            (hfc, lfc), (moved, low) = exact.squared_norms(X), exact.squared_norms(Z)
            equal(moved * lfc * (1 - t) ** 2, hfc * low * rate**2)
            X = Z
    X = step(AA, exact.matrix("1/2"), exact.column("1 2"), Fraction(1), AFTER)
    equal(exact.squared_norms(X)[1], 0)


def _measured(effort: by.Effort) -> by.Measurements:
    # Eigenvalues of A: 1, 1/2, 1/5; H = diag(1, -1/2) has rho_C = 2, rho_Q = 3/2, r = 3/4.
    start = exact.matrix("1 2; 2 -1; 4 1")
    falling = [("1/10", AFTER), ("1/10", BEFORE), ("2", AFTER), ("5/2", BEFORE)]
    for tau, place in [*falling, ("1/2", AFTER), ("3/2", BEFORE), ("1/3", AFTER)]:
        t, falls = Fraction(tau), (tau, place) in falling
        what = f"tau = {tau}, {place}" + ": constant" * (not falls)
        predicted = math.log(0.75 / abs(1 - float(t))) if falls else 0.0
        rows = operator(A3, exact.diagonal("1 -1/2"), t, place)
        found = measured.log_slope(measured.hfc_lfc, measured.powers(rows, start, (200, 400)))
        yield by.Measurement(what, predicted, found, 1e-8)


CLAIM = Claim(
    name="N-2312.06182-remedy",
    clauses=(
        "De-escalation X <- (I - tau J) X, J = 1 1^T/n, in every layer, after the update or "
        "before it: HFC_L is unchanged, exactly; the consensus block I + H becomes (1 - tau)(I +"
        " H) and the quotient block is untouched, for every row-stochastic A.",
        "So rho_C becomes |1 - tau| rho_C, and with r = rho_Q/rho_C for X_0 outside a proper "
        "subspace: HFC/LFC -> 0 at rate r/|1 - tau| where |1 - tau| > r; liminf HFC/LFC > 0 "
        "where |1 - tau| < r, that is 1 - r < tau < 1 + r; a tie at tau = 1 -+ r.",
        "tau = 1 after the update deletes LFC; tau = 2 leaves both radii as they were; tau < 0 "
        "or > 2 makes escalation faster.",
        "Without residual the same with r = |lambda_2|. (The paper proposes the removal, usually"
        " tau = 1 [a summary]; radii and thresholds are ours.)",
    ),
    latex=r"\rho_C \mapsto |1-\tau|\,\rho_C,\quad \rho_Q \mapsto \rho_Q,\qquad "
    r"\mathrm{HFC}/\mathrm{LFC} \not\to 0 \Leftarrow |1-\tau| < \rho_Q/\rho_C",
    source="ours, for the remedy of arXiv 2312.06182 v2 (a summary)",
    on_record=by.WRITTEN,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS),
    evidence=(
        by.written(
            "block triangular in (mean, HFC)",
            "[1] S = I - tau J has S 1 = (1 - tau) 1, P S = S P = P, and J S = (1 - tau) J. For X "
            "= 1 m + Y, Y = HFC, b = 1^T/n: A 1 = 1 gives the mean m + m W + b A Y W and the "
            "deviation Y + P A Y W of X + A X W.",
            "[1] After: m' = (1 - tau)(m (I + W) + b A Y W), Y' = Y + P A Y W. Before: m' = (1 - "
            "tau) m (I + W) + b A Y W, Y' as before. So HFC_L does not depend on tau (also for A "
            "and W that differ by layer), and the operator is block triangular with blocks (1 - "
            "tau)(I + H) and I + H (x) B.",
            _growth,
            "[2] |1 - tau| rho_C > rho_Q: X_L is of exact order L^p (|1 - tau| rho_C)^L for X_0 "
            "outside a proper subspace, while HFC_L is of exact order L^q rho_Q^L. So LFC_L "
            "carries the whole: HFC/LFC -> 0, with rate rho_Q/(|1 - tau| rho_C).",
            "[2] |1 - tau| rho_C < rho_Q: all eigenvalues of modulus rho_Q, with their Jordan "
            "blocks, belong to the quotient block (its spectral subspace lifts, as the consensus "
            "block has none of them): X_L = O(L^q rho_Q^L), the exact order of HFC_L. So HFC/LFC "
            ">= HFC/||X|| is bounded below.",
            _thresholds,
        ),
        by.searched(
            "characteristic polynomials and HFC, in fractions",
            _law,
            draw.exact_cases(4, 2),
            draw.fractions(-2, 4),
            at=lambda case, tau: case,
        ),
        by.Simulated("slope of log HFC/LFC, r = 3/4", _measured),
    ),
    further="Attention computed from X: HFC then depends on tau through A. Positivity is used only "
    "through n >= 2 and rho_Q > 0. The tie is decided by the Jordan blocks and the coupling.",
)
