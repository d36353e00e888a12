"""Which method `evolve` takes, by what each would cost: a few measured unit costs of one core.

Eigenbases cost about 1.5 ns n^3, products 2 flops a term, and each call its overhead. The estimates
only choose; nothing depends on their being right.
"""

import math
from dataclasses import dataclass

import torch

from oversmoothing.simulations.engine.oracles import SQUARING_SIZE
from oversmoothing.simulations.engine.problem import Problem

METHODS = ("auto", "plain", "core", "closed_form", "balls", "squaring", "kronecker")

# Products of matrices, flops a second, and the overhead of a layer in seconds.
_RATE = {"cpu": {torch.float32: 9e10, torch.float64: 4.5e10}}
_GPU_RATE = {torch.float32: 3e13, torch.float64: 2e13}
_OVERHEAD = {"cpu": 1.5e-5}
_GPU_OVERHEAD = 6e-5
_EIG = 1.5e-9
_CALL = 5e-4


@dataclass(frozen=True)
class Plan:
    """The method, why in a sentence, and the iteration to fall back on with its seconds."""

    method: str
    reason: str
    iteration: str
    iteration_seconds: float
    squaring_seconds: float


def make_plan(
    problem: Problem, depths: tuple[int, ...], device: torch.device, dtype: torch.dtype
) -> Plan:
    """The cheapest of plain, core and closed_form; all three are exact in exact arithmetic."""
    n, d, N, L = problem.n, problem.d, problem.number, depths[-1]
    rate = _RATE.get(device.type, _GPU_RATE)[dtype]
    overhead = _OVERHEAD.get(device.type, _GPU_OVERHEAD)
    r = problem.rank
    seconds = {"plain": L * (overhead + N * 2 * n * d * (n + d) / rate)}
    if r is not None:
        each = N * 2 * n * r * (d + n) / rate
        seconds["core"] = L * (overhead + N * 2 * n * r * (n + r) / rate) + len(depths) * each
    k = d if r is None else r
    weights = problem.W if problem.W is not None else problem.P
    assert weights is not None
    bases = math.prod(problem.A.shape[:-2]) * (_CALL + _EIG * n**3)
    bases += math.prod(weights.shape[:-2]) * (_CALL + _EIG * k**3)
    each = _CALL + (4 * n * k * (n + k) + 2 * n * d * k) / _RATE["cpu"][torch.float64]
    seconds["closed_form"] = bases + N * len(depths) * each
    method = min(seconds, key=lambda name: seconds[name])
    iteration = min((name for name in seconds if name != "closed_form"), key=seconds.__getitem__)
    size = max(1, (n - 1) * d)
    squaring = math.inf
    if n * d <= SQUARING_SIZE:
        squaring = N * (max(1, L).bit_length() * (_CALL + 2 * size**3 / 4e10))
    others = ", ".join(
        f"{name} {seconds[name]:.1e} s" for name in sorted(seconds) if name != method
    )
    reason = f"the cheapest for depth {L}: about {seconds[method]:.1e} s (estimated; {others})"
    return Plan(method, reason, iteration, seconds[iteration], squaring)
