"""One simulated run beside what the theory predicts for it (T1-T5): the table of `simulate`."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch

from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.options import choose
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION, LowRank
from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.verdict import verdict

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Configuration:
    """What one run is made of; the same configuration gives the same table on the same machine.

    attention, value: names in ATTENTION and VALUE_PROJECTION; attention_options, value_options:
    further keywords of these generators. n tokens, d features, depth in layers, points: about how
    many log-spaced layers are measured.
    """

    attention: str = "softmax"
    value: str = "ginibre"
    n: int = 32
    d: int = 16
    depth: int = 1000
    temperature: float = 1.0
    dtype: str = "float64"
    seed: int = 0
    points: int = 60
    attention_options: dict[str, Any] = field(default_factory=dict)
    value_options: dict[str, Any] = field(default_factory=dict)

    def to_json_object(self) -> dict[str, Any]:
        """The fields; complex eigenvalues as strings."""
        result = asdict(self)
        options = result["value_options"]
        if "eigenvalues" in options:
            options["eigenvalues"] = [f"{h:g}" for h in options["eigenvalues"]]
        return result


@dataclass(frozen=True)
class Simulation:
    """The table of one run and the verdict on its matrices.

    table: one row for each measured layer with every metric and the columns
    predicted_log_hfc_lfc (closed form; NaN where there is none, see closed_form_note),
    log_rate (log r = log rho_Q / rho_C, the asymptotic slope per layer of a smoothing run),
    predicted_limit (of HFC/LFC; NaN where it has none or depends on more than this).
    """

    table: pd.DataFrame
    verdict: Verdict
    closed_form_note: str | None

    @property
    def largest_error(self) -> float | None:
        """max |log HFC/LFC measured - predicted| over the layers where both are finite."""
        measured, predicted = self.table["log_hfc_lfc"], self.table["predicted_log_hfc_lfc"]
        both = np.isfinite(measured) & np.isfinite(predicted)
        return float((measured - predicted)[both].abs().max()) if both.any() else None


def log_spaced_depths(depth: int, points: int) -> list[int]:
    """0 and at most `points` layers from 1 to `depth`, evenly spaced in the logarithm."""
    if depth < 0 or points < 2:
        raise InputError(f"depth must be >= 0 and points >= 2, not {depth} and {points}")
    if depth == 0:
        return [0]
    spaced = np.rint(np.geomspace(1, depth, points)).astype(np.int64)
    return [0, *(int(layer) for layer in np.unique(spaced))]


def simulate(
    configuration: Configuration, *, device: str = "auto", progress: bool = False
) -> Simulation:
    """Draw A, H and X_0 (entries N(0, 1)) from the seed, run them and predict them.

    Raises `InputError` for unknown names, options the generator does not have and illegal values.
    """
    c = configuration
    depths = log_spaced_depths(c.depth, c.points)
    if c.dtype not in DTYPES:
        raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not '{c.dtype}'")
    if c.n < 1 or c.d < 1:
        raise InputError(f"n and d must be at least 1, not {c.n} and {c.d}")
    if c.seed < 0:
        raise InputError(f"the seed must be >= 0, not {c.seed}")
    # A stream for each: another attention leaves H and X_0 as they were.
    for_A, for_H, for_X0 = np.random.default_rng(c.seed).spawn(3)
    attention = choose(
        "attention", ATTENTION, c.attention, {"temperature": c.temperature, **c.attention_options}
    )
    A = attention.draw(c.n, rng=for_A)
    value = choose("value", VALUE_PROJECTION, c.value, c.value_options)
    W: Any = None
    if isinstance(value, LowRank):
        # The factors tell the verdict that d - r eigenvalues are exactly 0.
        W = value.factors(c.d, rng=for_H)
        H = (W[0] @ W[1]).T
    else:
        H = value.draw(c.d, rng=for_H)
    X0 = for_X0.standard_normal((c.n, c.d))

    # In float32 the run is of the rounded X_0; so is the prediction.
    X0 = X0.astype(c.dtype).astype(np.float64)
    trajectory = evolve(
        X0=X0,
        A=A,
        H=H,
        depth=depths,
        method="plain",
        dtype=DTYPES[c.dtype],
        device=device,
        progress=progress,
    )
    table = trajectory.metrics()
    found = verdict(A=A, H=None if W is not None else H, W=W, X0=X0)
    note = None
    try:
        states = closed_form(A=A, H=H, X0=X0, depths=depths)
        table["predicted_log_hfc_lfc"] = [state.log_hfc_lfc for state in states]
    except InputError as error:
        # Without a well-conditioned eigenbasis there is none.
        table["predicted_log_hfc_lfc"], note = math.nan, str(error)
    rate = found.rate
    table["log_rate"] = math.nan if rate is None else math.log(rate) if rate else -math.inf
    table["predicted_limit"] = math.nan if found.limit is None else found.limit
    return Simulation(table, found, note)


def words(result: Simulation) -> str:
    """Prediction against measurement, and the verdict."""
    lines = [f"{result.verdict.verdict} ({result.verdict.status}): {result.verdict.reason}"]
    if result.closed_form_note is not None:
        lines.insert(0, f"no closed form: {result.closed_form_note}")
    elif result.largest_error is not None:
        error = f"{result.largest_error:.2e} (natural log)"
        lines.insert(0, f"largest |log HFC/LFC measured - predicted|: {error}")
    return "\n".join(lines)
