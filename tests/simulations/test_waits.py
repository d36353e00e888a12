"""How often the host would wait for an accelerator, counted without one.

What reads a value on the host (`bool(...)`, `float(...)`, a mask as an index) or asks LAPACK for
eigenvalues waits until all that was queued is done: on ordinary tensors of the CPU these are
counted, as if all of them lay on the device. An inspection works on the host with what it has
copied there: it runs on a card that is none (`tests.support.pretend_card`), operation by operation
and line by line.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from oversmoothing import FromState, InputError, evolve, inspect, metrics, open_model
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.model import Model
from oversmoothing.simulations.state import fetched, scale
from tests.support.cases import cases
from tests.support.evolved import evolved
from tests.support.pretend_card import READS, OnCard, moved, pretend_card
from tests.support.refusals import refuses
from tests.support.tiny_transformers import pixels, tiny

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
        places = args[1] if name in ("index", "index_put_") else ()
        masked = any(i is not None and i.dtype == torch.bool for i in places)
        self.number += name in READS or masked or name.lstrip("_").startswith("linalg_eig")
        return func(*args, **(kwargs or {}))


def waits(run: Callable[[], object]) -> int:
    with Waits() as counted:
        run()
    return counted.number


def test_what_waits_is_counted():
    x = torch.arange(3.0)
    assert waits(lambda: x * 2 + 1) == 0
    assert waits(lambda: bool((x > 1).any())) == 1
    assert waits(lambda: x[x > 1]) == 1
    assert waits(lambda: torch.linalg.eigvalsh(torch.eye(2))) == 1


@pytest.mark.parametrize("shape", [(), (64,)])
def test_the_metrics_wait_once(shape):
    """Whether any singular value needs more digits than an SVD has."""
    X = X0.expand(*shape, N, D).contiguous()
    assert waits(lambda: metrics(X)) == 1


def test_attention_that_follows_the_state_waits_twice_a_layer_given_once_a_block_of_layers():
    for attention, number in ((FOLLOWING, 2 * LAYERS), (GIVEN, 1)):
        run = partial(evolved, X0, attention, WEIGHTS, [LAYERS], device="cpu")
        assert waits(run) == number
    plain = partial(evolve, method="plain", device="cpu")
    assert waits(lambda: plain(A=GIVEN[0], W=0.3 * np.eye(D), X0=X0, depth=[1000])) == 2


# 11/8 of the least float is one of them; 11/4, rounded to three, would end as two. The same of
# 23/16 of it, where one factor alone does not reach.
@example([(11 * 2.0**-1074, -3), (1.0, 2000)])
@example([(5.75 * 2.0**-52, -1024)])
@given(st.lists(st.tuples(st.floats(allow_nan=False), st.integers(-2044, 2044)), min_size=1))
def test_to_scale_is_to_round_once(terms):
    """Whatever else stands in the batch; 2^2044 reaches every finite ratio of float64."""

    def exact(x, e):
        try:
            return math.ldexp(x, e)
        except OverflowError:
            return math.copysign(math.inf, x)

    x, e = (torch.tensor(column, dtype=kind) for column, kind in zip(
        zip(*terms, strict=True), (torch.float64, torch.int64), strict=True
    ))  # fmt: skip
    assert scale(x, e, 0).tolist() == [exact(*term) for term in terms]


IDS = torch.arange(24).view(3, 8) % 7 + 3
MASK = (torch.arange(8) < torch.tensor([[8], [5], [6]])).long()
COPY = ("to the host", "state.py", "fetched")
SHOWN = ("to the host", "states.py", "shown_pixels")


PIXELS = pixels(6)


def vit(layers: int) -> torch.nn.Module:
    return tiny("vit", num_hidden_layers=layers)


def inspected(model: Model, inputs: Any, **how: Any) -> Counter[tuple[str, str, str]]:
    """The waits of an inspection on the card, whose numbers are those of the CPU."""
    here = inspect(model, inputs, **how)
    with pretend_card() as card:
        moved(model.module)
        there = inspect(model, tree_map(OnCard, inputs), **how)
    pd.testing.assert_frame_equal(here.by_layer, there.by_layer, rtol=0, atol=0)
    pd.testing.assert_frame_equal(here.heads, there.heads, rtol=0, atol=0)
    assert here.to_json_object() == there.to_json_object()
    assert here.account_error < 1e-6  # what the FFN gave where the model lies is what it gives
    return card.functions()


def test_a_card_that_is_none_waits_where_one_would_and_refuses_the_cpu():
    x, here = torch.arange(3.0), torch.ones(3)
    with pretend_card() as card:
        X = OnCard(x)
        for waits_once in (
            lambda: bool((X > 1).any()), lambda: X[X > 1], lambda: X.tolist(), lambda: X.cpu(),
            lambda: here.to(X.device), lambda: X[torch.tensor([0, 2])], lambda: X.nonzero(),
            lambda: torch.linalg.eigvalsh(torch.diag(X)), lambda: fetched([here, 2 * X, X, here]),
            lambda: X.copy_(here),
        ):  # fmt: skip
            card.waits.clear()
            waits_once()
            assert sum(card.waits.values()) == 1, card.waits
        card.waits.clear()
        assert (X * 2 + 1).device == X.device and X.sum().ndim == 0
        assert here.to(X.device, non_blocking=True).device == X.device
        assert X[:2].shape == X[torch.tensor([0, 1]).to(X.device, non_blocking=True)].shape
        assert not card.waits
        for refused in (lambda: X + x, lambda: x @ X):
            refuses("of the card and of the CPU", refused, error=RuntimeError)
        for refused in (lambda: X.numpy(), lambda: np.asarray(X)):
            refuses("copy it first", refused, error=TypeError)


@cases(
    "layers, images, how",
    *((layers, 3, {"budget": Plan(*b)} if b else {})
      for layers in (2, 4) for b in ((), (2, 2), (2, 0, 0, 0))),
    (2, 6, {"batch_size": 2}),
)  # fmt: skip
def test_an_inspection_waits_once_a_layer_in_each_batch(layers, images, how):
    """All that is asked of a layer, its weights among it, comes in one copy; and once more for the
    first pixels, which are shown."""
    counted = inspected(open_model(vit(layers)), PIXELS[:images], **how)
    assert counted == {COPY: layers * images // how.get("batch_size", 3), SHOWN: 1}


def test_padding_costs_so_many_waits_a_batch_and_none_a_layer():
    """Twice what is known of the ids, their words, whether there is padding and where, and the
    pass itself, which asks once."""
    inputs = {"input_ids": IDS, "attention_mask": MASK}
    two, four = (
        inspected(open_model(tiny("bert", num_hidden_layers=layers)), inputs) for layers in (2, 4)
    )
    assert sum(two.values()) <= 8 and four - two == {COPY: 2}


def test_a_model_that_is_read_on_the_card_waits_no_more_often():
    with pretend_card() as card:
        model = open_model(moved(vit(2)))
        card.waits.clear()
        inspect(model, OnCard(PIXELS[:3]))
    assert card.functions() == {COPY: 2, SHOWN: 1}


def test_an_extraction_waits_once_a_layer():
    with pretend_card() as card:
        model = open_model(vit(2))
        moved(model.module)
        extract(model, PIXELS[:3])
    assert card.functions() == {COPY: 2}


def test_a_card_is_refused_in_the_words_of_the_cpu():
    """What is asked of a layer is judged behind its copy, and still tells the layer."""
    model = open_model(vit(2))

    def wrong(X):
        assert model.layers[1].ffn is not None
        return 1.01 * model.layers[1].ffn(X)

    first, second = model.layers
    broken = replace(model, layers=(first, replace(second, ffn=wrong)))
    with pytest.raises(InputError, match=r"^layer 1: its FFN sublayer, .* at token") as here:
        inspect(broken, PIXELS[:3])
    with pretend_card(), pytest.raises(InputError) as there:
        moved(model.module)
        inspect(broken, OnCard(PIXELS[:3]))
    assert str(here.value) == str(there.value)
