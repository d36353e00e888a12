"""Many heads and changing layers against dense powers, exact fractions and laws (T7, T9, T11)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing import Drawn, Fixed, FromState, PerLayer, evolve_heads
from oversmoothing.simulations.engine.layers import ATTENTION_STREAM, WEIGHT_STREAM
from oversmoothing.theory.proofs.strategies import SEEDS
from tests.support.cases import cases
from tests.support.evolved import dense_layer, evolved, states
from tests.support.refusals import refuses

EPS = 2.0**-52
AA = np.array([[0.75, 0.25], [0.25, 0.75]])


def log_ratio(trajectory):
    return trajectory.metrics()["log_hfc_lfc"].to_numpy()


def growth_bound(X0, layers, residual=True):
    """What rounding of relative size eps can grow to: the same layers on absolute values.

    x_i - x_n and the mean mix the tokens, so every token counts with the largest attention on it.
    """
    size = np.abs(X0)
    for A, W in layers:
        most = np.broadcast_to(A.max(-2, keepdims=True), A.shape)
        size = dense_layer(size, most, np.abs(W), residual)
    return float(size.max())


def draw(seed, *, n, d, heads, layers, scale=1.0, batch=()):
    rng = np.random.default_rng(seed)
    drawn = [
        (rng.dirichlet(np.ones(n), size=(heads, n)), scale * rng.standard_normal((heads, d, d)))
        for _ in range(layers)
    ]
    return rng.standard_normal((*batch, n, d)), drawn


def unit(n, d, heads, depth, dtype=torch.float64):
    """Relative rounding of `depth` layers: products of n, d and heads d terms."""
    return 8 * n * (n + 2 * d * heads + 8) * (depth + 4) * torch.finfo(dtype).eps


sizes = {"n": st.integers(1, 5), "d": st.integers(1, 4), "heads": st.integers(1, 3)}


@settings(max_examples=25)
@given(
    seed=SEEDS,
    residual=st.booleans(),
    dtype=st.sampled_from([torch.float64, torch.float32]),
    **sizes,
)
def test_layers_that_change_are_the_definition_head_by_head(seed, residual, dtype, n, d, heads):
    X0, layers = draw(seed, n=n, d=d, heads=heads, layers=6)
    rules = PerLayer([A for A, _ in layers]), PerLayer(lambda layer: layers[layer][1])
    found = evolved(X0, *rules, range(7), residual=residual, dtype=dtype)
    X = X0
    for depth in range(7):
        bound = growth_bound(X0, layers[:depth], residual) * unit(n, d, heads, depth, dtype)
        assert np.abs(states(found, depth) - X).max() <= bound
        if depth < 6:
            X = dense_layer(X, *layers[depth], residual)


@settings(max_examples=15)
@given(seed=SEEDS, residual=st.booleans(), r=st.integers(1, 3), **sizes)
def test_factors_are_the_dense_weights(seed, residual, r, n, d, heads):
    rng = np.random.default_rng(seed)
    X0, layers = draw(seed, n=n, d=d, heads=heads, layers=1, batch=(3,))
    A = layers[0][0]
    W_V, W_O = rng.standard_normal((heads, d, r)), rng.standard_normal((heads, r, d))
    wide = [(A, np.abs(W_V) @ np.abs(W_O))] * 5
    found, dense = (
        evolve_heads(X0=X0, attention=A, weights=w, depth=[5], residual=residual)
        for w in ((W_V, W_O), W_V @ W_O)
    )
    bound = growth_bound(X0, wide, residual) * unit(n, d + r, heads, 5)
    assert np.abs(states(found) - states(dense)).max() <= 2 * bound


def test_a_batch_of_states_and_of_attention_is_its_elements():
    rng = np.random.default_rng(3)
    A = rng.dirichlet(np.ones(3), size=(2, 1, 2, 3))  # [2, 1, heads, n, n]
    W, X0 = rng.standard_normal((2, 2, 2)), rng.standard_normal((4, 3, 2))
    factors = rng.standard_normal((2, 2, 1)), rng.standard_normal((2, 1, 2))
    for weights in (W, factors):
        together = evolve_heads(X0=X0, attention=A, weights=weights, depth=[0, 3, 20])
        assert together.state(1).hfc.shape == (2, 4, 3, 2)
        assert len(together.metrics()) == 24
        X = states(together)
        for i in range(2):
            for k in range(4):
                alone = states(evolve_heads(X0=X0[k], attention=A[i, 0], weights=weights, depth=20))
                np.testing.assert_allclose(X[i, k], alone, rtol=0, atol=1e-9 * np.abs(alone).max())


def test_a_drawn_layer_depends_on_seed_and_layer_alone():
    rule = Drawn(lambda rng: rng.standard_normal(4), seed=5)
    again = Drawn(lambda rng: rng.standard_normal(4), seed=5)
    rule.at(0, WEIGHT_STREAM)
    assert (rule.at(7, WEIGHT_STREAM) == again.at(7, WEIGHT_STREAM)).all()
    others = [rule.at(8, WEIGHT_STREAM), rule.at(7, ATTENTION_STREAM),
              Drawn(rule.rule, seed=6).at(7, WEIGHT_STREAM)]  # fmt: skip
    assert all((rule.at(7, WEIGHT_STREAM) != other).all() for other in others)


def rotating(layer):
    """W_l = -g_l g_l^T, g_l = R^l (1, 0), R the rotation by (4/5, -3/5)."""
    z = complex(0.8, -0.6) ** layer
    g = np.array([z.real, -z.imag])
    # R = [[4/5, -3/5], [3/5, 4/5]] turns (1, 0) to (4/5, 3/5).
    return -np.outer(g, g)


def test_rotating_weights_smooth_though_every_layer_alone_does_not():
    """T7b: spectra {-1, 0} in each layer, and HFC/LFC decays at sqrt(1/2) / (4/5) a layer."""
    run = evolved([[1.0, 2.0], [3.0, 5.0]], AA, PerLayer(rotating), [1, 2, 10, 20, 40, 400])
    log = log_ratio(run)
    assert math.exp(2 * log[0]) == pytest.approx(10 / 49, rel=1e-13)
    assert math.exp(2 * log[1]) == pytest.approx(493 / 3136, rel=1e-13)
    assert [f"{math.exp(x):.4g}" for x in log[2:5]] == ["0.08168", "0.03307", "0.003428"]
    assert math.exp((log[5] - log[4]) / 360) == pytest.approx(math.sqrt(0.5) / 0.8, abs=1e-3)


def test_a_spread_far_below_or_above_the_mean_is_followed():
    """Two heads of other pi; the mean drives nothing, and is driven by what is far above it."""
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(3), size=(2, 3))
    W = -0.4 * np.eye(2) + 0.1 * rng.standard_normal((2, 2, 2))
    base = rng.standard_normal((3, 2))
    base -= base.mean(0)
    slopes, ratios = [], []
    for spread in (1.0, 1e-300, 1e300):
        run = evolve_heads(X0=base * spread, attention=A, weights=W, depth=[40, 1040])
        slopes.append(run.state(1).hfc_exponent.item() - run.state(0).hfc_exponent.item())
        ratio = log_ratio(run)
        assert np.isfinite(ratio).all()
        ratios.append(ratio[1])
    assert max(slopes) - min(slopes) <= 1
    assert max(ratios) - min(ratios) <= 1e-9


def test_without_residual_the_rate_is_the_second_eigenvalue_whatever_the_weights():
    """T9: HFC/LFC at |lambda_2|; sigma2/sigma1 at |lambda_2| |h_2/h_1|; 1 - |cos| at its square."""
    A = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]])  # 1, 1/2, 1/5
    rng = np.random.default_rng(6)
    V = rng.standard_normal((3, 3))
    W = V @ np.diag([1.9, 1.2, 0.5]) @ np.linalg.inv(V)
    X0 = rng.standard_normal((3, 3))
    # At layer 20 the other modes are below (1/5 / 1/2)^20 = 1e-8; at 50, what HFC has across the
    # mean is (1.2 / 1.9)^50 = 1e-10 of it, known to 5 digits after 50 roundings.
    table = evolved(X0, A, W, [20, 50, 400], residual=False).metrics()
    drop = table.diff().iloc[1] / 30
    assert math.exp(drop["log_sigma2_sigma1"]) == pytest.approx(0.5 * 1.2 / 1.9, rel=1e-5)
    cosine = math.exp(drop["log_one_minus_cos_abs_min"])
    assert cosine == pytest.approx((0.5 * 1.2 / 1.9) ** 2, rel=1e-5)
    rate = math.exp(table.diff().iloc[2]["log_hfc_lfc"] / 350)
    assert rate == pytest.approx(0.5, rel=1e-8)


def test_a_state_that_weights_of_0_take_to_0_stays_there():
    for attention in (AA, FromState(np.ones((1, 1)), np.ones((1, 1)))):
        gone = evolved([[1.0], [2.0]], attention, [[0.0]], [1, 30], residual=False)
        assert gone.metrics().iloc[:, 1:].isna().all(axis=None)


def test_doubly_stochastic_heads_leave_the_mean_alone():
    """The drive is exactly 0: with sum_h W_h = -1 the ratio is +inf after one layer (T11.4)."""
    A = np.stack((AA, AA[::-1]))
    run = evolve_heads(X0=[[3.0], [1.0]], attention=A, weights=[[[-0.75]], [[-0.25]]], depth=[1, 9])
    assert (run.metrics()["hfc_lfc"] == math.inf).all()


def test_a_mode_with_multiplier_zero_dies_in_one_layer():
    """GT18 in two heads: 1 + h a = 0 exactly."""
    run = evolve_heads(X0=[[1.0], [2.0]], attention=AA, weights=[[[-1.5]], [[-0.5]]], depth=[1, 40])
    assert list(run.metrics()["hfc_lfc"]) == [0.0, 0.0]


@cases(
    "change",
    {"attention": [[0.7, 0.2], [0.25, 0.75]]},
    {"attention": np.full((3, 2, 2), 0.5)},
    {"attention": np.full((5, 2, 2, 2), 0.5), "X0": np.ones((3, 2, 1))},
    {"attention": PerLayer([AA])},
    {"attention": PerLayer(lambda layer: AA if layer == 0 else np.eye(3))},
    {"attention": FromState(np.ones((1, 2)), np.ones((1, 2)))},
    {"attention": FromState(np.ones((2, 1, 2)), np.ones((2, 1, 2)), bias=np.ones(3))},
    {"attention": FromState(np.ones((2, 1, 2)), np.ones((2, 1, 2)), bias=[[0.0, -math.inf]] * 2)},
    {"weights": np.ones((2, 1, 2))},
    {"weights": (np.ones((2, 1, 3)), np.ones((2, 2, 1)))},
    {"weights": (np.ones((2, 1, 3)),)},
    {"weights": [[[math.nan]], [[1.0]]]},
    {"weights": PerLayer([np.ones((2, 1, 1)), np.ones((2, 2, 2))])},
    {"weights": [[[1e300]], [[0.0]]], "dtype": torch.float32},
    {"X0": [[1.0]]},
    {"X0": [1.0, 2.0]},
    {"X0": [[1.0], [math.inf]]},
    {"depth": -1},
    {"depth": [3, 3]},
    {"dtype": torch.float16},
    {"device": "quantum"},
    ids=lambda change: "-".join(change),
)
def test_bad_input_is_refused(change):
    good = {"attention": Fixed(AA), "weights": [[[0.5]], [[0.5]]], "X0": [[1.0], [2.0]], "depth": 3}
    evolve_heads(**good)
    refuses("", lambda: evolve_heads(**(good | change)))
