"""What comes out at one point: the verdict of the theory and what the simulated state does.

`outcome` is a function of the point alone. Whatever goes wrong at a point is its outcome, as text.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oversmoothing.simulations.sweep.numpy_states import (
    cosine_extremes,
    dense,
    effective_rank,
    iterate,
)
from oversmoothing.simulations.sweep.points import Point, draw
from oversmoothing.theory.depth.closed_form import ScaledState, closed_form
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.spectra.heads import dense_quotient_radius, dense_radius, stacked
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.decide import compare_radii, limits_of_start
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of

# Rows of the dense quotient operator of several heads: 1024 take seconds, and the time is cubic.
OPERATOR_LIMIT = 1024

# Column -> type, beside the parameters. `measure` names the group; None is always computed.
OUTCOMES: dict[str, tuple[type, str | None]] = {
    "verdict": (str, None),
    "status": (str, None),
    "note": (str, None),
    "rho_consensus": (float, None),
    "rho_quotient": (float, None),
    "margin": (float, None),
    "margin_error": (float, None),
    "predicted_log_rate": (float, None),
    "log_hfc_lfc": (float, "ratio"),
    "slope": (float, "ratio"),
    "cos_mean": (float, "cosine"),
    "cos_min": (float, "cosine"),
    "effective_rank": (float, "rank"),
    "method": (str, "state"),
    "tends_to": (str, "limits"),
    "limit": (float, "limits"),
    "limit_rank": (int, "limits"),
}
_OF_A_STATE = ("ratio", "cosine", "rank")


def columns(measures: tuple[str, ...]) -> dict[str, type]:
    """Name -> type of the outcome columns for these measures.

    verdict: SMOOTHING, NON_SMOOTHING, TIE, TRIVIAL (n = 1) or UNDECIDED, where the margin is within
    its error. status: 'certified' for one head (proved for all that rounds to it), 'estimated' for
    several, 'numerical' where rounding decides, or 'error', and then `note` is the error and the
    rest is null.
    margin = rho_C - rho_Q and margin_error, how far rounding may have moved it. predicted_log_rate:
    log(rho_Q / rho_C). log_hfc_lfc: natural log at the point's depth L. slope: its change per layer
    from L // 2 to L. cos_mean, cos_min (signed, over pairs of tokens) and effective_rank of X_L.
    method: 'closed form' or 'iteration'. tends_to, limit, limit_rank: of HFC/LFC and X_L for this
    X_0 (T4), null where near-ties leave them open.
    """
    state = any(measure in _OF_A_STATE for measure in measures)
    return {
        name: kind
        for name, (kind, measure) in OUTCOMES.items()
        if measure is None or measure in measures or (measure == "state" and state)
    }


def outcome(point: Point, measures: tuple[str, ...]) -> dict[str, Any]:
    """Every column of `columns(measures)` at this point; an error is an outcome, as text."""
    names = columns(measures)
    try:
        # An overflow is an error of the point, not a line on stderr.
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            layer, X0 = draw(point)
            found = _verdict(layer)
            if any(measure in _OF_A_STATE for measure in measures):
                found |= _state(layer, X0, int(point["depth"]), measures)
            if "limits" in measures:
                found |= _limits(layer, X0)
    except MemoryError:
        raise  # of the machine, not of the point: the chunk is tried again by the next run
    except Exception as error:
        found = {"status": "error", "note": f"{type(error).__name__}: {error}"}
    return {name: found.get(name) for name in names}


# ------------------------------------------------------------------------------- the verdict


def _verdict(layer: Layer) -> dict[str, Any]:
    if layer.heads == 1:
        found = compare_radii(layer)
        rho_c, error = found.rho_consensus, found.error
        rho_q = found.rho_quotient
        name, status = found.outcome, found.status
        if layer.n == 1:
            return {"status": status, "verdict": Outcome.TRIVIAL, "rho_consensus": rho_c}
    else:
        # T7a for equal layers: spec(I + sum H_h) against spec(I + sum H_h (x) B_h).
        status = "estimated"
        W = layer.H.sum(axis=0)
        consensus = dense_radius(np.eye(len(W)) + W, "dense")
        rho_c = consensus.value or 0.0
        known = {"status": status, "rho_consensus": rho_c}
        B = quotient(layer.given["A"].floats)
        rows = B.shape[-1] * layer.d
        if rows > OPERATOR_LIMIT:
            return known | {
                "verdict": Outcome.UNDECIDED,
                "note": f"the quotient operator of several heads has {rows} rows, more than "
                f"{OPERATOR_LIMIT}",
            }
        if layer.n == 1:
            return known | {"verdict": Outcome.TRIVIAL}
        other = dense_quotient_radius(B, layer.H)
        rho_q, error = other.value or 0.0, consensus.error + other.error
        name = outcome_of(rho_c - rho_q - error, rho_c - rho_q + error)
    return {
        "status": status,
        "verdict": name,
        "rho_consensus": rho_c,
        "rho_quotient": rho_q,
        "margin": rho_c - rho_q,
        "margin_error": error,
        "predicted_log_rate": _log_ratio(rho_q, rho_c),
    }


def _log_ratio(rho_q: float, rho_c: float) -> float:
    if rho_c == 0:
        return math.inf
    return -math.inf if rho_q == 0 else math.log(rho_q / rho_c)


# ------------------------------------------------------------------------------ the measures


def _state(layer: Layer, X0: Array, depth: int, measures: tuple[str, ...]) -> dict[str, Any]:
    half = depth // 2
    (early, late), method = states_at(layer, X0, [half, depth])
    found: dict[str, Any] = {"method": method}
    if "ratio" in measures:
        first, last = early.log_hfc_lfc, late.log_hfc_lfc
        found["log_hfc_lfc"] = last
        # From inf to inf, or to an undefined ratio, there is no slope.
        finite = math.isfinite(first) and math.isfinite(last)
        found["slope"] = (last - first) / (depth - half) if finite else math.nan
    X = dense(late)
    if "cosine" in measures:
        found["cos_mean"], found["cos_min"] = cosine_extremes(X)
    if "rank" in measures:
        found["effective_rank"] = effective_rank(X)
    return found


def states_at(layer: Layer, X0: Array, depths: Sequence[int]) -> tuple[list[ScaledState], str]:
    """The states at increasing depths, and how they were found: 'closed form' or 'iteration'."""
    A, H = layer.given["A"].floats, layer.H
    if layer.heads == 1:
        try:
            found = closed_form(A=A, H=H, X0=X0, depths=depths)
        except InputError:
            pass  # defective or nearly so; the column `method` says that it was iterated
        else:
            return found, "closed form"
    return iterate(stacked(A), stacked(H), X0, depths), "iteration"


def _limits(layer: Layer, X0: Array) -> dict[str, Any]:
    """T4 for this X_0; no answer for several heads, whose modes do not factor."""
    if layer.heads > 1 or layer.n == 1:
        return {}
    compared = compare_radii(layer)
    found = limits_of_start(layer, Entries(X0, None), compared, compared.outcome).limits
    return {"tends_to": found.tends_to, "limit": found.limit, "limit_rank": found.limit_rank}
