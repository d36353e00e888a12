"""Names that are proposed for an unknown module are those that its author would give."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.describe import describe
from oversmoothing.theory.support.errors import InputError
from tests.support.families_of_today import inputs, today
from tests.support.tiny_transformers import Stack


def test_a_block_of_ones_own_is_guessed_but_for_the_order_of_its_projection():
    module = Stack()
    model = describe(module, guess=True, fused="heads")
    assert max(extract(model, torch.randn(2, 5, 6)).av_error) < 1e-5
    said = model.run_notes[-1]
    for name in ("blocks='floors'", "q='mix.all_three'", "out='mix.join'", "ffn='think'"):
        assert name in said
    assert "norm_attention='first', norm_ffn='second'" in said and "heads=3" in said


def test_a_wrong_guess_is_refused_by_the_model_itself():
    with pytest.raises(InputError, match="layer 0"):
        extract(describe(Stack(), guess=True), torch.randn(2, 5, 6))


class Odd(nn.Module):
    """Projections in an order of their own, under letters alone."""

    def __init__(self) -> None:
        super().__init__()
        self.wk, self.wv, self.wq = (nn.Linear(12, 12) for _ in range(3))
        self.back = nn.Linear(12, 12)
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)
        self.ffn = nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 12))
        self.heads = 2

    def forward(self, X: Tensor) -> Tensor:
        N = self.one(X)
        q, k, v = (
            each(N).view(*X.shape[:2], 2, 6).transpose(1, 2) for each in (self.wq, self.wk, self.wv)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        X = X + self.back(mixed.transpose(1, 2).flatten(2))
        return X + self.ffn(self.two(X))


def test_letters_tell_queries_keys_and_values_apart():
    torch.manual_seed(0)
    module = nn.Sequential(Odd(), Odd())
    model = describe(module, guess=True)
    assert "q='wq', k='wk', v='wv', out='back'" in model.run_notes[-1]
    assert max(extract(model, torch.randn(2, 5, 12)).av_error) < 1e-5


@pytest.mark.parametrize("name", ["DINOv2", "CLIP, images", "SigLIP, images"])
def test_models_of_the_library_are_guessed_as_the_adapters_read_them(name):
    scales = {"DINOv2": {"scale_attention": "layer_scale1.lambda1"}}.get(name, {})
    ffn = {"scale_ffn": "layer_scale2.lambda1"} if scales else {}
    module = today(name)
    model = describe(module, guess=True, **scales, **ffn, run=lambda batch: module(**batch))
    assert max(extract(model, inputs(name)).av_error) < 1e-5


def test_what_is_not_found_is_said():
    with pytest.raises(InputError, match="guess=True"):
        describe(Stack())
    with pytest.raises(InputError, match="a list of blocks"):
        describe(nn.Linear(3, 3), guess=True)
    module = Stack()
    for floor in module.floors:
        del floor.mix.heads
    with pytest.raises(InputError, match="the number of heads: give heads="):
        describe(module, guess=True)
