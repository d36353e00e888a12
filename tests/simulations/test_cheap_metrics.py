"""Metrics of streams are those of `metrics` (T4)."""

import numpy as np
import pytest
import torch

from oversmoothing import metrics
from oversmoothing.simulations.state_metrics import NAMES, stream_metrics
from tests.support.cases import cases


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


@cases("shape", (3, 9, 5), (2, 5, 9), (2, 2, 3), (2, 3, 1), (1, 1, 4), (1, 1, 1))
@pytest.mark.parametrize("mean", [0.0, 1.0, 30.0])
def test_the_cheap_metrics_are_the_careful_ones(shape, mean):
    generator = torch.Generator().manual_seed(sum(shape))
    X = torch.randn(shape, generator=generator, dtype=torch.float64)
    agree(X + mean * torch.randn(shape[-1], generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("spread", [1e-1, 1e-2, 1e-5, 1e-9])
def test_near_collapse_no_digit_is_lost(spread):
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn((2, 7, 5), generator=generator, dtype=torch.float64)
    agree(1.0 + spread * noise)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_no_scale_overflows_or_underflows(scale):
    generator = torch.Generator().manual_seed(2)
    agree(scale * (0.5 + torch.randn((2, 7, 5), generator=generator, dtype=torch.float64)))


def test_zero_tokens_zero_states_and_rank_one_are_those_of_the_careful_form():
    X = torch.ones((2, 4, 3), dtype=torch.float64)
    X[0, 2] = 0.0
    X[0, 1, 0] = 3.0
    X[1] = 0.0
    agree(X)
    X = torch.outer(torch.tensor([1.0, 2.0, -1.0, 4.0]), torch.tensor([1.0, -1.0, 2.0]))
    agree(X.double().unsqueeze(0))
