"""The spectrum of a layer of many heads and the exponents of drawn layers (T7a, T7e, E3)."""

import math

import numpy as np
import pytest
import scipy.sparse.linalg
from hypothesis import given, settings, strategies as st

from oversmoothing.simulations.against_theory.exponents import lyapunov_exponents
from oversmoothing.simulations.engine.evolve_heads import Drawn, FromState, PerLayer, evolve_heads
from oversmoothing.theory.proofs.strategies import SEEDS
from oversmoothing.theory.spectra import heads_radius
from oversmoothing.theory.spectra.heads import consensus_block, layer_of_heads, read_heads
from oversmoothing.theory.spectra.heads_radius import (
    Radius,
    dense_radius,
    quotient_operator,
    quotient_radius,
)
from oversmoothing.theory.verdict.by_discs import _by_subspaces, weights_within
from oversmoothing.theory.verdict.verdict import heads_verdict
from tests.support.cases import cases
from tests.support.refusals import refuses

EPS = 2.0**-52


def draw(seed, n, d, heads, causal=False):
    rng = np.random.default_rng(seed)
    A = rng.dirichlet(np.ones(n), size=(heads, n))
    if causal:
        A = np.tril(A) + np.eye(n) * 1e-3
        A /= A.sum(-1, keepdims=True)
    return A, rng.standard_normal((heads, d, d)) / math.sqrt(d)


def whole(A, W, residual=True):
    """The operator on row-major vec(X): sum_h A_h (x) W_h^T, formed."""
    M = sum(np.kron(a, w.T) for a, w in zip(A, W, strict=True))
    return np.eye(len(M)) + M if residual else M


def logs(attention, weights, depth, shape=(4, 3), seed=1):
    """log HFC/LFC at these depths from a drawn X_0."""
    X0 = np.random.default_rng(seed).standard_normal(shape)
    run = evolve_heads(X0=X0, attention=attention, weights=weights, depth=depth)
    return run.metrics()["log_hfc_lfc"]


sizes = {
    "seed": SEEDS,
    "n": st.integers(1, 5),
    "d": st.integers(1, 4),
    "heads": st.integers(1, 3),
    "residual": st.booleans(),
}


@settings(max_examples=60)
@given(**sizes)
def test_the_spectrum_is_consensus_and_quotient_together(seed, n, d, heads, residual):
    """By traces of powers, which no conditioning of eigenvectors can spoil."""
    A, W = draw(seed, n, d, heads)
    M = whole(A, W, residual)
    C = consensus_block(W, residual)
    layer, size = layer_of_heads(A, W), (n - 1) * d
    T = quotient_operator(layer, residual).matmat(np.eye(size)) if size else np.zeros((0, 0))
    for power in (1, 2, 3):
        parts = [np.linalg.matrix_power(K, power) for K in (M, C, T)]
        size = np.linalg.norm(np.linalg.matrix_power(np.abs(M), power))
        assert abs(np.trace(parts[0]) - np.trace(parts[1]) - np.trace(parts[2])) <= (
            64 * n * d * (n + d) * EPS * n * d * size
        )


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("residual", [True, False])
def test_arnoldi_and_lapack_find_the_same_radius(seed, residual):
    A, W = draw(seed, 12, 10, 3)
    layer = layer_of_heads(A, W)
    dense, free = (quotient_radius(layer, residual, size) for size in (400, 0))
    assert (dense.method, free.method) == ("dense", "arnoldi")
    assert abs(dense.value - free.value) <= dense.error + free.error < 1e-7
    values = np.linalg.eigvals(whole(A, W, residual))
    assert np.abs(np.abs(values) - dense.value).min() <= 1e-10


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("distance", [-0.3, -1e-3, -1e-6, 1e-6, 1e-3, 0.3, 1.0])
def test_a_rough_radius_serves_where_the_other_is_far_and_only_there(distance, residual):
    layer = layer_of_heads(*draw(0, 13, 10, 3))
    exact = quotient_radius(layer, residual, dense_size=10**4)
    assert exact.value is not None
    other = Radius((1 + distance) * exact.value, 0.0, "dense")
    found = quotient_radius(layer, residual, dense_size=0, beside=other)
    assert found.value is not None and exact.value <= found.value + found.error + exact.error
    assert np.sign(found.value - other.value) == -np.sign(distance)
    assert (found.method == "powers") == (distance == 1.0)
    if found.method == "powers":
        assert found.value + found.error < other.value
    else:
        assert abs(found.value - exact.value) <= found.error + exact.error
        assert 10 * found.error < abs(found.value - other.value)


def test_the_error_of_an_eigenvalue_counts_its_condition():
    """A change of 1e-9 along w v^T moves the eigenvalue by as much over w^T v / (|w| |v|)."""
    M = np.array([[1.0, 50.0, 0.0], [0.0, 0.5, 20.0], [0.0, 0.0, 0.2]])
    change = np.zeros((3, 3))
    for _ in range(2):
        values, V = np.linalg.eig(M + change)
        place = int(np.argmax(values))
        value, v, w = values[place], V[:, place], np.linalg.inv(V)[place]
        change = 1e-9 * np.outer(w, v) / np.linalg.norm(w) / np.linalg.norm(v)
    operator = scipy.sparse.linalg.aslinearoperator(M)
    found = heads_radius._judged(operator, value, v, w, value)
    assert 1e-7 < abs(value - 1) <= 1.01 * found.error < 1e-4


@settings(max_examples=30)
@given(**sizes, r=st.integers(1, 3))
def test_factors_are_the_dense_weights(seed, n, d, heads, residual, r):
    rng = np.random.default_rng(seed)
    A = rng.dirichlet(np.ones(n + 1), size=(heads, n + 1))
    factors = rng.standard_normal((heads, d, r)), rng.standard_normal((heads, r, d))
    dense = factors[0] @ factors[1]
    size = np.linalg.norm(factors[0]) * np.linalg.norm(factors[1])
    bound = 64 * heads * (n + d + r) * EPS * (1 + size) * n
    np.testing.assert_allclose(
        consensus_block(factors, residual), consensus_block(dense, residual), rtol=0, atol=bound
    )
    one, two = (quotient_operator(layer_of_heads(A, W), residual) for W in (factors, dense))
    eye = np.eye(n * d)
    np.testing.assert_allclose(one.matmat(eye), two.matmat(eye), rtol=0, atol=bound)
    np.testing.assert_allclose(one.rmatmat(eye), one.matmat(eye).T, rtol=0, atol=bound)


def weak_heads(n, d):
    """n d eigenvalues within 1e-9 of 1: beyond the Arnoldi vectors, or nearly so."""
    A, W = draw(0, n, d, 2)
    return A, 1e-9 * W


def test_a_radius_that_does_not_converge_is_undecided(monkeypatch):
    # How many restarts suffice is a matter of the processor's rounding; one never does.
    eigs = scipy.sparse.linalg.eigs
    monkeypatch.setattr(
        scipy.sparse.linalg, "eigs", lambda M, **options: eigs(M, **{**options, "maxiter": 1})
    )
    found = quotient_radius(layer_of_heads(*weak_heads(25, 24)), dense_size=0)
    assert found.value is None and "did not converge" in found.reason


def test_weak_heads_are_told_apart_by_what_they_add():
    A, W = weak_heads(14, 10)
    found, dense = (heads_verdict(A=A, W=W, dense_size=size) for size in (0, 10**4))
    assert found.verdict == dense.verdict == "SMOOTHING"
    assert 0 < dense.rho_consensus - 1 < 1e-8
    assert abs(found.rho_quotient - dense.rho_quotient) < dense.rho_consensus - dense.rho_quotient


def test_drawn_heads_are_decided_as_the_whole_operator_is():
    seen = set()
    for seed in range(24):
        A, W = draw(seed, 7 + seed % 3, 8, 2)
        layer = layer_of_heads(A, 0.5 * W + (seed % 3 - 1) * 0.4 * np.eye(8))
        residual = seed % 4 > 0
        consensus = dense_radius(consensus_block(layer, residual), "dense")
        exact = quotient_radius(layer, residual)
        found = quotient_radius(layer, residual, 0, consensus)
        assert found.value is not None
        assert (found.value < consensus.value) == (exact.value < consensus.value)
        assert exact.value <= found.value + found.error + exact.error
        seen.add((found.method, found.value < consensus.value))
    assert seen == {("powers", True), ("arnoldi", True), ("arnoldi", False)}


@pytest.mark.parametrize(("seed", "shift"), [(0, 0.3), (1, -0.5)])
def test_the_verdict_is_what_the_layers_do(seed, shift):
    """HFC/LFC at rho_Q / rho_C a layer where consensus dominates; away from 0 where it does not."""
    A, W = draw(seed, 6, 4, 3)
    W = 0.2 * W + shift * np.eye(4) / 3
    found = heads_verdict(A=A, W=W)
    log = logs(A, W, [2000, 4000], (6, 4), seed)
    slope = (log[1] - log[0]) / 2000
    if found.verdict == "SMOOTHING":
        assert slope == pytest.approx(math.log(found.rate), abs=5e-3)
    else:
        assert found.verdict == "NON_SMOOTHING" and log[1] > -5 and abs(slope) < 5e-3
    assert (shift > 0) == (found.verdict == "SMOOTHING")


def test_a_tie_of_rounded_numbers_is_undecided():
    case = {"A": [[[0.75, 0.25], [0.25, 0.75]]] * 2, "W": [[[-2 / 3]], [[-2 / 3]]]}
    tie = heads_verdict(**case)
    assert (tie.verdict, tie.status) == ("UNDECIDED", "numerical") and "overlap" in tie.reason
    assert heads_verdict(**case, dense_size=0).verdict == "UNDECIDED"


def test_T10_a_defective_operator_is_held_by_its_subspaces():
    """Blocks at 1/2 and -1/4: the radius of I + M is 3/2, which no disc of eigenvectors holds."""
    M = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, -0.25]])
    radius = _by_subspaces(M, np.full((3, 3), 1e-15), 1.0)
    assert 1.5 - 1e-6 < radius.low < 1.5 < radius.high < 1.5 + 1e-6


def test_H_of_several_heads_is_the_transpose_of_each_product():
    W_V, W_O = np.array([[[1.0], [2.0]], [[0.0], [1.0]]]), np.array([[[3.0, 4.0]], [[1.0, 0.0]]])
    H, _ = weights_within(read_heads(np.ones((2, 1, 1)), (W_V, W_O), None, True)[0])
    assert H.tolist() == [[[3, 6], [4, 8]], [[0, 1], [0, 0]]]


# ------------------------------------------------------------------------------ causal heads


@pytest.mark.parametrize("seed", range(4))
def test_the_causal_verdict_is_the_dense_one(seed):
    A, W = draw(seed, 5, 4, 2, causal=True)
    found, dense = heads_verdict(A=A, W=W), quotient_radius(layer_of_heads(A, W))
    assert "causal" in found.reason or found.verdict == "SMOOTHING"
    assert found.rho_quotient == pytest.approx(dense.value, rel=1e-6)


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("h", [0.5, -0.25])
def test_T4e_an_X0_of_several_heads_contains_what_decides_also_where_eigenvalues_repeat(n, h):
    """Each h of two features, and each a of n - 1 differences, is repeated in both heads."""
    A = np.array([a * np.eye(n) + (1 - a) / n for a in (0.5, 0.25)])
    W = np.array([h * np.eye(2)] * 2)
    start = np.random.default_rng(n).integers(-9, 10, size=(n, 2)).astype(float)
    found = heads_verdict(A=A, W=W, X0=start)
    assert found.verdict_x0 == found.verdict == ("SMOOTHING" if h > 0 else "NON_SMOOTHING")
    # Centred, it contains no consensus: what it does is not said to be smoothing.
    if h > 0:
        centred = start - start.mean(0)
        assert heads_verdict(A=A, W=W, X0=np.round(n * centred)).verdict_x0 != "SMOOTHING"


AA = [[0.75, 0.25], [0.25, 0.75]]


def of_features(*others, sign=-1):
    """H whose first two, 3/10 and 1/10 times the sign, are known to 1e-9, and others."""
    H = np.diag([0.0, 0.0, *others])
    H[:2, :2] = [[200.3 * sign, -200.0 * sign], [200.2 * sign, -199.9 * sign]]
    return H


@cases(
    "H, X0, expected",
    # Consensus goes like 9/10, and a difference like 9/10 + off; or that like 19/20, known badly.
    *(
        (of_features(-0.15, -0.2 + 2 * off), [[1.0, 2, 0, 1], [1, 2, 0, -1]], word)
        for off, word in ((-1e-9, "UNDECIDED"), (1e-10, "UNDECIDED"), (1e-6, "NON_SMOOTHING"))
    ),
    (of_features(-0.05 - 1e-10), [[1.0, 2, 1], [-1, -2, 1]], "UNDECIDED"),
    (of_features(-0.05 - 1e-6), [[1.0, 2, 1], [-1, -2, 1]], "NON_SMOOTHING"),
)
def test_T4e_a_mode_of_several_heads_outgrows_all_that_consensus_may_be(H, X0, expected):
    found = heads_verdict(A=[AA, AA], W=[H.T / 2] * 2, X0=X0)
    assert (found.verdict, found.verdict_x0) == ("NON_SMOOTHING", expected)


@cases("off, expected", (-1e-6, "TIE"), (1e-10, "UNDECIDED"), (1e-6, "NON_SMOOTHING"))
def test_T7_groups_of_tokens_tie_where_no_difference_may_be_larger(off, expected):
    """13/10, known to 1e-9, beside 1 + (0.6 + 2 off)/2."""
    A, H = np.kron(np.eye(2), [[0.25, 0.75], [0.75, 0.25]]), of_features(-0.6 - 2 * off, sign=1)
    assert heads_verdict(A=[A, A], W=[H.T / 2] * 2).verdict == expected


# The eigenvectors (1, -1, 1/2) and (1, 1, -2) for 1/4 and 1/2; a pair that turns.
THREE = [[1 / 2, 1 / 3, 1 / 6], [1 / 4, 7 / 12, 1 / 6], [1 / 16, 13 / 48, 2 / 3]]
PAIR = [[0.1, 0.6, 0.3], [0.2, 0.1, 0.7], [0.7, 0.2, 0.1]]


@cases(
    "A, W, X0, expected",
    (THREE, np.diag([-0.25, -0.45]), None, "constant"),
    (THREE, np.diag([-0.25, -0.45]), [[1.0, 1], [1, 1], [1, -2]], None),
    (PAIR, [[-0.45]], None, None),
)
def test_T4_limits_of_heads_are_those_of_one_real_mode_that_is_there(A, W, X0, expected):
    assert heads_verdict(A=[A, A], W=[W, W], X0=X0).tends_to == expected


def test_T1f_one_head_that_is_doubly_stochastic_leaves_the_other_a_mean():
    found = heads_verdict(A=[AA, [[0.7, 0.3], [0.4, 0.6]]], W=[[[-0.25]]] * 2)
    assert found.limit == pytest.approx(12)


def test_T4e_causal_heads_of_any_length_show_what_the_first_token_holds():
    """Consensus is in X_0 as far as the first token is: at n = 300 too, and not where it is 0."""
    A, W = draw(3, 300, 8, 4, causal=True)
    W = 0.2 * W + 0.4 * np.eye(8)
    start = np.random.default_rng(3).standard_normal((300, 8))
    found = heads_verdict(A=A, W=W, X0=start)
    assert found.verdict == found.verdict_x0 == "SMOOTHING" and found.tends_to == "zero"
    start[0] = 0
    assert heads_verdict(A=A, W=W, X0=start).verdict_x0 != "SMOOTHING"


# -------------------------------------------------------------------------- Lyapunov exponents


def drawn_layers(seed, shift, scale, n=4, d=3, heads=2):
    attention = Drawn(lambda rng: rng.dirichlet(np.ones(n), size=(heads, n)), seed)
    weights = Drawn(
        lambda rng: shift * np.eye(d) / heads + scale * rng.standard_normal((heads, d, d)), seed
    )
    return attention, weights


@pytest.mark.parametrize(("shift", "scale"), [(0.05, 0.1), (0.1, 0.4)])
def test_drawn_layers_smooth_at_the_gap_of_the_exponents(shift, scale):
    """T7a, gamma_Q < gamma_C: (1/L) log HFC/LFC -> gamma_Q - gamma_C.

    On the same layers up to O(1) in log HFC/LFC, and on layers of another seed within four standard
    errors of the two.
    """
    attention, weights = drawn_layers(5, shift, scale)
    layers, discard = 2000, 100
    log = logs(attention, weights, [discard, discard + layers])
    slope = (log[1] - log[0]) / layers
    same = lyapunov_exponents(attention=attention, weights=weights, layers=layers, discard=discard)
    assert same.gap < -0.01
    assert slope == pytest.approx(same.gap, abs=10 / layers)
    attention, weights = drawn_layers(6, shift, scale)
    other = lyapunov_exponents(attention=attention, weights=weights, layers=layers)
    assert abs(slope - other.gap) <= 4 * math.hypot(same.gap_error, other.gap_error) + 10 / layers


@pytest.mark.parametrize("scale", [1e-5, 1e-3, 0.3])
def test_what_a_slow_start_leaves_open_is_part_of_the_error(scale):
    """Layers of a small W turn no start in 100: its own mean says nothing of the exponent."""
    W = scale * np.diag([1.0, -1.0, -1.0, -1.0])
    A = Drawn(lambda rng: rng.dirichlet(np.ones(4), size=(1, 4)), 0)
    found = lyapunov_exponents(attention=A, weights=W, layers=400)
    assert abs(found.gamma_consensus - math.log1p(scale)) <= 3 * found.gap_error
    assert (abs(found.gap) > 3 * found.gap_error) == (scale == 0.3)


def test_a_gap_above_zero_leaves_no_exponential_smoothing():
    """T7a: gamma_Q > gamma_C: HFC/LFC neither decays nor, with pi not uniform, grows for ever."""
    attention, weights = drawn_layers(7, -0.9, 0.02)
    found = lyapunov_exponents(attention=attention, weights=weights, layers=1000)
    assert found.gap - 5 * found.gap_error > 0.5
    assert logs(attention, weights, [500, 1000]).abs().max() < 10


@cases(
    "change",
    {"layers": 7},
    {"discard": -1},
    {"attention": FromState(np.ones((1, 1)), np.ones((1, 1)))},
    {"attention": np.full((3, 1, 2, 2), 0.5)},
    {"attention": PerLayer([np.eye(2)])},
    {"weights": [[-1.0]]},
    ids=lambda change: next(iter(change)),
)
def test_exponents_of_bad_input_are_refused(change):
    good = {"attention": np.full((2, 2), 0.5), "weights": [[0.5]], "layers": 20, "discard": 0}
    lyapunov_exponents(**good)
    refuses("", lyapunov_exponents, **good | change)
