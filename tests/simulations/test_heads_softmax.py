"""Attention that follows the state: any spread, and the laws near consensus (T7b-c, T8, T9)."""

import math

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing import Drawn, FromState, evolve_heads
from oversmoothing.simulations.engine.state_attention import _phi, _psi
from oversmoothing.simulations.state import join
from oversmoothing.theory.proofs.strategies import SEEDS
from tests.support.evolved import dense_layer, evolved, states

EPS = 2.0**-52


def softmax_of(X, W_Q, W_K, bias=None, causal=False):
    """A [..., heads, n, n] by the definition."""
    logits = np.einsum("...id,hdr,her,...je->...hij", X, W_Q, W_K, X) / math.sqrt(W_Q.shape[-1])
    if bias is not None:
        logits = logits + bias
    if causal:
        logits = np.where(np.tri(logits.shape[-1]) > 0, logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@settings(max_examples=25)
@given(
    seed=SEEDS,
    n=st.integers(1, 5),
    d=st.integers(1, 3),
    heads=st.integers(1, 3),
    residual=st.booleans(),
    causal=st.booleans(),
    biased=st.booleans(),
    scale=st.sampled_from([1e-3, 0.3, 1.0]),
)
def test_at_moderate_spread_it_is_the_definition(
    seed, n, d, heads, residual, causal, biased, scale
):
    rng = np.random.default_rng(seed)
    W_Q, W_K = rng.standard_normal((2, heads, d, 2)) / math.sqrt(d)
    W = 0.5 * rng.standard_normal((heads, d, d))
    bias = rng.standard_normal((heads, n, n)) if biased else None
    X0 = scale * rng.standard_normal((4, n, d))
    run = evolved(X0, FromState(W_Q, W_K, bias=bias, causal=causal), W, [3], residual=residual)
    X, size, reach = X0, np.abs(X0), 0.0
    for _ in range(3):
        X = dense_layer(X, softmax_of(X, W_Q, W_K, bias, causal), W, residual)
        size = size + np.abs(size).max(-2, keepdims=True) @ np.abs(W).sum(0)
        norms = np.linalg.norm(W_Q, axis=(1, 2)) * np.linalg.norm(W_K, axis=(1, 2))
        reach = max(reach, float((np.linalg.norm(X, axis=(1, 2)).max() ** 2 * norms).max()))
    # An error of eps in X moves the logits by eps times `reach`, in each layer again.
    bound = 64 * n * (n + d * heads) * EPS * (1 + reach) ** 3 * size.max()
    assert np.abs(states(run) - X).max() <= bound


def test_query_and_key_weights_may_change_with_the_layer():
    rng = np.random.default_rng(1)
    rule = Drawn(lambda g: FromState(*g.standard_normal((2, 2, 3, 2))), seed=4)
    W, X0 = 0.2 * rng.standard_normal((2, 3, 3)), rng.standard_normal((5, 3))
    X = X0
    for layer in range(4):
        drawn = rule.at(layer, 0)
        X = dense_layer(X, softmax_of(X, drawn.W_Q, drawn.W_K), W, True)
    run = evolve_heads(X0=X0, attention=rule, weights=W, depth=[4])
    np.testing.assert_allclose(states(run), X, rtol=0, atol=1e-11 * np.abs(X).max())


def exact_run(X, W_Q, W_K, W, depth, residual, bias, causal):
    for _ in range(depth):
        new = X * int(residual)
        for h in range(len(W)):
            M = mp.matrix(W_Q[h].tolist()) * mp.matrix(W_K[h].tolist()).T / mp.sqrt(W_Q.shape[-1])
            logits = X * M * X.T + (0 if bias is None else mp.matrix(bias[h].tolist()))
            rows = logits.apply(mp.exp).tolist()
            rows = [row[: i + 1] if causal else row for i, row in enumerate(rows)]
            A = [[x / mp.fsum(row) for x in row] + [0] * (X.rows - len(row)) for row in rows]
            new += mp.matrix(A) * X * mp.matrix(W[h].tolist())
        X = new
    return X


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("power", "centred"), [(-3, False), (-27, True), (-660, True)])
@pytest.mark.parametrize("kind", ["plain", "bias", "small bias", "causal"])
def test_a_tiny_spread_is_right_to_the_last_digits(residual, power, centred, kind):
    """HFC and mean after two layers, each to its own last digits, against 2500 digits.

    Spreads of 2^-3, 1e-8 and 1e-199 around a mean of order 1 or of exactly 0; without residual the
    last one passes 1e-1780.
    """
    rng = np.random.default_rng([power + 1000, centred, residual])
    n, d, heads, depth = 4, 2, 2, 2
    W_Q, W_K = rng.standard_normal((2, heads, d, 2))
    W = 0.5 * rng.standard_normal((heads, d, d))
    bias = {"bias": 0.3, "small bias": 2.0**-30}.get(kind)
    bias = None if bias is None else bias * rng.standard_normal((heads, n, n))
    causal = kind == "causal"
    # Integers that sum to 0 over the tokens, exactly.
    spread = rng.integers(-9, 10, (n, d)).astype(float)
    spread = n * spread - spread.sum(0)
    mean = np.zeros(d) if centred else rng.integers(1, 9, d) / 8.0
    start = join(*map(torch.tensor, (spread, mean, power, 0)))
    run = evolved(start, FromState(W_Q, W_K, bias, causal), W, [depth], residual=residual)
    state = run.state(0)
    with mp.workdps(2500):
        X = mp.matrix(spread.tolist()) * mp.mpf(2) ** power + mp.matrix([mean.tolist()] * n)
        X = exact_run(X, W_Q, W_K, W, depth, residual, bias, causal)
        exact_mean = mp.ones(1, n) * X / n
        for found, exponent, exact in (
            (state.hfc, state.hfc_exponent, X - mp.ones(n, 1) * exact_mean),
            (state.mean[None], state.mean_exponent, exact_mean),
        ):
            off = mp.matrix(found.tolist()) * mp.mpf(2) ** exponent.item() - exact
            assert max(map(abs, off)) <= 1e-12 * max(map(abs, exact))


def test_one_hot_attention_keeps_what_is_left_of_the_spread():
    """All tokens attend to the first, with logits of order 100: HFC' is below 1e-30, and right.

    A row differs from the common one by as much in each entry; 1 - 1 would leave 1e-16 there. The
    logits keep 1e-14 of their digits, and the differences with them.
    """
    X0 = np.array([[1.0, 10.0], [1.25, 0.0], [0.75, -0.5]])
    W_Q, W_K = np.array([[[10.0], [0.01]]]), np.array([[[0.0], [1.0]]])
    run = evolved(X0, FromState(W_Q, W_K), np.eye(2), [1], residual=False)
    with mp.workdps(200):
        X = exact_run(mp.matrix(X0.tolist()), W_Q, W_K, np.eye(2)[None], 1, False, None, False)
        X = np.array(X.tolist())
        exact = (X[:2] - X[2]).astype(float)
    state = run.state(0)
    hfc = state.hfc.numpy() * 2.0 ** state.hfc_exponent.item()
    assert 0 < np.abs(exact).max() < 1e-30
    np.testing.assert_allclose(hfc[:2] - hfc[2], exact, rtol=0, atol=1e-11 * np.abs(exact).max())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_phi_and_psi_are_their_series(dtype):
    eps = torch.finfo(dtype).eps
    values = [0.0, 2.0**-120, -1e-5, 2.0**-9, -(2.0**-8), 0.004, 0.1, -0.7, 1.0]
    s = torch.tensor(values, dtype=dtype)
    with mp.workdps(200):
        for x, psi, phi in zip(s.tolist(), _psi(s).tolist(), _phi(s).tolist(), strict=True):
            t = mp.mpf(x)
            assert psi == pytest.approx(float((mp.exp(t) - 1) / t) if x else 1.0, rel=4 * eps)
            expected = float((mp.exp(t) - 1 - t) / t**2) if x else 0.5
            # Beyond the series, the difference loses the digits of 1/s.
            assert phi == pytest.approx(expected, rel=16 * eps if abs(x) < 0.0039 else 1e3 * eps)


def test_a_spread_of_more_digits_than_an_exponent_holds_is_zero():
    X0 = [[1.0], [1.1]]
    run = evolved(X0, FromState([[1.0]], [[1.0]]), [[0.9]], [30, 80], residual=False)
    table = run.metrics()
    assert table["log_hfc_lfc"][0] < -1e10 and table["hfc_lfc"][1] == 0
    assert run.state(1).hfc.eq(0).all() and table["log_hfc_lfc"][1] == -math.inf
    assert run.state(1).mean.abs().max() > 0


@pytest.mark.parametrize("power", [-100, -3000])
def test_the_cubic_normal_form(power):
    """T8b, T9: E' = [E +] E sum_h M_h Sigma_a W_h / sqrt(k), Sigma_a of uniform a at leading order.

    With residual the cubic term is far below the last digit of E: exactly nothing moves.
    """
    rng = np.random.default_rng(7)
    n, d, heads = 5, 3, 2
    W_Q, W_K = rng.standard_normal((2, heads, d, 2))
    W = rng.standard_normal((heads, d, d))
    E = rng.integers(-9, 10, (n, d)).astype(float)
    E = n * E - E.sum(0)
    start = join(*map(torch.tensor, (E, rng.standard_normal(d), power, 0)))
    attention = FromState(W_Q, W_K)
    one = evolve_heads(X0=start, attention=attention, weights=W, depth=[1], residual=False).state(0)
    covariance = E.T @ E / n
    expected = sum(E @ W_Q[h] @ W_K[h].T @ covariance @ W[h] for h in range(heads)) / math.sqrt(2)
    found = one.hfc.numpy() * 2.0 ** (one.hfc_exponent.item() - 3 * power)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    kept = evolve_heads(X0=start, attention=attention, weights=0.1 * W, depth=[9]).state(0)
    np.testing.assert_allclose(kept.hfc, start.hfc, rtol=0, atol=4 * EPS)
    assert kept.hfc_exponent == start.hfc_exponent


def test_content_only_attention_with_negative_weights_decays_like_one_over_the_square_root():
    """T8b, M = I, W = -I/2: HFC ~ sqrt(n min(n-1, d) sqrt(d) / (2 |w| L))."""
    n, d = 6, 2
    X0 = np.random.default_rng(0).standard_normal((n, d))
    depths = [500, 2000]
    run = evolved(X0, FromState(np.eye(d), np.eye(d)), -0.5 * np.eye(d), depths)
    for i, depth in enumerate(depths):
        X = states(run, i)
        hfc = np.linalg.norm(X - X.mean(0))
        predicted = math.sqrt(n * min(n - 1, d) * math.sqrt(d) / depth)
        # T8's own runs: 1.7 % low at 2000 layers, in proportion to 1/L.
        assert hfc / predicted == pytest.approx(1.0, abs=60.0 / depth)


def test_the_attention_at_consensus_decides_the_linear_part():
    """T8a with a causal mask: A_b is uniform over what each token sees, eigenvalues 1/i."""
    n, d, w = 4, 2, -0.3
    rng = np.random.default_rng(2)
    spread = rng.integers(-9, 10, (n, d)).astype(float)
    spread = n * spread - spread.sum(0)
    start = join(*map(torch.tensor, (spread, np.ones(d), -1500, 0)))
    run = evolved(
        start, FromState(*rng.standard_normal((2, 1, d, d)), causal=True), w * np.eye(d), [3]
    )
    A_b = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    X = np.linalg.matrix_power(np.eye(n) + w * A_b, 3) @ spread
    state = run.state(0)
    found = state.hfc.numpy() * 2.0 ** (state.hfc_exponent.item() + 1500)
    np.testing.assert_allclose(found, X - X.mean(0), rtol=0, atol=1e-13 * np.abs(X).max())


def test_attention_that_sharpens_freezes_the_ratio():
    """T7c: A = softmax(x x^T), h = 1/2, x_0 = (2, -1): frozen at 2.816756; (.3, -.2) smooths."""
    attention = FromState([[1.0]], [[1.0]])
    frozen = evolve_heads(X0=[[2.0], [-1.0]], attention=attention, weights=[[0.5]], depth=[60, 600])
    assert frozen.metrics()["hfc_lfc"].tolist() == [pytest.approx(2.816756, abs=5e-7)] * 2
    smooths = evolve_heads(X0=[[0.3], [-0.2]], attention=attention, weights=[[0.5]], depth=[400])
    # One-hot attention in the end: log HFC stays, log LFC grows by log(3/2) a layer.
    assert smooths.metrics()["log_hfc_lfc"][0] < -100
