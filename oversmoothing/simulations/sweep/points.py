"""The points of a sweep: their seeds, their layers, and what comes out at each of them.

A point is the parameters that matter to it. Its seed is a hash of these alone, so that neither
other points, nor the order, nor the workers can change what is drawn for it. Heads are drawn
independently (T7: X' = X + sum A_h X W_h), H_h over the number of heads. X_0 has entries N(0, 1).
`outcome` is a function of the point alone. Whatever goes wrong at a point is its outcome, as text.

States are iterated and measured in numpy: the workers of a sweep start without torch. Iterated are
Y = Q^T X and c = pi^T X, each with its own power of two, since HFC and LFC part by more than the
range of a float (T1c-d, T11.9):
    Y' = Y + sum_h B_h Y W_h   and   c' = c + sum_h (c + pi^T (A_h - I) HFC) W_h.
One head: pi is its Perron vector, the second system is autonomous, and the mean is recovered at the
end. Several heads have no common one: pi = 1/n, and c is the mean. Small operators are squared
(`heads_together`), so that a thousand layers take ten products.

The metrics are right to eps, absolutely, which is all that a column needs; what is relatively
accurate near collapse is `simulations.state_metrics`. What layers make of rounding is not estimated
(`columns`).
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.options import Generator, choose
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION, LowRank
from oversmoothing.simulations.sweep.config import PARAMETERS, SCHEMA_VERSION, Config, Value
from oversmoothing.simulations.sweep.heads_together import Powers, scaled_sum
from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.depth.ratios import iterated
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.numbers.rounding import ScaledState
from oversmoothing.theory.spectra.heads import consensus_block, layer_of_heads, stacked
from oversmoothing.theory.spectra.heads_radius import dense_radius, quotient_radius
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.decide import compare_radii
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of

Point = dict[str, Value]


def entropy_of(point: Point) -> int:
    """What seeds a point, 256 bits: SHA-256 of it, written canonically."""
    text = json.dumps([SCHEMA_VERSION, sorted(point.items())], allow_nan=False)
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


class Points:
    """The sequence of points of a configuration, made on demand: index -> Point.

    The product of the axes, the last one fastest, without the repetitions that arise where an axis
    does not matter to a kind of A or H (radius to an interval, say).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._kept = self._distinct()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Point]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: int) -> Point:
        point = dict(self.config.fixed)
        place = int(self._kept[index])
        for name, values in reversed(self.config.axes.items()):
            place, digit = divmod(place, len(values))
            point[name] = values[digit]
        attention, value = str(point["attention"]), str(point["value"])
        return {
            name: point[name]
            for name, parameter in PARAMETERS.items()
            if parameter.used_by(attention, value)
        }

    def _distinct(self) -> np.ndarray:
        """Places in the product where every axis that does not matter stands at its first value."""
        axes, fixed = self.config.axes, self.config.fixed
        lengths = [len(values) for values in axes.values()]
        digits = dict(zip(axes, np.indices(lengths, dtype=np.int32, sparse=True), strict=True))
        kinds = [
            np.array(axes[name])[digits[name]] if name in axes else fixed[name]
            for name in ("attention", "value")
        ]
        keep = np.ones(lengths, dtype=bool)
        for name, digit in digits.items():
            used = np.vectorize(PARAMETERS[name].used_by, otypes=[bool])
            keep &= (digit == 0) | used(*kinds)
        return np.flatnonzero(keep)


def draw(point: Point) -> tuple[Layer, Array]:
    """The layer of a point, of one head or several, and X_0 [n, d], drawn from its own seed.

    A single head of low rank has its factors. Raises `InputError` for parameters that do not fit.
    """
    for_A, for_H, for_X0 = (
        np.random.default_rng(s) for s in np.random.SeedSequence(entropy_of(point)).spawn(3)
    )
    n, d, heads = int(point["n"]), int(point["d"]), int(point["heads"])
    attention = generator("attention", ATTENTION, point)
    A = np.stack([attention.draw(n, rng=rng) for rng in for_A.spawn(heads)])
    value = generator("value", VALUE_PROJECTION, point)
    W: Array | tuple[Array, ...]
    if isinstance(value, LowRank):
        drawn = [value.factors(d, rng=rng) for rng in for_H.spawn(heads)]
        parts = [(W_V, W_proj / heads) for W_V, W_proj in drawn]
        W = parts[0] if heads == 1 else np.stack([W_V @ W_proj for W_V, W_proj in parts])
    else:
        H = np.stack([value.draw(d, rng=rng) for rng in for_H.spawn(heads)]) / heads
        W = np.swapaxes(H, -1, -2)
    return layer_of_heads(A, W), for_X0.standard_normal((n, d))


def generator(what: str, known: Mapping[str, type[Generator]], point: Point) -> Generator:
    """The generator of a point, with those of its parameters that are its options."""
    kind = str(point[what])
    options = {name: point[name] for name in known[kind].model_fields if name in point}
    return choose(what, known, kind, options)


# Rows of the dense quotient operator of several heads: 1024 take seconds, and the time is cubic.
# More are left to Arnoldi's method.
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
OF_A_STATE = ("ratio", "cosine", "rank")


def columns(measures: tuple[str, ...]) -> dict[str, type]:
    """Name -> type of the outcome columns for these measures.

    verdict: SMOOTHING, NON_SMOOTHING, TIE, TRIVIAL (n = 1) or UNDECIDED, where the margin is within
    its error. status: 'certified' for one head (proved for all that rounds to it), 'estimated' for
    several, 'numerical' where rounding decides, or 'error', and then `note` is the error and the
    rest is null.
    margin = rho_C - rho_Q and margin_error, how far rounding may have moved it. predicted_log_rate:
    log(rho_Q / rho_C). log_hfc_lfc: natural log at the point's depth L, without an error: rounding
    alone moves it by some eps (n + d) (HFC/LFC + L (2 + rho_C) / rho), rho the smaller of the radii
    that are not 0, by 1e-7 where H is defective. slope: its change per layer from L // 2 to L.
    cos_mean, cos_min (signed, over pairs of tokens) and effective_rank of X_L; no cosines (NaN)
    where a token is less than 1e-6 of another, so that roundings turn it. method: 'closed form' or
    'iteration'. tends_to, limit, limit_rank: of HFC/LFC and X_L for this X_0 (T4), null where
    near-ties leave them open.
    """
    state = any(measure in OF_A_STATE for measure in measures)
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
            row = _verdict(layer)
            if any(measure in OF_A_STATE for measure in measures):
                row |= _state(layer, X0, int(point["depth"]), measures)
            if "limits" in measures:
                row |= _limits(layer, X0)
    except MemoryError:
        raise  # of the machine, not of the point: the chunk is tried again by the next run
    except Exception as error:
        row = {"status": "error", "note": f"{type(error).__name__}: {error}"}
    return {name: row.get(name) for name in names}


def _verdict(layer: Layer) -> dict[str, Any]:
    if layer.heads == 1:
        compared = compare_radii(layer)
        answer, error = compared.answer, compared.answer.margin_error
        rho_c, rho_q = answer.rho_consensus, answer.rho_quotient
        name, status = answer.verdict, answer.status
        assert rho_c is not None and rho_q is not None
        if layer.n == 1:
            return {"status": status, "verdict": Outcome.TRIVIAL, "rho_consensus": rho_c}
    else:
        # T7a for equal layers: spec(I + sum H_h) against spec(I + sum H_h (x) B_h).
        status = "estimated"
        consensus = dense_radius(consensus_block(layer), "dense")
        rho_c = consensus.value or 0.0
        known = {"status": status, "rho_consensus": rho_c}
        if layer.n == 1:
            return known | {"verdict": Outcome.TRIVIAL}
        other = quotient_radius(layer, dense_size=OPERATOR_LIMIT, beside=consensus)
        if other.value is None:
            return known | {"verdict": Outcome.UNDECIDED, "note": other.reason}
        rho_q, error = other.value, consensus.error + other.error
        name = outcome_of(rho_c - rho_q - error, rho_c - rho_q + error)
    return verdict_columns(status, name, rho_c, rho_q, error)


def verdict_columns(
    status: str, name: Outcome, rho_c: float, rho_q: float, error: float
) -> dict[str, Any]:
    """What is always computed, of two radii known up to `error`."""
    growth = rho_q / rho_c if rho_c else math.inf
    return {
        "status": status,
        "verdict": name,
        "rho_consensus": rho_c,
        "rho_quotient": rho_q,
        "margin": rho_c - rho_q,
        "margin_error": error,
        "predicted_log_rate": math.log(growth) if growth else -math.inf,
    }


def _state(layer: Layer, X0: Array, depth: int, measures: tuple[str, ...]) -> dict[str, Any]:
    A, H, depths, method = layer.given["A"].floats, layer.H, [depth // 2, depth], "iteration"
    if layer.heads == 1:
        # Defective or nearly so it is iterated.
        with suppress(InputError):
            states, method = closed_form(A=A, H=H, X0=X0, depths=depths), "closed form"
    if method == "iteration":
        states = iterate(stacked(A), stacked(H), X0, depths)
    early, late = states
    columns, _ = measured(early, late, measures)
    return {"method": method} | {name: column.item() for name, column in columns.items()}


def _limits(layer: Layer, X0: Array) -> dict[str, Any]:
    """T4 for this X_0; no answer for several heads, whose modes do not factor."""
    if layer.heads > 1 or layer.n == 1:
        return {}
    from oversmoothing.theory.verdict.of_start import limits_of_start

    compared = compare_radii(layer)
    limits = limits_of_start(layer, Entries(X0, None), compared, compared.answer.verdict).limits
    return {"tends_to": limits.tends_to, "limit": limits.limit, "limit_rank": limits.limit_rank}


def iterate(
    A: Float64[Array, "heads n n"],
    H: Float64[Array, "heads d d"],
    X0: Float64[Array, "n d"],
    depths: Sequence[int],
) -> list[ScaledState]:
    """X' = X + sum_h A_h X H_h^T at increasing depths >= 0; A [heads, n, n], H [heads, d, d].

    Raises `InputError` where one layer leaves the range of floats.
    """
    n, d = X0.shape
    if 0 < (n - 1) * d <= min(SQUARED, max(depths, default=0) - 1):
        states = list(Powers(A[None], H[None]).states(X0[None], depths))
    else:
        states = list(iterated(A, np.swapaxes(H, -1, -2), X0, depths))
    if not all(np.isfinite(state.hfc + state.mean).all() for state in states):
        raise InputError("a layer multiplies the state beyond the range of floats: scale H down")
    return states


# A token this much smaller than another has lost too many digits for a cosine.
_LOST = 1e-6
# Rows of the operator up to which its squares are quicker than as many layers as it has rows.
SQUARED = 192


def dense(state: ScaledState) -> Array:
    """X_L [..., n, d] up to a power of two."""
    mean = state.mean[..., None, :], state.log2_mean_scale
    return scaled_sum((state.hfc, state.log2_hfc_scale), mean)[0]


def measured(
    early: ScaledState, late: ScaledState, measures: tuple[str, ...]
) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """The columns of `measures` of states at half the depth and there, and which have all tokens.

    What overflowed is measured as a state of ones.
    """
    values = dict[str, Array]()
    with np.errstate(all="ignore"):
        if "ratio" in measures:
            first, last = early.log_hfc_lfc, late.log_hfc_lfc
            values["log_hfc_lfc"] = last
            # From inf to inf, or to an undefined ratio, there is no slope.
            slope = (last - first) / (late.depth - early.depth)
            values["slope"] = np.where(np.isfinite(last) & np.isfinite(first), slope, np.nan)
        X = dense(late)
        finite = np.asarray(np.isfinite(X).all(axis=(-2, -1)))
        X = np.where(finite[..., None, None], X, 1.0)
        if "cosine" in measures:
            # Of a token in which differences and mean cancel to 0 nothing is known either.
            gone = (~X.any(axis=-1)).any(axis=-1) & late.mean.any(axis=-1)
            size = np.linalg.norm(X, axis=-1)
            lost = (size > 0) & (size < _LOST * size.max(axis=-1, keepdims=True))
            unknown = gone | lost.any(axis=-1)
            values["cos_mean"], values["cos_min"] = (
                np.where(unknown, np.nan, x) for x in cosine_extremes(X)
            )
        if "rank" in measures:
            values["effective_rank"] = effective_rank(X)
    return values, finite & X.any(axis=-1).all(axis=-1)


def cosine_extremes(X: Array) -> tuple[Array, Array]:
    """(mean, minimum) of the signed cosine over pairs of distinct non-zero tokens, X [..., n, d].

    NaN without a pair.
    """
    # Tokens may differ by more than the root of the range of floats: each is scaled first.
    size = np.abs(X).max(axis=-1, initial=0.0, keepdims=True)
    units = X / np.where(size > 0, size, 1.0)
    norms = np.sqrt((units * units).sum(axis=-1, keepdims=True))
    units = units / np.where(size > 0, norms, 1.0)
    i, j = np.triu_indices(X.shape[-2], 1)
    # In one layout, however many X there are: so are their sums.
    cosines = np.ascontiguousarray((units @ np.swapaxes(units, -1, -2))[..., i, j])
    cosines = np.clip(cosines, -1.0, 1.0)
    some = (size > 0)[..., i, 0] & (size > 0)[..., j, 0]
    pairs = some.sum(axis=-1)
    least = np.where(some, cosines, np.inf).min(axis=-1, initial=np.inf)
    mean = np.where(some, cosines, 0.0).sum(axis=-1) / np.maximum(pairs, 1)
    return np.where(pairs > 0, mean, np.nan), np.where(pairs > 0, least, np.nan)


def effective_rank(X: Array) -> Array:
    """exp of the entropy of the normalised singular values of X [..., n, d]; NaN for X = 0."""
    sigma = np.linalg.svd(X, compute_uv=False)
    total = sigma.sum(axis=-1, keepdims=True)
    p = sigma / np.where(total > 0, total, 1.0)
    entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)
    return np.where(total[..., 0] > 0, np.exp(entropy), np.nan)
