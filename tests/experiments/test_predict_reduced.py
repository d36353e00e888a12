"""Reduced FFNs are exact where nothing is left out, and the landmarks that use them are counted."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from oversmoothing import InputError, open_model
from oversmoothing.experiments.ladder import landmarks
from oversmoothing.experiments.ladder.climb import split_inputs
from oversmoothing.experiments.ladder.landmarks import KEPT, Landmarks
from oversmoothing.experiments.ladder.recording import record
from oversmoothing.experiments.ladder.reduced import HiddenUnits, ReducedFfn, stage_layers
from tests.experiments.test_predict_ladder import stack
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def normed(d: int, count: int = 3000) -> torch.Tensor:
    return torch.randn(count, d, generator=torch.Generator().manual_seed(3))


def vision(depth: int = 2):
    model = open_model(tiny("vit", num_hidden_layers=depth))
    return model, torch.randn(30, 3, 32, 32, generator=torch.Generator().manual_seed(6))


@pytest.mark.parametrize("source", ["vit", "described"])
def test_the_hidden_units_are_the_ffns_own_and_all_of_them_give_it(source):
    model = vision()[0] if source == "vit" else stack()
    layer = model.layers[0]
    units = HiddenUnits.of(layer, "layer 1")
    assert len(units) == (32 if source == "vit" else 12)
    N = normed(model.width)
    target = layer.ffn(N)
    found = ReducedFfn(units, N, target, len(units), penalty=0.0)
    size = float(target.abs().max())
    other = normed(model.width, 50) * 1.1
    # float32 units and float64 normal equations: their conditioning times single precision.
    torch.testing.assert_close(found(other), layer.ffn(other), atol=1e-3 * size, rtol=0)


def test_an_affine_ffn_is_exact_without_any_unit():
    units = HiddenUnits.of(stack().layers[0], "layer 1")
    N = normed(8)
    target = N @ torch.randn(8, 8) + torch.randn(8)
    found = ReducedFfn(units, N, target, 0, penalty=0.0)
    torch.testing.assert_close(found(N), target, atol=1e-4, rtol=0)


def test_more_units_explain_more_and_the_first_is_the_best_alone():
    layer = stack().layers[0]
    units = HiddenUnits.of(layer, "layer 1")
    N = normed(8)
    target = layer.ffn(N)

    def left(kept):
        return float((ReducedFfn(units, N, target, kept, penalty=0.0)(N) - target).square().mean())

    errors = [left(k) for k in range(13)]
    assert all(b <= a * (1 + 1e-6) + 1e-10 for a, b in pairwise(errors))
    alone = []
    for j in range(len(units)):
        F = torch.cat([torch.ones(len(N), 1), N, units(N)[:, j : j + 1]], dim=1).double()
        fitted = F @ torch.linalg.lstsq(F, target.double()).solution
        alone.append(float((fitted - target).square().mean()))
    assert errors[1] == pytest.approx(min(alone), rel=1e-3)


@pytest.mark.parametrize("kept", [0, 1, 5, 12, 99])
def test_the_cost_of_a_reduced_ffn_is_d_squared_and_2_k_d(kept):
    units = HiddenUnits.of(stack().layers[0], "layer 1")
    N = normed(8, 200)
    assert ReducedFfn(units, N, N, kept).cost() == 8 * 8 + 2 * min(kept, 12) * 8


def test_ffns_without_hidden_units_are_refused():
    refuses("no FFN", lambda: HiddenUnits.of(stack(ffn=None).layers[0], "layer 1"))
    refuses("two linear layers", lambda: HiddenUnits.of(stack(ffn="affine").layers[0], "layer 1"))
    with pytest.raises(InputError, match="two linear layers"):
        HiddenUnits.of(open_model(tiny("llama")).layers[0], "layer 1")
    layer = stack().layers[0]
    doubled = replace(layer, ffn=lambda X: 2 * layer.ffn(X))
    refuses("two linear layers", HiddenUnits.of, doubled, "layer 1")


def test_the_stages_cover_every_layer_once():
    assert stage_layers(12) == (range(1), range(1, 7), range(7, 12))
    for depth in range(2, 40):
        one, two, three = stage_layers(depth)
        assert [*one, *two, *three] == list(range(depth)) and len(one) and len(three)
    refuses("one layer", stage_layers, 1)


@pytest.mark.parametrize("depth", [2, 5])
def test_the_rung_follows_every_layer_and_its_cost_is_counted(depth, monkeypatch):
    model, pixels = vision(depth)
    known = record(model, pixels, states=True)
    found = Landmarks(model, known, reduced=True)
    blocks = found.features(known.start)
    assert blocks[-1].values.shape == (30, 1 + depth)
    assert all(np.isfinite(block.values).all() for block in blocks)
    # X_0 is read as it is.
    np.testing.assert_allclose(blocks[-1].values[:, 0], known.logs[:, 0, 0] - known.logs[:, 0, 1])
    # One hidden unit more in a stage costs 2 d for each of its tokens and layers.
    monkeypatch.setattr(landmarks, "KEPT", (KEPT[0] + 1 / 32, *KEPT[1:]))
    more = Landmarks(model, known, reduced=True)
    tokens = len(found.stages[0].weights)
    assert more.cost() - found.cost() == tokens * 2 * model.width


def test_a_layer_without_units_to_keep_refuses_the_rung():
    model, pixels = vision()
    gated = replace(model, layers=(replace(model.layers[0], ffn=None), *model.layers[1:]))
    known = record(model, pixels, states=True)
    refuses("no FFN", Landmarks, gated, known, reduced=True)


def test_a_later_part_of_the_draw_shares_nothing_with_the_earlier(tmp_path):
    from PIL import Image

    for k in range(24):
        Image.new("RGB", (8, 8), (k, 0, 0)).save(tmp_path / f"{k:02}.png")
    model = vision()[0]
    drawn = []
    for start in (0, 5):
        *parts, _ = split_inputs(
            model, images=str(tmp_path), calibration=12, held_out=5, held_out_from=start
        )
        drawn.append([{image.getpixel((0, 0))[0] for image in part} for part in parts])
    (known, first), (again, second) = drawn
    assert known == again and len(first) == len(second) == 5
    assert not first & second and not known & (first | second)
