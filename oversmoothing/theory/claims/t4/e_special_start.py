"""T4e: special X_0: the modes it contains decide, and rounding brings the others back."""

import math
from fractions import Fraction
from itertools import product as pairs

import numpy as np
from hypothesis import assume, strategies as st

from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.proofs.checks import BITS
from oversmoothing.theory.proofs.instances import A3, J2
from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, is_zero, spectra


def _defective_content() -> None:
    """[1; instance] With rho_C(X_0), rho_Q(X_0) the largest |mu| present on each side, T1e gives:
    rho_C(X_0) > rho_Q(X_0) => HFC/LFC -> 0; < => liminf HFC/LFC >= 1/(sqrt n delta). The verdicts
    of T4a and the floor hold word for word with the present spectrum, for every X_0. Equal moduli:
    the powers k decide as in T6b."""
    # H = [[0, 1], [0, 0]], A = J2: X_0 on the second feature drives L^1, on the first L^0.
    H, first, second = exact.matrix("0 1; 0 0"), exact.matrix("1 0; 2 0"), exact.matrix("0 1; 0 2")
    assert exact.layer(J2, H, first, 8) == first
    early, late = (exact.squared_norms(exact.layer(J2, H, second, depth))[1] for depth in (4, 8))
    assert late > 3 * early


@st.composite
def _special(draw_: st.DrawFn) -> tuple[Matrix, list[Fraction], Matrix, list[Fraction], list[int]]:
    """Two tokens, real h, and which of the 2 d blocks X_0 shall contain."""
    A, a = draw_(draw.two_token_attention())
    H, h = draw_(draw.value_projections(3))
    present = draw_(draw.lists(st.integers(-3, 3), 2 * len(h)))
    return A, [Fraction(1), a], H, h, present


def _law(A: Matrix, a: list[Fraction], H: Matrix, h: list[Fraction], present: list[int]) -> None:
    rng = np.random.default_rng(7)
    X0 = exact.zeros(2, len(h))
    kept: dict[bool, list[Fraction]] = {True: [], False: []}
    for weight, (y, x) in zip(present, pairs(sorted(set(h)), a), strict=False):
        raw = exact.from_integers(rng.integers(1, 1000, (2, len(h))))
        block = spectra.block(A, x, raw, H, y)
        if weight and not is_zero(block):
            kept[x == 1].append(abs(1 + x * y))
            X0 = exact.plus(X0, block, weight)
    assume(kept[True] and kept[False])
    top_c, top_q = max(kept[True]), max(kept[False])
    found = given.content(A, H, X0)
    assert found.comparison == (top_c > top_q) - (top_c < top_q), "the present modes decide"
    assume(top_c != top_q)
    if top_c > top_q:
        assume(top_q / top_c < Fraction(4, 5))
        X = measured.states(A, H, X0, [150], BITS)[150]
        assert float(measured.hfc_lfc(X, BITS).mid()) < 1e-6, "it should smooth"
    else:
        assume(top_c / top_q < Fraction(4, 5))
        floor_squared = 1 / (
            2 * spectra.squared_deviation(spectra.stationary(A)) or Fraction(1, 10**6)
        )
        hfc, lfc = exact.squared_norms(exact.layer(A, H, X0, 150))
        assert lfc == 0 or hfc / lfc > floor_squared * Fraction(9, 10), "below the floor"


def crossing(start: list[Fraction], h: float, kind: type[np.floating], limit: int) -> int | None:
    """First layer at which HFC/LFC < 1 on A3 when every operation rounds in this format."""
    A = [[kind(float(x)) for x in row] for row in A3]
    x = [kind(float(v)) for v in start]
    factor = kind(h)
    for depth in range(1, limit):
        mixed = [row[0] * x[0] + row[1] * x[1] + row[2] * x[2] for row in A]
        x = [v + factor * m for v, m in zip(x, mixed, strict=True)]
        mean = (float(x[0]) + float(x[1]) + float(x[2])) / 3
        hfc = math.sqrt(sum((float(v) - mean) ** 2 for v in x))
        if hfc < math.sqrt(3) * abs(mean):
            return depth
    return None


def _reinjection(effort: by.Effort) -> by.Measurements:
    """h = 1/2 on A3 from X_0 with pi^T X_0 = 0: exactly, HFC/LFC stays above the floor 1.46; in
    floats it crosses 1 after about log(1/eps)/log(rho/rho') layers."""
    pi, per_layer = spectra.stationary(A3), math.log(1.5 / 1.25)
    for first in ((1, 2), (3, -1), (0, 1)):
        start = [*map(Fraction, first), -(pi[0] * first[0] + pi[1] * first[1]) / pi[2]]
        hfc, lfc = exact.squared_norms(
            exact.layer(A3, exact.matrix("1/2"), [[x] for x in start], 300)
        )
        above = float(hfc > Fraction(1464, 1000) ** 2 * lfc)
        yield by.Measurement(f"{first}, exactly: above the floor at layer 300", 1.0, above, 0)
        for kind, bits, name in ((np.float32, 24, "float32"), (np.float64, 53, "float64")):
            found = float(crossing(start, 0.5, kind, 600) or 0)
            what = f"{first}, {name}: layer of re-injection"
            yield by.Measurement(what, bits * math.log(2) / per_layer, found, 20)
    # Exchanging the tokens and the sign commutes with every rounded operation: never.
    x, y = 1.0, -1.0
    for _ in range(1000):
        x, y = x + 0.5 * (0.75 * x + 0.25 * y), y + 0.5 * (0.75 * y + 0.25 * x)
    yield by.Measurement("antisymmetric X_0, symmetric A: mean after 1000 layers", 0.0, x + y, 0)


CLAIM = Claim(
    name="T4e",
    clauses=(
        "For EVERY X_0 the pairs with E_i X_0 E_j^T != 0 decide: with rho_C(X_0), rho_Q(X_0) the"
        " largest moduli present, HFC/LFC -> 0 if rho_C(X_0) > rho_Q(X_0), liminf HFC/LFC >= "
        "1/(sqrt n delta) if <.",
        "The matching of the present dominant pairs bounds the asymptotic rank from above only: "
        "a rank-1 X_0 with all pairs present keeps rank 1.",
        "An absent dominant mode that is put back with a share eta catches up after "
        "log(1/eta)/log(rho/rho') layers and a constant; rounding does that with eta of the "
        "order of the unit roundoff (observed), except where a symmetry of the rounded "
        "operations forbids it.",
    ),
    latex=r"S(X_0)=\{(i,j):E_iX_0E_j^\top\ne0\}:\quad \rho_C(X_0)>\rho_Q(X_0)\Rightarrow "
    r"\tfrac{\|HFC\|}{\|LFC\|}\to0",
    source="ours; that the rank law becomes an inequality corrects an earlier wording",
    on_record=by.WRITTEN,
    hypotheses=(
        given.ROW_STOCHASTIC,
        given.SIMPLE_ONE,
        given.Hypothesis(
            "X_0 is not 0",
            lambda case: case.X0 is None or not is_zero(case.X0),
            (given.case(X0="0; 0"),),
        ),
    ),
    evidence=(
        by.written(
            "blocks evolve alone",
            "[1] A acts on the left, W on the right, and both commute with their projectors: each "
            "block X_ij = E_i X E_j^T evolves alone, by 1 + h_j a_i plus a nilpotent D (T11.8). A "
            "block that is 0 at L = 0 stays 0; one that is not is Theta(|mu|^L L^k), k the last "
            "power with D^k X_ij != 0 (mu != 0).",
            "[1] Blocks lie in independent subspaces, so norms of sums of blocks are comparable "
            "with the sum of their norms: no cancellation, at any L. Hence ||c_L|| = Theta of the "
            "largest present consensus block (a = 1), and ||HFC_L|| of the largest present other "
            "one (P is injective on the sum of those, as 1 is a simple eigenvalue).",
            _defective_content,
            "[] A spectrum in [-1, 0] can therefore smooth from a special X_0 (GT14 in T2e).",
            "[2] Rank: the matching of the present dominant pairs bounds the asymptotic rank from "
            "above (step 2 of T4c uses no genericity), but need not be attained: the rank-1 X_0 of "
            "T4c has every pair present, a matching of 3, and keeps rank 1.",
            "[3] Re-injection, exactly: X_0 + eta G with X_0 growing like g rho'^L and the "
            "dominant mode in G like e rho^L, rho > rho': they are equal at L = log(g/(eta "
            "e))/log(rho/rho'). In floating point eta is of the order of the unit roundoff, where "
            "rounding feeds the mode at all.",
        ),
        by.searched(
            "two tokens, blocks of X_0 switched on and off",
            _law,
            _special(),
            at=lambda A, a, H, *_: (A, H),
        ),
        by.Simulated("re-injection by rounding, and its absence", _reinjection),
    ),
    further="the re-injection depth is an estimate: a theorem about a rounding model would settle "
    "it",
)
