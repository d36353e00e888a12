"""T7c: one feature, h_l > 0: smoothing is decided by whether a state ever has one sign."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.t7.oscillation import (
    ADVERSARIES,
    adversary,
    contraction_to,
    dobrushin,
    mean,
    oscillation,
)
from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.numbers.exact_matrix import applied
from oversmoothing.theory.proofs.kit import Claim, Matrix, Status, by, draw, given


@st.composite
def _layers(pick: st.DrawFn) -> tuple[list[Fraction], list[tuple[Fraction, int, Matrix]]]:
    """x_0 and layers (h > 0, which adversary, a drawn A)."""
    n = pick(st.integers(2, 4))
    x = [Fraction(k) for k in pick(draw.lists(st.integers(-6, 9), n))]
    sizes = draw.fractions(0, 3, 6).filter(bool)
    layer = st.tuples(sizes, st.integers(0, ADVERSARIES), draw.attention(n, n))
    return x, pick(draw.lists(layer, 1, 6))


def _law(x: list[Fraction], layers: list[tuple[Fraction, int, Matrix]]) -> None:
    assume(oscillation(x) > 0)
    for h, kind, drawn_A in layers:
        A = contraction_to(drawn_A if kind == ADVERSARIES else adversary(x, kind), Fraction(3, 4))
        before, tau = x, dobrushin(A)
        x = [a + h * b for a, b in zip(x, applied(A, x), strict=True)]
        assert oscillation(x) <= (1 + h * tau) * oscillation(before)
        if min(before) > 0:
            assert min(x) >= (1 + h) * min(before)
        if min(x) <= 0 <= max(x):
            hfc, lfc = squared_norms([[entry] for entry in x])
            assert 2 * len(x) * hfc >= lfc and oscillation(x) >= abs(mean(x))


def _following(x: np.ndarray, depth: int) -> np.ndarray:
    """Two tokens under A = softmax(x x^T), h = 1/2, in the scale of the state."""
    log_scale = 0.0
    for _ in range(depth):
        logits = np.exp(2 * log_scale) * np.outer(x, x)
        A = np.exp(logits - logits.max(axis=1, keepdims=True))
        x = x + A @ x / A.sum(axis=1) / 2
        size = np.abs(x).max()
        x, log_scale = x / size, log_scale + math.log(size)
    return x


def _measure(effort: by.Effort) -> by.Measurements:
    """(2, -1) keeps both signs and freezes; (.3, -.2) gets one sign."""
    frozen, joined = _following(np.array([2.0, -1.0]), 40), _following(np.array([0.3, -0.2]), 40)
    ratio = abs(frozen[0] - frozen[1]) / abs(frozen.sum())
    return [
        by.Measurement("HFC/LFC from (2, -1) after 40 layers", 2.816756, ratio, 1e-5),
        by.Measurement("sign of the product from (.3, -.2)", 1.0, float(np.sign(joined.prod())), 0),
    ]


CLAIM = Claim(
    name="T7c",
    clauses=(
        "One feature, h_l > 0, A_l row-stochastic with tau_l = tau(A_l), also computed from x_l;"
        " beta_L = prod (1 + h_l tau_l)/(1 + h_l). From x_0 > 0 entrywise: osc/min at L is at "
        "most beta_L times that at 0.",
        "If beta_L -> 0 and some x_l has strictly one sign, HFC/LFC -> 0.",
        "If none has, HFC/LFC >= 1/sqrt(2n) in every layer with x_l != 0, whatever beta_L.",
        "If moreover the A_l and h_l are prescribed and beta_L -> 0, the products of (I + h_l "
        "A_l)/(1 + h_l) tend to 1 q^T, and HFC/LFC -> 0 iff q^T x_0 != 0; q = pi for one fixed A"
        " with a single closed class.",
    ),
    latex=r"\frac{\operatorname{osc}x_L}{\min x_L}\le\prod_{l<L}\frac{1+h_l\tau_l}{1+h_l}\cdot"
    r"\frac{\operatorname{osc}x_0}{\min x_0}\quad(x_0>0)",
    source="ours",
    on_record=Status.WRITTEN,
    hypotheses=(
        given.ROW_STOCHASTIC,
        given.TWO_TOKENS,
        given.Hypothesis(
            "one feature, h > 0",
            lambda case: len(case.H) == 1 and case.H[0][0] > 0,
            (given.case(H="-1"), given.case(H="1 0; 0 1")),
        ),
    ),
    evidence=(
        by.Formal("T7c_smoothing.positive_smooths", (1,)),
        by.Formal("T7c_smoothing.mixed_floor", (3,)),
        by.written(
            "osc against min",
            "[1] x' = x + h A x with h > 0: osc(x') <= osc(x) + h osc(Ax) <= (1 + h tau) osc(x), "
            "and min(Ax) >= min(x), so min(x') >= (1 + h) min(x) where min(x) > 0. Divide (the "
            "query): osc/min shrinks by (1 + h tau)/(1 + h) per layer, and x stays positive.",
            "[2] One sign at layer l (all negative: take -x): from there osc/min <= beta_L/beta_l "
            "times its value at l -> 0, as beta_l > 0. HFC <= sqrt n osc and LFC >= sqrt n min, so"
            " HFC/LFC -> 0.",
            "[3] Not strictly of one sign: min <= 0 <= max gives |mean| <= osc, and ||x - m|| >= "
            "osc/sqrt 2: HFC/LFC = ||x - m||/(sqrt n |m|) >= 1/sqrt(2n). There is no third case.",
            "[4] Prescribed: B_l = (I + h_l A_l)/(1 + h_l) is row-stochastic with tau(B_l) <= (1 +"
            " h_l tau_l)/(1 + h_l). In each column of B_L ... B_1 the range over the rows shrinks "
            "to a part of itself, by tau(B_L); it tends to a point as beta_L -> 0: the limit is 1 "
            "q^T. So x_L/prod (1 + h_l) -> (q^T x_0) 1, and q^T x_0 != 0 gives HFC/LFC -> 0.",
            "[4] q^T x_0 = 0: no x_l has strictly one sign, for x_l > 0 would keep min x_L/prod (1"
            " + h) from falling, and the limit would be positive. So the floor holds. For one A "
            "pi^T B = pi^T, hence q = pi.",
        ),
        by.for_all(
            "osc/min shrinks by (1 + h tau)/(1 + h) where min > 0",
            given="0 < h; 0 <= t; t <= 1; 0 < m; 0 <= o; 0 <= O; O <= (1+h*t)*o; M >= (1+h)*m",
            then="O*(1+h)*m <= (1+h*t)*o*M and M > 0",
            at="h=1, t=1/2, o=1, m=1, O=1, M=2",
            covers=(1,),
        ).unless("mixed signs", without="0 < m", at="h=1, t=1/2, o=1, m=-1, O=1, M=-2"),
        by.searched(
            "both one-step bounds and the floor, adversaries included",
            _law,
            _layers(),
            at=lambda x, layers: (layers[0][2], [[layers[0][0]]]),
        ),
        by.Simulated("two tokens under softmax(x x^T), h = 1/2", _measure),
    ),
    further="Both cases occur on open sets of x_0: under softmax(x x^T) with h = 1/2, (2, -1) "
    "freezes at 2.816756 (observed), (.3, -.2) smooths.",
)
