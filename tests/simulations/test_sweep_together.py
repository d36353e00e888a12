"""Points of a sweep worked on together have the outcomes that they have one by one."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from oversmoothing.simulations.sweep import together
from oversmoothing.simulations.sweep.config import ATTENTION_KINDS, VALUE_KINDS
from oversmoothing.simulations.sweep.points import Point, draw, outcome
from oversmoothing.simulations.sweep.together import outcomes
from oversmoothing.theory.layer.attention import stationary_distribution, stationary_distributions
from tests.simulations.test_sweep import ALL, point

MEASURES = ("ratio", "cosine", "rank")
# What eigenvectors of condition 1e3 leave of the digits, in 1,000 layers.
DIGITS = 1e-9
MEASURED = ("log_hfc_lfc", "slope", "cos_mean", "cos_min", "effective_rank")


def mixed() -> list[Point]:
    """Every kind of A and of H at two sizes, several seeds, heads, and points that fail."""
    drawn = [
        point(attention=a, value=v, n=n, d=d, seed=seed, depth=300)
        for n, d in ((9, 4), (6, 5))
        for a, v in [(a, "ginibre") for a in ATTENTION_KINDS]
        + [("softmax", v) for v in VALUE_KINDS]
        for seed in range(3)
    ]
    hard: list[dict[str, Any]] = [
        {"value": "interval", "low": 1.0, "high": 0.0},
        {"value": "ginibre", "scale": 1e200},
        {"value": "ginibre", "scale": 0.0},
        {"temperature": 1e-3, "n": 6, "d": 5},
        {"depth": 20_000, "n": 5, "d": 3},
        {"heads": 2, "n": 4, "d": 2, "depth": 20},
        {"n": 1, "d": 2},
        {"n": 70, "d": 2},
        {"value": "interval", "low": -0.0, "high": 0.0},
    ]
    return drawn + [point(**given) for given in hard]


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """The columns that differ by more than rounding; the verdict and its radii by one bit."""
    wrong = []
    for name, value in expected.items():
        if isinstance(value, float) and name in MEASURED:
            same = found[name] == pytest.approx(value, rel=DIGITS, abs=DIGITS, nan_ok=True)
        else:
            same = found[name] == value or (value != value and found[name] != found[name])
        if not same:
            wrong.append(f"{name}: {found[name]} for {value}")
    return wrong


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return mixed()


def test_points_together_have_the_outcomes_they_have_one_by_one(points: list[Point]) -> None:
    found = outcomes(points, MEASURES)
    for p, row in zip(points, found, strict=True):
        expected = outcome(p, MEASURES)
        assert list(row) == list(expected)
        assert not differences(row, expected), p
    assert {row["status"] for row in found} >= {"certified", "error", "estimated"}


def test_neighbours_change_no_byte_of_a_point(points: list[Point]) -> None:
    whole = outcomes(points, MEASURES)
    alone = [outcomes([p], MEASURES)[0] for p in points]
    order = list(range(len(points)))
    random.Random(0).shuffle(order)
    shuffled = outcomes([points[k] for k in order], MEASURES)
    assert repr(whole) == repr(alone)
    assert repr([whole[k] for k in order]) == repr(shuffled)


@pytest.mark.parametrize("attention", ATTENTION_KINDS)
def test_what_is_drawn_together_is_what_is_drawn_alone(attention: str) -> None:
    some = [point(attention=attention, n=7, d=4, seed=seed) for seed in range(5)]
    for p, A, H, X0 in zip(some, *together._drawn(some, True), strict=True):
        layer, start = draw(p)
        np.testing.assert_array_equal(A, layer.given["A"].floats)
        np.testing.assert_array_equal(H, layer.H)
        np.testing.assert_array_equal(X0, start)


def test_most_points_of_a_plain_sweep_are_worked_on_together() -> None:
    some = [point(n=9, d=4, seed=seed) for seed in range(20)]
    rows = together._rows(some, MEASURES)
    assert sum(row is None for row in rows) <= 1
    assert all(row is None for row in together._rows(some, ALL))


@pytest.mark.parametrize("n", [1, 2, 5, 40, 70])
def test_T1d_stationary_distributions_of_a_stack_are_those_of_each(n: int) -> None:
    rng = np.random.default_rng(n)
    A = rng.random((9, n, n)) ** 8 + 1e-12
    A[1] = np.tril(A[1])
    A[2] = 1.0
    A[3, n // 2 :, : n // 2] *= 1e-200
    A /= A.sum(axis=-1, keepdims=True)
    for found, each in zip(stationary_distributions(A), A, strict=True):
        expected = stationary_distribution(each)
        # No entry is a difference: each keeps its own digits, however small.
        np.testing.assert_allclose(found, expected, rtol=1e-11)
        assert math.isclose(found.sum(), 1.0)
