"""Several streams iterated: against the same as heads of one wide layer, and against T13b."""

import json

import numpy as np
import pytest

import oversmoothing
from oversmoothing.simulations.against_theory.simulate import StreamsConfiguration, simulate_streams
from oversmoothing.simulations.engine.evolve_streams import evolve_streams
from oversmoothing.simulations.generators.attention import MIXINGS, draw_mixing
from tests.support.cases import cases
from tests.support.refusals import refuses

S, N, D = 3, 5, 2
DEPTHS = [0, 1, 2, 7, 60]


def case(kind: str) -> tuple[np.ndarray, ...]:
    """R, A, W, p, q and X_0."""
    rng = np.random.default_rng(MIXINGS.index(kind))
    p = rng.standard_normal(S) if kind in ("gaussian", "orthogonal") else np.ones(S)
    R, A = draw_mixing(kind, S, rng=rng), rng.dirichlet(np.ones(N), size=N)
    W, q = 0.4 * rng.standard_normal((D, D)), rng.standard_normal(S)
    return R, A, W, p, q, rng.standard_normal((S, N, D))


@pytest.mark.parametrize("kind", MIXINGS)
def test_streams_are_two_heads_of_one_wide_layer(kind):
    """X = [x_1 | ... | x_s]: a head that attends to itself mixes, one adds the branch."""
    R, A, W, p, q, X0 = case(kind)
    found = evolve_streams(X0=X0, mixing=R, attention=A, weights=W, depth=DEPTHS, p=p, q=q)
    wide = oversmoothing.evolve_heads(
        X0=np.concatenate(list(X0), axis=1),
        attention=np.stack([np.eye(N), A]),
        weights=np.stack([np.kron(R.T, np.eye(D)), np.kron(np.outer(q, p), W)]),
        depth=DEPTHS,
        residual=False,
    )
    ours, theirs = found.metrics(), wide.metrics()
    for name in ("log_hfc_lfc", "cos_mean", "cos_min", "effective_rank"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-9)
    off = np.abs(ours["log_hfc_lfc"] - theirs["log_hfc_lfc"])
    assert (off <= np.add(found.stack.error, wide.error)).all()
    assert max(found.stack.error) < 1e-8 and max(found.mean.error) < 1e-8
    # Token by token, where nothing is out of the range of the floats.
    state, exponent = found.stack.X(2)
    X = X0
    for _ in range(2):
        X = np.tensordot(R, X, 1) + np.multiply.outer(p, A @ np.tensordot(q, X, 1) @ W)
    ours = state.numpy() * 2.0 ** int(exponent)
    np.testing.assert_allclose(ours, np.concatenate(X, axis=1), rtol=1e-11, atol=1e-12)


def test_differences_between_streams_have_their_own_scale():
    """Below what a float holds beside the state: the second eigenvalue of R, at any depth."""
    R, A, W, _, q, X0 = case("doubly-stochastic")
    found = evolve_streams(X0=X0, mixing=R, attention=A, weights=W, depth=[1000, 2000], q=q)
    second = np.sort(np.abs(np.linalg.eigvals(R)))[-2]
    slope = (found.log_spread[1] - found.log_spread[0]) / 1000
    assert slope == pytest.approx(np.log(second), abs=5e-3)
    assert found.log_spread[1] < -1000


def test_digits_that_rounding_takes_are_told():
    """X_0 lacks the mode that leads in exact arithmetic, and rounding brings it in."""
    turn = np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])
    W = turn @ np.diag([-0.1, -1.9]) @ turn.T
    X0 = np.broadcast_to(np.outer([1.0, -1.0, 2.0], turn[:, 0]), (2, 3, 2))
    A = np.random.default_rng(0).dirichlet(np.ones(3), size=3)
    R = [[0.75, 0.25], [0.25, 0.75]]
    found = evolve_streams(X0=X0, mixing=R, attention=A, weights=W - 2 * np.eye(2), depth=[1, 400])
    assert found.stack.error[0] < 1e-12 and found.stack.error[1] > 1e-3


def test_equal_streams_stay_equal_and_are_one_stream():
    R, A, W, _, q, X0 = case("row-stochastic")
    copies = np.broadcast_to(X0[0], X0.shape)
    found = evolve_streams(X0=copies, mixing=R, attention=A, weights=W, depth=DEPTHS, q=q)
    assert set(found.log_spread) == {-np.inf}
    alone = oversmoothing.evolve(X0=X0[0], A=A, W=q.sum() * W, depth=DEPTHS)
    np.testing.assert_allclose(
        found.metrics()["log_hfc_lfc_mean"], alone.metrics()["log_hfc_lfc"], atol=1e-9
    )


@pytest.mark.parametrize("changing", [False, True])
def test_four_doubly_stochastic_streams_agree_where_the_certificate_says(changing):
    for seed in range(3):
        small = {"n": 4, "d": 2, "depth": 120, "points": 5, "seed": seed}
        result = simulate_streams(StreamsConfiguration(changing=changing, **small))
        found = result.details["theory"]["agreement"]
        assert found["simulated"] <= found["certified"] <= found["by_each_layer"]
        # tau of the product is what some start attains: a drawn one is not far from it.
        assert found["simulated"] >= found["certified"] - 4
        assert "agree to 1e-06" in result.words()


def test_one_token_and_one_stream_have_an_answer():
    for s, n in ((1, 3), (2, 1)):
        A, W = np.full((n, n), 1 / n), np.eye(2)
        run = evolve_streams(
            X0=np.ones((s, n, 2)), mixing=np.eye(s), attention=A, weights=W, depth=3
        )
        assert len(run.metrics()) == 2


@cases(
    "change, words",
    ({"X0": np.ones((3, 2))}, "streams first"),
    ({"mixing": np.eye(3)}, "X0 has 2 streams"),
    ({"p": [1.0]}, "p must be 2 finite"),
    ({"weights": np.eye(3)}, "have d = 3, X0 has 2"),
    ({"attention": np.eye(3)}, "is for 3 tokens, X0 has 2"),
    ({"attention": oversmoothing.FromState(np.eye(2), np.eye(2))}, "attention that follows"),
)
def test_what_does_not_fit_is_refused(change, words):
    given = {"X0": np.ones((2, 2, 2)), "mixing": np.eye(2), "weights": np.eye(2), "depth": 2}
    given["attention"] = np.full((2, 2), 0.5)
    refuses(words, lambda: evolve_streams(**given | change))


def test_the_command_writes_a_run(tmp_path, told):
    words = ["simulate", "--streams", "--n", "4", "--d", "2", "--depth", "40", "--points", "6"]
    said = " ".join(told(0, *words, "--out", tmp_path).split())
    assert "the certificate, for every branch and start" in said
    assert (tmp_path / "streams.csv").exists()
    assert json.loads(told(0, *words, "--out", tmp_path, "--json"))["configuration"]["n"] == 4
