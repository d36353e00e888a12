"""`evolve` against dense powers, exact fractions and closed forms, and at the edges (T1, T11)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings, strategies as st

from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.engine.iteration import OneHead
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from oversmoothing.theory.claims.golden import golden_cases
from oversmoothing.theory.support.errors import InputError
from tests.support.float_cases import float_layers

EPS = 2.0**-52
AA = [[0.75, 0.25], [0.25, 0.75]]


def growth(A: np.ndarray, H: np.ndarray, x: np.ndarray, depth: int) -> np.ndarray:
    """(I + |A| (x) |H|)^depth |x| row-major: what rounding of relative size eps can grow to."""
    step = np.eye(x.size) + np.kron(np.abs(A), np.abs(H))
    result: np.ndarray = np.linalg.matrix_power(step, depth) @ np.abs(x).ravel()
    return result


def unit(n: int, d: int, depth: int) -> float:
    """Relative rounding of `depth` layers: each is two products of n and d terms."""
    return 4 * (n + d + 4) * (depth + 4) * EPS


def log_ratio(*, depth: int, **layer: object) -> float:
    return evolve(depth=[depth], **layer).metrics()["log_hfc_lfc"].item()  # type: ignore[arg-type]


# ------------------------------------------------------------------------- the same iteration


@settings(max_examples=80, deadline=None)
@given(float_layers(), st.integers(0, 12))
def test_evolve_is_the_power_of_the_kronecker_matrix(layer: tuple, depth: int) -> None:
    A, H, X0 = layer
    n, d = X0.shape
    # Row-major vec: vec(A X H^T) = (A (x) H) vec(X).
    M = np.eye(n * d) + np.kron(A, H)
    expected = (np.linalg.matrix_power(M, depth) @ X0.ravel()).reshape(n, d)
    run = evolve(A=A, H=H, X0=X0, depth=[depth])
    X, exponent = run.X(0)
    off = np.abs(X.numpy() * 2.0 ** exponent.item() - expected)
    # The differences x_i - x_n and pi mix the tokens: every entry may take the largest error.
    bound = 8 * n * unit(n, d, depth) * growth(np.maximum(A, A.max(0)), H, X0, depth).max()
    # The closed form of an ill-conditioned A is less exact, and says so.
    assert off.max() <= bound + run.error[0] * np.linalg.norm(expected)


@pytest.mark.parametrize("name", list(golden_cases()))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_golden_cases_in_exact_fractions(name: str, dtype: torch.dtype) -> None:
    case = golden_cases()[name]
    A, H, X = ([list(map(Fraction, row)) for row in m] for m in (case.A, case.H, case.X0))
    n, d = len(X), len(X[0])
    depths = [0, 1, 2, 5, 20, 40]
    table = evolve(
        A=np.array(A, dtype=float),
        H=np.array(H, dtype=float),
        X0=np.array(X, dtype=float),
        depth=depths,
        dtype=dtype,
    ).metrics()
    eps_ratio = torch.finfo(dtype).eps / EPS
    for depth in range(max(depths) + 1):
        if depth in depths:
            found = table.loc[table["depth"] == depth, "hfc_lfc"].item()
            mean = [sum(x[j] for x in X) / n for j in range(d)]
            hfc = sum((x[j] - mean[j]) ** 2 for x in X for j in range(d))
            lfc = n * sum(m * m for m in mean)
            size = np.linalg.norm(
                growth(np.array(A, float), np.array(H, float), np.array(case.X0, float), depth)
            )
            error = 8 * n * unit(n, d, depth) * eps_ratio * size
            if lfc == 0 and hfc == 0:
                assert math.isnan(found)
            elif lfc == 0:
                assert found == math.inf
            else:
                relative = error / math.sqrt(hfc) if hfc else 0.0
                relative += error / math.sqrt(lfc)
                assert found == pytest.approx(math.sqrt(hfc / lfc), rel=relative), depth
        X = [
            [
                X[i][j] + sum(A[i][k] * sum(X[k][m] * H[j][m] for m in range(d)) for k in range(n))
                for j in range(d)
            ]
            for i in range(n)
        ]


def test_h_and_w_are_transposes() -> None:
    A, H, X0 = np.full((2, 2), 0.5), np.array([[0.0, 1.0], [0.0, 0.0]]), np.eye(2)
    a, b = evolve(A=A, H=H, X0=X0, depth=3), evolve(A=A, W=H.T, X0=X0, depth=3)
    assert torch.equal(a.states, b.states)


def test_lists_arrays_and_tensors_are_the_same_input() -> None:
    A, H, X0 = AA, [[0.5]], [[1.0], [2.0]]
    tables = [
        evolve(A=f(A), H=f(H), X0=f(X0), depth=7).metrics()
        for f in (list, np.array, lambda x: torch.tensor(x, dtype=torch.float64))
    ]
    assert tables[0].equals(tables[1]) and tables[1].equals(tables[2])


def test_attention_computed_in_float32_is_accepted() -> None:
    logits = torch.randn((5, 5), generator=torch.Generator().manual_seed(0))
    trajectory = evolve(A=logits.softmax(-1), H=[[0.5]], X0=torch.ones(5, 1), depth=2)
    assert trajectory.states.dtype == torch.float32


# ------------------------------------------------------------------------- depth and range


def test_a_million_layers_against_the_closed_form() -> None:
    """GT: h = 1, a = 1/2, X_0 = (1, 2): the ratio is (1/3) (3/4)^L (T11.5)."""
    found = log_ratio(A=AA, H=[[1.0]], X0=[[1.0], [2.0]], depth=10**6)
    assert found == pytest.approx(-287683.17106407, abs=1e6 * EPS + 287684 * EPS + 1e-8)


@pytest.mark.parametrize("h", [-0.999, -0.5, 0.25, 3.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_neither_over_nor_underflow(h: float, dtype: torch.dtype) -> None:
    h = float(torch.tensor(h, dtype=dtype))
    depth = 5000
    found = log_ratio(A=AA, H=[[h]], X0=[[1.0], [2.0]], depth=depth, dtype=dtype)
    expected = math.log(1 / 3) + depth * (math.log1p(h / 2) - math.log(abs(1 + h)))
    # One rounding a layer of x + x h, relative to 1 + h.
    eps = torch.finfo(dtype).eps
    allowed = depth * eps * (2 + abs(h)) * (1 / abs(1 + h) + 2)
    assert found == pytest.approx(expected, abs=allowed)


def test_a_state_that_shrinks_by_80_digits_a_layer_is_followed() -> None:
    """I + W = 2^-80 [[0, 1], [1, 0]] takes consensus states to 2^-80 of themselves each layer."""
    W = [[-1.0, 2.0**-80], [2.0**-80, -1.0]]
    X, exponent = evolve(A=AA, W=W, X0=[[1.0, 0.0], [1.0, 0.0]], depth=[101]).X(0)
    assert (X.numpy() * 2.0 ** (exponent.item() + 80 * 101) == [[0.0, 1.0], [0.0, 1.0]]).all()


def test_initial_states_at_the_ends_of_the_range() -> None:
    for scale in (1e-300, 1e300, 5e-324):
        found = log_ratio(A=AA, H=[[0.5]], X0=[[scale], [2 * scale]], depth=0)
        assert found == pytest.approx(math.log(1 / 3), abs=8 * EPS)


def test_iterating_x_saturates_near_eps_and_the_quotient_does_not() -> None:
    """T11.9: the rounding of A 1 = 1 leaks LFC into HFC at every layer."""
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(8), size=8)
    X0 = rng.standard_normal((8, 3))
    H = 0.5 * np.eye(3)
    depth = 300
    for dtype in (torch.float32, torch.float64):
        X, a = torch.tensor(X0, dtype=dtype), torch.tensor(A, dtype=dtype)
        for _ in range(depth):
            X = X + a @ X @ torch.tensor(H.T, dtype=dtype)
            X = X / X.abs().max()
        naive = log_hfc_lfc_ratio(X).item()
        eps = torch.finfo(dtype).eps
        assert math.log(eps) - 3 < naive < math.log(eps) + 3
    a = np.linalg.eigvals(A)
    others = np.sort(np.abs(1 + 0.5 * a))[:-1]
    for dtype in (torch.float32, torch.float64):
        table = evolve(A=A, H=H, X0=X0, depth=[depth, 2 * depth], dtype=dtype).metrics()
        slope = table["log_hfc_lfc"].diff().iloc[1] / depth
        assert slope == pytest.approx(math.log(others.max() / 1.5), abs=0.01)
        assert table["log_hfc_lfc"].iloc[0] < math.log(1e-30)


# ---------------------------------------------------------------------------------- T11


def test_one_token() -> None:
    """n = 1: X_1 = 9/2, HFC = 0; h = -1 gives X_1 = 0, undefined from there on (T11.1)."""
    table = evolve(A=[[1.0]], H=[[0.5]], X0=[[3.0]], depth=[0, 1, 100]).metrics()
    assert (table["hfc_lfc"] == 0).all() and table["cos_mean"].isna().all()
    X, exponent = evolve(A=[[1.0]], H=[[0.5]], X0=[[3.0]], depth=[1]).X(0)
    assert (X * 2.0 ** exponent.item()).item() == 4.5
    gone = evolve(A=[[1.0]], H=[[-1.0]], X0=[[3.0]], depth=[0, 1, 2, 50]).metrics()
    assert gone["hfc_lfc"].iloc[0] == 0 and gone.iloc[1:, 1:].isna().all(axis=None)


@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_attention_near_the_identity_smooths_slowly(delta: float) -> None:
    """T11.2: A = (1 - delta) I + delta 11^T/n, r = (1 + h (1 - delta)) / (1 + h), h = 1/2."""
    n, h = 4, 0.5
    A = (1 - delta) * np.eye(n) + delta / n
    X0 = np.random.default_rng(2).standard_normal((n, 2))
    table = evolve(A=A, H=h * np.eye(2), X0=X0, depth=[0, 2000]).metrics()
    drop = table["log_hfc_lfc"].diff().iloc[1]
    expected = 2000 * math.log((1 + h * (1 - delta)) / (1 + h))
    assert drop == pytest.approx(expected, abs=2000 * 16 * n * EPS)


def test_minus_one_makes_the_ratio_infinite_for_doubly_stochastic_attention() -> None:
    """T11.4: X_0 = (3, 1), h = -1: X_1 = (1/2, -1/2)."""
    trajectory = evolve(A=AA, H=[[-1.0]], X0=[[3.0], [1.0]], depth=[1, 2, 1000])
    assert (trajectory.metrics()["hfc_lfc"] == math.inf).all()
    X, exponent = trajectory.X(0)
    assert (X * 2.0 ** exponent.item()).flatten().tolist() == [0.5, -0.5]


def test_minus_one_with_other_attention_leaves_a_finite_ratio() -> None:
    """T11.4: A3, X_0 = (1, 2, 4), L = 3: ratio^2 = 1819399/423200."""
    A3 = [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]]
    found = log_ratio(A=A3, H=[[-1.0]], X0=[[1.0], [2.0], [4.0]], depth=3)
    assert found == pytest.approx(math.log(1819399 / 423200) / 2, abs=1e-13)


def test_mode_with_multiplier_zero_dies_in_one_layer() -> None:
    """GT18: a = 1/2, h = -2: 1 + h a = 0 exactly, so the ratio is exactly 0 from layer 1 on."""
    table = evolve(A=AA, H=[[-2.0]], X0=[[1.0], [2.0]], depth=[0, 1, 40]).metrics()
    assert list(table["hfc_lfc"]) == [pytest.approx(1 / 3, abs=EPS), 0.0, 0.0]


def test_repeated_eigenvalue_one() -> None:
    """Two groups that never meet: HFC stays, and T1d holds for any stationary pi."""
    A = np.zeros((4, 4))
    A[:2, :2], A[2:, 2:] = [[0.5, 0.5], [0.25, 0.75]], 0.5
    X0 = np.array([[1.0], [2.0], [5.0], [7.0]])
    X, exponent = evolve(A=A, H=[[0.5]], X0=X0, depth=[200]).X(0)
    M = np.linalg.matrix_power(np.eye(4) + 0.5 * A, 200) @ X0
    np.testing.assert_allclose(X.numpy() * 2.0 ** exponent.item(), M, rtol=64 * 200 * EPS)
    assert log_ratio(A=A, H=[[0.5]], X0=X0, depth=500) == pytest.approx(
        log_hfc_lfc_ratio(torch.tensor(M)).item(), abs=1e-9
    )


def test_causal_attention_with_zeros() -> None:
    A = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    table = evolve(A=A, H=[[1.0]], X0=[[1.0], [2.0], [4.0]], depth=[400, 800]).metrics()
    slope = table["log_hfc_lfc"].diff().iloc[1] / 400
    assert slope == pytest.approx(math.log(1.5 / 2), abs=1e-12)


# ------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    "change",
    [
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
        {"H": [[1e300]], "dtype": torch.float32},
        {"A": np.full((2, 2, 2), 0.5), "X0": np.ones((3, 2, 1))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_bad_input_is_refused(change: dict) -> None:
    good = {"A": AA, "H": [[0.5]], "X0": [[1.0], [2.0]], "depth": 1}
    with pytest.raises(InputError):
        evolve(**(good | change))


@example(0)
@given(st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_a_single_depth_keeps_the_start_too(depth: int) -> None:
    trajectory = evolve(A=AA, H=[[0.5]], X0=[[1.0], [2.0]], depth=depth)
    assert trajectory.depths == ((0, depth) if depth else (0,))
    assert len(trajectory) == len(trajectory.metrics())


def test_small_layers_run_on_one_thread_and_leave_the_threads_as_they_were(monkeypatch) -> None:
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
