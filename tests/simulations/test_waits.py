"""How often the host would wait for an accelerator, counted on ordinary tensors of the CPU.

What reads a value on the host (`bool(...)`, `float(...)`, a mask as an index) or asks LAPACK for
eigenvalues waits until all that was queued is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from oversmoothing import FromState, evolve, evolve_heads, metrics
from oversmoothing.simulations.state import scale

READS = {
    "_local_scalar_dense", "_unique2", "equal", "is_nonzero", "masked_select", "nonzero",
}  # fmt: skip
N, D, LAYERS = 12, 6, 20
RNG = np.random.default_rng(0)
X0 = torch.from_numpy(RNG.standard_normal((N, D)))
WEIGHTS = RNG.standard_normal((3, D, 2)) / 2.4, 0.3 * RNG.standard_normal((3, 2, D))
FOLLOWING = FromState(RNG.standard_normal((3, D, 2)), RNG.standard_normal((3, D, 2)))
LOGITS = np.exp(RNG.standard_normal((3, N, N)))
GIVEN = LOGITS / LOGITS.sum(-1, keepdims=True)


class Waits(TorchDispatchMode):
    """Counts the operations that would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        name = func.overloadpacket.__name__
        masked = name in ("index", "index_put_") and any(
            i is not None and i.dtype == torch.bool for i in args[1]
        )
        self.number += name in READS or masked or name.lstrip("_").startswith("linalg_eig")
        return func(*args, **(kwargs or {}))


def waits(run: Callable[[], object]) -> int:
    with Waits() as counted:
        run()
    return counted.number


def test_what_waits_is_counted() -> None:
    x = torch.arange(3.0)
    assert waits(lambda: x * 2 + 1) == 0
    assert waits(lambda: bool((x > 1).any())) == 1
    assert waits(lambda: x[x > 1]) == 1
    assert waits(lambda: torch.linalg.eigvalsh(torch.eye(2))) == 1


@pytest.mark.parametrize("shape", [(), (64,)])
def test_the_metrics_wait_once(shape: tuple[int, ...]) -> None:
    """Whether any singular value needs more digits than an SVD has."""
    X = X0.expand(*shape, N, D).contiguous()
    assert waits(lambda: metrics(X)) == 1


def test_attention_that_follows_the_state_waits_twice_a_layer() -> None:
    def run() -> object:
        return evolve_heads(
            X0=X0, attention=FOLLOWING, weights=WEIGHTS, depth=[LAYERS], device="cpu"
        )

    assert waits(run) == 2 * LAYERS


def test_given_attention_and_one_head_wait_once_a_block_of_layers() -> None:
    def heads() -> object:
        return evolve_heads(X0=X0, attention=GIVEN, weights=WEIGHTS, depth=[LAYERS], device="cpu")

    def plain() -> object:
        return evolve(
            A=GIVEN[0], W=0.3 * np.eye(D), X0=X0, depth=[1000], method="plain", device="cpu"
        )

    assert waits(heads) == 1
    assert waits(plain) == 2


# 11/8 of the least float is one of them; 11/4, rounded to three, would end as two. The same of
# 23/16 of it, where one factor alone does not reach.
@example([(11 * 2.0**-1074, -3), (1.0, 2000)])
@example([(5.75 * 2.0**-52, -1024)])
@given(st.lists(st.tuples(st.floats(allow_nan=False), st.integers(-2044, 2044)), min_size=1))
def test_to_scale_is_to_round_once(terms: list[tuple[float, int]]) -> None:
    """Whatever else stands in the batch; 2^2044 reaches every finite ratio of float64."""

    def exact(x: float, e: int) -> float:
        try:
            return math.ldexp(x, e)
        except OverflowError:
            return math.copysign(math.inf, x)

    x, e = (torch.tensor(column, dtype=kind) for column, kind in zip(
        zip(*terms, strict=True), (torch.float64, torch.int64), strict=True
    ))  # fmt: skip
    assert scale(x, e, 0).tolist() == [exact(*term) for term in terms]
