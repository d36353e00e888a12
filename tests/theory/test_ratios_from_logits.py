"""T11.5: HFC/LFC of attention given as logits, where no matrix of fractions is that attention."""

from __future__ import annotations

import math

import pytest
from mpmath import mp, mpf

from oversmoothing.theory.verdict.verdict import verdict


def _log_ratio(logits, H, X0, depth: int) -> float:
    """log HFC/LFC by iterating the layer with 4,000 digits."""
    with mp.workdps(4000):
        weights = [[mp.exp(mpf(x)) if x > -math.inf else mpf(0) for x in row] for row in logits]
        A = mp.matrix([[w / mp.fsum(row) for w in row] for row in weights])
        X, W = mp.matrix(X0), mp.matrix(H).T
        for _ in range(depth):
            X = X + A * X * W
        mean = mp.matrix(
            [[mp.fsum(X[i, j] for i in range(X.rows)) / X.rows] for j in range(X.cols)]
        )
        hfc = mp.sqrt(
            mp.fsum((X[i, j] - mean[j]) ** 2 for i in range(X.rows) for j in range(X.cols))
        )
        return float(mp.log(hfc / (mp.sqrt(X.rows) * mp.norm(mean))))


@pytest.mark.parametrize(
    ("logits", "H", "X0"),
    [
        # At L = 2 both the mean of e^-747 and what is beside it cancel: e^-1495 is left.
        ([[-63.0, -810.0], [531.0, -432.0]], [[-0.5]], [[-2.0], [-1.0]]),
        (
            [[0.0, -400.0, -900.0], [-1.0, 0.0, -700.0], [3.0, -800.0, 0.0]],
            [[-0.5]],
            [[1.0], [2], [4]],
        ),
        ([[0.0, -math.inf], [0.0, 60.0]], [[-1.0, 0.5], [0.0, 0.25]], [[1.0, 2.0], [3.0, -1.0]]),
        ([[1.0, 2.0, 0.5], [0.0, 0.0, 1.0], [2.0, -1.0, 0.0]], [[0.5]], [[1.0], [-3.0], [2.5]]),
    ],
    ids=["cancels twice", "nearly decoupled", "causal", "plain"],
)
def test_a_ratio_is_that_of_the_softmax_itself(logits, H, X0):
    found = verdict(logits=logits, H=H, X0=X0, depth=(0, 1, 2, 3, 7)).hfc_lfc
    for depth, ratio in found.items():
        assert ratio.log == pytest.approx(_log_ratio(logits, H, X0, depth), rel=1e-12, abs=1e-12)


def test_a_mean_that_doubly_stochastic_attention_keeps_at_0_stays_0():
    logits = [[0.1, 0.7, -2.0], [-2.0, 0.1, 0.7], [0.7, -2.0, 0.1]]
    found = verdict(logits=logits, H=[[0.5]], X0=[[1.0], [1.0], [-2.0]], depth=(0, 4, 5000)).hfc_lfc
    assert [ratio.log for ratio in found.values()] == [math.inf] * 3


def test_a_mean_that_dies_out_is_gone_and_a_state_at_consensus_stays_there():
    """I + H = 0: the class mean is gone after one layer, and LFC is what the differences leave."""
    logits = [[0.0, -math.inf], [1.0, 0.0]]
    dead = verdict(logits=logits, H=[[-1.0]], X0=[[2.0], [5.0]], depth=(1, 6)).hfc_lfc
    assert [ratio.log for ratio in dead.values()] == pytest.approx([0.0, 0.0], abs=1e-15)
    flat = verdict(logits=logits, H=[[-0.5]], X0=[[2.0], [2.0]], depth=(0, 6)).hfc_lfc
    assert [ratio.value for ratio in flat.values()] == [0.0, 0.0]


def test_what_the_bits_do_not_tell_has_no_value():
    """e^-9000 twice is beyond them, and no number near it is said."""
    logits = [[0.0, -9000.0], [9000.0, 0.0]]
    found = verdict(logits=logits, H=[[-0.5]], X0=[[-2.0], [-1.0]], depth=(2,)).hfc_lfc[2]
    assert found.value is None and found.log is None
