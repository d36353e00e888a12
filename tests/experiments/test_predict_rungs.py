"""The ladder's scores and regressions, P6 on lifted tokens, reduced FFNs: their laws and costs."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from oversmoothing import open_model
from oversmoothing.experiments.ladder import landmarks, linear as module
from oversmoothing.experiments.ladder.climb import split_inputs
from oversmoothing.experiments.ladder.landmarks import KEPT, Landmarks
from oversmoothing.experiments.ladder.linear import Lift, lifted_state, linear_state
from oversmoothing.experiments.ladder.recording import Recording, log_energies, record
from oversmoothing.experiments.ladder.reduced import HiddenUnits, ReducedFfn, stage_layers
from oversmoothing.experiments.ladder.regression import (
    RIDGE_PENALTIES,
    Features,
    kernel_cost,
    kernel_ridge,
    ridge,
)
from oversmoothing.experiments.ladder.scores import score
from tests.experiments.test_predict_ladder import linear_recording, stack
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny

seeds = st.integers(0, 2**32 - 1)


def changes(seed: int, images: int = 12, layers: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((images, layers)) + np.arange(layers)


@given(seeds)
def test_scores_are_those_of_their_definitions(seed):
    y, p = changes(seed), changes(seed + 1)
    means = p.mean(0)
    every = ("r2", "r2_within", "sign", "spearman", "spearman_within")
    for predicted, wanted in (
        (y, dict.fromkeys(every, 1)),
        (np.tile(means, (len(y), 1)), {"r2_within": 0}),
        (np.full_like(y, y.mean()), {"r2": 0, "spearman": math.nan, "spearman_within": math.nan}),
        (p, {"skill_spectral": 0}),
        # A monotone change leaves the ranks, the mirror image turns them.
        (np.exp(y), {"spearman": 1, "spearman_within": 1}),
        (-y, {"spearman": -1, "sign": 0}),
    ):
        found = score(y, predicted, means, p, resamples=5)
        for name, value in wanted.items():
            assert getattr(found, name) == pytest.approx(value, abs=1e-12, nan_ok=True), name
    assert math.isnan(score(y, p, means, resamples=5).skill_spectral)


def test_every_image_told_says_nothing_when_drawn_again_but_of_signs_wilson_does():
    y = changes(0)
    found = score(y, y, y.mean(0), resamples=20)
    assert math.isnan(found.r2_low) and 0 < found.sign_low < found.sign_high == 1


@pytest.mark.parametrize("images", [1, 2])
def test_one_image_and_one_layer_are_scored(images):
    found = score(np.ones((images, 1)), np.zeros((images, 1)), np.zeros(1), resamples=5)
    assert math.isnan(found.r2)  # no spread to explain
    assert found.r2_within == 0


def test_bad_predictions_are_refused():
    y = changes(0)
    refuses("must be", lambda: score(y, y[:, :1], y.mean(0)))
    refuses("not finite", lambda: score(y, np.full_like(y, np.nan), y.mean(0)))


@pytest.mark.parametrize("penalty", [min(RIDGE_PENALTIES), 1.0, max(RIDGE_PENALTIES)])
@given(seeds)
def test_ridge_solves_the_penalised_normal_equations(penalty, seed):
    """(ZᵀZ + penalty I) B = Zᵀ(Y - mean Y) of standardised Z, the mean itself not penalised."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((40, 3))
    Y = X @ random.standard_normal((3, 2)) + 5 + random.standard_normal((40, 2))
    Z = (X - X.mean(0)) / X.std(0)
    B = np.linalg.solve(Z.T @ Z + penalty * np.eye(3), Z.T @ (Y - Y.mean(0)))
    found = ridge(X, Y, penalties=(penalty,))(X + X.std(0))
    # scikit-learn before 1.9 divides by the penalty: a rounding of mean Y by 1e-16 counts 1e3 times
    # in each of 40 sums of 40, at worst some 1e-9 together.
    np.testing.assert_allclose(found, (Z + 1) @ B + Y.mean(0), atol=1e-8)


@given(seeds)
def test_ridge_leave_one_out_error_is_the_refitted_one(seed):
    """The penalty chosen by the formula is the one chosen by refitting without each observation."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((12, 4))
    Y = X @ random.standard_normal((4, 1)) + random.standard_normal((12, 1))
    penalties = (0.1, 1e6)
    errors = []
    Z = (X - X.mean(0)) / X.std(0)
    for penalty in penalties:
        total = 0.0
        for k in range(12):
            rest = np.arange(12) != k
            A = np.column_stack([Z[rest], np.ones(11)])
            gram = A.T @ A + penalty * np.diag([1, 1, 1, 1, 0])
            weights = np.linalg.solve(gram, A.T @ Y[rest])
            total += float(np.square(Y[k] - np.append(Z[k], 1) @ weights).sum())
        errors.append(total)
    best = penalties[int(np.argmin(errors))]
    np.testing.assert_allclose(ridge(X, Y, penalties)(X), ridge(X, Y, (best,))(X))


def test_ridge_needs_two_observations_and_ignores_constants():
    refuses("at least 2", lambda: ridge(np.ones((1, 2)), np.ones((1, 1))))
    found = ridge(np.ones((5, 2)), np.arange(5.0)[:, None])(np.zeros((1, 2)))
    assert found == pytest.approx(2)


def predicted(X, Y, at, sources=None, **how):
    sources = np.arange(len(X)) if sources is None else sources
    return kernel_ridge([Features(X)], Y, [Features(at)], sources, **how)


@given(seeds)
def test_kernel_ridge_interpolates_and_falls_back_to_the_mean_far_away(seed):
    random = np.random.default_rng(seed)
    # Points apart from each other: the kernel's matrix is near 1 and forgets no value.
    X, Y = np.arange(20.0)[:, None] + 0.3 * random.random((20, 1)), random.random((20, 2))
    near = predicted(X, Y, X, scales=(0.001,), penalties=(1e-9,))
    np.testing.assert_allclose(near, Y, atol=1e-5)
    far = predicted(X, Y, X + 1e6, scales=(2.0,), penalties=(0.1,))
    np.testing.assert_allclose(far, np.tile(Y.mean(0), (20, 1)))


def test_copies_of_an_image_never_judge_the_fit_to_it():
    """Noise copied onto altered copies: were they in other folds, the least penalty would win."""
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((33, 2)), random.standard_normal((33, 1))
    twice, sources = (np.concatenate([each, each]) for each in (X, Y)), np.tile(np.arange(33), 2)
    found = predicted(*twice, X, sources, penalties=(1e-9, 1e3))
    assert np.abs(found - Y.mean()).max() < 0.2 * np.abs(Y - Y.mean()).max()


def test_only_the_images_themselves_judge_the_fit():
    """Copies that are noise, far away: judged by them, the great penalty would win."""
    random = np.random.default_rng(0)
    X = np.linspace(0, 3, 40)[:, None]
    far, noise = X + 1e3, 10 * random.standard_normal((40, 1))
    # Three copies each; a weight of 1 on standardised features keeps the clusters apart.
    everything = np.concatenate([X, far, far + 1e3, far + 2e3])
    values = np.concatenate([np.sin(X), noise, noise[::-1], -noise])
    sources = np.tile(np.arange(40), 4)
    found = predicted(everything, values, X, sources, scales=(1.0,), penalties=(1e-6, 1e3))
    assert np.abs(found - np.sin(X)).max() < 0.05


def test_a_constant_feature_and_a_single_one_do_no_harm():
    Y = np.arange(12.0)[:, None]
    blocks = [Features(np.ones((12, 1))), Features(np.arange(12.0)[:, None])]
    assert np.isfinite(kernel_ridge(blocks, Y, blocks, np.arange(12))).all()
    assert kernel_cost(blocks, 12, 3) == 12 * (2 + 3)


# --- P6 on lifted tokens is exact where the layers are linear in the lift, and finite where not ---


FEW = 12  # functions


def recorded(states: torch.Tensor) -> Recording:
    """states [layers + 1, m, n, d]."""
    logs = torch.stack([log_energies(X) for X in states], dim=1).numpy()
    return Recording(states[0].float(), logs, states.float())


def lifted_recording(prefix: int, images: int = 60, n: int = 7, d: int = 5, layers: int = 3):
    """States made of lifted tokens and, for a prefix, of their mean; the recording and the lift."""
    generator = torch.Generator().manual_seed(2)
    place = 2 * torch.randn(n, d, generator=generator)
    X = place + torch.randn(images, n, d, generator=generator)
    X[:, :prefix] = place[:prefix]
    lift = Lift(X, FEW, seed=3)
    z = lift(X)[:, prefix:]
    states = [X]
    for _ in range(layers):
        M, R = torch.randn(2, d + FEW, d, generator=generator)
        front = z.mean(1, keepdim=True) @ R
        tokens = z @ M + front
        B = torch.randn(n, d, generator=generator)
        states.append(B + torch.cat([front.expand(-1, prefix, -1), tokens], dim=1))
    return recorded(torch.stack(states)), lift


@pytest.fixture
def _unpenalised(monkeypatch):
    monkeypatch.setattr(module, "LIFTED_PENALTY", 1e-9)
    monkeypatch.setattr(module, "IMAGE_PENALTIES", (1e-6,))


@pytest.mark.usefixtures("_unpenalised")
@pytest.mark.parametrize("prefix", [0, 1, 2])
def test_p6_lifted_is_exact_where_the_layers_are_linear_in_the_lift(prefix):
    known, _ = lifted_recording(prefix)
    found = lifted_state(known, prefix, functions=FEW, seed=3)
    size = float(known.states.abs().max())
    # float32 states; the lifted features of five coordinates are ill conditioned.
    torch.testing.assert_close(
        torch.stack(found.states(known.start)), known.states[1:], atol=2e-3 * size, rtol=0
    )
    logs = found.logs(known.start).reshape(len(known), -1, 2)
    np.testing.assert_allclose(logs, known.logs, atol=1e-2)
    np.testing.assert_allclose(found.predict(known.start), known.change, atol=3e-2)
    # What is linear in the lift is not linear in the tokens.
    states = linear_state(known), found
    plain, own = (np.square(each.predict(known.start) - known.change).sum() for each in states)
    assert plain > 10 * own


@pytest.mark.usefixtures("_unpenalised")
def test_p6_lifted_holds_all_that_p6_does():
    known = linear_recording(images=60)
    logs = lifted_state(known, functions=FEW).logs(known.start).reshape(len(known), -1, 2)
    np.testing.assert_allclose(logs, known.logs, atol=1e-3)


def test_the_lift_is_centred_at_each_position_and_drawn_by_the_seed():
    known, lift = lifted_recording(1)
    assert lift(known.start).shape == (len(known), 7, 5 + FEW)
    assert float(lift(known.start).mean(0).abs().max()) < 1e-5
    again, other = Lift(known.start, FEW, seed=3), Lift(known.start, FEW, seed=4)
    assert torch.equal(again(known.start), lift(known.start))
    assert not torch.equal(other.G, lift.G)


def test_images_all_alike_are_predicted_by_their_means():
    """Nothing varies: every operator is zero, and P0' is what is left."""
    states = torch.randn(4, 1, 6, 3, generator=torch.Generator().manual_seed(1)).expand(4, 8, 6, 3)
    known = recorded(states)
    found = lifted_state(known, 1, functions=FEW)
    predicted = found.predict(known.start)
    np.testing.assert_allclose(predicted, known.change, atol=1e-4)


@pytest.mark.parametrize("prefix", [0, 1])
def test_the_cost_counts_every_product(prefix):
    known, _ = lifted_recording(prefix)
    found = lifted_state(known, prefix, functions=FEW)
    n, d, layers, size = 7, 5, 3, 5 + FEW
    lift, moved = n * d * FEW, layers * (n - prefix) * size * d
    image = layers * size * d * (1 + prefix)
    reading = (layers + 1) * 2 * n * d + 2 * (layers + 1) * layers
    assert found.cost() == lift + moved + image + reading


# --- reduced FFNs, and the landmarks that use them ---


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
    layer = stack().layers[0]
    doubled = replace(layer, ffn=lambda X: 2 * layer.ffn(X))
    for other in (open_model(tiny("llama")).layers[0], doubled):
        refuses("two linear layers", HiddenUnits.of, other, "layer 1")


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
