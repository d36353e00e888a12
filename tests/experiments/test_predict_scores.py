"""Scores and regressions of the ladder: the laws that make them comparable."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from oversmoothing.experiments.ladder.regression import (
    RIDGE_PENALTIES,
    Features,
    kernel_cost,
    kernel_ridge,
    ridge,
)
from oversmoothing.experiments.ladder.scores import score
from tests.support.refusals import refuses

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
