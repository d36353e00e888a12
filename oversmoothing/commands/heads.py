"""`heads`: one run of many heads and changing layers, and what the theory says of it (T7, T9)."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.simulations.against_theory.simulate import DTYPES, log_spaced_depths
from oversmoothing.simulations.engine.inputs import choose_device
from oversmoothing.simulations.generators.attention import softmax_attention
from oversmoothing.simulations.heads.evolve_heads import Drawn, Fixed, FromState, evolve_heads
from oversmoothing.simulations.heads.layers import ATTENTION_STREAM, WEIGHT_STREAM
from oversmoothing.simulations.heads.lyapunov import lyapunov_exponents
from oversmoothing.theory.spectra.heads_spectrum import heads_verdict
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_number, output_folder, to_json, write_atomically
from oversmoothing.theory.support.provenance import provenance

SCHEMA_VERSION = 1

_PRINTED_ROWS = 9
_EXPONENT_LAYERS = 2000


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `heads`."""
    add = parser.add_argument
    add("--heads", type=int, default=4, help="number of heads (default %(default)s)")
    add("--n", type=int, default=16, help="tokens (default %(default)s)")
    add("--d", type=int, default=16, help="features (default %(default)s)")
    add("--rank", type=int, help="of a head's W_V W_O (default d / heads, at least 1)")
    add(
        "--attention",
        choices=("fixed", "drawn", "state"),
        default="fixed",
        help="the same A in every layer, drawn for each, or computed from X (default %(default)s)",
    )
    add(
        "--weights",
        choices=("fixed", "drawn"),
        default="fixed",
        help="the same W_V, W_O in every layer, or drawn for each (default %(default)s)",
    )
    add("--scale", type=float, default=1.0, help="size of sum_h W_h (default %(default)s)")
    add("--temperature", type=float, default=1.0, help="of the softmax; low is sharp")
    add("--causal", action="store_true", help="token i sees the tokens up to i")
    add("--no-residual", action="store_true", help="X' = sum_h A_h X W_h")
    add("--depth", type=int, default=1000, help="layers (default %(default)s)")
    add("--points", type=int, default=60, help="log-spaced layers measured")
    add("--dtype", choices=list(DTYPES), default="float64", help="precision of the iteration")
    add("--seed", type=int, default=0)
    add("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")
    add("--out", default="results", metavar="DIR", help="folder for heads.csv and heads.json")


def run(arguments: Namespace) -> int:
    """Run `heads`. Raises `InputError` for options that do not fit."""
    a = arguments
    folder = output_folder(a.out)
    choose_device(a.device)
    depths = log_spaced_depths(a.depth, a.points)
    residual = not a.no_residual
    attention, weights = _stack(a)
    X0 = np.random.default_rng([a.seed, 2]).standard_normal((a.n, a.d))
    trajectory = evolve_heads(
        X0=X0.astype(a.dtype),
        attention=attention,
        weights=weights,
        depth=depths,
        residual=residual,
        device=a.device,
        progress=True,
    )
    table = trajectory.metrics()
    words, record = _theory(attention, weights, residual)
    csv = write_atomically(folder / "heads.csv", table.to_csv(index=False))
    json = write_atomically(
        folder / "heads.json",
        to_json(
            {
                "schema_version": SCHEMA_VERSION,
                "configuration": {
                    key: value for key, value in vars(a).items() if key in _configuration_keys()
                },
                "device": str(choose_device(a.device)),
                "theory": record,
                **provenance(),
            }
        ),
    )
    print(_short(table))
    print(words)
    print(f"wrote {csv} and {json}")
    return 0


def _configuration_keys() -> set[str]:
    parser = ArgumentParser(add_help=False)
    add_arguments(parser)
    return {action.dest for action in parser._actions} - {"out", "device"}


def _stack(a: Namespace) -> tuple[Fixed | Drawn, Fixed | Drawn]:
    """Attention and weights by layer. Raises `InputError` for sizes that do not fit."""
    rank = max(1, a.d // a.heads) if a.rank is None and a.heads > 0 else a.rank
    if min(a.heads, a.n, a.d) < 1 or rank is None or not 1 <= rank <= a.d:
        raise InputError(
            f"heads, n, d must be at least 1 and rank between 1 and d = {a.d}, not "
            f"{a.heads}, {a.n}, {a.d} and {rank}"
        )
    if a.seed < 0 or a.scale < 0 or not (a.temperature > 0 and math.isfinite(a.temperature)):
        raise InputError("seed and scale must be >= 0, the temperature a positive number")
    heads, n, d = a.heads, a.n, a.d
    size = math.sqrt(a.scale)

    def draw_A(rng: np.random.Generator) -> NDArray[np.float64]:
        return softmax_attention(
            n, rng=rng, temperature=a.temperature, batch=(heads,), causal=a.causal
        )

    def draw_from_state(rng: np.random.Generator) -> FromState:
        W_Q, W_K = rng.standard_normal((2, heads, d, rank)) / math.sqrt(d)
        return FromState(W_Q / a.temperature, W_K, causal=a.causal)

    def draw_W(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # sum_h W_h then has entries of variance scale^2 / d, whatever heads and rank.
        W_V = size * rng.standard_normal((heads, d, rank)) / math.sqrt(d)
        W_O = size * rng.standard_normal((heads, rank, d)) / math.sqrt(heads * rank)
        return W_V, W_O

    def by_layer(rule: Callable[[np.random.Generator], Any], stream: int, drawn: bool) -> Any:
        every = Drawn(rule, a.seed)
        return every if drawn else Fixed(every.at(0, stream))

    follows = a.attention == "state"
    return (
        by_layer(draw_from_state if follows else draw_A, ATTENTION_STREAM, a.attention == "drawn"),
        by_layer(draw_W, WEIGHT_STREAM, a.weights == "drawn"),
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
    words = (
        f"gamma_Q - gamma_C = {exponents.gap:.5f} +- {exponents.gap_error:.5f} a layer over "
        f"{exponents.layers} layers: HFC/LFC "
        + (
            "decays at that rate"
            if exponents.gap < -3 * exponents.gap_error
            else "does not decay exponentially"
            if exponents.gap > 3 * exponents.gap_error
            else "is UNDECIDED within three standard errors"
        )
        + " (T7a)."
    )
    return words, {
        "kind": "exponents",
        "gamma_consensus": json_number(exponents.gamma_consensus),
        "gamma_quotient": json_number(exponents.gamma_quotient),
        "gap": json_number(exponents.gap),
        "gap_error": json_number(exponents.gap_error),
        "layers": exponents.layers,
    }


def _short(table: pd.DataFrame) -> str:
    step = max(1, math.ceil((len(table) - 1) / (_PRINTED_ROWS - 1)))
    rows = sorted({*range(0, len(table), step), len(table) - 1})
    short = pd.DataFrame(
        {
            "layer": table["depth"],
            "log10 HFC/LFC": table["log_hfc_lfc"] / math.log(10.0),
            "cos mean": table["cos_mean"],
            "cos min": table["cos_min"],
            "eff. rank": table["effective_rank"],
        }
    ).iloc[rows]
    return short.to_string(index=False, float_format=lambda x: f"{x:.6g}", na_rep="-") + "\n"
