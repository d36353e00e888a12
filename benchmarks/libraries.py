"""The same questions to numpy, scipy, torch, FLINT and this package: time, memory, error.

Which multiplier dominates I + H⊗A, and what X_L is after 1,000 layers, for softmax attention of
n = 32 tokens and Gaussian H with d = 16; and exp(H⊗A) vec(X) through `oversmoothing.operator`. Each
answer comes from a process of its own, whose peak of memory is its own; its time is the shortest of
15, of the processor, on one thread: what else the machine does only adds. Errors are against balls
of more digits.
"""

import time
from collections.abc import Callable

import flint
import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import torch

import oversmoothing
from benchmarks.benchmark import Row, measurement
from benchmarks.hundred_digits import BITS, direction
from benchmarks.timing import in_fresh_process, peak_mib
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.support.sizes import Array

N, D, DEPTH = 32, 16, 1000


def _case() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    A = np.exp(rng.standard_normal((N, N)))
    H = rng.standard_normal((D, D)) / D**0.5
    return A / A.sum(axis=1, keepdims=True), H, rng.standard_normal((N, D))


def _whole(A: Array, H: Array) -> Array:
    return np.eye(len(A) * len(H)) + np.kron(H, A)


def _balls(A: Array, H: Array, bits: int) -> float:
    with at_precision(bits):
        a, h = (flint.acb_mat(flint.arb_mat(each.tolist())).eig() for each in (A, H))
        return max(float(abs(1 + x * y).mid()) for x in a for y in h)


def _by_loop(A: Array, H: Array, X: Array) -> Array:
    for _ in range(DEPTH):
        X = X + A @ X @ H.T
        X = X / np.linalg.norm(X)
    return X


def _by_torch(A: Array, H: Array, X0: Array) -> Array:
    a, w, X = torch.from_numpy(A), torch.from_numpy(H.T.copy()), torch.from_numpy(X0)
    for _ in range(DEPTH):
        X = X + a @ X @ w
        X = X / torch.linalg.matrix_norm(X)
    return X.numpy()


def _by_power(A: Array, H: Array, X0: Array) -> Array:
    x = np.linalg.matrix_power(_whole(A, H), DEPTH) @ X0.ravel("F")
    return _unit(x.reshape(X0.shape, order="F"))


def _ours(A: Array, H: Array, X0: Array) -> Array:
    return _unit(oversmoothing.evolve(A=A, H=H, X0=X0, depth=[DEPTH]).X(0)[0].numpy())


def _unit(X: Array) -> Array:
    X = X / np.abs(X).max()  # entries of 1e282 have no squares in binary64
    return X / np.linalg.norm(X)


def _certified(A: Array, H: Array) -> float:
    answer = oversmoothing.verdict(A=A, H=H)
    return max(float(answer.rho_consensus), float(answer.rho_quotient))


# Largest |multiplier| by name: (A, H) -> number.
DOMINANT: dict[str, Callable[[Array, Array], float]] = {
    "ours, certified": _certified,
    "numpy.linalg.eigvals of A and H": lambda A, H: float(
        np.abs(1 + np.outer(np.linalg.eigvals(A), np.linalg.eigvals(H))).max()
    ),
    "FLINT's eigenvalues of A and H, certified": lambda A, H: _balls(A, H, 128),
    "scipy eigs on oversmoothing.operator": lambda A, H: float(
        abs(scipy.sparse.linalg.eigs(oversmoothing.operator(A=A, H=H), k=1, which="LM",
                                     v0=np.ones(len(A) * len(H)), return_eigenvectors=False)[0])
    ),
    "numpy.linalg.eigvals of I + H⊗A": lambda A, H: float(
        np.abs(np.linalg.eigvals(_whole(A, H))).max()
    ),
    "torch.linalg.eigvals of I + H⊗A": lambda A, H: float(
        torch.linalg.eigvals(torch.from_numpy(_whole(A, H))).abs().max()
    ),
}  # fmt: skip

# The direction of X_L by name: (A, H, X0) -> [n, d] of norm 1.
STATE: dict[str, Callable[[Array, Array, Array], Array]] = {
    "ours": _ours,
    "numpy, layer by layer": _by_loop,
    "torch, layer by layer": _by_torch,
    "numpy.linalg.matrix_power of I + H⊗A": _by_power,
}


def _flow_by_operator(A: Array, H: Array, X0: Array) -> Array:
    layer = oversmoothing.operator(A=A, H=H)
    # exp(I + H⊗A) = e exp(H⊗A).
    x = scipy.sparse.linalg.expm_multiply(layer, X0.ravel("F"), traceA=layer_trace(A, H))
    return np.asarray(x).reshape(X0.shape, order="F") / np.e


def layer_trace(A: Array, H: Array) -> float:
    """tr(I + H⊗A), which scipy would otherwise estimate."""
    return len(A) * len(H) + float(np.trace(A) * np.trace(H))


def _flow_whole(A: Array, H: Array, X0: Array) -> Array:
    return (scipy.linalg.expm(np.kron(H, A)) @ X0.ravel("F")).reshape(X0.shape, order="F")


FLOW: dict[str, Callable[[Array, Array, Array], Array]] = {
    "scipy expm_multiply on oversmoothing.operator": _flow_by_operator,
    "scipy.linalg.expm of H⊗A": _flow_whole,
}


def _timed(question: str, name: str) -> tuple[float, float, Array]:
    """(processor seconds, MiB by which the peak grew, answer), in the process it is called in."""
    A, H, X0 = _case()
    given = (A, H) if question == "DOMINANT" else (A, H, X0)
    run = globals()[question][name]
    with one_thread():
        small = (A[:8, :8] / A[:8, :8].sum(axis=1, keepdims=True), H[:4, :4], X0[:8, :4])
        run(*small[: len(given)])  # what loads on first use is loaded
        before, taken = peak_mib(), []
        for _ in range(15):
            start = time.process_time()
            answer = run(*given)
            taken.append(time.process_time() - start)
    return min(taken), max(0.0, peak_mib() - before), np.asarray(answer)


@measurement("libraries", "numpy, scipy, torch and FLINT on the same questions", pinned=False)
def libraries() -> list[Row]:
    """Rows that only compare: ratio is the library's time over ours; time, memory, error beside."""
    A, H, X0 = _case()
    truths = {
        "DOMINANT": np.array(_balls(A, H, BITS)),
        "STATE": direction(A, H, X0, DEPTH)[0],
        "FLOW": _flow_in_balls(A, H, X0),
    }
    asked = {
        "DOMINANT": "largest multiplier",
        "STATE": f"X_L, L = {DEPTH}",
        "FLOW": "exp(H⊗A) vec X",
    }
    rows = []
    for question, truth in truths.items():
        answers = {name: in_fresh_process(_timed, question, name) for name in globals()[question]}
        ours = next(iter(answers.values()))[0]
        for name, (seconds, mib, answer) in answers.items():
            error = np.linalg.norm(answer - truth) / np.linalg.norm(truth)
            note = f"error {error:.1e}, {mib:.1f} MiB; n = {N}, d = {D}"
            rows.append(Row(f"libraries, {asked[question]}: {name}", seconds / ours,
                            {"shortest of 15": seconds}, note))  # fmt: skip
    return rows


def _flow_in_balls(A: Array, H: Array, X0: Array) -> Array:
    with at_precision(160):
        whole = flint.arb_mat(np.kron(H, A).tolist()).exp()
        x = whole * flint.arb_mat([[value] for value in X0.ravel("F").tolist()])
        values = [float(x[k, 0].mid()) for k in range(X0.size)]
    return np.array(values).reshape(X0.shape, order="F")
