"""`evolve` against dense powers, exact fractions and closed forms, and at the edges (T1, T11)."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing import evolve, evolve_heads, verdict
from oversmoothing.simulations.engine.iteration import OneHead
from oversmoothing.theory.proofs.strategies import SEEDS
from tests.support.cases import cases
from tests.support.kronecker import evolve_by
from tests.support.refusals import refuses

EPS = 2.0**-52
AA = [[0.75, 0.25], [0.25, 0.75]]


def log_ratio(*, depth: int, **layer: object) -> float:
    return evolve(depth=[depth], **layer).metrics()["log_hfc_lfc"].item()


def test_lists_arrays_and_tensors_are_the_same_input_and_h_is_the_transpose_of_w():
    H = [[0.0, 0.5], [0.0, 0.0]]
    first, *others = (
        evolve(A=f(AA), X0=f([[1.0, 2.0], [3.0, 5.0]]), depth=7, **H_or_W).metrics()
        for f in (list, np.array, lambda x: torch.tensor(x, dtype=torch.float64))
        for H_or_W in ({"H": f(H)}, {"W": f(np.transpose(H).tolist())})
    )
    assert all(first.equals(other) for other in others)
    for run in (evolve(A=AA, W=H, X0=torch.ones(2, 2), depth=2),
                evolve_heads(attention=AA, weights=H, X0=torch.ones(2, 2), depth=2)):  # fmt: skip
        assert run.states.dtype == torch.float32


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(2, 5), st.integers(1, 3))
def test_the_order_of_tokens_changes_no_answer(seed, n, d):
    rng = np.random.default_rng(seed)
    A, X0 = rng.integers(0, 4, (n, n)) + np.eye(n, dtype=int), rng.integers(-4, 5, (n, d))
    H, order, fraction = rng.integers(-3, 3, (d, d)), rng.permutation(n), np.vectorize(Fraction)
    A = fraction(A, A.sum(1, keepdims=True))
    ways = ((A, X0), (A[np.ix_(order, order)], X0[order]))
    said = [verdict(A=A.tolist(), H=H.tolist(), X0=X.tolist(), depth=9) for A, X in ways]
    runs = [evolve(A=A.astype(float), H=H / 4, X0=X / 4, depth=9).metrics() for A, X in ways]
    for name in ("verdict", "verdict_x0", "tends_to", "limit_rank", "shows_from"):
        assert getattr(said[0], name) == getattr(said[1], name), name
    assert said[0].hfc_lfc[9].squared == said[1].hfc_lfc[9].squared
    for name in ("hfc_lfc", "cos_mean", "cos_min", "effective_rank"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], rtol=1e-7, atol=1e-7)


@cases("method, bits, residual", ("auto", 80, True), ("heads", 330, True), ("heads", 330, False))
def test_a_state_that_shrinks_by_many_digits_a_layer_is_followed(method, bits, residual):
    """[I +] W = 2^-bits [[0, 1], [1, 0]] takes consensus to 2^-bits of itself in each layer."""
    W = 2.0**-bits * np.eye(2)[::-1] - residual * np.eye(2)
    run = evolve_by(method, A=AA, W=W, X0=[[1.0, 0.0]] * 2, depth=[101], residual=residual)
    X, exponent = run.X(0)
    assert (X.numpy() * 2.0 ** (exponent.item() + bits * 101) == [[0.0, 1.0], [0.0, 1.0]]).all()


def test_initial_states_at_the_ends_of_the_range():
    for scale in (1e-300, 1e300, 5e-324):
        found = log_ratio(A=AA, H=[[0.5]], X0=[[scale], [2 * scale]], depth=0)
        assert found == pytest.approx(math.log(1 / 3), abs=8 * EPS)


A3 = [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]]
CAUSAL = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]
NEAR_ONE = 0.99 * np.eye(4) + 0.0025


@cases(
    "A, h, X0, logs",
    # T11.4: X_0 = (3, 1), h = -1: X_1 = (1/2, -1/2).
    (AA, -1.0, [3.0, 1.0], {1: math.inf, 2: math.inf, 1000: math.inf}),
    # T11.4, A not doubly stochastic: HFC/LFC^2 = 1819399/423200 at L = 3.
    (A3, -1.0, [1.0, 2.0, 4.0], {3: math.log(1819399 / 423200) / 2}),
    # GT18: a = 1/2, h = -2: 1 + h a = 0 exactly.
    (AA, -2.0, [1.0, 2.0], {0: -math.log(3), 1: -math.inf, 40: -math.inf}),
    # T1h: a = 1, 1/2, 1/3.
    (CAUSAL, 1.0, [1.0, 2.0, 4.0], {800: 800 * math.log(0.75) - math.log(3 / 2) / 2}),
    # T11.2: A = (1 - s) I + s 11^T/n, s = 1/100: r = (1 + h (1 - s))/(1 + h).
    (NEAR_ONE, 0.5, [1.0, 2.0, 4.0, 1.0],
     {2000: 2000 * math.log(1.495 / 1.5) - math.log(8 / 3) / 2}),
)  # fmt: skip
def test_T11_ratios_that_are_known_at_their_depths(A, h, X0, logs):
    for depth, log in logs.items():
        found = log_ratio(A=A, H=[[h]], X0=[[x] for x in X0], depth=depth)
        assert found == pytest.approx(log, abs=1e-9)


@cases(
    "change",
    {"A": [[0.75, 0.25], [0.25, math.nan]]},
    {"A": [[0.75, 0.25]]},
    {"A": [[0.7, 0.2], [0.25, 0.75]]},
    {"H": [[math.inf]]},
    {"H": [[1.0, 2.0]]},
    {"H": None},
    {"W": [[1.0]]},
    {"X0": [[1.0]]},
    {"X0": [[1.0], [math.nan]]},
    {"depth": -1},
    {"depth": [3, 3]},
    {"depth": [5, 2]},
    {"depth": []},
    {"depth": 1.5},
    {"depth": True},
    {"dtype": torch.float16},
    {"device": "quantum"},
    {"device": "cuda:99"},
    {"H": [[1e300]], "dtype": torch.float32, "method": "plain"},
    {"A": np.full((2, 2, 2), 0.5), "X0": np.ones((3, 2, 1))},
    ids=lambda change: next(iter(change)),
)
def test_bad_input_is_refused(change):
    good = {"A": AA, "H": [[0.5]], "X0": [[1.0], [2.0]], "depth": 1}
    refuses("", lambda: evolve(**(good | change)))


def test_small_layers_run_on_one_thread_and_leave_the_threads_as_they_were(monkeypatch):
    """Threads wait for one another for longer than such products take."""
    seen, block = [], OneHead.block

    def watched(*args):
        seen.append(torch.get_num_threads())
        return block(*args)

    monkeypatch.setattr(OneHead, "block", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for n, threads in ((32, 1), (200, 2)):
            seen.clear()
            evolve(A=np.full((n, n), 1 / n), H=np.eye(n), X0=np.eye(n), depth=2, method="plain")
            assert set(seen) == {threads} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
