"""The methods of `evolve` agree as far as conditioning allows, and refuse beyond it (T1)."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from benchmarks.hundred_digits import direction, draw
from oversmoothing import FromState, InputError, Trajectory, evolve
from oversmoothing.simulations.engine import at_any_depth
from oversmoothing.theory.depth.closed_form import FeatureModes, TokenModes
from oversmoothing.theory.depth.eigenbasis import Eigenbasis, by_lapack
from oversmoothing.theory.layer.attention import stationary_distribution
from oversmoothing.theory.numbers.rounding import accurate_product
from oversmoothing.theory.proofs.strategies import SEEDS
from tests.support.cases import cases
from tests.support.kronecker import evolve_by
from tests.support.refusals import refuses

EPS = 2.0**-52
AA = [[0.75, 0.25], [0.25, 0.75]]
DENSE = ["plain", "closed_form", "squaring", "kronecker"]
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def x(run: Trajectory, index: int = -1) -> np.ndarray:
    """X at one of the depths over its largest entry, and the exponents go with it."""
    X, exponent = run.X(index % len(run))
    return np.ldexp(X.numpy(), exponent.numpy()[..., None, None])


@pytest.mark.parametrize("method", ["core", "closed_form"])
def test_a_head_with_a_nilpotent_core_grows_linearly(method):
    """G = Q P = 0: W is defective, X_L = X_0 + L A X_0 W exactly; the core knows."""
    P, Q = np.array([[1.0], [0.0]]), np.array([[0.0, 1.0]])
    X0 = np.array([[1.0, 2.0], [3.0, 5.0]])
    L = 10**4 if method == "core" else 10**6
    run = evolve(A=AA, W=(P, Q), X0=X0, depth=[L], method=method)
    assert x(run) == pytest.approx(X0 + L * np.array(AA) @ X0 @ P @ Q, rel=1e-13)


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_direction_at_depth_1e9_against_100_digits(kind):
    """A phase is wrong by L times the error of arg mu: LAPACK's own eigenvalues give 1e-6."""
    found = []
    for seed in range(14):
        A, H, X0 = draw(seed)
        expected, real = direction(A, H, X0, 10**9)
        if real != (kind == "real"):
            continue
        run = evolve(A=A, H=H, X0=X0, depth=[10**9], method="closed_form")
        X = run.X(0)[0].numpy()
        found.append(np.linalg.norm(X / np.linalg.norm(X) - expected))
        assert found[-1] <= max(run.error[0], 1e-7)
    assert len(found) >= 3
    assert max(found) < (1e-12 if kind == "real" else 1e-6)


@given(SEEDS, st.integers(1, 20), st.integers(1, 4), st.integers(-600, 600))
def test_accurate_products_have_twice_the_digits(seed, n, k, power):
    rng = np.random.default_rng(seed)
    A, X = rng.standard_normal((3, n)), rng.standard_normal((n, k)) * 2.0**power
    exactly = np.vectorize(Fraction, otypes=[object])
    high, low = map(exactly, accurate_product(A, X))
    off = abs(exactly(A) @ exactly(X) - high - low)
    largest = np.outer(exactly(np.abs(A).max(axis=1)), exactly(np.abs(X).max(axis=0)))
    assert (off <= Fraction(2.0**-58 * n) * largest).all()


@given(SEEDS, st.integers(1, 24))
@settings(max_examples=40)
def test_refined_eigenpairs_have_a_smaller_residual(seed, n):
    rng = np.random.default_rng(seed)
    modes = TokenModes(rng.dirichlet(np.ones(n), size=n))
    basis = modes.basis
    V = basis.full_vectors()
    assert np.allclose(V @ basis.full_inverse(), np.eye(n - 1), atol=64 * n * EPS * basis.condition)
    basis.refine(basis.representatives)
    if n == 1:
        return
    V = basis.full_vectors()
    real, imag = np.split(modes._residual(np.hstack((V.real, V.imag)), basis.values), 2, axis=1)
    left = real + 1j * imag - V * basis.shift
    # The vectors are rounded to eps after the step; the eigenvalues no longer count.
    rows = np.abs(basis.full_inverse() @ left).diagonal()
    apart = np.abs(np.subtract.outer(basis.values, basis.values)) + 10 * np.eye(n - 1)
    allowed = 64 * EPS**2 * n * basis.condition**2 / max(apart.min(), 1e-16)
    assert (rows <= allowed + 1e-18 * basis.condition).all()


def test_repeated_eigenvalues_get_orthonormal_vectors():
    """(1 - t) I + t 11^T/n: LAPACK's own vectors may have any condition at all."""
    for n in (3, 8, 20):
        for t in (1e-4, 1e-2, 0.5):
            modes = TokenModes((1 - t) * np.eye(n) + t / n)
            assert modes.basis.condition < 100 * n
            assert modes.basis.values == pytest.approx(np.full(n - 1, 1 - t), abs=8 * n * EPS)


def test_blocked_elimination_gives_pi_of_reversible_chains_entry_by_entry():
    """K symmetric positive: pi is proportional to the row sums, also where they span 1e12."""
    rng = np.random.default_rng(0)
    for n in (2, 31, 32, 33, 34, 65, 97):
        scale = 10.0 ** rng.uniform(-6, 0, n)
        K = rng.uniform(0.5, 1.5, (n, n)) * np.outer(scale, scale)
        K = K + K.T
        sums = K.sum(axis=1)
        pi = stationary_distribution(K / sums[:, None])
        assert pi == pytest.approx(sums / sums.sum(), rel=64 * n * EPS)


def test_auto_names_its_method_and_says_why():
    shallow = evolve(A=AA, H=[[0.5]], X0=[[1.0], [2.0]], depth=3)
    deep = evolve(A=AA, H=[[0.5]], X0=[[1.0], [2.0]], depth=10**9)
    assert (shallow.method, deep.method) == ("plain", "closed_form")
    assert "cheapest for depth 3" in shallow.reason and "cheapest" in deep.reason
    assert len(deep.error) == 2 and 0 < deep.error[0] < 1e-14 < deep.error[1] < 1e-6
    rng = np.random.default_rng(0)
    P, Q = rng.standard_normal((64, 4)), rng.standard_normal((4, 64)) / 64
    head = evolve(A=rng.dirichlet(np.ones(60), size=60), W=(P, Q), X0=np.ones((60, 64)), depth=[9])
    assert head.method == "core"


@pytest.mark.parametrize("h", [1e300, -1e300])
def test_weights_beyond_one_layer_have_an_answer_at_every_depth(h):
    """1 + h a is h a to all digits: HFC/LFC halves in each layer from 1/3."""
    for depth in (1, 3, 50):
        run = evolve(A=AA, H=[[h]], X0=[[1.0], [2.0]], depth=[depth])
        exact = -math.log(3) - depth * math.log(2)
        assert run.metrics()["log_hfc_lfc"].item() == pytest.approx(exact, abs=run.error[0] + 1e-14)
    rng = np.random.default_rng(0)
    large = {"A": rng.dirichlet(np.ones(12), size=12), "X0": rng.standard_normal((12, 9))}
    W = rng.standard_normal((9, 9))
    runs = [evolve(**large, W=scale * W, depth=[3]) for scale in (abs(h), 1e100)]
    logs = [run.metrics()["log_hfc_lfc"].item() for run in runs]
    assert logs[0] == pytest.approx(logs[1], abs=1e-10)


@pytest.mark.parametrize("where", ["A", "H"])
def test_a_defective_matrix_is_refused_or_iterated(where):
    A, H = np.full((2, 2), 0.5), np.array([[0.5, 1.0], [0.0, 0.5]])
    if where == "A":  # causal with a_22 = a_33 = a_44 = 1/2 in one Jordan block
        A = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.5, 0], [0.2, 0.2, 0.1, 0.5]])
        H = np.eye(2)
    X0 = np.random.default_rng(0).standard_normal((len(A), 2))
    run = partial(evolve, A=A, H=H, X0=X0, depth=[5000])
    refuses("iterate instead", lambda: run(method="closed_form"))
    auto, plain = run(), run(method="plain")
    assert auto.method == "balls" and "defective" in auto.reason and auto.error[0] < 1e-13
    logs = (each.metrics()["log_hfc_lfc"].item() for each in (auto, plain))
    # A block of size 3 is perturbed by L^3 eps.
    assert abs(next(logs) - next(logs)) <= 8 * 5000**3 * EPS


def _causal(n: int, d: int, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    A = np.tril(np.exp(rng.standard_normal((n, n))))
    W = 0.4 * rng.standard_normal((d, d)) / math.sqrt(d)
    return {"A": A / A.sum(1, keepdims=True), "W": W, "X0": rng.standard_normal((n, d))}


def test_T1h_a_causal_layer_beyond_the_recurrences_is_taken_in_balls_at_any_depth():
    layer = _causal(48, 16)
    run = evolve(**layer, depth=[0, 300, 10**9])
    assert run.method == "balls" and "no closed form" in run.reason
    assert max(run.error) < 1e-11 and max(run.cosine_error) < 1e-11
    plain = evolve(**layer, depth=[0, 300], method="plain")
    for k in (0, 1):
        assert x(run, k) == pytest.approx(x(plain, k), rel=1e-9)
        ours, other = (r.metrics()["log_hfc_lfc"][k] for r in (run, plain))
        assert ours == pytest.approx(other, abs=1e-9)
    # Where layers are few they are run.
    assert evolve(**layer, depth=40).method == "plain"


@pytest.mark.parametrize("residual", [True, False])
def test_T1h_bases_and_recurrences_say_the_same_of_a_causal_layer(residual):
    layer, depths = _causal(9, 8), [0, 1, 50, 10**6]
    bases = evolve(**layer, depth=depths, method="balls", residual=residual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_any_depth, "BALL_SIZE", 72)
        recurrences = evolve(**layer, depth=depths, method="balls", residual=residual)
    ours, others = bases.metrics(), recurrences.metrics()
    for name in ("log_hfc_lfc", "cos_mean", "cos_min"):
        assert list(ours[name]) == pytest.approx(list(others[name]), rel=1e-12, abs=1e-13)


def test_a_billion_layers_that_no_method_takes_are_refused_with_what_they_cost():
    rng = np.random.default_rng(0)
    defective = {"W": np.kron(np.eye(20), [[0.5, 1.0], [0.0, 0.5]]), "X0": np.ones((20, 40))}
    with pytest.raises(InputError, match=r"defective.*\n1,000,000,000 layers .* take about .* h"):
        evolve(A=rng.dirichlet(np.ones(20), size=20), **defective, depth=10**9)
    run = evolve(A=_causal(20, 2)["A"], **defective, depth=10**9)
    assert run.method == "balls" and run.error[1] < 1e-11


def test_balls_say_what_they_would_cost_before_they_start():
    layer = _causal(4, 80)
    many = {**layer, "X0": np.ones((2000, 4, 80))}
    refuses(r"balls would take about .* h", lambda: evolve(**many, depth=[10**9], method="balls"))


def test_T11_8_a_mode_that_X_0_lacks_by_coincidence_leaves_an_infinite_error():
    layer = _causal(33, 8)
    S = (np.eye(8) + 2 * np.eye(8, k=1)) @ (np.eye(8) - np.eye(8, k=-1))
    W = S @ np.diag([0.75, *[0.5**k for k in range(1, 8)]]) @ np.round(np.linalg.inv(S))
    X0 = np.round(4 * layer["X0"])
    X0[:, 0] = 0.0
    X0 = X0 @ np.round(np.linalg.inv(S))
    run = evolve(A=layer["A"], W=W, X0=X0, depth=[3, 10**9], method="balls")
    assert run.error[0] < 1e-11 and math.isinf(run.error[1]) and math.isinf(run.cosine_error[1])


@cases(
    "change, message",
    ({"method": "magic"}, "method must be one of"),
    ({"method": "core"}, "needs the factors"),
    ({"method": "squaring", "H": 0.1 * np.eye(201)}, "limit of 400"),
    ({"H": None, "W": (np.ones((2, 1)), np.ones((2, 2)))}, "no factors"),
    ({"H": None, "W": (np.ones((2, 1)),)}, "two factors"),
    ({"H": None, "W": (np.ones(2), np.ones((1, 2)))}, "must be a matrix"),
    ({"H": None, "W": (np.ones((2, 1)), np.full((1, 2), math.nan))}, "W_proj"),
)
def test_what_does_not_apply_is_refused(change, message):
    d = len(change["H"]) if change.get("H") is not None else 2
    given_ = {"A": AA, "H": np.eye(2), "X0": np.ones((2, d)), "depth": [3]}
    refuses(message, lambda: evolve(**(given_ | change)))


@pytest.mark.parametrize("method", [*DENSE, "heads"])
@pytest.mark.parametrize("h", [-0.5, 3.0])
def test_no_method_over_or_underflows(method, h):
    depth = 5000
    run = evolve_by(A=AA, H=[[h]], X0=[[1.0], [2.0]], depth=[depth], method=method)
    _, exponent = run.X(0)
    a = max(abs(1 + h), abs(1 + h / 2))
    assert float(exponent) == pytest.approx(depth * math.log2(a), abs=3)
    if method != "kronecker":  # which iterates X itself
        expected = math.log(1 / 3) + depth * (math.log1p(h / 2) - math.log1p(h))
        assert run.metrics()["log_hfc_lfc"].item() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("method", [*DENSE, "heads"])
@pytest.mark.parametrize("residual", [True, False])
def test_one_token_one_feature_and_zero(method, residual):
    run = partial(evolve_by, method, residual=residual)
    one = run(A=[[1.0]], H=[[0.5]], X0=[[3.0]], depth=[0, 2])
    assert x(one).item() == pytest.approx(6.75 if residual else 0.75, rel=4 * EPS)
    assert (one.metrics()["hfc_lfc"] == 0).all()
    zero = run(A=AA, H=np.eye(2), X0=np.zeros((2, 2)), depth=[5])
    assert not x(zero).any() and zero.metrics().iloc[:, 1:].isna().all(axis=None)


@pytest.mark.parametrize("method", ["plain", "core", "closed_form", "squaring", "kronecker"])
def test_batches_broadcast_in_every_method(method):
    rng = np.random.default_rng(1)
    A = rng.dirichlet(np.ones(3), size=(2, 1, 3))
    P, Q = rng.standard_normal((4, 5, 2)), rng.standard_normal((2, 5))
    X0 = rng.standard_normal((3, 5))
    together = evolve_by(A=A, W=(P, Q), X0=X0, depth=[0, 6], method=method)
    assert together.batch == (2, 4) and together.state(1).hfc.shape == (2, 4, 3, 5)
    assert list(together.metrics()["batch"]) == list(range(8)) * 2
    for i in range(2):
        for k in range(4):
            alone = evolve_by(A=A[i, 0], W=(P[k], Q), X0=X0, depth=[0, 6], method=method)
            assert x(together)[i, k] == pytest.approx(
                x(alone), rel=1e-9, abs=1e-9 * np.abs(x(alone)).max()
            )


@pytest.mark.cuda
@CUDA
@pytest.mark.parametrize("method", ["plain", "core", "closed_form", "heads", "following"])
def test_cuda_gives_what_the_cpu_gives(method):
    rng = np.random.default_rng(0)
    heads = (3,) if method in ("heads", "following") else ()
    A, X0 = rng.dirichlet(np.ones(20), size=(2, *heads, 20)), rng.standard_normal((2, 20, 16))
    P, Q = (rng.standard_normal((*heads, *shape)) / 4 for shape in ((16, 4), (4, 16)))
    if method == "following":
        bias = rng.standard_normal((20, 20))
        A, method = FromState(*rng.standard_normal((2, *heads, 16, 4)), bias), "heads"
    cpu, gpu = (
        evolve_by(method, A=A, W=(P, Q), X0=X0, depth=[0, 50], device=device)
        for device in ("cpu", "cuda")
    )
    assert gpu.states.device.type == "cuda"
    assert gpu.X(1)[0].cpu().numpy() == pytest.approx(cpu.X(1)[0].numpy(), abs=1e-10)


@pytest.mark.parametrize("method", ["plain", "closed_form", "squaring"])
def test_rounding_reinjects_the_dominant_mode_at_the_depth_that_theory_says(method):
    """log(1/eps) / log(rho/rho') layers; the closed form says so in its error.

    n = 4, h = 4: X_0 has neither consensus nor a = 0.4, but the modes a = 0.1 and -0.1.
    """
    noise = np.random.default_rng(5).standard_normal((4, 3))
    S = np.linalg.qr(np.column_stack((np.ones(4), noise)))[0]
    A = S @ np.diag([1.0, 0.4, 0.1, -0.1]) @ S.T
    A, X0 = A / A.sum(axis=1, keepdims=True), S[:, [2]] + S[:, [3]]
    v = np.linalg.eigh((A + A.T) / 2)[1][:, -2]
    depth = round(math.log(1 / EPS) / math.log(2.6 / 1.4))
    run = evolve(A=A, H=[[4.0]], X0=X0, depth=[depth // 2, 2 * depth], method=method)
    hfc = [run.state(k).hfc.numpy()[:, 0] for k in range(2)]
    share = [abs(v @ y) / np.linalg.norm(y) for y in hfc]
    assert share[0] < 1e-4 and share[1] > 0.999
    if method == "closed_form":
        assert run.hfc_error[0] < 1e-3 < 1 < run.hfc_error[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_T4e_a_mean_that_is_0_stays_0_in_the_decoupled_systems(dtype):
    """A doubly stochastic, X_0 of zero mean: HFC/LFC is infinite for ever (T4e)."""
    rng = np.random.default_rng(0)
    S = np.linalg.qr(np.column_stack((np.ones(5), rng.standard_normal((5, 4)))))[0]
    A = S @ np.diag([1.0, 0.3, 0.2, 0.1, 0.05]) @ S.T
    A = (A + A.T) / 2
    A += np.diag(1 - A.sum(axis=1))
    X0 = np.array([[1.0], [-1.0], [2.0], [-2.0], [0.0]])
    for method in ("plain", "closed_form"):
        run = evolve(A=A, H=[[1.0]], X0=X0, depth=[500], method=method, dtype=dtype)
        assert run.metrics()["hfc_lfc"].item() == math.inf


@cases("side, device", (9, "cpu"), pytest.param(600, "cuda", marks=[pytest.mark.cuda, CUDA]))
def test_lapack_of_scipy_and_torch_give_the_same_basis(side, device):
    M = np.random.default_rng(0).standard_normal((side, side)) / (side / 9) ** 0.5
    of_torch = partial(at_any_depth.by_torch, where=torch.device(device))
    for a, b in zip(by_lapack(M), of_torch(M), strict=True):
        assert a.shape == b.shape
    for solver in (by_lapack, of_torch):
        basis = Eigenbasis(M, lambda v, lam: M @ v - v * lam, solver)
        V = basis.full_vectors()
        assert np.allclose(M @ V, V * basis.values, atol=side * 1e-14)
    features = FeatureModes(H=M)
    assert np.sort_complex(features.basis.values) == pytest.approx(
        np.sort_complex(np.linalg.eigvals(M))
    )
