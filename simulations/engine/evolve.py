"""The layer X' = X + A X W run to any depth without losing the spread or the scale (T1c-d, T11).

One call, several methods: layer by layer (`plain`), in the r x r core of a head (`core`), from the
eigenbases at any depth (`closed_form`), and two independent oracles for small sizes (`squaring`,
`kronecker`). The result names the method, why it was taken, and how exact it is.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from oversmoothing.simulations.engine.core import core
from oversmoothing.simulations.engine.eigen_states import Bases, closed_form_states
from oversmoothing.simulations.engine.inputs import check_depths, choose_device, choose_precision
from oversmoothing.simulations.engine.kept_states import States
from oversmoothing.simulations.engine.oracles import kronecker, squaring
from oversmoothing.simulations.engine.plain import plain
from oversmoothing.simulations.engine.plan import METHODS, Plan, make_plan
from oversmoothing.simulations.engine.problem import make_problem
from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.theory.support.errors import InputError

# Past this error the closed form gives way to an iteration that takes less than these seconds.
_ERROR_LIMIT = 1e-6
_AFFORDABLE = 5.0


def evolve(
    *,
    X0: Any,
    A: Any,
    W: Any = None,
    H: Any = None,
    depth: int | Sequence[int],
    method: str = "auto",
    residual: bool = True,
    dtype: torch.dtype | None = None,
    device: str = "auto",
    progress: bool = False,
) -> Trajectory:
    """Run X' = X + A X W from X_0 (X' = A X W without the residual) and keep the asked depths.

    A [*batch, n, n] row-stochastic, exactly one of W and H = W^T [*batch, d, d], X0 [*batch, n, d]:
    arrays or tensors; batch dimensions broadcast. A head is given by its factors,
    W = (W_V [*batch, d, r], W_proj [*batch, r, d]). depth: one depth (0 is kept too, unless asked
    alone) or an increasing sequence of depths >= 0. dtype: torch.float32 or torch.float64, by
    default that of X0 if it is one of these, else float64. device: 'auto' (cuda if there is one,
    else cpu) or a torch device; spectra are taken on the CPU in float64 whatever it is.

    method: 'plain' and 'core' iterate (O(n d (n + d)) and O(n r (n + r)) a layer); 'closed_form'
    costs the same at every depth; 'squaring' (n d <= 400) and 'kronecker' (n d <= 1024) are checks.
    'auto' takes the cheapest of the first three and iterates where the eigenbases are too ill
    conditioned. The result says which, why, and with what estimated error.

    pi and B' are formed in float64 on the CPU. A whose columns sum to 1 within n eps counts as
    doubly stochastic, pi = 1/n. Where the eigenvalue 1 of A repeats, any stationary pi keeps
    c' = c + c W exact. A state that becomes exactly 0 stays 0, and its metrics are undefined (NaN);
    only the iterations promise an exact 0.

    Raises `InputError` for NaN, wrong shapes, A not row-stochastic, bad depths, devices or methods,
    and where the method asked for does not apply.
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not '{method}'")
    depths = check_depths(depth)
    where = choose_device(device)
    precision = choose_precision(X0, dtype)
    problem = make_problem(X0=X0, A=A, W=W, H=H, residual=residual)
    bases = Bases(problem)

    def run(name: str) -> States:
        if name == "closed_form":
            return closed_form_states(problem, depths, where, precision, bases)
        if name in ("plain", "core"):
            return (plain if name == "plain" else core)(problem, depths, where, precision, progress)
        return (squaring if name == "squaring" else kronecker)(problem, depths, where, precision)

    if method == "auto":
        method, reason, found = _choose(make_plan(problem, depths, where, precision), run)
    else:
        reason, found = "as asked", run(method)
    return Trajectory(
        depths=depths,
        batch=problem.batch,
        states=found.states,
        exponents=found.exponents,
        offset=problem.flat(problem.offset, 1, torch.float64).to(where),
        method=method,
        reason=reason,
        error=found.error,
    )


def _choose(plan: Plan, run: Callable[[str], States]) -> tuple[str, str, States]:
    """(method, reason, states) for 'auto'."""
    if plan.method != "closed_form":
        return plan.method, plan.reason, run(plan.method)
    other = plan.iteration
    if plan.squaring_seconds < plan.iteration_seconds:
        other = "squaring"
    try:
        found = run("closed_form")
    except InputError as error:
        return other, f"no closed form: {error}", run(other)
    worst = max(found.error)
    cost = min(plan.iteration_seconds, plan.squaring_seconds)
    if worst <= _ERROR_LIMIT or cost > _AFFORDABLE:
        return "closed_form", plan.reason, found
    reason = (
        f"the closed form is uncertain here (estimated error {worst:.1e}: a mode that X_0 lacks, "
        "or a multiplier that vanishes)"
    )
    return other, reason, run(other)
