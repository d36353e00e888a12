"""Points of a sweep worked on together have the outcomes that they have one by one."""

import math
import random
from typing import Any

import numpy as np
import pytest

from oversmoothing.simulations.sweep import heads_together, together
from oversmoothing.simulations.sweep.config import ATTENTION_KINDS, VALUE_KINDS
from oversmoothing.simulations.sweep.points import Point, outcome
from oversmoothing.simulations.sweep.together import outcomes
from oversmoothing.theory.layer.attention import stationary_distribution, stationary_distributions
from tests.simulations.test_sweep import ALL, point

MEASURES = ("ratio", "cosine", "rank")
# What eigenvectors of condition 1e3 leave of the digits, in 1,000 layers.
DIGITS = 1e-9
MEASURED = ("log_hfc_lfc", "slope", "cos_mean", "cos_min", "effective_rank")


def mixed() -> list[Point]:
    """Every kind of A and of H at two sizes, several seeds, heads, and points that fail."""
    kinds = [{"attention": a} for a in ATTENTION_KINDS] + [{"value": v} for v in VALUE_KINDS]
    sizes = [{"n": n, "d": d, "seed": k} for n, d in ((9, 4), (6, 5)) for k in range(3)]
    sizes += [{"n": 9, "d": 5, "heads": heads} for heads in (2, 3)]
    drawn = [point(**kind, **size, depth=300) for kind in kinds for size in sizes]
    hard: list[dict[str, Any]] = [
        {"value": "interval", "low": 1.0, "high": 0.0},
        {"value": "ginibre", "scale": 1e200},
        {"value": "ginibre", "scale": 0.0},
        {"temperature": 1e-3, "n": 6, "d": 5},
        {"depth": 20_000, "n": 5, "d": 3},
        {"heads": 2, "n": 4, "d": 2, "depth": 20},
        {"heads": 2, "n": 2, "d": 1, "depth": 20},
        {"n": 1, "d": 2},
        {"n": 70, "d": 2},
        {"value": "interval", "low": -0.0, "high": 0.0},
    ]
    return drawn + [point(**given) for given in hard]


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """The columns that differ by more than rounding; the verdict and its radii by one bit, where
    they are certified."""
    wrong, estimated = [], expected["status"] == "estimated"
    for name, value in expected.items():
        if isinstance(value, float) and name in MEASURED:
            same = found[name] == pytest.approx(value, rel=DIGITS, abs=DIGITS, nan_ok=True)
        elif estimated and name == "margin_error":
            same = found[name] <= max(value, 1e-8 * expected["rho_quotient"])
        elif estimated and isinstance(value, float):
            same = found[name] == pytest.approx(value, rel=1e-12, abs=1e-12)
        else:
            same = found[name] == value or (value != value and found[name] != found[name])
        if not same:
            wrong.append(f"{name}: {found[name]} for {value}")
    return wrong


@pytest.fixture(scope="module")
def points():
    return mixed()


def test_points_together_have_the_outcomes_they_have_one_by_one(points):
    found = outcomes(points, MEASURES)
    for p, row in zip(points, found, strict=True):
        expected = outcome(p, MEASURES)
        assert list(row) == list(expected)
        assert not differences(row, expected), p
    assert {row["status"] for row in found} >= {"certified", "error", "estimated"}


def test_neighbours_change_no_byte_of_a_point(points):
    whole = outcomes(points, MEASURES)
    alone = [outcomes([p], MEASURES)[0] for p in points]
    order = list(range(len(points)))
    random.Random(0).shuffle(order)
    shuffled = outcomes([points[k] for k in order], MEASURES)
    assert repr(whole) == repr(alone)
    assert repr([whole[k] for k in order]) == repr(shuffled)


def test_T2_verdicts_alone_are_those_of_all_columns(monkeypatch):
    """Most come from the largest eigenvalues of A alone: the same radii, of errors as small as a
    recorded one may be, and no byte from a neighbour; reducible, causal and sharp A among them."""
    some = [
        point(attention=a, n=n, d=5, seed=seed, temperature=temperature, depth=300)
        for a in ("softmax", "symmetric_psd", "causal", "local", "doubly_stochastic")
        for n in (31, 32, 45)
        for temperature in (0.3, 2.0)
        for seed in range(4)
    ]
    found = outcomes(some, ())
    assert found == [outcomes([p], ())[0] for p in some] == outcomes(some[::-1], ())[::-1]
    # Whatever rounding decides is decided with all eigenvectors.
    assert {row["status"] for row in found} == {"certified"}
    monkeypatch.setattr(together, "_by_leading", lambda A, H: {})
    other = 0
    for row, known in zip(found, outcomes(some, ()), strict=True):
        assert row["verdict"] == known["verdict"] and row["rho_consensus"] == known["rho_consensus"]
        errors = row["margin_error"], known["margin_error"]
        other += errors[0] != errors[1]
        assert errors[0] <= max(1e-9, 1e3 * errors[1])
        assert abs(row["margin"] - known["margin"]) <= min(sum(errors), 1e-11)
    assert other > len(some) // 4


@pytest.mark.parametrize("heads", [1, 3])
def test_most_points_of_a_plain_sweep_are_worked_on_together(heads):
    some = [point(n=9, d=4, heads=heads, seed=seed) for seed in range(20)]
    rows = together._rows(some, MEASURES)
    assert sum(row is None for row in rows) <= 1
    assert all(row is None for row in together._rows(some, ALL))


@pytest.mark.parametrize("n", [1, 2, 5, 40, 70])
def test_T1d_stationary_distributions_of_a_stack_are_those_of_each(n):
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


def planted(rng: np.random.Generator, moduli: list[float], rows: int) -> Any:
    """A matrix with these leading moduli, in pairs of eigenvalues, and others below the last."""
    M = np.diag(rng.uniform(-0.5, 0.5, rows) * min(moduli))
    for k, modulus in enumerate(moduli):
        angle = rng.uniform(0.1, 3.0)
        turn = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        M[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = modulus * np.array(turn)
    V = np.eye(rows) + 0.3 * rng.standard_normal((rows, rows)) / rows**0.5
    return V @ M @ np.linalg.inv(V)


@pytest.mark.parametrize("rows", [5, 12, 40, 90])
def test_the_root_of_the_radius_of_a_power_is_the_radius(rows):
    """Where one pair leads, and where several do by little or by nothing; or it is not said."""
    rng = np.random.default_rng(rows)
    chosen = [[1.5], [0.3, 0.29], [1e-9, 0.99e-9], [7.0, 7.0], [1.0, 1.0 - 1e-9]]
    powers = object.__new__(heads_together.Powers)
    powers._no_scale = np.zeros(len(chosen), dtype=np.intp)
    M = np.stack([planted(rng, moduli, rows) for moduli in chosen])
    powers._squares = [[heads_together._normalised(M.copy(), powers._no_scale) for _ in range(3)]]
    radii = powers.radii()
    for moduli, radius in zip(chosen, radii, strict=True):
        if radius is not None:
            leads, ulps = max(moduli), 1e-13 * max(moduli)
            assert radius.low <= leads + ulps and leads - ulps <= radius.high
            assert radius.shown == pytest.approx(leads, rel=1e-11)
    assert sum(radius is not None for radius in radii) >= 3


@pytest.mark.parametrize("second", [0.05, 0.6, 0.99])
def test_the_radius_of_a_power_lies_within_its_bounds_however_few_the_vectors(second, monkeypatch):
    """Two vectors, which four products turn towards the leading pair or do not."""
    monkeypatch.setattr(heads_together, "_COLUMNS", 2)
    rng = np.random.default_rng(7)
    S = np.stack([planted(rng, [1.0, second, second], 24) for _ in range(30)])
    bounds = [each for each in heads_together._radii(S, 1e-14) if each is not None]
    assert all(each.low <= 1 <= each.high for each in bounds)
    assert (len(bounds) > 10) == (second == 0.05)
