"""Metrics of streams are those of `metrics`; in a loop over layers, right in many digits (T4)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing.simulations.state_metrics import (
    NAMES,
    hfc_lfc_and_cosine,
    metrics,
    stream_metrics,
)
from oversmoothing.theory.proofs.strategies import SEEDS
from oversmoothing.theory.support.errors import InputError
from tests.support.high_precision import metrics_at_high_precision


def agree(X: torch.Tensor) -> None:
    found = stream_metrics(X, without_first=X.shape[1] > 1)
    for suffix, part in (("", X), ("_without_cls", X[:, 1:])):
        if suffix and X.shape[1] == 1:
            continue
        expected = metrics(part)
        for name in NAMES:
            np.testing.assert_allclose(
                found[f"{name}{suffix}"], expected[name], rtol=1e-6, atol=1e-7, err_msg=name
            )


@pytest.mark.parametrize(
    "shape", [(3, 9, 5), (2, 5, 9), (2, 2, 3), (2, 3, 1), (1, 1, 4), (1, 1, 1)]
)
@pytest.mark.parametrize("mean", [0.0, 1.0, 30.0])
def test_the_cheap_metrics_are_the_careful_ones(shape: tuple[int, ...], mean: float) -> None:
    generator = torch.Generator().manual_seed(sum(shape))
    X = torch.randn(shape, generator=generator, dtype=torch.float64)
    agree(X + mean * torch.randn(shape[-1], generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("spread", [1e-1, 1e-2, 1e-5, 1e-9])
def test_near_collapse_no_digit_is_lost(spread: float) -> None:
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn((2, 7, 5), generator=generator, dtype=torch.float64)
    agree(1.0 + spread * noise)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_no_scale_overflows_or_underflows(scale: float) -> None:
    generator = torch.Generator().manual_seed(2)
    agree(scale * (0.5 + torch.randn((2, 7, 5), generator=generator, dtype=torch.float64)))


def test_a_zero_token_is_masked_and_a_zero_state_is_undefined() -> None:
    X = torch.ones((2, 4, 3), dtype=torch.float64)
    X[0, 2] = 0.0
    X[0, 1, 0] = 3.0
    X[1] = 0.0
    agree(X)


def test_rank_one_streams_are_measured_by_the_careful_form() -> None:
    X = torch.outer(torch.tensor([1.0, 2.0, -1.0, 4.0]), torch.tensor([1.0, -1.0, 2.0]))
    agree(X.double().unsqueeze(0))


@pytest.mark.parametrize(
    ("dtype", "spread", "scales"),
    [
        (np.float64, 1e-7, (1e-300, 1.0, 1e300)),
        (np.float32, 1e-3, (1e-30, 1.0, 1e30)),
        (np.float64, 1.0, (1e-300, 1.0, 1e300)),
        (np.float32, 1.0, (1e-30, 1.0, 1e30)),
    ],
)
def test_right_to_1e_6_at_any_scale(dtype: type, spread: float, scales: tuple) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, d = (int(k) for k in rng.integers(2, 10, 2))
        base = rng.standard_normal(d) + spread * rng.standard_normal((n, d))
        for scale in scales:
            X = (base * scale).astype(dtype)
            ratio, cosine = hfc_lfc_and_cosine(torch.from_numpy(X))
            expected = metrics_at_high_precision(X.tolist(), 80)
            assert float(ratio) == pytest.approx(float(expected["hfc_lfc"]), rel=1e-6)
            # At a wide spread 1 - cos may be small by chance, in the direct formula.
            known = float(expected["one_minus_cos_mean"])
            slack = 0.0 if spread < 0.1 else 16 * float(np.finfo(dtype).eps)
            assert float(cosine) == pytest.approx(known, rel=1e-6, abs=slack)
            assert ratio.dtype == cosine.dtype == torch.from_numpy(X).dtype


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 6), st.integers(1, 5), st.sampled_from([1e-6, 1e-2, 0.3, 3.0]))
def test_the_fast_path_is_the_exact_one(seed: int, n: int, d: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    X = torch.from_numpy(
        rng.standard_normal((2, 3, 1, d)) + spread * rng.standard_normal((2, 3, n, d))
    )
    X[0, 0] *= 1e-200
    X[1, 2, 0] = 0.0
    ratio, cosine = hfc_lfc_and_cosine(X)
    careful = metrics(X)
    assert ratio.shape == cosine.shape == (2, 3)
    assert torch.allclose(ratio, careful["hfc_lfc"], rtol=1e-9, atol=0, equal_nan=True)
    assert torch.allclose(
        cosine, careful["log_one_minus_cos_mean"].exp(), rtol=1e-6, atol=1e-14, equal_nan=True
    )


def test_undefined_is_nan_and_limits_are_kept() -> None:
    ratio, cosine = hfc_lfc_and_cosine(torch.zeros(3, 2))
    assert math.isnan(ratio) and math.isnan(cosine)
    ratio, cosine = hfc_lfc_and_cosine(torch.tensor([[1.0, 2.0]]))
    assert ratio == 0 and math.isnan(cosine)
    ratio, cosine = hfc_lfc_and_cosine(torch.tensor([[1.0, 2.0], [-1.0, -2.0]]))
    assert ratio == math.inf and cosine == pytest.approx(2.0)
    ratio, cosine = hfc_lfc_and_cosine(torch.tensor([[1.0, math.nan], [1.0, 2.0]]))
    assert math.isnan(ratio) and math.isnan(cosine)
    ratio, cosine = hfc_lfc_and_cosine(torch.tensor([[1.0, 0.0], [1e-30, 1e-30], [0.0, 0.0]]))
    assert cosine == pytest.approx(1 - 1 / math.sqrt(2), rel=1e-6)


@pytest.mark.parametrize("X", [torch.zeros(3), torch.zeros(0, 2), torch.zeros(2, 2).half()])
def test_bad_input_is_refused(X: torch.Tensor) -> None:
    with pytest.raises(InputError):
        hfc_lfc_and_cosine(X)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_gives_what_the_cpu_gives() -> None:
    X = torch.randn(4, 9, 5, generator=torch.Generator().manual_seed(0))
    for a, b in zip(hfc_lfc_and_cosine(X), hfc_lfc_and_cosine(X.cuda()), strict=True):
        assert torch.allclose(a, b.cpu(), rtol=1e-4)
