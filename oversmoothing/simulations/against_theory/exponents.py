"""The Lyapunov exponents of layers that change: gamma_C of consensus, gamma_Q of the rest (T7a).

For stationary ergodic layers log ||prod (I + sum_h H_h)|| / L -> gamma_C and, on the quotient,
log ||prod (Y -> Y + sum_h B_h Y W_h)|| / L -> gamma_Q. gamma_Q < gamma_C: HFC/LFC of generic X_0
decays like exp((gamma_Q - gamma_C) L). gamma_Q > gamma_C: it does not decay exponentially.

Each is the mean logarithm of what a layer does to the length of a vector that is carried along; the
spread of that mean over blocks of layers is its standard error. A second start tells how far the
first is from the leading direction.

`exponent_run` holds gamma_Q - gamma_C against the slope that HFC/LFC then has, over many layers of
an ensemble; where attention follows the state, of the layers as they came along the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oversmoothing.simulations.engine.errors import split_states
from oversmoothing.simulations.engine.evolve_heads import evolve_heads
from oversmoothing.simulations.engine.layers import (
    ATTENTION_STREAM,
    Drawn,
    Fixed,
    PerLayer,
    Rule,
    as_rule,
    head_attention,
    weights_at,
)
from oversmoothing.simulations.engine.state_attention import FromState, SoftmaxHeads
from oversmoothing.simulations.generators.attention import Causal, Softmax
from oversmoothing.simulations.state import SplitState, log_norm, scale
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.layer.layer import real_array
from oversmoothing.theory.spectra.heads import stacked
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

if TYPE_CHECKING:
    from oversmoothing.simulations.drawing.result import Result

_BLOCKS = 20


@dataclass(frozen=True)
class LyapunovExponents:
    """Top exponents measured over a number of layers, natural logarithm per layer.

    gamma_quotient: -inf for one token. gap = gamma_Q - gamma_C; gap_error: its standard error, from
    the means over blocks of layers (right where a block is longer than the correlations), and what
    the start may add where slow layers have not turned two of them into one direction.
    """

    layers: int
    gamma_consensus: float
    gamma_quotient: float
    gap: float
    gap_error: float


def lyapunov_exponents(
    *, attention: Any, weights: Any, layers: int, residual: bool = True, discard: int = 100
) -> LyapunovExponents:
    """Measure gamma_C and gamma_Q over `layers` layers (a multiple of 20).

    attention, weights: as for `evolve_heads`, but prescribed: attention that follows the state has
    no exponents of its own. The first `discard` layers turn the two vectors that are carried along
    into place and are not counted; a second pair shows in `gap_error` how well.
    Raises `InputError` on illegal input, and `DiesError`, which is one, where a vector dies.
    """
    return _exponents(*_carried(attention, weights, layers, residual, discard))


class DiesError(InputError):
    """A layer takes what is carried to exactly 0: there is no exponent."""


def _carried(
    attention: Any, weights: Any, layers: int, residual: bool, discard: int
) -> tuple[Array, float, int]:
    """The logarithms [layers, 2] of what each layer does to the lengths of the two vectors, how far
    two starts of each are apart after the discarded layers, and the numbers in the second."""
    if layers < _BLOCKS or layers % _BLOCKS:
        raise InputError(f"layers must be a positive multiple of {_BLOCKS}, not {layers}")
    if discard < 0:
        raise InputError("discard must be at least 0")
    A_rule, W_rule = as_rule(attention), as_rule(weights)
    rng, own = np.random.default_rng(0), float(residual)
    c, y = np.empty((0, 0)), np.empty((0, 0, 0))
    apart = 0.0
    logs: list[tuple[float, float]] = []
    for layer in range(discard + layers):
        W = weights_at(W_rule, layer).dense()
        asked = A_rule.at(layer, ATTENTION_STREAM)
        if isinstance(asked, FromState):
            raise InputError(
                "attention that follows the state has no Lyapunov exponents of its own: prescribe A"
            )
        A = head_attention(asked, len(W))
        if A.ndim != 3:
            raise InputError(
                f"A has shape {list(A.shape)}: exponents are of one stack, not a batch"
            )
        B = quotient(A)
        if layer == 0:
            shapes = (1, W.shape[-1]), (1, B.shape[-1], W.shape[-1])
            first, second = ([rng.standard_normal(x) for x in shapes] for _ in range(2))
            c, y = (np.concatenate(both) for both in zip(first, second, strict=True))
        if layer == discard:
            apart = _apart(c) + _apart(y)
            c, y = c[:1], y[:1]
        c, log_c = _unit(own * c + c @ W.sum(axis=0))
        log_y = -math.inf
        if y.size:
            y, log_y = _unit(own * y + (B[:, None] @ y @ W[:, None]).sum(axis=0))
        if layer >= discard:
            logs.append((log_c, log_y))
    return np.array(logs), apart, y.size


def _exponents(logs: Array, apart: float, size: int) -> LyapunovExponents:
    of_c, of_y = logs.T
    difference, error, layers = of_y - of_c, 0.0, len(logs)
    if size:
        blocks = difference.reshape(_BLOCKS, -1).mean(axis=1)
        error = float(blocks.std(ddof=1)) / math.sqrt(_BLOCKS)
        error = math.hypot(error, apart * _of_start(size, layers))
    consensus, moving, gap = (float(x.mean()) for x in (of_c, of_y, difference))
    return LyapunovExponents(layers, consensus, moving, gap, error)


def _unit(x: Array) -> tuple[Array, float]:
    """Each of x over its norm, and the logarithm of that of the first."""
    size = np.sqrt((x * x).sum(axis=tuple(range(1, x.ndim)), keepdims=True))
    if not size.all():
        raise DiesError("a layer takes a direction to exactly 0, whose exponent would be -inf")
    return x / size, math.log(size.flat[0])


def _apart(x: Array) -> float:
    """The distance of two directions, at most 1."""
    one, other = (each / (np.linalg.norm(each) or 1.0) for each in x)
    return min(1.0, *(float(np.linalg.norm(one - sign * other)) for sign in (1, -1)))


def _of_start(size: int, layers: int) -> float:
    """How far a slope over so many layers may be from its exponent, per layer.

    A norm and the leading direction of n d numbers differ by sqrt(n d) at most, and the start
    by e^-3 from what it has of that direction: (3 + log(n d)/2) over the layers measured.
    """
    return (_RARE + math.log(size) / 2) / layers


ENSEMBLES = ("iid", "switching", "causal", "following")
# A drawn start has rarely less than e^-3 of the direction that leads.
_RARE = 3.0
# Layers of a switching stack, and how often one is kept.
_KINDS, _STAYS = 4, 0.9
# The columns of the terminal.
SHOWN = ("name", "n", "d", "heads", "gamma_consensus", "gamma_quotient", "gap_error", "predicted",
         "measured", "hfc", "off", "error", "seconds")  # fmt: skip


MEANS = {
    "gamma_consensus": "mean growth of ln |equal tokens| a layer (top Lyapunov exponent)",
    "gamma_quotient": "the same of differences between tokens",
    "gap_error": "standard error of their difference, for other draws of these layers",
    "predicted": "slope of ln HFC/LFC: their difference, less what would take HFC beyond LFC",
    "measured": "that slope in the run, first tenth left out",
    "hfc": "slope of ln HFC in the run",
    "off": "the larger distance of the two slopes from what is predicted",
    "error": "how large off may be",
}


@dataclass(frozen=True)
class ExponentRun:
    """gamma_C, gamma_Q: top exponents, natural logarithm per layer, over the layers after the first
    tenth, which turns the vectors into place. gap_error: as in `LyapunovExponents`, of gamma_Q -
    gamma_C as an estimate for other draws of the ensemble. measured, hfc: the slopes of log HFC/LFC
    and log HFC from one tenth of the run to its end. predicted: of the first, gamma_Q - gamma_C
    less what these layers gain beyond HFC = LFC, where HFC drives the mean over tokens (T1f); as
    some ratios go further, all up to gamma_Q - gamma_C counts as predicted. seconds: of the
    processor, for all of it. error: how far a slope over nine tenths may be from its exponent.
    """

    name: str
    n: int
    d: int
    heads: int
    layers: int
    gamma_consensus: float
    gamma_quotient: float
    gap_error: float
    predicted: float
    measured: float
    hfc: float
    seconds: float
    error: float

    @property
    def off(self) -> float:
        """How far the measured slopes are from what is predicted, the larger of the two."""
        gap = self.gamma_quotient - self.gamma_consensus
        beyond = max(self.predicted - self.measured, self.measured - gap)
        return max(beyond, abs(self.hfc - self.gamma_quotient))

    @property
    def agrees(self) -> bool:
        return self.off < self.error


def ensemble(name: str, n: int, d: int, heads: int, scale: float, seed: int) -> tuple[Rule, Rule]:
    """Attention and weights by layer. Raises `InputError` for a name that is none."""
    if name not in ENSEMBLES:
        raise InputError(f"ensemble '{name}' is none of {', '.join(ENSEMBLES)}")
    kind = Causal if name == "causal" else Softmax

    def draw_A(rng: np.random.Generator) -> Array:
        return np.asarray(kind().draw(n, rng=rng, batch=(heads,)))

    def draw_W(rng: np.random.Generator) -> Array:
        return np.asarray(scale * rng.standard_normal((heads, d, d)) / math.sqrt(heads * d))

    if name == "following":
        rng = np.random.default_rng([seed, 11])
        W_Q, W_K = rng.standard_normal((2, heads, d, d)) / math.sqrt(d)
        return Fixed(FromState(W_Q, W_K, causal=True)), Drawn(draw_W, seed)
    if name == "switching":
        rng = np.random.default_rng([seed, 12])
        stacks = [(draw_A(rng), draw_W(rng)) for _ in range(_KINDS)]
        # Drawn once and for all, so that any layer can be asked for again.
        moves, kinds = rng.random(2**16) > _STAYS, rng.integers(_KINDS, size=2**16)
        chain = kinds[np.maximum.accumulate(np.where(moves, np.arange(2**16), 0))]

        def part_of(part: int) -> PerLayer:
            return PerLayer(lambda layer: stacks[chain[layer % 2**16]][part])

        return part_of(0), part_of(1)
    return Drawn(draw_A, seed), Drawn(draw_W, seed)


def exponent_run(
    name: str, attention: Rule, weights: Rule, X0: Array, layers: int, residual: bool = True
) -> ExponentRun:
    """Run the layers, take them as they came, and hold the exponents against the slopes.

    X0 [n, d], n >= 2; layers: a multiple of 200. Raises `InputError` on illegal input.
    """
    began = time.process_time()
    n, d = X0.shape
    if n < 2:
        raise InputError("one token has no differences whose slope could be measured: give 2")
    follows = isinstance(attention.at(0, 0), FromState)
    if layers < 200 or layers % 200:
        raise InputError(f"layers must be a positive multiple of 200, not {layers}")
    first = layers // 10
    depths = list(range(layers + 1)) if follows else [0, first, layers]
    run = evolve_heads(
        X0=X0, attention=attention, weights=weights, depth=depths, residual=residual, device="cpu"
    )
    taken: Rule = attention
    if follows:
        states, given = split_states(run.kept, slice(None)), attention.at(0, 0)
        taken = PerLayer(lambda layer: attention_at(states, layer, given))
    count = layers - first
    logs, apart, size = _carried(taken, weights, count, residual, first)
    rates = _exponents(logs, apart, size)
    ends = [run.state(k) for k in (depths.index(first), len(depths) - 1)]
    start, end = (float(log_hfc_lfc_ratio(x)) for x in ends)
    of_hfc = [float(log_norm(x.hfc, x.hfc_exponent, 2)) for x in ends]
    # The most that differences have gained on consensus, less what they lacked of it.
    gained = np.cumsum(logs[:, 1] - logs[:, 0]).max() + min(start, 0.0)
    return ExponentRun(
        name, n, d, weights_at(weights, 0).heads, layers, rates.gamma_consensus,
        rates.gamma_quotient, rates.gap_error, rates.gap - max(gained, 0.0) / count,
        (end - start) / count, (of_hfc[1] - of_hfc[0]) / count, time.process_time() - began,
        math.hypot(1, apart) * _of_start(n * d, count),
    )  # fmt: skip


def attention_at(states: SplitState, layer: int, given: FromState) -> Array:
    """A_h [heads, n, n] at one of the kept layers, batch [depths, 1]."""
    E, m = states.hfc[layer], states.mean[layer]
    heads, (n, d) = len(stacked(real_array(given.W_Q, "W_Q"))), E.shape[1:]
    softmax = SoftmaxHeads(given, heads, n, d, E.device, E.dtype)
    parts = softmax.deviation(E, states.hfc_exponent[layer], m, states.mean_exponent[layer])
    shared, D = (scale(*part, 3) for part in (parts.shared, parts.D))
    A = np.maximum((1.0 / n + shared + D)[0].numpy(), 0.0)
    # What a mask hides is 0, not what rounding left of it.
    A = np.tril(A) if given.causal else A
    return np.asarray(A / A.sum(-1, keepdims=True))


def exponents(made: Sequence[ExponentRun], asked: Mapping[str, Any]) -> Result:
    """What the runs compare, a row a run; asked: the configuration."""
    import pandas as pd

    from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured

    worst = max(made, key=lambda run: run.off / run.error)
    close = sum(run.agrees for run in made)
    says = (
        f"{close} of {len(made)} runs grow as predicted: over {worst.layers} layers the slopes of "
        "log HFC/LFC and log HFC are gamma_Q - gamma_C (less what would take HFC beyond LFC) and "
        f"gamma_Q. Furthest off: {worst.name}, by {worst.off:.1e} a layer, "
        f"{worst.error:.1e} allowed."
    )
    if close < len(made):
        says += " Run more layers (--depth): a slope that stays off is not due to the start."
    rows = pd.DataFrame([asdict(run) | {"off": run.off} for run in made])
    return Result(
        "exponents",
        "Lyapunov exponents (gamma_C of consensus, gamma_Q of differences) and slopes of runs",
        {"runs": Table(rows, {"seconds": "s"}, SHOWN, "{:.5f}", means=MEANS)},
        [Sentence(says, measured(len(made), of="run"))],
        asked,
    )
