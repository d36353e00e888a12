"""What `evolve` costs and how exact it is, with its targets; one BLAS thread, medians, interleaved.

n = 197 tokens, d = 768, a head of rank r = 64 (ViT-B/16), unless a row says otherwise.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.benchmark import Row, measurement
from benchmarks.hundred_digits import direction, draw
from benchmarks.timing import in_fresh_process, peak_mib
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.engine.iteration import Iteration, OneHead, range_bits
from oversmoothing.simulations.engine.problem import Problem, make_problem
from oversmoothing.simulations.state import one_thread

N, D, R = 197, 768, 64
SQUARES = (768, 1024, 2048)
BATCH, LAYERS, CORE_LAYERS = 4, 16, 256
FAR, NEAR = 10**9, 10**3
DRAWS = 100
SHAPE = f"n = {N}, d = {D}"


def _case(rank: int | None, batch: int = 1) -> tuple[Problem, dict[str, object]]:
    """A softmax attention of unit Gaussian logits, Gaussian weights and X_0, from seed 0."""
    rng = np.random.default_rng(0)
    A = np.exp(rng.standard_normal((N, N)))
    A /= A.sum(axis=1, keepdims=True)
    W: object = 0.3 * rng.standard_normal((D, D)) / D**0.5
    if rank is not None:
        W = (
            rng.standard_normal((D, rank)) / D**0.5,
            0.3 * rng.standard_normal((rank, D)) / rank**0.5,
        )
    X0 = rng.standard_normal((batch, N, D) if batch > 1 else (N, D))
    given = {"A": A, "W": W, "X0": X0}
    return make_problem(X0=X0, A=A, W=W, H=None, residual=True), given


def _naive(X: Tensor, A: Tensor, W: Tensor, layers: int) -> Tensor:
    """What a reader of the paper writes first."""
    for _ in range(layers):
        X = X + A @ X @ W
    return X


def _multiply(square: list[Tensor], times: int) -> None:
    for _ in range(times):
        torch.mm(square[0], square[1], out=square[2])


def _on(iteration: Iteration, layers: int) -> None:
    iteration.advance_to(iteration.layer + layers, tqdm(disable=True))


@measurement("engine/dense", "a batched dense layer against square products")
def dense() -> list[Row]:
    problem, _ = _case(None, BATCH)
    f32 = torch.float32
    A, W = problem.flat(problem.quotient, 2, f32), problem.flat(problem.dense_weights, 2, f32)
    Z = torch.as_tensor(problem.X0).to(f32)
    none = torch.zeros(BATCH, 2, dtype=torch.int64)
    iteration = OneHead(Z, none, A, W, range_bits(problem.norm, N * D, f32, True))
    squares = [[torch.randn(s, s) for _ in range(3)] for s in SQUARES]
    attention = torch.as_tensor(problem.A).to(f32)
    runs: list[Callable[[], object]] = [lambda: _on(iteration, LAYERS)]
    # Runs of equal length: on a busy machine a short one is interrupted less often.
    flops = BATCH * LAYERS * 2 * N * D * (N + D)
    times = [max(1, round(flops / (2 * s**3))) for s in SQUARES]
    runs += [partial(_multiply, s, k) for s, k in zip(squares, times, strict=True)]
    runs += [lambda: _naive(Z, attention, W[0], LAYERS)]
    with torch.inference_mode():
        ours, *gemms, naive = interleaved_medians(runs, 25)
    gemms = [seconds / k for seconds, k in zip(gemms, times, strict=True)]
    peak = max(2.0 * s**3 / seconds for s, seconds in zip(SQUARES, gemms, strict=True))
    layer = ours / LAYERS / BATCH
    seconds = {f"square {s}": t for s, t in zip(SQUARES, gemms, strict=True)}
    note = f"{SHAPE}, float32, a batch of {BATCH}, rescaling included"
    return [
        Row("engine/dense layer, fraction of the best square product", flops / ours / peak,
            {"layer": layer, **seconds}, note, at_least=0.95),
        Row("engine/plain loop over dense layer", naive / ours,
            {"layer": layer, "plain loop": naive / LAYERS / BATCH}, note),
    ]  # fmt: skip


@measurement("engine/core", "a layer of a head in its core against the plain loop")
def core() -> list[Row]:
    problem, _ = _case(R)
    assert problem.P is not None and problem.Q is not None
    f32 = torch.float32
    X, P = torch.as_tensor(problem.X0).to(f32), torch.as_tensor(problem.P).to(f32)
    iteration = OneHead(
        (X @ P).unsqueeze(0),
        torch.zeros(1, 2, dtype=torch.int64),
        problem.flat(problem.quotient, 2, f32),
        problem.flat(problem.Q @ problem.P, 2, f32),
        range_bits(problem.norm, N * D, f32, True),
        summed=True,
    )
    A, W = torch.as_tensor(problem.A).to(f32), torch.as_tensor(problem.dense_weights).to(f32)
    few = CORE_LAYERS // 32
    with torch.inference_mode():
        ours, naive = interleaved_medians(
            [lambda: _on(iteration, CORE_LAYERS), lambda: _naive(X, A, W, few)], 15
        )
    ours, naive = ours / CORE_LAYERS, naive / few
    note = f"{SHAPE}, r = {R}, float32, sums and rescaling included"
    seconds = {"core layer": ours, "plain loop": naive}
    return [Row("engine/plain loop over core layer", naive / ours, seconds, note, at_least=25.0)]


@measurement("engine/closed_form", "any depth for one eigendecomposition")
def closed_form() -> list[Row]:
    problem, given = _case(R)
    A = torch.as_tensor(problem.A)
    far, near, eig = interleaved_medians(
        [
            lambda: evolve(**given, depth=[FAR], method="closed_form"),  # type: ignore[arg-type]
            lambda: evolve(**given, depth=[NEAR], method="closed_form"),  # type: ignore[arg-type]
            lambda: torch.linalg.eig(A),
        ],
        15,
    )
    seconds = {"depth 1e9": far, "depth 1e3": near, "torch.linalg.eig": eig}
    note = f"{SHAPE}, r = {R}, float64, the whole call"
    return [
        Row("engine/closed form, depth 1e9 over 1e3", far / near, seconds, note, at_most=1.5),
        Row("engine/closed form over torch.linalg.eig of A", far / eig, seconds, note, at_most=2.0),
    ]


def _peaks() -> tuple[float, float]:
    """Peak memory in MiB before and after runs of every method."""
    with one_thread():
        before = peak_mib()
        for rank, depth, method in (
            (R, FAR, "closed_form"),
            (R, 100, "core"),
            (None, LAYERS, "plain"),
            (None, FAR, "closed_form"),
        ):
            evolve(**_case(rank)[1], depth=[depth], method=method)  # type: ignore[arg-type]
        return before, peak_mib()


@measurement("engine/memory", "peak memory of a run in a fresh process")
def memory() -> list[Row]:
    before, peak = (mib / 2**10 for mib in in_fresh_process(_peaks, start="spawn"))
    dense = (N * D) ** 2 * 8 / 2**30
    note = (
        f"{SHAPE}: plain, core and closed form, r = {R} and dense, in a fresh process; imports "
        f"alone {before:.2f}; I + H (x) A as a matrix {dense:.0f}"
    )
    return [Row("engine/peak memory in GiB", peak, note=note, at_most=1.0)]


@measurement("engine/direction", "X_L at depth 1e9 against 100 digits")
def direction_error() -> list[Row]:
    errors: dict[bool, list[float]] = {True: [], False: []}
    estimates: dict[bool, list[float]] = {True: [], False: []}
    seed = 0
    while min(len(sample) for sample in errors.values()) < DRAWS:
        A, H, X0 = draw(seed)
        seed += 1
        mu = 1 + np.multiply.outer(np.linalg.eigvals(A), np.linalg.eigvals(H)).ravel()
        real = bool(abs(mu[np.abs(mu).argmax()].imag) < 1e-12)
        if len(errors[real]) == DRAWS:
            continue
        expected, is_real = direction(A, H, X0, FAR)
        run = evolve(A=A, H=H, X0=X0, depth=[FAR], method="closed_form")
        X = run.X(0)[0].numpy()
        errors[is_real].append(float(np.linalg.norm(X / np.linalg.norm(X) - expected)))
        estimates[is_real].append(run.error[0])
    return [
        Row(
            f"engine/direction error at depth 1e9, {name}",
            max(errors[real]),
            note=f"the worst of {len(errors[real])} draws, n, d <= 16, against 100 digits; median "
            f"{np.median(errors[real]):.1e}, estimated {max(estimates[real]):.1e} at most",
            at_most=target,
        )
        for real, name, target in (
            (True, "real dominant pair", 1e-12),
            (False, "complex dominant pair", 1e-6),
        )
    ]


# Depths beside the largest: of one alone noise would be as large as what it takes.
MORE = 4


def _causal(kind: str) -> dict[str, object]:
    """n = 200, d = 64: softmax of Gaussian logits times 1, 3 or 10, or one earlier token each."""
    n, d = 200, 64
    rng = np.random.default_rng(0)
    logits = {"sharp": 3.0, "sharper": 10.0}.get(kind, 1.0) * rng.standard_normal((n, n))
    A = np.exp(logits) * np.tri(n)
    if kind.startswith("hard"):
        A = np.eye(n)[[0, *(rng.integers(0, i) for i in range(1, n))]]
    W = 0.5 * rng.standard_normal((d, d)) / d**0.5
    if kind.endswith("defective"):
        W = np.kron(np.diag(rng.integers(-4, 5, d // 4) / 8), np.eye(4)) + np.eye(d, k=1) / 4
    return {"A": A / A.sum(1, keepdims=True), "W": W, "X0": rng.standard_normal((n, d))}


@measurement("engine/causal", "a causal layer in balls to 1e9 layers")
def causal() -> list[Row]:
    rows = []
    for kind, target in (
        ("soft", 10.0), ("sharp", 30.0), ("sharper", 30.0), ("hard", 10.0), ("defective", 10.0),
        ("hard and defective", 10.0),
    ):  # fmt: skip
        given, took = _causal(kind), []
        for depth in ([NEAR], [FAR], [FAR - k for k in range(MORE, -1, -1)]):
            start = time.process_time()
            method = "balls" if depth[-1] == FAR else "plain"
            run = evolve(**given, depth=depth, method=method)  # type: ignore[arg-type]
            took.append(time.process_time() - start)
        plain, once, several = took
        note = f"n = 200, d = 64, claimed error {max(run.error):.1e}"
        name = f"engine/causal, {kind}"
        rows += [
            Row(f"{name}: processor seconds to 1e9 layers", once, note=note, at_most=target),
            Row(f"{name}: seconds of one more depth", (several - once) / MORE, at_most=1.0,
                note=f"{MORE} more were run"),
            Row(f"{name}: layers one by one over balls", plain * FAR / NEAR / once,
                note=f"{NEAR} layers were run, and the time multiplied"),
        ]  # fmt: skip
    return rows


@measurement("engine/oracles", "the other methods at a small size")
def oracles() -> list[Row]:
    rng = np.random.default_rng(0)
    n = d = 12
    A = rng.dirichlet(np.ones(n), size=n)
    H, X0 = rng.standard_normal((d, d)) / d**0.5, rng.standard_normal((n, d))

    def run(method: str, depth: int) -> Callable[[], object]:
        return lambda: evolve(A=A, H=H, X0=X0, depth=[depth], method=method)

    rows = []
    for depth, word, others in ((NEAR, "1e3", ["plain", "squaring"]), (FAR, "1e9", ["squaring"])):
        names = ["closed_form", *others]
        times = interleaved_medians([run(name, depth) for name in names], 5)
        seconds = dict(zip(names, times, strict=True))
        rows += [
            Row(f"engine/{name} over closed form, depth {word}", seconds[name] / times[0], seconds,
                f"n = d = {n}")
            for name in others
        ]  # fmt: skip
    return rows
