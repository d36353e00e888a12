"""The metrics against their definitions in 700 digits, and the laws they obey (T4, T11.5-7)."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings, strategies as st
from jaxtyping import TypeCheckError

from oversmoothing import metrics
from oversmoothing.simulations.state import (
    SplitState,
    from_differences,
    join,
    split,
    to_differences,
)
from oversmoothing.simulations.state_metrics import (
    NAMES,
    log_hfc_lfc_ratio,
    stream_log_ratio,
    stream_metrics,
)
from oversmoothing.theory.layer.attention import complement_basis
from oversmoothing.theory.proofs.strategies import SEEDS, token_states
from tests.support.cases import cases
from tests.support.high_precision import DIGITS, metrics_at_high_precision
from tests.support.refusals import refuses
from tests.support.shapes import only_where_checked

EPS = 2.0**-52
# Each quantity is a handful of sums over the n d entries; every one may err by n d eps.
SUMS = 8

LOGARITHMS = [
    "log_hfc_lfc", "log_one_minus_cos_mean", "log_one_minus_cos_min", "log_one_minus_cos_abs_min",
    "log_effective_rank_excess", "log_sigma2_sigma1",
]  # fmt: skip
COSINES = ("cos_mean", "cos_min", "cos_abs_mean", "cos_abs_min")


def check_against_definition(found: dict[str, torch.Tensor], rows: list, shape: tuple) -> None:
    n, d = shape
    expected = metrics_at_high_precision(rows)
    unit = SUMS * n * d * EPS
    spread = min(1.0, float(expected["hfc_lfc"]))
    with mp.workdps(DIGITS):
        for name in LOGARITHMS:
            value, truth = found[name].item(), expected.get(name.removeprefix("log_"))
            if truth is None:
                assert math.isnan(value), name
                continue
            digits = 100 - (DIGITS if "cos" in name else DIGITS // 2)  # the Gram matrix squares
            if abs(truth) < mp.mpf(10) ** digits:
                # Exactly collinear tokens, up to the oracle's own digits: rounding may remain.
                floor = 2 * math.log(unit) if "cos" in name else math.log(unit)
                assert value <= floor, (name, value)
                continue
            # Conditioning: what is measured is small beside the spread that was rounded, or the
            # mean beside the tokens.
            small = mp.sqrt(truth) if "cos" in name else expected["sigma2_sigma1"]
            condition = max(1.0, float(truth if name == "log_hfc_lfc" else spread / small))
            logarithm = mp.log(truth)
            allowed = unit * condition + 4 * EPS * abs(float(logarithm))
            assert abs(value - logarithm) <= allowed, (name, value, float(logarithm), allowed)
        for name in COSINES:
            if name in expected:
                assert abs(found[name].item() - expected[name]) <= unit, name
            else:
                assert math.isnan(found[name].item()), name
        condition = max(1.0, float(spread))
        off = abs(found["effective_rank"].item() - expected["effective_rank"])
        assert off <= unit * condition * max(1.0, -math.log(EPS)), "effective_rank"


@settings(max_examples=80, deadline=None)
@given(token_states())
@example(np.array([[1.0, 2.0]]))
@example(np.array([[3.0], [-1.0], [2.0]]))
@example(np.array([[1.0, 1.0], [1.0, 1.0 + EPS]]))
@example(np.array([[1e300, -1e300], [1e300, -1.0000001e300]]))
def test_every_metric_is_its_definition(X):
    check_against_definition(metrics(torch.tensor(X)), X.tolist(), X.shape)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(-700, 40), st.integers(-1000, 1000), SEEDS)
def test_split_states_keep_a_spread_of_1e_minus_200(n, d, gap, scale, seed):
    rng = np.random.default_rng(seed)
    hfc = rng.standard_normal((n, d))
    hfc -= hfc.mean(0)
    mean = rng.standard_normal(d)
    state = join(*map(torch.tensor, (hfc, mean, gap + scale, scale)))
    with mp.workdps(DIGITS):
        h = [[mp.ldexp(mp.mpf(x), gap) for x in row] for row in hfc.tolist()]
        average = [mp.fsum(row[j] for row in h) / n for j in range(d)]
        rows = [[mp.mpf(m) + x - a for m, x, a in zip(mean, r, average, strict=True)] for r in h]
    # A mean that the spread dwarfs leaves cancellation in no metric but sigma2 / sigma1.
    assume(gap <= 0 or d > 1)
    check_against_definition(metrics(state), rows, (n, d))


@settings(max_examples=80, deadline=None)
@given(token_states(scales=(0, 0)), st.integers(-900, 900))
def test_scaling_by_a_power_of_two_changes_no_bit(X, k):
    X = np.round(X * 2.0**40) / 2.0**40  # so that no entry becomes subnormal
    assume(X.any())
    before, after = metrics(torch.tensor(X)), metrics(torch.tensor(np.ldexp(X, k)))
    for name in before:
        assert torch.equal(before[name].nan_to_num(nan=7.0), after[name].nan_to_num(nan=7.0)), name


@settings(max_examples=80, deadline=None)
@given(token_states(scales=(-30, 30)))
@example(np.array([[-1.23411379], [13.46117122], [2.73380556], [-2.36825428], [-12.51492364]]))
def test_float32_is_measured_as_exactly_as_float64(X):
    single = torch.tensor(X).to(torch.float32)
    a, b = metrics(single), metrics(single.to(torch.float64))
    assert all(torch.equal(a[k].nan_to_num(nan=7.0), b[k].nan_to_num(nan=7.0)) for k in a)
    check_against_definition(a, single.to(torch.float64).tolist(), X.shape)


def test_a_batch_is_measured_element_by_element():
    rng = np.random.default_rng(3)
    X = torch.tensor(rng.standard_normal((3, 2, 4, 3)) * 10.0 ** rng.integers(-9, 9, (3, 2, 1, 1)))
    X[0, 0] = 0.0
    X[1, 1] = 1.0 + 1e-9 * X[1, 1]
    together = metrics(X)
    for i in range(3):
        for k in range(2):
            for name, value in metrics(X[i, k]).items():
                assert torch.allclose(
                    together[name][i, k], value, rtol=64 * EPS, atol=0, equal_nan=True
                ), name


def test_zero_and_non_finite_states_are_undefined():
    bad = [torch.tensor([[1.0, 2.0], [x, 1.0]]) for x in (math.nan, math.inf)]
    for X in (*map(torch.zeros, ((1, 1), (3, 1), (1, 3), (4, 3))), *bad):
        assert all(math.isnan(v.item()) for v in metrics(X).values()), X


def test_a_zero_mean_one_token_and_zero_tokens():
    X = torch.tensor([[1.0, -2.0], [-1.0, 2.0]])
    assert metrics(X)["hfc_lfc"] == math.inf and log_hfc_lfc_ratio(X) == math.inf
    assert metrics(X)["cos_min"] == -1.0 and metrics(X)["cos_abs_min"] == 1.0
    found = metrics(torch.tensor([[3.0, 4.0]]))
    assert found["hfc_lfc"] == 0 and found["log_hfc_lfc"] == -math.inf
    assert found["effective_rank"] == 1 and found["sigma2_sigma1"] == 0
    assert all(math.isnan(found[name]) for name in COSINES)
    # Zero tokens are masked in the cosine alone.
    X = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    assert metrics(X)["cos_mean"].item() == pytest.approx(0.5**0.5, abs=4 * EPS)
    assert math.isnan(metrics(X[:2])["cos_mean"].item())
    assert metrics(X[:2])["hfc_lfc"].item() == 1.0
    # A token 1e-300 of another keeps its direction.
    X = torch.tensor([[1e300, 0.0], [1e-300, 1e-300]], dtype=torch.float64)
    assert metrics(X)["cos_mean"].item() == pytest.approx(0.5**0.5, abs=4 * EPS)


def test_ill_shaped_states_are_refused():
    for bad in (torch.ones(3), torch.ones(0, 3), torch.ones(3, 0), torch.ones(2, 2).long()):
        refuses("", split, bad)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), SEEDS)
def test_coordinates_of_the_quotient(n, d, seed):
    from oversmoothing.theory.numbers.rounding import to_quotient

    X = torch.tensor(np.random.default_rng(seed).standard_normal((n, d)))
    hfc = X - X.mean(0)
    Q = torch.tensor(complement_basis(n))
    bound = 8 * n * EPS * max(1.0, X.abs().max().item())
    assert (to_quotient(hfc) - Q.T @ hfc).abs().max() <= bound if n > 1 else True
    assert (from_differences(to_differences(hfc)) - hfc).abs().max() <= bound
    assert isinstance(split(X), SplitState)
    assert (split(X).dense() - X).abs().max() == 0


@only_where_checked
def test_the_shapes_in_signatures_are_held_to():
    refuses("to_differences", lambda: to_differences(torch.zeros(3)), error=TypeCheckError)
    state = split(torch.ones(4, 3))
    with pytest.raises(TypeCheckError, match="SplitState"):
        SplitState(**(vars(state) | {"mean": torch.zeros(2, dtype=torch.float64)}))


def _log_ratio_to_60_digits(X: np.ndarray) -> float:
    with mp.workdps(60):
        sigma = sorted(mp.svd_r(mp.matrix(X.tolist()), compute_uv=False), reverse=True)
        return float(mp.log(sigma[1] / sigma[0]))


def test_T5_sigma2_of_columns_of_very_different_size():
    X = np.array([[1.0, 1e20, 0.0], [2.0, 5e20, 0.0]])
    found = metrics(torch.tensor(X))["log_sigma2_sigma1"].item()
    assert found == pytest.approx(math.log(3 / 26) - math.log(1e20), abs=1e-9)
    assert found == pytest.approx(_log_ratio_to_60_digits(X), abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_T5_sigma2_far_below_eps_with_and_without_a_mean(seed):
    """An SVD has sigma2 / sigma1 to eps: of a mean-free X at 1e-15 it was off by a tenth."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 7, 2)
    u, v = rng.integers(-9, 10, n), rng.integers(1, 10, d)
    X = np.outer(u - (seed % 2) * u.mean(), v) + 10.0**-seed * rng.standard_normal((n, d)) / 10
    if seed % 2:
        X[-1] = -X[:-1].sum(axis=0)
    found = metrics(torch.tensor(X))["log_sigma2_sigma1"].item()
    assert found == pytest.approx(_log_ratio_to_60_digits(X), abs=1e-9)


def test_two_equal_tokens_far_below_the_range_have_rank_one():
    found = metrics(join(*map(torch.tensor, (np.zeros((2, 2)), [0.25, 0.75], 0, -5584))))
    assert (found["effective_rank"], found["sigma2_sigma1"]) == (1.0, 0.0)


def test_tokens_that_all_but_cancel_have_the_mean_that_their_floats_have():
    """0.1 + 0.2 - 0.3 is 2^-55 in the numbers given: a plain sum has twice as much."""
    found = metrics([[0.1], [0.2], [-0.3]])["log_hfc_lfc"].item()
    x = [Fraction(each) for each in (0.1, 0.2, -0.3)]
    mean = sum(x) / 3
    assert float(mean) == 2.0**-55 / 3
    square = sum((each - mean) ** 2 for each in x) / (3 * mean**2)
    assert found == pytest.approx(math.log(square) / 2, abs=1e-14)


# --- of streams ---


def agree(X: torch.Tensor) -> None:
    np.testing.assert_allclose(stream_log_ratio(X), metrics(X)["log_hfc_lfc"], rtol=1e-6, atol=1e-7)
    found = stream_metrics(X, without_first=X.shape[1] > 1)
    for suffix, part in (("", X), ("_without_cls", X[:, 1:])):
        if suffix and X.shape[1] == 1:
            continue
        expected = metrics(part)
        for name in NAMES:
            np.testing.assert_allclose(
                found[f"{name}{suffix}"], expected[name], rtol=1e-6, atol=1e-7, err_msg=name
            )


def normal(*shape: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(sum(shape)).standard_normal(shape))


@cases("shape", (3, 9, 5), (2, 5, 9), (2, 2, 3), (2, 3, 1), (1, 1, 4), (1, 1, 1))
@pytest.mark.parametrize("mean", [0.0, 1.0, 30.0])
def test_the_cheap_metrics_are_the_careful_ones(shape, mean):
    agree(normal(*shape) + mean * normal(shape[-1]))


@cases("scale, mean", *((x, 1.0) for x in (1e-1, 1e-2, 1e-5, 1e-9)),
       *((x, 0.5 * x) for x in (1e-300, 1e-150, 1e150, 1e300)))  # fmt: skip
def test_near_collapse_and_at_any_scale_no_digit_is_lost(scale, mean):
    agree(scale * normal(2, 7, 5) + mean)


def test_zero_tokens_zero_states_and_rank_one_are_those_of_the_careful_form():
    X = torch.ones((2, 4, 3), dtype=torch.float64)
    X[0, 2] = 0.0
    X[0, 1, 0] = 3.0
    X[1] = 0.0
    agree(X)
    X = torch.outer(torch.tensor([1.0, 2.0, -1.0, 4.0]), torch.tensor([1.0, -1.0, 2.0]))
    agree(X.double().unsqueeze(0))
