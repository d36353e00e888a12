"""T1a, T11: the closed form on cases worked by hand, with parts that vanish."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oversmoothing.theory.depth import closed_form as module
from oversmoothing.theory.depth.closed_form import ScaledState, closed_form

A2 = [[0.75, 0.25], [0.25, 0.75]]


def test_T11_7_the_logarithm_of_the_ratio_where_a_part_vanishes():
    some, none = np.array([[3.0], [-3.0]]), np.zeros((2, 1))
    mean, zero = np.array([4.0]), np.zeros(1)
    assert ScaledState(1, some, zero, 5.0, 0.0).log_hfc_lfc == math.inf
    assert ScaledState(1, none, mean, 5.0, 0.0).log_hfc_lfc == -math.inf
    assert math.isnan(ScaledState(1, none, zero, 5.0, 0.0).log_hfc_lfc)
    both = ScaledState(1, some, mean, 5.0, 2.0).log_hfc_lfc
    assert both == pytest.approx(math.log(3 / 4) + 3 * math.log(2))


@pytest.mark.parametrize("depth", [0, 1, 7, 10**6])
def test_T1a_a_feature_that_is_0_stays_0_beside_one_that_is_not(depth):
    for X0 in ([[1.0, 0.0], [2.0, 0.0]], [[1.0, 1.0], [2.0, 1.0]]):
        (state,) = closed_form(A=A2, H=np.diag([0.5, 0.25]), X0=X0, depths=[depth])
        hfc = math.log(math.sqrt(0.5)) + depth * math.log(1.25)
        lfc = math.log(math.sqrt(2) * 1.5) + depth * math.log(1.5)
        beside = math.sqrt(2) * 1.25**depth if X0[0][1] and depth < 100 else 0.0
        if beside:
            lfc = math.log(math.hypot(math.exp(lfc), beside))
        assert state.log_hfc_lfc == pytest.approx(hfc - lfc, abs=1e-9 + 1e-14 * depth)
        assert not state.hfc[:, 1].any() or np.abs(state.hfc[:, 1]).max() < 1e-15


def test_T11_5_consensus_and_differences_keep_their_own_scales():
    X0 = [[1.0], [2.0]]
    for h, slope in ((-0.5, math.log(1.5)), (0.5, math.log(5 / 6))):
        (state,) = closed_form(A=A2, H=[[h]], X0=X0, depths=[10**5])
        assert state.log_hfc_lfc == pytest.approx(10**5 * slope - math.log(3), rel=1e-9)
        assert 0.1 < np.linalg.norm(state.hfc) < 10 and 0.1 < np.linalg.norm(state.mean) < 10


@pytest.mark.parametrize(
    ("moved", "exponent", "start", "total", "error"),
    [
        ([[30.0, 40.0]], 0, [[0.0, 0.0]], [[30.0, 40.0]], 0.002),
        ([[30.0, 40.0]], 1, [[60.0, 80.0]], [[60.0, 80.0]], 0.001 + 2.0**-53),
        ([[3.0, 4.0]], 2000, [[9.0, 9.0]], [[3.0, 4.0]], 0.02),
        ([[3.0, 4.0]], 0, [[-3.0, -4.0]], [[0.0, 0.0]], math.inf),
        ([[0.0, 0.0]], 0, [[3.0, 4.0]], [[3.0, 4.0]], 0.02 + 2.0**-52),
        ([[0.0, 0.0]], 0, [[0.0, 0.0]], [[0.0, 0.0]], math.inf),
    ],
)
def test_the_error_of_a_head_s_state_is_that_of_the_sum(moved, exponent, start, total, error):
    """X_L = X_0 + what the head added, known to 0.1: where they cancel, or are both 0, the relative
    error has no bound."""
    moved = np.array(moved)
    found = module._add_start(moved, exponent, 0.1, np.array(start))
    assert moved.tolist() == total
    assert found == pytest.approx(error, rel=1e-12)
