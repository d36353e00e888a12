"""T8c and T12 in numbers: Jacobians of norms and layers, eigenvalues across consensus, loops."""

import numpy as np
import pytest

from oversmoothing.experiments.repeated.predictors import from_law
from oversmoothing.theory.at_consensus import (
    AtConsensus,
    LoopLaw,
    TokenMap,
    TokenNorm,
    layer_at_consensus,
    recall_limit,
    transverse_eigenvalue,
)
from oversmoothing.theory.support.errors import InputError
from tests.support.cases import cases
from tests.support.refusals import refuses

N, D, HEADS = 4, 5, 2


def norm(kind="layer", seed=0):
    """Gains of either sign."""
    rng = np.random.default_rng(seed)
    return TokenNorm(kind, rng.standard_normal(D), rng.standard_normal(D), 1e-3)


def stochastic(seed, causal=False):
    A = np.random.default_rng(seed).random((HEADS, N, N)) + 0.1
    A = np.tril(A) if causal else A
    return A / A.sum(-1, keepdims=True)


def differences(f, x, step=1e-6):
    """The Jacobian of f at x [d], by central differences: columns are directions."""
    return np.stack([(f(x + e) - f(x - e)) / (2 * step) for e in step * np.eye(len(x))], axis=1)


def layer(placement, A, seed=0, behind=False):
    """(AtConsensus, the same layer with that attention frozen, as a map of X [n, d])."""
    rng = np.random.default_rng(seed)
    c, bias = rng.standard_normal(D), rng.standard_normal(D)
    W, U, V = (0.5 * rng.standard_normal(s) for s in ((HEADS, D, D), (D, 7), (7, D)))
    first, second, back, back_ffn = (norm(k, s) for s, k in enumerate(("layer", "rms") * 2))
    if not behind:
        back = back_ffn = TokenNorm("none", np.ones(D), np.zeros(D))

    def ffn(x):
        return np.tanh(x @ U) @ V

    def jacobian(x):
        return V.T @ np.diag(1 - np.tanh(x @ U) ** 2) @ U.T

    def each(f, X):
        return np.stack([f(x) for x in X])

    def run(X):
        seen = X if placement == "post" else each(first, X)
        added = sum(A[h] @ seen @ W[h] for h in range(HEADS)) + bias
        Y = X + each(back, added)
        if placement == "post":
            Y = each(first, Y)
            return each(second, Y + each(back_ffn, ffn(Y)))
        return Y + each(back_ffn, ffn(each(second, X if placement == "parallel" else Y)))

    found = layer_at_consensus(
        c, A, W, bias, placement=placement, norm=first, norm_ffn=second,
        ffn=TokenMap(ffn, jacobian), behind=back, behind_ffn=back_ffn,
    )  # fmt: skip
    return found, run, c


@pytest.mark.parametrize("kind", ["layer", "rms", "none"])
def test_norm_jacobian_is_the_derivative_for_gains_of_either_sign(kind):
    x = np.random.default_rng(3).standard_normal(D)
    np.testing.assert_allclose(norm(kind).jacobian(x), differences(norm(kind), x), atol=1e-8)


@pytest.mark.parametrize("placement", ["pre", "post", "parallel"])
@pytest.mark.parametrize("behind", [False, True])
def test_layer_at_consensus_is_the_derivative_and_the_image_of_the_layer(placement, behind):
    """With its attention frozen (T8a), by central differences in a drawn direction."""
    found, run, c = layer(placement, stochastic(1), behind=behind)
    X = np.tile(c, (N, 1))
    np.testing.assert_allclose(run(X), np.tile(found.image, (N, 1)), atol=1e-12)
    E = np.random.default_rng(2).standard_normal((N, D))
    moved = (run(X + 1e-6 * E) - run(X - 1e-6 * E)) / 2e-6
    np.testing.assert_allclose(found(E), moved, atol=1e-7 * np.abs(moved).max())


def test_common_shifts_go_by_the_longitudinal_block_whatever_the_attention():
    found, _, _ = layer("pre", stochastic(1))
    u = np.random.default_rng(4).standard_normal(D)
    expected = np.tile(found.block(np.ones(len(found.A))) @ u, (N, 1))
    np.testing.assert_allclose(found(np.tile(u, (N, 1))), expected, atol=1e-12)


def whole(layers: list[AtConsensus]) -> np.ndarray:
    """The product across consensus as a matrix, for the test alone."""
    P = np.eye(N) - 1 / N
    columns = []
    for e in np.eye(N * D):
        E = P @ e.reshape(N, D)
        for each in layers:
            E = P @ each(E)
        columns.append(E.ravel())
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("kind", ["uniform", "causal", "any"])
def test_transverse_eigenvalue_is_that_of_the_whole_product(kind):
    """One block, blocks by token (T7e), or Arnoldi: three ways, one number."""
    attentions = {
        "uniform": np.full((HEADS, N, N), 1 / N),
        "causal": stochastic(1, causal=True),
        "any": stochastic(1),
    }
    layers = [layer(place, attentions[kind], seed)[0] for seed, place in enumerate(("pre", "post"))]
    assert (layers[0].uniform, layers[0].causal) == (kind == "uniform", kind == "causal")
    top = np.abs(np.linalg.eigvals(whole(layers))).max()
    assert abs(transverse_eigenvalue(layers)) == pytest.approx(top, rel=1e-9)


def test_a_single_token_has_nothing_across_consensus():
    found, _, _ = layer("pre", np.ones((HEADS, 1, 1)))
    assert transverse_eigenvalue([found]) == 0


@pytest.mark.parametrize("n", [2, 8, 9, 20])
def test_one_feature_behind_rmsnorm_has_derivative_zero(n):
    """x / |x| is a sign. Of nine tokens on: an error of ARPACK."""
    A = np.random.default_rng(0).random((1, n, n))
    A /= A.sum(-1, keepdims=True)
    one, rms = np.ones(1), TokenNorm("rms", np.ones(1), np.zeros(1))
    W, zero = np.full((1, 1, 1), 0.5), np.zeros(1)
    made = layer_at_consensus(2 * one, A, W, zero, placement="post", norm=rms, norm_ffn=rms)
    assert transverse_eigenvalue([made]) == 0


def test_attention_whose_rows_do_not_sum_to_one_is_refused():
    with pytest.raises(InputError, match=r"rows of attention sum to 1 only within .*consensus"):
        layer("pre", 0.9 * stochastic(1))


def test_a_norm_of_a_token_without_spread_has_no_derivative():
    with pytest.raises(InputError, match="without spread and eps = 0"):
        TokenNorm("layer", np.ones(D), np.zeros(D)).jacobian(np.full(D, 2.0))


# ------------------------------------------------------------------- loops (T12)


# Layers 1 to 12 of DeiT-Ti in turn: |c| grew by 2^.7 in the last octave, not in that loop.
DEIT = LoopLaw(loops=100, along=-0.05, across=-0.2, power=0.7, turning=0.25)


@cases(
    "law, said, loops",
    # A power law, HFC/LFC = ((t + 80)/80)^(across/along - 1).
    (LoopLaw(20, 0.01, 0.002, 1.0, 0.0), {"polynomial": True, "attracts": True, "exponent": -0.8},
     {(1.0, 0.5): 80 * (2**1.25 - 1)}),
    (LoopLaw(20, 0.01, 0.02, 1.0, 0.0), {"polynomial": True, "attracts": False, "exponent": 1.0},
     {(1.0, 0.5): np.inf}),
    # Settled where equal tokens go straight on.
    (LoopLaw(100, 0.01, 0.0, 1.0, 0.001), {"settled": True}, {}),
    (LoopLaw(100, 0.01, 0.0, 1.0, 0.04), {"settled": False}, {}),
    # Geometric for a bounded consensus, and for one that shrinks in its last loop.
    (LoopLaw(100, 0.0, -0.1, 0.0, 0.0), {"polynomial": False, "exponent": np.nan},
     {(1.0, np.exp(-5)): 50, (0.1, 0.5): 0}),
    (DEIT, {"polynomial": False, "settled": False}, {(1.0, np.exp(-3)): 20}),
)  # fmt: skip
def test_T12_loop_laws_by_hand(law, said, loops):
    found = {name: getattr(law, name) for name in said}
    assert found == pytest.approx(said, nan_ok=True)
    for (start, end), count in loops.items():
        assert law.loops_to(start, end) == pytest.approx(count)


def test_T12_a_loop_law_predicts_from_a_start_and_counts_to_positive_ratios():
    assert from_law(DEIT, 0.0, 20) == pytest.approx(-3)
    refuses("give positive numbers", DEIT.loops_to, 0.0, 0.1)


def test_recall_converges_to_its_limit_and_tokens_differ_there():
    """T12 against 400 layers; HFC/LFC of the limit is larger than that of X_0, A symmetric."""
    A = 0.6 * np.eye(3) + 0.4 / 3
    H = -np.array([[0.5, 0.1], [0.0, 0.7]])
    X0 = np.array([[1.0, 2.0], [2.0, 2.5], [1.5, -1.0]])
    found = recall_limit(A, H, X0, 0.3)
    X = X0
    for _ in range(400):
        X = X + A @ X @ H.T + 0.3 * X0
    assert found.attracts
    np.testing.assert_allclose(X, found.state, rtol=1e-12)
    away = [np.linalg.norm(Z - Z.mean(0)) / np.linalg.norm(Z.mean(0)) for Z in (X0, found.state)]
    assert away[1] > away[0]


@cases(
    "A, H, beta, said",
    (np.full((2, 2), 0.5), [[-0.5]], 1.0, "A is singular"),
    (np.eye(2), [[0.0]], 1.0, "H is singular"),
    (np.eye(2), [[-0.5]], 0.0, "recalls nothing"),
)
def test_recall_without_a_unique_fixed_point_is_refused(A, H, beta, said):
    refuses(said, lambda: recall_limit(A, H, np.ones((2, 1)), beta))


def test_recall_that_does_not_attract_says_so():
    found = recall_limit(np.eye(2), [[0.5]], np.array([[1.0], [2.0]]), 1.0)
    assert found.radius == 1.5 and not found.attracts


def test_pre_ln_smooths_exponentially_where_weights_take_off_what_norms_hardly_see():
    """T8f bounds growth alone: W = -u u^T/2, tokens that differ along u, not along their mean m."""
    u, m = np.array([1.0, -1, 0, 0]) / 2**0.5, np.array([0.0, 0, 1, -1])
    A, X, logs = np.array([[0.75, 0.25], [0.25, 0.75]]), m + np.outer([0.3, -0.1], u), []
    for _ in range(61):
        hfc = X - X.mean(axis=0)
        logs.append(np.log(np.linalg.norm(hfc) / np.linalg.norm(X - hfc)))
        centred = X - X.mean(axis=1, keepdims=True)
        X = X - A @ (centred / centred.std(axis=1, keepdims=True)) @ np.outer(u, u) / 2
    # A layer multiplies differences by 1 - a/(2 std m), a = 1/2, and m stays.
    assert (logs[60] - logs[40]) / 20 == pytest.approx(np.log(1 - 1 / (4 * m.std())), rel=1e-6)
