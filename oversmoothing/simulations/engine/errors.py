"""What a method hands back, its states read as HFC, mean and tokens, and how exact they are (T1d).

How far rounding may have carried an iteration is its distance to twins: the same code on matrices
and a start that differ by a few units in the last place. What the layers make of these (a mode that
X_0 lacks comes in, a defective A splits) they also make of their own rounding. Each layer nudges
its state anew: where a state creeps, the roundings of its sum go to one side and add up. It costs a
run for each twin, and is taken only where somebody asks for the error. It is an estimate, no bound:
one by norms grows like (1 + ||B'|| ||W||)^L.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from oversmoothing.simulations.engine.problem import Asked, Exponents, Problem
from oversmoothing.simulations.state import (
    Scaled,
    SplitState,
    add,
    from_differences,
    join,
    log_norm,
    log_of_two_to,
    normalise,
)
from oversmoothing.theory.support.sizes import Array


@dataclass(frozen=True)
class Errors:
    """Estimated relative errors: of y and c [depths, N, 2], and of the tokens [depths, N, n] where
    these are known better."""

    parts: Float64[Tensor, "depths N 2"]
    rows: Float64[Tensor, "depths N n"] | None = None


def _unknown() -> Errors:
    raise AssertionError("an iteration's errors are those of its twins")


@dataclass(frozen=True)
class States:
    """states [depths, N, n, d]: the rows of y and then c; exponents [depths, N, 2] of the two.

    offset [N, n]: mean = c + offset^T HFC; 1/n - pi, or 0 where c is the mean itself. errors: what
    estimates their errors, asked for when needed: it may cost as much as the states. rows: the
    tokens [depths, N, n, d], each over a power of two of its own [depths, N, n], where they are
    known better than from y and c.
    """

    states: Float[Tensor, "depths N n d"]
    exponents: Int64[Tensor, "depths N 2"]
    offset: Float64[Tensor, "N n"]
    errors: Callable[[], Errors] = _unknown
    rows: Scaled | None = None


def start_of(
    problem: Problem, device: torch.device, dtype: torch.dtype
) -> tuple[Float[Tensor, "N n d"], Int64[Tensor, "N 2"]]:
    """(Z, exponents) of X_0: the rows of y and then c, [N, n, d], and their exponents [N, 2]."""
    Z, exponents = problem.start_rows
    return (
        torch.tensor(Z.reshape(problem.number, *Z.shape[-2:])).to(device, dtype).contiguous(),
        torch.tensor(exponents.reshape(problem.number, 2)).to(device),
    )


# States are read together as long as they hold at most this many numbers.
TOGETHER = 1 << 20
# What forming HFC, mean, norms and cosines from the parts may cost, in units of eps.
_READING = 8.0
_EPS = torch.finfo(torch.float64).eps
# e^700 is the end of the range.
_FAR = 700.0
# A part that is 0 is so exactly where its error says that it is known.
_KNOWN = 1e-3


def pieces(kept: States) -> list[slice]:
    """Ranges of the depths whose states are read together."""
    step = max(1, TOGETHER // max(1, kept.states[0].numel()))
    return [slice(first, first + step) for first in range(0, len(kept.states), step)]


def split_states(kept: States, which: slice) -> SplitState:
    """The split states of a range of depths, batch [depths, N]."""
    Z = kept.states[which].to(torch.float64)
    hfc_exponent, c_exponent = kept.exponents[which].unbind(-1)
    hfc = from_differences(Z[..., :-1, :])
    coupling = (kept.offset.unsqueeze(-2) @ hfc).squeeze(-2)
    mean, mean_exponent = add((Z[..., -1, :], c_exponent), (coupling, hfc_exponent), trailing=1)
    state = join(hfc, mean, hfc_exponent, mean_exponent)
    if kept.rows is None:
        return state
    values, exponents = kept.rows
    rows, row_exponent = normalise(values[which], 1, exponents[which])
    return replace(state, rows=rows, row_exponent=row_exponent)


def errors_of(
    kept: States,
) -> tuple[Float64[Tensor, "depths N"], Float64[Tensor, "depths N"], Float64[Tensor, "depths N n"]]:
    """Estimated relative errors of HFC, of the mean and of the tokens."""
    errors = kept.errors()
    each = [_errors_of(kept, errors, which) for which in pieces(kept)]
    hfc, mean, tokens = (torch.cat(parts) for parts in zip(*each, strict=True))
    return hfc, mean, tokens


def _errors_of(kept: States, errors: Errors, which: slice) -> tuple[Tensor, Tensor, Tensor]:
    of_y, of_c = errors.parts[which].to(torch.float64).unbind(-1)
    Z = kept.states[which].to(torch.float64).cpu()
    y_exponent, c_exponent = kept.exponents[which].cpu().unbind(-1)
    state = split_states(kept, which)
    n = Z.shape[-2]
    rounding = _READING * n * _EPS

    log_y = log_norm(Z[..., :-1, :], y_exponent, 2)
    log_c = log_norm(Z[..., -1, :], c_exponent, 1)
    log_hfc = log_norm(state.hfc.cpu(), state.hfc_exponent.cpu(), 2)
    log_mean = log_norm(state.mean.cpu(), state.mean_exponent.cpu(), 1)
    offset = kept.offset.cpu()
    coupling = torch.log(torch.linalg.vector_norm(offset, dim=-1))
    # pi is known to some eps, and 1/n - pi no better: unless it is 0, as for doubly stochastic A.
    of_offset = torch.linalg.vector_norm(1.0 / n - offset, dim=-1) * offset.any(-1)

    # Logarithms of absolute errors, then relative ones.
    of_hfc = torch.log(of_y + rounding) + log_y
    of_mean = torch.logaddexp(
        torch.log(of_c + rounding) + log_c, torch.log(of_y + rounding) + coupling + log_y
    )
    of_mean = torch.logaddexp(of_mean, torch.log(rounding * of_offset) + log_hfc)
    hfc = _relative(of_hfc, log_hfc, of_y)
    mean = _relative(of_mean, log_mean, torch.maximum(of_c, torch.where(offset.any(-1), of_y, 0.0)))
    if errors.rows is not None:
        tokens = errors.rows[which].to(torch.float64) + rounding
    else:
        whole = torch.logaddexp(of_hfc, of_mean).unsqueeze(-1)
        log_rows = log_norm(state.rows.cpu(), state.row_exponent.cpu(), 1)
        tokens = _relative(whole, log_rows, torch.maximum(of_y, of_c).unsqueeze(-1))
    return hfc, mean, tokens


def _relative(log_error: Tensor, log_size: Tensor, own: Tensor) -> Tensor:
    """error / size from logarithms; of what is 0, inf unless the parts that it comes from are 0 and
    known to be."""
    relative = torch.exp((log_error - log_size).clamp_max(_FAR)).nan_to_num(nan=torch.inf)
    relative = torch.where(log_error - log_size >= _FAR, torch.inf, relative)
    known = torch.isneginf(log_error) & (own < _KNOWN)
    return torch.where(torch.isneginf(log_size), torch.where(known, own, torch.inf), relative)


def put_in(whole: States, exact: States, places: list[int]) -> States:
    """`whole` with the elements `places` of the batch replaced by those of `exact`, in order.

    `exact` knows its tokens.
    """
    assert exact.rows is not None
    if len(places) == whole.states.shape[1]:
        return exact
    state = split_states(whole, slice(None))
    before, better = whole.errors(), exact.errors()
    assert better.rows is not None
    # (what is, what stands in its place), the batch in the second dimension.
    parts = [
        (state.rows, exact.rows[0]), (state.row_exponent, exact.rows[1]),
        (whole.states, exact.states), (whole.exponents, exact.exponents),
        (before.parts, better.parts), (errors_of(whole)[2], better.rows),
        (whole.offset[None], exact.offset[None]),
    ]  # fmt: skip
    rows, row_exponents, states, exponents, of_parts, of_rows, offset = (
        old.index_copy(1, torch.tensor(places, device=old.device), new) for old, new in parts
    )
    errors = Errors(of_parts, of_rows)
    return States(states, exponents, offset[0], lambda: errors, (rows, row_exponents))


# A product of m terms is off by some sqrt(m) units. Many more are taken, since few units are few
# different numbers: those of two entries would cancel too often.
_UNITS = 32.0
# Of the twins; each is a run.
SEEDS = (0, 1, 2)
# Beyond this distance nothing is known.
_UNKNOWN = 0.05
# A bound on the error below this is good enough.
_ENOUGH = 1e-9


class Nudge:
    """Relative changes of single entries, by between a quarter of `unit` and all of it: some units
    in the last place of this precision."""

    def __init__(self, seed: int | tuple[int, ...], dtype: torch.dtype) -> None:
        self._rng = np.random.default_rng(seed)
        self.unit = _UNITS * float(torch.finfo(dtype).eps)

    def draw(self, shape: tuple[int, ...]) -> Array:
        size = self._rng.uniform(0.25, 1.0, shape) * self._rng.choice((-1.0, 1.0), shape)
        return np.asarray(self.unit * size)

    def __call__(self, M: Array) -> Array:
        return M * (1.0 + self.draw(M.shape))

    def carry(self, like: Tensor) -> Tensor:
        """What multiplies a state in each layer: 1 + eps or 1 + 2 eps, all to one side."""
        units = torch.as_tensor(self._rng.integers(1, 3, like.shape)).to(like)
        return 1.0 + torch.finfo(like.dtype).eps * units


def carry_of(problem: Problem, like: Tensor) -> Tensor | None:
    """`Nudge.carry` of a twin."""
    return problem.nudge.carry(like) if isinstance(problem, Twin) else None


@dataclass(frozen=True)
class Twin(Problem):
    """`Problem` with its matrices and start a few units of `eps` away; zeros stay zeros."""

    original: Problem
    nudge: Nudge

    @cached_property
    def pi(self) -> Float64[Array, "*a n"]:
        pi, units = self.original.pi, _EPS / self.nudge.unit
        return pi * (1.0 + units * self.nudge.draw(pi.shape)) if self.original.offset.any() else pi

    @cached_property
    def quotient(self) -> Float64[Array, "*a n n"]:
        return self.nudge(self.original.quotient)

    @cached_property
    def start_rows(self) -> tuple[Array, Exponents]:
        Z, exponents = self.original.start_rows
        Z = self.nudge(Z)
        c, lost = Z[..., -1, :], np.broadcast_to(self.original.lost_in_c, self.batch)[..., None]
        size = np.linalg.norm(c, axis=-1, keepdims=True) * np.where(np.isfinite(lost), lost, 0.0)
        size = np.where(np.isfinite(lost), size, 1.0)
        c += np.where(lost > 1.0, size * _EPS, 0.0) * self.nudge.draw(c.shape) / self.nudge.unit
        return Z, exponents


def errors_by_twins(states: States, run: Callable[[Asked], States], asked: Asked) -> Errors:
    """The errors of `states`, which `run` made of what was asked."""

    def twin(seed: int) -> Asked:
        problem, nudge = asked.problem, Nudge(seed, asked.dtype)
        A = nudge(problem.A)
        W, P, Q = (None if M is None else nudge(M) for M in (problem.W, problem.P, problem.Q))
        X0 = nudge(problem.X0)
        nudged = Twin(A, W, P, Q, X0, problem.batch, problem.residual, problem, nudge)
        return asked._replace(problem=nudged)

    errors = distances(states, [run(twin(seed)) for seed in SEEDS], asked.dtype)
    if errors.rows is None:
        return errors
    return Errors(errors.parts, errors.rows.masked_fill(_underflown(states, asked), math.inf))


def errors_by_norms(states: States, asked: Asked) -> Errors | None:
    """For few layers a bound by norms is enough, and costs nothing: None where it says too little.

    A rounding made in one layer grows by at most 1 + ||B'|| ||W|| in each that follows.
    """
    problem, depths, _, dtype = asked
    lost = float(np.max(problem.lost_in_c))
    if states.rows is not None or not np.isfinite(lost):
        return None
    units = 2.0 * (problem.n + problem.d) * float(torch.finfo(dtype).eps)
    L = torch.tensor(depths, dtype=torch.float64)[:, None, None]
    grown = torch.log(units * lost * (L + 1.0)) + L * math.log1p(problem.norm)
    Z, exponents = (torch.as_tensor(x) for x in problem.start_rows)
    Z, exponents = Z.reshape(1, -1, *Z.shape[-2:]), exponents.reshape(1, -1, 2)
    start = States(Z, exponents, states.offset)
    sizes = _log_parts(states).cpu()
    error = (grown + _log_parts(start) - sizes).exp()
    return Errors(error) if float(error.max()) <= _ENOUGH else None


def with_cancellation(errors: Errors, states: States, start: States, dtype: torch.dtype) -> Errors:
    """The errors of parts that are what larger ones leave: eps times their ratio at least.

    Every state is the start plus something, tokens included. Twins that cancel to the same last bit
    do not show it.
    """
    unit = Nudge(0, dtype).unit
    y, c, *rows = (
        _lost(log_norm(*first) - log_norm(*own), unit)
        for first, own in zip(_parts(start), _parts(states), strict=True)
    )
    of_rows = None if errors.rows is None else torch.maximum(errors.rows, rows[0])
    return Errors(torch.maximum(errors.parts, torch.stack((y, c), dim=-1)), of_rows)


def _lost(log_ratio: Tensor, eps: float) -> Tensor:
    lost = log_ratio.nan_to_num(nan=0.0).clamp_max(_FAR).exp() * eps
    return torch.where(lost > _UNKNOWN, torch.inf, lost).cpu()


def _underflown(states: States, asked: Asked) -> Tensor:
    """[depths, N, n]: whether a token is so far below those that feed it that it may have lost
    what reached it. Twins lose that too. Where no product of entries is so small, a 0 is one."""
    problem, cpu = asked.problem, torch.device("cpu")
    assert states.rows is not None and problem.reach is not None
    deep = 0.93 * math.log(torch.finfo(asked.dtype).tiny)
    size, reach = log_norm(*states.rows, 1).cpu(), problem.flat(problem.reach, 2, cpu)
    feeding = torch.where(reach, size.unsqueeze(-2), -torch.inf).amax(-1)
    A, X0, *W = (
        np.log(np.abs(M[M != 0]))
        for M in (problem.A, problem.X0, problem.W, problem.P, problem.Q)
        if M is not None
    )
    least = sum(float(M.min(initial=0.0)) for M in (A, *W)) * problem.n
    if least + float(X0.min(initial=0.0) - X0.max(initial=0.0)) >= deep:
        return (size < feeding + deep) & size.isfinite()
    started = problem.flat(problem.X0, 2, cpu).any(-1)
    return (size < feeding + deep) | (size.isneginf() & (reach & started.unsqueeze(-2)).any(-1))


def _parts(states: States) -> list[tuple[Tensor, Tensor, int]]:
    """y, c and the known tokens: values, exponents, how many dimensions share one."""
    Z, (y, c) = states.states, states.exponents.unbind(-1)
    parts = [(Z[..., :-1, :], y, 2), (Z[..., -1, :], c, 1)]
    return parts if states.rows is None else [*parts, (*states.rows, 1)]


def _log_parts(states: States) -> Tensor:
    """log |y| and log |c|, [depths, N, 2]."""
    return torch.stack([log_norm(*part) for part in _parts(states)[:2]], dim=-1)


def distances(states: States, twins: list[States], dtype: torch.dtype) -> Errors:
    """Relative distances of a run in this precision to its twins, as errors."""
    each = [map(_distance, _parts(states), _parts(twin)) for twin in twins]
    eps = float(torch.finfo(dtype).eps)
    y, c, *rows = (_as_error(list(of_part), eps) for of_part in zip(*each, strict=True))
    return Errors(torch.stack((y, c), dim=-1), rows[0] if rows else None)


def _distance(own: tuple[Tensor, Tensor, int], other: tuple[Tensor, Tensor, int]) -> Tensor:
    """|a - b| / |a| of two of `_parts`; 0 where both are 0, inf where one is."""
    (a, a_exponent, trailing), (b, b_exponent, _) = own, other
    a, b = a.to(torch.float64), b.to(torch.float64)
    difference, exponent = add((a, a_exponent), (-b, b_exponent), trailing=trailing)
    dims = tuple(range(-trailing, 0))
    top = torch.linalg.vector_norm(difference, dim=dims)
    size = torch.linalg.vector_norm(a, dim=dims)
    log = torch.log(top) - torch.log(size) + log_of_two_to(exponent - a_exponent)
    return torch.where(top == 0, 0.0, torch.where(size == 0, torch.inf, log.clamp_max(_FAR).exp()))


def _as_error(estimates: list[Tensor], eps: float) -> Tensor:
    worst = torch.stack(estimates).amax(0).nan_to_num(nan=torch.inf)
    return torch.where(worst > _UNKNOWN, torch.inf, worst).clamp_min(eps).cpu()


def nudged(Z: Tensor, seed: int) -> Tensor:
    """The start of a twin."""
    units = Nudge(seed, Z.dtype).draw(tuple(Z.shape))
    return Z * (1.0 + torch.as_tensor(units)).to(Z.device, torch.float64).to(Z.dtype)
