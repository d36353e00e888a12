"""One run of many heads and changing layers, and what the theory says of it (T7, T9)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.simulations.against_theory.simulate import DTYPES, log_spaced_depths
from oversmoothing.simulations.generators.attention import Causal, Softmax
from oversmoothing.simulations.heads.evolve_heads import Drawn, Fixed, FromState, evolve_heads
from oversmoothing.simulations.heads.layers import ATTENTION_STREAM, WEIGHT_STREAM
from oversmoothing.simulations.heads.lyapunov import lyapunov_exponents
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_number
from oversmoothing.theory.verdict.verdict import heads_verdict

_EXPONENT_LAYERS = 2000


@dataclass(frozen=True)
class HeadsConfiguration:
    """What one run of a stack is made of.

    attention: 'fixed' (one A for all layers), 'drawn' (for each) or 'state' (computed from X);
    weights: 'fixed' or 'drawn'. n tokens, d features, rank of a head's W_V W_O (None: d / heads, at
    least 1); scale of sum_h W_h. points: about how many log-spaced layers are measured.
    """

    heads: int = 4
    n: int = 16
    d: int = 16
    rank: int | None = None
    attention: str = "fixed"
    weights: str = "fixed"
    scale: float = 1.0
    temperature: float = 1.0
    causal: bool = False
    no_residual: bool = False
    depth: int = 1000
    points: int = 60
    dtype: str = "float64"
    seed: int = 0

    def __post_init__(self) -> None:
        rank = self.head_rank
        if min(self.heads, self.n, self.d) < 1 or not 1 <= rank <= self.d:
            raise InputError(
                f"heads, n, d must be at least 1 and rank between 1 and d = {self.d}, not "
                f"{self.heads}, {self.n}, {self.d} and {rank}"
            )
        positive = self.temperature > 0 and math.isfinite(self.temperature)
        if self.seed < 0 or self.scale < 0 or not positive:
            raise InputError("seed and scale must be >= 0, the temperature a positive number")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not '{self.dtype}'")

    @property
    def head_rank(self) -> int:
        """The rank of one head."""
        return max(1, self.d // max(1, self.heads)) if self.rank is None else self.rank


def simulate_heads(
    configuration: HeadsConfiguration, *, device: str = "auto", progress: bool = False
) -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """The metrics by layer, what the theory says in words, and the same as a JSON object.

    Raises `InputError` for depths that are none.
    """
    c = configuration
    depths = log_spaced_depths(c.depth, c.points)
    attention, weights = _stack(c)
    X0 = np.random.default_rng([c.seed, 2]).standard_normal((c.n, c.d))
    trajectory = evolve_heads(
        X0=X0.astype(c.dtype),
        attention=attention,
        weights=weights,
        depth=depths,
        residual=not c.no_residual,
        device=device,
        progress=progress,
    )
    return trajectory.metrics(), *_theory(attention, weights, not c.no_residual)


def _stack(c: HeadsConfiguration) -> tuple[Fixed | Drawn, Fixed | Drawn]:
    """Attention and weights by layer."""
    heads, n, d, rank = c.heads, c.n, c.d, c.head_rank
    size = math.sqrt(c.scale)

    def draw_A(rng: np.random.Generator) -> NDArray[np.float64]:
        kind = Causal if c.causal else Softmax
        return kind(temperature=c.temperature).draw(n, rng=rng, batch=(heads,))

    def draw_from_state(rng: np.random.Generator) -> FromState:
        W_Q, W_K = rng.standard_normal((2, heads, d, rank)) / math.sqrt(d)
        return FromState(W_Q / c.temperature, W_K, causal=c.causal)

    def draw_W(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # sum_h W_h then has entries of variance scale^2 / d, whatever heads and rank.
        W_V = size * rng.standard_normal((heads, d, rank)) / math.sqrt(d)
        W_O = size * rng.standard_normal((heads, rank, d)) / math.sqrt(heads * rank)
        return W_V, W_O

    def by_layer(rule: Callable[[np.random.Generator], Any], stream: int, drawn: bool) -> Any:
        every = Drawn(rule, c.seed)
        return every if drawn else Fixed(every.at(0, stream))

    follows = c.attention == "state"
    return (
        by_layer(draw_from_state if follows else draw_A, ATTENTION_STREAM, c.attention == "drawn"),
        by_layer(draw_W, WEIGHT_STREAM, c.weights == "drawn"),
    )


def _theory(attention: Any, weights: Any, residual: bool) -> tuple[str, dict[str, Any]]:
    """What is known of this stack: a verdict, exponents, or why neither."""
    first = attention.at(0, ATTENTION_STREAM)
    if isinstance(first, FromState):
        return "attention follows the state: no verdict for every depth (T8).", {"kind": "none"}
    if isinstance(attention, Fixed) and isinstance(weights, Fixed):
        found = heads_verdict(A=first, W=weights.value, residual=residual)
        return (
            f"{found.verdict} ({found.status}): {found.reason}",
            {"kind": "verdict", **found.to_json_object()},
        )
    exponents = lyapunov_exponents(
        attention=attention, weights=weights, layers=_EXPONENT_LAYERS, residual=residual
    )
    gap, error = exponents.gap, exponents.gap_error
    does = "is UNDECIDED within three standard errors"
    if abs(gap) > 3 * error:
        does = "decays at that rate" if gap < 0 else "does not decay exponentially"
    words = (
        f"gamma_Q - gamma_C = {gap:.5f} +- {error:.5f} a layer over {exponents.layers} layers: "
        f"HFC/LFC {does} (T7a)."
    )
    return words, {
        "kind": "exponents",
        "gamma_consensus": json_number(exponents.gamma_consensus),
        "gamma_quotient": json_number(exponents.gamma_quotient),
        "gap": json_number(gap),
        "gap_error": json_number(error),
        "layers": exponents.layers,
    }


def predicted_rate(theory: dict[str, Any]) -> float | None:
    """The slope of log HFC/LFC per layer that the theory of `simulate_heads` tells, if any."""
    if theory["kind"] == "exponents":
        gap, error = theory["gap"], theory["gap_error"]
        told = isinstance(gap, float) and abs(gap) > 3 * error
        return gap if told else None
    rate = theory.get("rate")
    return math.log(rate) if isinstance(rate, float) and rate > 0 else None
