"""T1a, T1e, T9, T11.5, T11.7: HFC/LFC at a depth, by each way that computes it, by hand."""

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from mpmath import mp, mpf

from oversmoothing.theory.depth import ratios
from oversmoothing.theory.depth.closed_form import ClosedForm, FeatureModes, TokenModes
from oversmoothing.theory.depth.eigenbasis import EPS, Multipliers
from oversmoothing.theory.depth.ratios import (
    ITERATED_DEPTH,
    ball_ratios,
    death,
    floating_ratios,
    numerical_ratios,
    ratio_from_balls,
    ratios_at,
)
from oversmoothing.theory.layer.layer import read_layer
from oversmoothing.theory.numbers.exact import exact_stationary, to_flint
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.verdict.verdict import heads_verdict, verdict
from tests.support.cases import cases
from tests.support.tables import floats, matrix

AA = np.array(floats("AA"))


def case(A, H, X0):
    return read_layer(floats(A), floats(H), floats(X0))


def in_balls(given, depths):
    one, start = given
    pi = exact_stationary(one.rational_A, [list(range(one.n))])
    return ball_ratios(one.rational_A, one.rational_H, start.fractions, pi, depths)


# --- of a verdict: exact, in balls, iterated, in closed form ---


@cases(
    "A, H, X0, logs",
    # HFC/LFC starts at 1/3 and goes by (5/4)/(3/2) or (3/4)/(1/2) a layer.
    ("AA", "1/2", "1; 2", {L: L * math.log(5 / 6) - math.log(3) for L in (0, 1, 2000, 2001,
        10**6)}),
    ("AA", "-1/2", "1; 2", {L: L * math.log(3 / 2) - math.log(3) for L in (0, 1, 1750, 1760,
        2001, 10**4)}),
    ("AA", "1/2", "1; 1", {0: -math.inf, 2: -math.inf, 2001: -math.inf}),
    ("AA", "1/2", "1; -1", {0: math.inf, 1: math.inf, 100: math.inf}),
    ("AA", "-1", "3; 1", {1: math.inf, 100: math.inf}),
    ("AA", "1/2", "0; 0", {0: None, 1: None, ITERATED_DEPTH + 1: None}),
)  # fmt: skip
@pytest.mark.parametrize("way", [matrix, floats, floating_ratios])
def test_T11_5_a_ratio_at_any_depth(A, H, X0, logs, way):
    if way is floating_ratios:
        found = floating_ratios(*case(A, H, X0), list(logs))
    else:
        found = verdict(A=way(A), H=way(H), X0=way(X0), depth=list(logs)).hfc_lfc
    for depth, log in logs.items():
        expected = None if log is None else pytest.approx(log, rel=1e-10, abs=1e-10)
        assert found[depth].log == expected, depth
        if log is not None:
            value = math.inf if log > 709.7 else math.exp(log)
            assert found[depth].value == pytest.approx(value, rel=1e-8, abs=5e-324)


@cases(
    "A, H, X0, depths",
    ("A3", "-1/2", "1; 2; 4", [ITERATED_DEPTH + 1, 3, ITERATED_DEPTH, 10**6]),
    ("C3", "-9/10 0; 0 1/4", "1 2; 3 5; -2 1", [ITERATED_DEPTH + 1, ITERATED_DEPTH + 2, 10**5]),
    # Without an eigenbasis every depth is iterated.
    ("AA", "1/2 1; 0 1/2", "1 2; 3 5", [ITERATED_DEPTH + 1, 0]),
)
def test_T11_5_deep_ratios_in_floats_are_those_in_balls_in_order(A, H, X0, depths):
    one = case(A, H, X0)
    found, balls = floating_ratios(*one, depths), in_balls(one, depths)
    assert list(found) == sorted(depths) == list(balls)
    for depth in depths:
        assert found[depth].log == pytest.approx(balls[depth].log, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("n", "d", "balls"), [(2, 64, True), (2, 65, False), (65, 1, True)])
def test_T11_5_balls_are_for_states_of_up_to_64_coordinates_of_the_quotient(
    monkeypatch, n, d, balls
):
    """A = 11^T/n forgets HFC at once but for the residual: HFC stays, LFC grows by 1 + h."""
    asked = []

    def spy(A, H, *rest):
        asked.append((len(A), len(H)))
        return ball_ratios(A, H, *rest)

    monkeypatch.setattr(ratios, "ball_ratios", spy)
    X0 = np.ones((n, d))
    X0[0], X0[1] = 2.0, 0.0
    found = ratios_at(*read_layer(np.full((n, n), 1 / n), np.eye(d), X0), [3])[3]
    assert asked == ([(n, d)] if balls else [])
    # ||HFC||^2 = 2 d and ||LFC||^2 = n d at the start; 1 + h = 2.
    assert found.value == pytest.approx(math.sqrt(2 / n) / 2**3, rel=1e-12)


def test_T11_rows_whose_sum_leaves_a_mersenne_prime_in_the_denominator_are_no_exception():
    """2^53 - 2 and a half as parts of rows that sum to 1 - 2^-61, a thing that softmax rows do."""
    A = [[1 - 2.0**-53, 2.0**-53 - 2.0**-61], [0.5, 0.5]]
    found = verdict(A=A, H=[[0.5]], X0=[[1.0], [2.0]], depth=3).hfc_lfc[3]
    exact = verdict(A=matrix("1 0; 1/2 1/2"), H=[["1/2"]], X0=[[1], [2]], depth=3).hfc_lfc[3]
    assert found.value == pytest.approx(exact.value, rel=1e-12)


# --- in balls, by recurrences, in floats ---


def test_T11_5_the_logarithm_of_a_ratio_next_to_1_has_its_digits():
    """In fractions, in balls and by recurrences (of two heads); beyond binary64 it is 0. The logs
    are those of the fractions X_L in 1,200 digits."""
    logs = {20: -1.0047610045230509e-14, 64: -7.393785703033365e-45, 70: -5.751679649737956e-49,
            200: -5.369052806897362e-138, 1000: 0.0}  # fmt: skip
    A, W, X0 = matrix("2/5 3/5; 0 1"), np.array(matrix("-4/3 1/3; 0 -2/3")), [[1, 2], [1, 0]]
    for answer in (
        verdict(A=A, W=W, X0=X0, depth=logs),
        heads_verdict(A=[A] * 2, W=[W / 2] * 2, X0=X0, depth=logs),
    ):
        for depth, ratio in answer.hfc_lfc.items():
            assert ratio.log == pytest.approx(logs[depth], rel=4 * EPS, abs=0)
            assert ratio.value == math.exp(logs[depth])


def test_T11_5_a_ratio_of_balls_is_that_of_its_differences_and_its_mean():
    """Differences (1, 0) are -+1/2 around their mean: HFC^2 = 1/2, LFC^2 = 2 2^2."""
    one, none = flint.arb(1), flint.arb(0)
    with at_precision(96):
        found = ratio_from_balls([flint.arb(2)], [one, none], [none] * 2, 2, 1)
    assert (found.value, found.log) == pytest.approx((1 / 4, -math.log(4)), rel=1e-15)


def test_T1e_a_nilpotent_block_is_gone_after_its_size_and_no_other_ever_is():
    """Whatever its denominators are, and where only a prime would say that it is gone."""
    shift = [[Fraction(x, 7) for x in row] for row in np.eye(4, k=1, dtype=int).tolist()]
    for k in range(4):
        start = [[Fraction(int(i == k), 1000)] for i in range(4)]
        assert death(to_flint(shift), start) == k + 1
    half = to_flint(matrix("1/2"))
    assert death(half, matrix("1")) is None and death(half, matrix("0")) == 0
    assert death(to_flint(matrix(f"{2**61 - 1}")), matrix("1")) is None


def test_T1d_doubly_stochastic_heads_keep_a_mean_of_0_in_floats():
    A = np.array([[0.1, 0.7, 0.2], [0.2, 0.1, 0.7], [0.7, 0.2, 0.1]])
    H, X0 = np.array([[[0.5]], [[0.25]]]), np.array([[1.0], [1.0], [-2.0]])
    assert numerical_ratios(np.stack([A, A[[1, 0, 2]]]), H, X0, [50])[50].value == math.inf


# --- the closed form ---


# 1 - 1/2^L of what the head took is gone, and what cancels has no relative error.
@cases("c, bounded", ([1.0, 0.0], False), ([1.0, 1.0], True))
def test_T9_the_error_of_a_head_s_state_is_that_of_the_sum(c, bounded):
    """X_L = X_0 + what the head added: where they cancel, the relative error has no bound."""
    features = FeatureModes(P=np.array([[1.0], [0.0]]), Q=np.array([[-1.0, 0.0]]))
    hfc = np.array([[0.0, 1.0], [0.0, -1.0]])
    (found,) = ClosedForm(TokenModes(AA), features).states(hfc, np.array(c), [3])
    worst = max(found.hfc_error, found.c_error)
    assert worst < 1e-12 if bounded else worst == math.inf


def test_T9_the_error_of_a_closed_form_grows_with_the_condition_of_its_eigenvectors(monkeypatch):
    """4 eps times the condition, beside what the eigenvalues themselves may be off by."""
    monkeypatch.setattr(Multipliers, "uncertainty", lambda *arguments: 0.0)
    for size in (0.0, 10.0, 1e4):
        features = FeatureModes(H=np.array([[0.5, size], [0.0, 0.25]]))
        form = ClosedForm(TokenModes(AA), features)
        (found,) = form.states(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.ones(2), [3])
        assert form.condition >= max(1.0, size)
        # No mode outgrows another by more than (3/2)^3 at this depth.
        worst = max(found.hfc_error, found.c_error)
        assert 4 <= worst / (EPS * form.condition) * (1 + EPS) <= 4 * 1.5**3


# --- of logits ---


def log_ratio(logits, H, X0, depth):
    """log HFC/LFC by iterating the layer with 4,000 digits."""
    with mp.workdps(4000):
        weights = [[mp.exp(mpf(x)) if x > -math.inf else mpf(0) for x in row] for row in logits]
        A = mp.matrix([[w / mp.fsum(row) for w in row] for row in weights])
        X, W = mp.matrix(X0), mp.matrix(H).T
        for _ in range(depth):
            X = X + A * X * W
        n, d = X.rows, X.cols
        mean = [mp.fsum(X[i, j] for i in range(n)) / n for j in range(d)]
        hfc = mp.sqrt(mp.fsum((X[i, j] - mean[j]) ** 2 for i in range(n) for j in range(d)))
        return float(mp.log(hfc / (mp.sqrt(n) * mp.norm(mp.matrix(mean)))))


@cases(
    "logits, H, X0",
    # At L = 2 both the mean of e^-747 and what is beside it cancel: e^-1495 is left.
    ("-63 -810; 531 -432", "-1/2", "-2; -1"),
    ("0 -400 -900; -1 0 -700; 3 -800 0", "-1/2", "1; 2; 4"),
    ([[0.0, -math.inf], [0.0, 60.0]], "-1 1/2; 0 1/4", "1 2; 3 -1"),
    ("1 2 1/2; 0 0 1; 2 -1 0", "1/2", "1; -3; 5/2"),
    ids=["cancels twice", "nearly decoupled", "causal", "plain"],
)
def test_T11_5_a_ratio_of_logits_is_that_of_the_softmax_itself(logits, H, X0):
    logits = floats(logits) if isinstance(logits, str) else logits
    found = verdict(logits=logits, H=floats(H), X0=floats(X0), depth=(0, 1, 2, 3, 7)).hfc_lfc
    for depth, ratio in found.items():
        expected = log_ratio(logits, floats(H), floats(X0), depth)
        assert ratio.log == pytest.approx(expected, rel=1e-12, abs=1e-12)


@cases(
    "logits, h, X0, logs",
    # A mean that doubly stochastic attention keeps at 0 stays 0.
    ([[0.1, 0.7, -2.0], [-2.0, 0.1, 0.7], [0.7, -2.0, 0.1]], 0.5, [[1.0], [1.0], [-2.0]],
     dict.fromkeys((0, 4, 5000), math.inf)),
    # I + H = 0: the class mean is gone after a layer, and LFC is what the differences leave.
    ([[0.0, -math.inf], [1.0, 0.0]], -1.0, [[2.0], [5.0]], {1: 0.0, 6: 0.0}),
    ([[0.0, -math.inf], [1.0, 0.0]], -0.5, [[2.0], [2.0]], {0: -math.inf, 6: -math.inf}),
    # e^-9000 twice is beyond the bits, and no number near it is said.
    ([[0.0, -9000.0], [9000.0, 0.0]], -0.5, [[-2.0], [-1.0]], {2: None}),
)  # fmt: skip
def test_T11_5_ratios_of_logits_that_are_0_infinite_or_unknown(logits, h, X0, logs):
    found = verdict(logits=logits, H=[[h]], X0=X0, depth=list(logs)).hfc_lfc
    for depth, log in logs.items():
        assert found[depth].log == (log if log is None else pytest.approx(log, abs=1e-15))
        assert (found[depth].value is None) == (log is None)
