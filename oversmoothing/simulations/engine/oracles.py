"""Two slow, independent ways to the same states, for checks at small sizes (T1a).

kronecker: the matrix M = I + A (x) W^T applied to X itself, layer by layer (vec by rows). It keeps
    no coordinates apart, so a spread below eps is lost in it: what T11.9 warns of.
squaring: the powers M^(2^k) of the two decoupled systems, I + B' (x) W^T and I + W^T, each with its
    own scale. No eigenvector is used; but the rounding of a square is as good as another matrix,
    and of a defective one it costs the m-th root of the digits.
"""

import numpy as np
import torch
from torch import Tensor

from oversmoothing.simulations.engine.errors import start_of
from oversmoothing.simulations.engine.problem import Problem
from oversmoothing.simulations.state import apart, to_differences
from oversmoothing.theory.numbers.rounding import normalise
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

KRONECKER_SIZE = 1024
SQUARING_SIZE = 400

# Layers of the dense matrix between two rescalings.
_BLOCK = 8


def kronecker(
    problem: Problem, depths: tuple[int, ...], device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The states by the dense matrix of n d x n d. Raises `InputError` above KRONECKER_SIZE."""
    _check_size(problem, KRONECKER_SIZE, "kronecker")
    n, d = problem.n, problem.d
    states = np.empty((len(depths), problem.number, n, d))
    exponents = np.empty((len(depths), problem.number, 2), dtype=np.int64)
    for index, place in enumerate(np.ndindex(*problem.batch)):
        A, W = _matrices(problem, place)
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
            hfc, hfc_exponent, c, c_exponent = apart(torch.tensor(x.reshape(n, d)), offset)
            states[row, index] = torch.cat((to_differences(hfc), c.unsqueeze(0)))
            exponents[row, index] = total + int(hfc_exponent), total + int(c_exponent)
    return torch.as_tensor(states).to(device, dtype), torch.as_tensor(exponents).to(device)


def squaring(
    problem: Problem, depths: tuple[int, ...], device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The states by repeated squaring. Raises `InputError` above SQUARING_SIZE."""
    _check_size(problem, SQUARING_SIZE, "squaring")
    n, d = problem.n, problem.d
    Z, start_exponents = start_of(problem, torch.device("cpu"), torch.float64)
    states = np.empty((len(depths), problem.number, n, d))
    exponents = np.empty((len(depths), problem.number, 2), dtype=np.int64)
    for index, place in enumerate(np.ndindex(*problem.batch)):
        W = _matrices(problem, place)[1]
        at = problem.element(problem.quotient, 2, place)
        B = problem.quotient[at][: n - 1, : n - 1]
        kept = 1.0 if problem.residual else 0.0
        systems = (
            _Squarings(np.kron(B, W.T) + kept * np.eye((n - 1) * d)),
            _Squarings(W.T + kept * np.eye(d)),
        )
        x = [Z[index, :-1].numpy().ravel(), Z[index, -1].numpy()]
        total = [int(e) for e in start_exponents[index]]
        done = 0
        for row, depth in enumerate(depths):
            for k, system in enumerate(systems):
                x[k], more = system.apply(x[k], depth - done)
                total[k] += more
            done = depth
            states[row, index] = np.concatenate((x[0].reshape(n - 1, d), x[1][None]))
            exponents[row, index] = total
    return torch.as_tensor(states).to(device, dtype), torch.as_tensor(exponents).to(device)


class _Squarings:
    """M^(2^k) for k = 0, 1, ..., each over a power of two."""

    def __init__(self, M: Array) -> None:
        self.squares = [normalise(M)]

    def apply(self, x: Array, depth: int) -> tuple[Array, int]:
        """(y, e) with M^depth x = 2^e y."""
        total = 0
        for k, bit in enumerate(reversed(bin(depth)[2:])):
            if k == len(self.squares):
                M, exponent = self.squares[-1]
                self.squares.append(normalise(M @ M, 2 * exponent))
            if bit == "1":
                M, exponent = self.squares[k]
                x, total = normalise(M @ x, total + exponent)
        return x, total


def _matrices(problem: Problem, place: tuple[int, ...]) -> tuple[Array, Array]:
    W = problem.dense_weights
    return problem.A[problem.element(problem.A, 2, place)], W[problem.element(W, 2, place)]


def _check_size(problem: Problem, limit: int, method: str) -> None:
    size = problem.n * problem.d
    if size > limit:
        raise InputError(
            f"method '{method}' forms a matrix of n d = {size} rows, above its limit of {limit}: "
            "use 'auto', 'plain', 'core' or 'closed_form'"
        )
