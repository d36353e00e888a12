"""An oracle for `evolve`: the matrix M = I + A (x) W^T applied to X itself, layer by layer (T1a).

vec runs by rows. It keeps no coordinates apart, so that a spread below eps is lost in it: what
T11.9 warns of.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing import Trajectory, evolve, evolve_heads
from oversmoothing.simulations.engine.errors import (
    Errors,
    Nudge,
    States,
    _log_parts,
    _lost,
    errors_by_twins,
)
from oversmoothing.simulations.engine.problem import (
    Asked,
    Problem,
    check_depths,
    choose_precision,
    make_problem,
)
from oversmoothing.simulations.state import add, centred, choose_device, to_differences
from oversmoothing.theory.numbers.rounding import normalise

# Layers of the dense matrix between two rescalings.
_BLOCK = 8


def evolve_by(method: str, **case: Any) -> Trajectory:
    """`evolve` by one of its methods or by 'kronecker', `evolve_heads` of one head by 'heads'."""
    if method == "heads":
        W = case.pop("W") if "W" in case else np.transpose(case.pop("H"))
        return evolve_heads(attention=case.pop("A"), weights=W, **case)
    return kronecker(**case) if method == "kronecker" else evolve(method=method, **case)


def kronecker(
    *,
    X0: Any,
    A: Any,
    W: Any = None,
    H: Any = None,
    depth: int | Sequence[int],
    residual: bool = True,
    dtype: torch.dtype | None = None,
) -> Trajectory:
    """The trajectory of these arguments of `evolve` by the dense matrix."""
    depths, cpu, precision = check_depths(depth), choose_device("cpu"), choose_precision(X0, dtype)
    problem = make_problem(X0=X0, A=A, W=W, H=H, residual=residual)

    def run(of: Asked) -> States:
        return States(*_states(*of), of.problem.flat(of.problem.offset, 1, cpu))

    asked = Asked(problem, depths, cpu, precision)
    found = run(asked)

    def errors() -> Errors:
        # Both parts are read from X itself: the smaller is known to eps of the larger at best.
        twins = errors_by_twins(found, run, asked)
        now = _log_parts(found)
        lost = _lost(now.amax(-1, keepdim=True) - now, Nudge(0, precision).unit)
        return Errors(torch.maximum(twins.parts, lost), twins.rows)

    return Trajectory(depths, problem.batch, replace(found, errors=errors), "kronecker", "as asked")


def _states(
    problem: Problem, depths: tuple[int, ...], device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """(Z, exponents) by the dense matrix of n d x n d."""
    n, d = problem.n, problem.d
    states = np.empty((len(depths), problem.number, n, d))
    exponents = np.empty((len(depths), problem.number, 2), dtype=np.int64)
    for index, place in enumerate(np.ndindex(*problem.batch)):
        A = problem.A[problem.element(problem.A, 2, place)]
        W = problem.dense_weights[problem.element(problem.dense_weights, 2, place)]
        M = np.asarray(np.kron(A, W.T), dtype=np.float64)
        if problem.residual:
            M += np.eye(n * d)
        M, step = normalise(M)  # entries of at most 1: a block cannot overflow
        X = problem.X0[problem.element(problem.X0, 2, place)]
        offset = torch.tensor(problem.offset[problem.element(problem.offset, 1, place)])
        x, total = normalise(X.ravel())
        done = 0
        for row, depth in enumerate(depths):
            while done < depth:
                steps = min(_BLOCK, depth - done)
                for _ in range(steps):
                    x = M @ x
                x, total = normalise(x, total + steps * step)
                done += steps
            # HFC and c = pi^T X = mean - offset^T HFC, offset = 1/n - pi (T1d).
            hfc, hfc_exponent, *mean = centred(torch.tensor(x.reshape(n, d)))
            c, c_exponent = add(tuple(mean), (-offset @ hfc, hfc_exponent), trailing=1)
            states[row, index] = torch.cat((to_differences(hfc), c.unsqueeze(0)))
            exponents[row, index] = total + int(hfc_exponent), total + int(c_exponent)
    return torch.as_tensor(states).to(device, dtype), torch.as_tensor(exponents).to(device)


def leaning(n: int) -> np.ndarray:
    """Causal attention mostly to the token before: its quotient shows false values near 0.56."""
    A = 0.9 * np.eye(n, k=-1) + 0.05 * np.eye(n)
    A[:, 0] += 0.05
    A[:2, :2] = [[1, 0], [0.5, 0.5]]
    return A
