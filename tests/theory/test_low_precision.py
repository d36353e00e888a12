"""Attention as networks compute it: accepted, renormalised, and undecided within its rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oversmoothing import InputError, verdict
from oversmoothing.theory.verdict.verdict import EPS

KINDS = (torch.float32, torch.float16, torch.bfloat16)


def mixed(n: int, t: float) -> torch.Tensor:
    """(1 - t) 1 1^T / n + t I, with the eigenvalue t besides 1."""
    even = torch.full((n, n), 1 / n, dtype=torch.float64)
    return (1 - t) * even + t * torch.eye(n, dtype=torch.float64)


def drawn(seed: int, n: int = 6, d: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, n, generator=generator, dtype=torch.float64)
    return logits, torch.randn(d, d, generator=generator, dtype=torch.float64) / 2


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_a_networks_softmax_has_the_verdict_of_the_exact_one_or_none(kind, seed):
    logits, W = drawn(seed, n=4 + seed)
    known = verdict(A=torch.softmax(logits, -1), W=W).verdict
    found = verdict(A=torch.softmax(logits.to(kind), -1), W=W)
    assert found.verdict in (known, "UNDECIDED")
    name = str(kind).removeprefix("torch.")
    assert f"A is {name}: its rows were divided by their sums in float64" in found.reason
    assert found.status == ("numerical" if found.verdict == "UNDECIDED" else "certified")
    if kind is torch.float32:
        assert found.verdict == known, "nothing of these is near a tie"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_the_rounding_can_turn_is_undecided(kind):
    """The tie is at h = -2 / (1 + t), which is moved by less and by more than the rounding."""
    n, t, eps = 5, 0.3, EPS[str(kind).removeprefix("torch.")]
    A = mixed(n, t)
    for factor, decided in ((0.1, False), (30.0, True)):
        h = -2 / (1 + t) * (1 - factor * eps)
        found = verdict(A=A.to(kind), H=[[h]])
        exact = verdict(A=A, H=[[h]]).verdict
        assert exact == "NON_SMOOTHING"
        assert found.verdict == (exact if decided else "UNDECIDED")
        assert found.distance is not None or decided


def test_numpy_floats_are_read_alike_and_short_numbers_at_their_word():
    logits, W = drawn(1)
    A = torch.softmax(logits.float(), -1).numpy()
    assert verdict(A=A, W=W.numpy()).verdict == verdict(A=torch.tensor(A), W=W).verdict
    half = np.full((2, 2), 0.5, dtype=np.float32)
    assert verdict(A=half, H=[[-2.0]]).verdict == "TIE"
    assert verdict(A=half, H=[[-2.0]], X0=[[1.0], [0.0]]).verdict_x0 is not None


def test_a_start_or_a_certificate_asks_for_float64():
    logits, W = drawn(1)
    A = torch.softmax(logits.float(), -1)
    with pytest.raises(InputError, match="X0, depth and exact_binary need an A that is known"):
        verdict(A=A, W=W, X0=torch.ones(6, 4))
    with pytest.raises(InputError, match="exact_binary need an A that is known"):
        verdict(A=A, W=W, exact_binary=True)
    wide = A.double()
    wide = wide / wide.sum(-1, keepdim=True)
    assert verdict(A=wide, W=W, X0=torch.ones(6, 4).double()).verdict_x0 == "TRIVIAL"


def test_a_batch_is_told_what_to_do():
    A = torch.softmax(torch.zeros(2, 6, 6), -1)
    with pytest.raises(InputError, match=r"A has shape \[2, 6, 6\].*heads_verdict"):
        verdict(A=A, H=[[1.0]])
    with pytest.raises(InputError, match=r"W has shape \[3, 1, 1\]"):
        verdict(A=[[1.0]], W=np.ones((3, 1, 1)))
