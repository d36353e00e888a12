"""gamma_Q - gamma_C by QR beside the slope that HFC/LFC then has, over many layers (T7a).

Ensembles of changing layers: drawn independently for each layer, switching between a few by a
Markov chain, causal, and attention computed from the state, whose layers are taken as they came
along the run. No matrix of side n d is formed.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from oversmoothing.simulations.engine.trajectory import Trajectory
from oversmoothing.simulations.generators.attention import Causal, Softmax
from oversmoothing.simulations.heads.evolve_heads import evolve_heads
from oversmoothing.simulations.heads.layers import (
    Drawn,
    Fixed,
    FromState,
    PerLayer,
    Rule,
    weights_at,
)
from oversmoothing.simulations.heads.lyapunov import lyapunov_exponents
from oversmoothing.simulations.state import SplitState
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

ENSEMBLES = ("iid", "switching", "causal", "following")
# What counts as agreement, per layer.
AGREES = 1e-3
# Layers of a switching stack, and how often one is kept.
_KINDS, _STAYS = 4, 0.9
# Logits beyond this are as good as masked ones.
_FAR = 1e290


@dataclass(frozen=True)
class ExponentRun:
    """gamma_C, gamma_Q: top exponents, natural logarithm per layer, by QR over the layers after the
    first tenth, which turns the frames into place. gap_error: the standard error of gamma_Q -
    gamma_C as an estimate for other draws of the ensemble. predicted: of the slope of log HFC/LFC:
    gamma_Q - gamma_C, at most 0 where the mean over tokens is driven by HFC (T1f). measured, hfc:
    the slopes of log HFC/LFC and log HFC from one tenth of the run to its end. seconds: of the
    processor, for all of it.
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

    @property
    def gap(self) -> float:
        """gamma_Q - gamma_C."""
        return self.gamma_quotient - self.gamma_consensus

    @property
    def off(self) -> float:
        """How far the measured slopes are from what is predicted, the larger of the two."""
        return max(abs(self.measured - self.predicted), abs(self.hfc - self.gamma_quotient))


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
        places = np.maximum.accumulate(np.where(moves, np.arange(2**16), 0))
        chain = kinds[places]

        def part_of(part: int) -> PerLayer:
            return PerLayer(lambda layer: stacks[chain[layer % 2**16]][part])

        return part_of(0), part_of(1)
    return Drawn(draw_A, seed), Drawn(draw_W, seed)


def exponent_run(
    name: str, attention: Rule, weights: Rule, X0: Array, layers: int, residual: bool = True
) -> ExponentRun:
    """Run the layers, take them as they came, and hold the exponents against the slopes.

    X0 [n, d]; layers: a multiple of 200. Raises `InputError` on illegal input.
    """
    began = time.process_time()
    n, d = X0.shape
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
        given = attention.at(0, 0)
        taken = PerLayer(lambda layer: attention_at(run, layer, given))
    found = lyapunov_exponents(
        attention=taken, weights=weights, layers=layers - first, residual=residual, discard=first
    )
    ends = [run.state(k) for k in (depths.index(first), len(depths) - 1)]
    log_hfc = [_log_hfc(state) for state in ends]
    ratio = [float(log_hfc_lfc_ratio(state)) for state in ends]
    span = layers - first
    measured = (ratio[1] - ratio[0]) / span
    gap = found.gap
    heads = weights_at(weights, 0).heads
    return ExponentRun(
        name, n, d, heads, layers, found.gamma_consensus, found.gamma_quotient, found.gap_error,
        min(gap, 0.0), measured, (log_hfc[1] - log_hfc[0]) / span, time.process_time() - began,
    )  # fmt: skip


def _log_hfc(state: SplitState) -> float:
    norm = float(state.hfc.norm())
    return math.log(norm) + float(state.hfc_exponent) * math.log(2.0) if norm else -math.inf


def attention_at(run: Trajectory, layer: int, given: FromState) -> Array:
    """A_h [heads, n, n] at a kept layer: softmax of x_i M_h (x_j - mean)^T / sqrt(r) by rows.

    A constant along a row leaves its softmax, so that logits of a small spread around a large mean
    keep their digits.
    """
    state = run.state(layer)
    E, m = state.hfc.numpy(), state.mean.numpy()
    e, k = int(state.hfc_exponent), int(state.mean_exponent)
    W_Q, W_K = (np.asarray(M, dtype=np.float64) for M in (given.W_Q, given.W_K))
    if W_Q.ndim == 2:
        W_Q, W_K = W_Q[None], W_K[None]
    r = W_Q.shape[-1]
    M = W_Q @ np.swapaxes(W_K, -1, -2) / math.sqrt(r)
    moved = M @ E.T  # [heads, d, n]
    logits = _times(E @ moved, 2 * e) + _times(m @ moved, e + k)[:, None, :]
    if given.bias is not None:
        logits = logits + np.asarray(given.bias)
    if given.causal:
        logits = np.where(np.tri(len(E), dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def _times(x: Array, exponent: int) -> Array:
    """x 2^exponent within the range in which differences of logits are finite."""
    return np.asarray(np.clip(np.ldexp(x, np.clip(exponent, -2000, 960)), -_FAR, _FAR))


def words(found: list[ExponentRun]) -> str:
    """What was compared, and the largest difference."""
    worst = max(found, key=lambda run: run.off)
    close = sum(run.off < AGREES for run in found)
    return (
        f"Slopes of log HFC/LFC and log HFC over {worst.layers} layers against gamma_Q - gamma_C "
        f"(at most 0) and gamma_Q of the same layers by QR: {close} of {len(found)} agree to "
        f"{AGREES:g}, the largest difference is {worst.off:.1e} ({worst.name})."
    )
