"""The layer X' = X + A X W run to any depth without losing the spread or the scale (T1c-d, T11).

Which method 'auto' takes goes by what each would cost: a few measured unit costs of one core.
Eigenbases cost about 1.5 ns n^3, products 2 flops a term, and each call its overhead. The estimates
only choose; nothing depends on their being right.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from oversmoothing.simulations.engine import at_any_depth
from oversmoothing.simulations.engine.errors import (
    Errors,
    States,
    errors_by_norms,
    errors_by_twins,
    errors_of,
    put_in,
    with_cancellation,
)
from oversmoothing.simulations.engine.iteration import iterated
from oversmoothing.simulations.engine.problem import (
    Asked,
    Problem,
    check_depths,
    choose_precision,
    make_problem,
)
from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.simulations.state import choose_device, undisturbed
from oversmoothing.theory.depth.causal import seconds as causal_seconds
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import MatrixLike, WeightLike

METHODS = ("auto", "plain", "core", "closed_form", "balls", "squaring")

# Products of matrices, flops a second in single and double precision, and the overhead of a layer
# in seconds.
_CPU, _CARD = (9e10, 4.5e10, 1.5e-5), (3e13, 2e13, 6e-5)
_EIG = 1.5e-9
_CALL = 5e-4


_ITERATIONS = ("plain", "core")
# Seconds that a run may take without being asked for by name.
PATIENCE = 600.0


def costs(asked: Asked) -> dict[str, float]:
    """The estimated seconds of each method that applies; of balls where A is causal."""
    problem, depths, device, dtype = asked
    n, d, N, L, r = problem.n, problem.d, problem.number, depths[-1], problem.rank
    single, double, overhead = _CPU if device.type == "cpu" else _CARD
    rate = single if dtype == torch.float32 else double
    seconds = {"plain": L * (overhead + N * 2 * n * d * (n + d) / rate)}
    if r is not None:
        each = N * 2 * n * r * (d + n) / rate
        seconds["core"] = L * (overhead + N * 2 * n * r * (n + r) / rate) + len(depths) * each
    k = d if r is None else r
    weights = problem.W if problem.W is not None else problem.P
    assert weights is not None
    bases = math.prod(problem.A.shape[:-2]) * (_CALL + _EIG * n**3)
    bases += math.prod(weights.shape[:-2]) * (_CALL + _EIG * k**3)
    each = _CALL + (4 * n * k * (n + k) + 2 * n * d * k) / _CPU[1]
    seconds["closed_form"] = bases + N * len(depths) * each
    if problem.causal:
        seconds["balls"] = N * causal_seconds(n, d, len(depths))
    if n * d <= at_any_depth.SQUARING_SIZE:
        size = max(1, (n - 1) * d)
        seconds["squaring"] = N * (max(1, L).bit_length() * (_CALL + 2 * size**3 / 4e10))
    return seconds


def _cheapest(seconds: dict[str, float], *names: str) -> tuple[str, float]:
    name = min((name for name in names if name in seconds), key=seconds.__getitem__)
    return name, seconds[name]


def _hours(seconds: float, deepest: int) -> str:
    return f"{deepest:,} layers one by one would take about {seconds / 3600:.2g} h"


def without_eigenvectors(
    problem: Problem, depths: Sequence[int], dtype: torch.dtype
) -> tuple[str, str]:
    """A method that a closed form can be held against: 'plain', for too many layers another.

    With a line that says so. Raises `InputError` where that is too large.
    """
    seconds = costs(Asked(problem, tuple(depths), torch.device("cpu"), dtype))
    one_by_one, deepest = _cheapest(seconds, *_ITERATIONS)[1], depths[-1]
    if one_by_one <= PATIENCE:
        return "plain", ""
    took = _hours(one_by_one, deepest)
    if seconds.get("balls", PATIENCE) < PATIENCE:
        return "balls", f"{took}: they were taken in balls instead\n"
    if "squaring" not in seconds:
        raise InputError(
            f"{took}.\nGive --depth {deepest * PATIENCE / one_by_one:.0e} at most, or n times d of "
            f"at most {at_any_depth.SQUARING_SIZE}, where layers are squared."
        )
    return "squaring", f"{took}: they were squared instead\n"


# Past this error another method is tried, if it takes less than these seconds.
_ERROR_LIMIT = 1e-6
# The same where balls are at hand.
_SMALL_ERROR_LIMIT = 1e-8
_AFFORDABLE = 5.0


@undisturbed()
def evolve(
    *,
    X0: "MatrixLike | Tensor",
    A: "MatrixLike | Tensor",
    W: "WeightLike | Tensor | None" = None,
    H: "MatrixLike | Tensor | None" = None,
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
    costs the same at every depth; 'balls' (n d <= 256, or a causal A) has every digit right
    whatever A and H; 'squaring' (n d <= 400) needs no eigenvectors. 'auto'
    takes the cheapest of the first three. Where n d <= 64 and that is less exact than 1e-8, it
    takes balls for those elements of the batch; larger ones go, beyond 1e-6, from the closed form
    to iteration, balls or squaring if these are more exact. The result says which, why, and with
    what estimated error.

    Where A is reducible (causal, several groups) the tokens are iterated too, each with a power of
    two of its own: their cosines hold where a token loses the mode that dominates the others.

    pi and B' are formed in float64 on the CPU. A whose columns sum to 1 within n eps counts as
    doubly stochastic, pi = 1/n. Where the eigenvalue 1 of A repeats, any stationary pi keeps
    c' = c + c W exact. A state that becomes exactly 0 stays 0, and its metrics are undefined (NaN);
    only the iterations and balls promise an exact 0.

    Raises `InputError` for NaN, wrong shapes, A not row-stochastic, bad depths, devices or methods,
    where the method asked for does not apply, and where 'auto' has none of less than ten minutes.

    >>> import oversmoothing
    >>> A = [[0.75, 0.25], [0.25, 0.75]]
    >>> run = oversmoothing.evolve(X0=[[1.0], [2.0]], A=A, H=[[-1.5]], depth=[0, 1, 10**9])
    >>> run.metrics()["log_hfc_lfc"].round(2).tolist()
    [-1.1, -1.79, -693147181.66]
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not '{method}'")
    depths = check_depths(depth)
    where, precision = choose_device(device), choose_precision(X0, dtype)
    problem = make_problem(X0=X0, A=A, W=W, H=H, residual=residual)
    asked = Asked(problem, depths, where, precision)
    by = partial(_by, asked, progress)
    if method == "auto":
        method, reason, states = _choose(asked, by)
    else:
        reason, states = "as asked", by(method)
    return Trajectory(depths, problem.batch, states, method, reason)


def _by(asked: Asked, progress: bool, name: str) -> States:
    """The states by one method. Raises `InputError` where it does not apply."""
    if name == "closed_form":
        return at_any_depth.closed_form_states(asked)
    if name == "balls":
        return at_any_depth.in_balls(asked)

    def run(asked: Asked) -> States:
        if name in _ITERATIONS:
            return iterated(asked, progress, in_core=name == "core")
        return States(
            *at_any_depth.squaring(asked), asked.problem.flat(asked.problem.offset, 1, asked.device)
        )

    def errors() -> Errors:
        twins = errors_by_twins(states, run, asked)
        if name == "core" and asked.problem.residual:
            return with_cancellation(twins, states, run(asked._replace(depths=(0,))), asked.dtype)
        if name == "squaring":
            lost = at_any_depth.underflown(states.states, asked.problem)
            parts = twins.parts.masked_fill(lost.to(twins.parts.device), math.inf)
            return replace(twins, parts=parts)
        return twins

    states = run(asked)
    return replace(states, errors=errors)


def _worst(states: States) -> torch.Tensor:
    """The largest estimated error of each element of the batch, over depths and metrics."""
    hfc, mean, tokens = errors_of(states)
    return torch.maximum(hfc + mean, 2.0 * tokens.amax(-1)).amax(0)


def _choose(asked: Asked, by: Callable[[str], States]) -> tuple[str, str, States]:
    """(method, reason, states) for 'auto'.

    The cheapest of plain, core and closed_form, or where that is not exact enough another.
    """
    problem, depths, _, precision = asked
    small = problem.n * problem.d <= at_any_depth.BALL_SIZE
    usual = max(_ERROR_LIMIT, 64 * float(torch.finfo(precision).eps))
    limit = max(_SMALL_ERROR_LIMIT, 64 * float(torch.finfo(precision).eps)) if small else usual
    seconds = costs(asked)
    method, least = _cheapest(seconds, *_ITERATIONS, "closed_form")
    others = ", ".join(
        f"{name} {seconds[name]:.1e} s"
        for name in ("closed_form", "core", "plain")
        if name in seconds and name != method
    )
    reason = f"the cheapest for depth {depths[-1]}: about {least:.1e} s (estimated; {others})"
    # Squares lose digits that balls keep: they are for layers that balls do not take.
    other, took = _cheapest(seconds, *_ITERATIONS, "balls" if problem.causal else "squaring")
    if method != "closed_form":
        try:
            states = by(method)
        except InputError as error:
            # Weights beyond what one layer may take; of a product that overflows there is nothing.
            if not math.isfinite(problem.norm):
                raise
            method, reason = "closed_form", f"no iteration: {error}"
        else:
            # By norms they cost nothing, unlike twins.
            bound = errors_by_norms(states, asked) if small and method == "plain" else None
            enough = bound and _worst(replace(states, errors=lambda: bound)).max() <= limit
            if enough or not small:
                return method, reason, states
            # Its error would cost three runs more: the closed form knows its own.
            method, reason = "closed_form", "its error is known, unlike that of an iteration"
    try:
        states = by(method)
    except InputError as error:
        if small:
            return "balls", f"no closed form: {error}", by("balls")
        if took > PATIENCE:
            iteration, one_by_one = _cheapest(seconds, *_ITERATIONS)
            raise InputError(
                f"{error}.\n{_hours(one_by_one, depths[-1])}. Give a depth of "
                f"{depths[-1] * PATIENCE / one_by_one:.0e} at most, or ask for "
                f"that with method='{iteration}'; other methods take n times d of at most "
                f"{at_any_depth.SQUARING_SIZE}, or a causal A"
            ) from error
        return other, f"no closed form: {error}", by(other)
    # No token of an irreducible A needs more than y and c.
    if not small and problem.reach is None and states.errors().parts.max() <= usual:
        return method, reason, states
    errors = _worst(states)
    worst = float(errors.max())
    if worst <= limit:
        return method, reason, states
    uncertain = (
        f"{method} is uncertain here (estimated error {worst:.1e}: a mode that X_0 or a token "
        "lacks, a defective A or H, or a multiplier that vanishes)"
    )
    if small:
        wrong = (errors > limit).nonzero()[:, 0].tolist()
        return "balls", uncertain, put_in(states, at_any_depth.in_balls(asked, wrong), wrong)
    if took > (PATIENCE if other == "balls" else _AFFORDABLE):
        return method, reason, states
    again = by(other)
    if float(_worst(again).max()) < worst:
        return other, uncertain, again
    return method, f"{reason}; {other} is no more exact", states
