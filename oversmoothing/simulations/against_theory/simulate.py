"""One drawn run beside what the theory says: one head (T1-T5), many (T7, T9), streams (T13).

Each option is held against its range where it is read (`commands.runs`); what options must fit
together is held here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oversmoothing.simulations.against_theory.exponents import DiesError, lyapunov_exponents
from oversmoothing.simulations.drawing.depth_plot import run_result
from oversmoothing.simulations.drawing.result import UNTESTED, Result, Sentence, measured, proved
from oversmoothing.simulations.engine.evolve import evolve, without_eigenvectors
from oversmoothing.simulations.engine.evolve_heads import evolve_heads
from oversmoothing.simulations.engine.evolve_streams import (
    MIXING_STREAM,
    StreamTrajectory,
    evolve_streams,
)
from oversmoothing.simulations.engine.layers import ATTENTION_STREAM, WEIGHT_STREAM, Drawn, Fixed
from oversmoothing.simulations.engine.problem import make_problem
from oversmoothing.simulations.engine.state_attention import FromState
from oversmoothing.simulations.generators.attention import ATTENTION, Causal, Softmax, draw_mixing
from oversmoothing.simulations.generators.options import choose
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION, LowRank
from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.streams.stream_modes import agreement_depth, contractions
from oversmoothing.theory.streams.stream_verdict import stream_verdict
from oversmoothing.theory.streams.streams import make_mixing, read_streams
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.answer import ONE_TOKEN
from oversmoothing.theory.verdict.verdict import heads_verdict, verdict


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


def log_spaced_depths(depth: int, points: int) -> list[int]:
    """0 and at most `points` layers from 1 to `depth`, evenly spaced in the logarithm."""
    if depth == 0:
        return [0]
    spaced = np.rint(np.geomspace(1, depth, points)).astype(np.int64)
    return [0, *(int(layer) for layer in np.unique(spaced))]


# Evidence of what was seen in one run.
_ONE = measured(1, of="run")


def simulate(
    configuration: Configuration, *, device: str = "auto", progress: bool = False
) -> Result:
    """Draw A, H and X_0 (entries N(0, 1)) from the seed, run them and predict them.

    The metrics by layer, and what the theory says, in words and as details. Beside every
    metric the table has predicted_log_hfc_lfc (closed form; NaN where there is none: the detail
    closed_form_note says why), log_rate (log r = log rho_Q / rho_C, the asymptotic slope per layer
    of a smoothing run) and predicted_limit (of HFC/LFC; NaN where it has none or depends on more
    than this).
    Raises `InputError` for unknown names, options the generator does not have and illegal values.
    """
    c = configuration
    depths = log_spaced_depths(c.depth, c.points)
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
    problem = make_problem(X0=X0, A=A, W=None, H=H, residual=True)
    dtype = getattr(torch, c.dtype)
    method, said = without_eigenvectors(problem, depths, dtype)
    table = evolve(
        X0=X0, A=A, H=H, depth=depths, method=method, dtype=dtype, device=device, progress=progress,
    ).metrics()  # fmt: skip
    answer = verdict(A=A, H=None if W is not None else H, W=W, X0=X0)
    note = None
    try:
        states = closed_form(A=A, H=H, X0=X0, depths=depths)
        table["predicted_log_hfc_lfc"] = [state.log_hfc_lfc for state in states]
    except InputError as error:
        # Without a well-conditioned eigenbasis there is none.
        table["predicted_log_hfc_lfc"], note = math.nan, str(error)
    rate = answer.rate
    log_rate = math.nan if rate is None else math.log(rate) if rate else -math.inf
    table["log_rate"] = log_rate
    table["predicted_limit"] = math.nan if answer.limit is None else answer.limit
    off = (table["log_hfc_lfc"] - table["predicted_log_hfc_lfc"]).abs()
    off = off[np.isfinite(off)]
    largest = float(off.max()) if len(off) else None
    words = [_verdict_said(answer, proved("T4e")), Sentence(_drawn(c, A, H), _ONE)]
    words += [Sentence(said.strip(), _ONE)] * bool(said)
    if note is not None:
        why = note.removesuffix(": iterate instead")
        words.append(Sentence(f"No closed form stands beside these numbers: {why}.", _ONE))
    elif largest is not None:
        off_by = f"largest |log HFC/LFC measured - predicted|: {largest:.2e} (natural log)"
        words.append(Sentence(off_by, _ONE))
    details = {
        "verdict": answer.to_json_object(),
        "largest_error_of_log_hfc_lfc": largest,
        "closed_form_note": note,
    }
    return run_result("simulate", c, device, table, words, details, log_rate)


def _drawn(c: Configuration, A: NDArray[np.float64], H: NDArray[np.float64]) -> str:
    """The layer that was drawn: kinds, sizes, seed, and of each spectrum what is largest."""
    a, h = np.linalg.eigvals(A), np.linalg.eigvals(H)
    others = np.delete(a, np.abs(a - 1).argmin())
    second = f", largest |a| beside a = 1: {np.abs(others).max():.3g}" if len(others) else ""
    top = complex(h[np.abs(1 + h).argmax()])
    value = f"{top.real:.3g}{f'{top.imag:+.3g}i' * bool(top.imag)}"
    return (
        f"Drawn with seed {c.seed}: A {c.attention} ({c.n} x {c.n}){second}; H {c.value} "
        f"({c.d} x {c.d}), largest |1 + h| = {abs(1 + top):.3g} at h = {value}"
    )


def _verdict_said(answer: Any, statement: Any) -> Sentence:
    known = statement if answer.status in ("exact", "certified") else UNTESTED
    return Sentence(f"{answer.verdict} ({answer.status}): {answer.reason}", known)


_EXPONENT_LAYERS = 2000


@dataclass(frozen=True)
class HeadsConfiguration:
    """As `Configuration`. attention: 'fixed' (one A for all layers), 'drawn' (for each) or 'state'
    (computed from X); weights: 'fixed' or 'drawn'. rank: of a head's W_V W_O (None: d / heads, at
    least 1). scale: of sum_h W_h."""

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
        if not 1 <= self.head_rank <= self.d:
            raise InputError(f"the rank must be between 1 and d = {self.d}, not {self.head_rank}")

    @property
    def head_rank(self) -> int:
        """The rank of one head."""
        return max(1, self.d // max(1, self.heads)) if self.rank is None else self.rank


def simulate_heads(
    configuration: HeadsConfiguration, *, device: str = "auto", progress: bool = False
) -> Result:
    """The metrics by layer, and what the theory says, in words and as the detail `theory`.

    Raises `InputError` for depths that are none.
    """
    c = configuration
    depths = log_spaced_depths(c.depth, c.points)
    attention, weights = _stack(c)
    X0 = np.random.default_rng([c.seed, 2]).standard_normal((c.n, c.d))
    table = evolve_heads(
        X0=X0.astype(c.dtype), attention=attention, weights=weights, depth=depths,
        residual=not c.no_residual, device=device, progress=progress,
    ).metrics()  # fmt: skip
    said, theory, rate = _theory(attention, weights, not c.no_residual)
    ends = table["log_hfc_lfc"].iloc[[0, -1]]
    seen = f"In this run ln HFC/LFC goes from {ends.iloc[0]:.3g} to {ends.iloc[1]:.3g}."
    # Where the theory has no answer, what was seen comes first.
    told = c.attention == "state" and bool(np.isfinite(ends).all())
    first = [Sentence(seen, _ONE)] * told
    return run_result("heads", c, device, table, [*first, said], {"theory": theory}, rate)


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
        return W_V, size * rng.standard_normal((heads, rank, d)) / math.sqrt(heads * rank)

    attention = Drawn(draw_from_state if c.attention == "state" else draw_A, c.seed)
    weights = Drawn(draw_W, c.seed)
    return (
        attention if c.attention == "drawn" else Fixed(attention.at(0, ATTENTION_STREAM)),
        weights if c.weights == "drawn" else Fixed(weights.at(0, WEIGHT_STREAM)),
    )


def _theory(
    attention: Any, weights: Any, residual: bool
) -> tuple[Sentence, dict[str, Any], float | None]:
    """What is known of this stack (a verdict, exponents, or why neither), and the slope of log
    HFC/LFC per layer that it tells."""
    first = attention.at(0, ATTENTION_STREAM)
    if isinstance(first, FromState):
        words = "Attention follows the state: the theory has no verdict for every depth (T8)."
        return Sentence(words, UNTESTED), {"kind": "none"}, None
    if first.shape[-1] == 1:
        return Sentence(ONE_TOKEN, proved("T7a")), {"kind": "none"}, None
    if isinstance(attention, Fixed) and isinstance(weights, Fixed):
        answer = heads_verdict(A=first, W=weights.value, residual=residual)
        details = {"kind": "verdict", **answer.to_json_object()}
        # Where consensus dies no line has the slope.
        rate = None if answer.rate == math.inf else _log(answer.rate)
        return _verdict_said(answer, proved("T7a")), details, rate
    try:
        exponents = lyapunov_exponents(
            attention=attention, weights=weights, layers=_EXPONENT_LAYERS, residual=residual
        )
    except DiesError as died:
        words = f"There are no exponents (T7a): {died}."
        return Sentence(words, _ONE), {"kind": "none"}, None
    gap, error = exponents.gap, exponents.gap_error
    known = abs(gap) > 3 * error
    does = "is UNDECIDED within three standard errors"
    if known:
        does = "decays at that rate" if gap < 0 else "does not decay exponentially"
    words = (
        f"gamma_Q - gamma_C = {gap:.5f} +- {error:.5f} a layer over {exponents.layers} layers: "
        f"HFC/LFC {does} (T7a)."
    )
    said = Sentence(words, measured(exponents.layers, of="layer"))
    return said, {"kind": "exponents", **vars(exponents)}, gap if known else None


def _log(rate: float | None) -> float | None:
    return math.log(rate) if rate else None


# So many layers are looked at one by one for where streams agree.
_LOOKED_AT = 5000


@dataclass(frozen=True)
class StreamsConfiguration:
    """As `Configuration`. mixing: one of the `MIXINGS`, the same in every layer or, with changing,
    for each. scale: the entries of W are N(0, scale^2/d). mixing_temperature: of the softmax that
    stochastic mixings come from. any_p, any_q: drawn from N(0, 1) instead of 1 and 1/s. agree_to:
    the share of their first difference to which streams shall agree."""

    mixing: str = "doubly-stochastic"
    streams: int = 4
    changing: bool = False
    n: int = 16
    d: int = 8
    scale: float = 1.0
    temperature: float = 1.0
    mixing_temperature: float = 1.0
    causal: bool = False
    any_p: bool = False
    any_q: bool = False
    depth: int = 1000
    points: int = 60
    agree_to: float = 1e-6
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.agree_to < 1:
            raise InputError("agree_to must lie between 0 and 1: a share of the initial difference")


def simulate_streams(
    configuration: StreamsConfiguration, *, device: str = "auto", progress: bool = False
) -> Result:
    """The metrics by layer, and what the theory says, in words and as the detail `theory`."""
    c = configuration
    s, n, d = c.streams, c.n, c.d
    rng = np.random.default_rng([c.seed, 7])
    A = (Causal if c.causal else Softmax)(temperature=c.temperature).draw(n, rng=rng)
    W = c.scale * rng.standard_normal((d, d)) / math.sqrt(d)
    p = rng.standard_normal(s) if c.any_p else np.ones(s)
    q = rng.standard_normal(s) if c.any_q else np.full(s, 1.0 / s)
    X0 = rng.standard_normal((s, n, d))
    rule = Drawn(
        lambda draws: draw_mixing(c.mixing, s, rng=draws, temperature=c.mixing_temperature), c.seed
    )
    mixing = rule if c.changing else Fixed(rule.at(0, MIXING_STREAM))

    def run(depths: list[int], shown: bool) -> StreamTrajectory:
        return evolve_streams(
            X0=X0, mixing=mixing, attention=A, weights=W, depth=depths, p=p, q=q,
            device=device, progress=shown,
        )  # fmt: skip

    table = run(log_spaced_depths(c.depth, c.points), progress).metrics()
    agreement = _agreement(c, mixing, run)
    words, rate = list[Sentence](), None
    theory: dict[str, Any] = {"kind": "changing" if c.changing else "fixed"}
    if not c.changing:
        answer = stream_verdict(
            read_streams(R=mixing.at(0, MIXING_STREAM), p=p, q=q, A=A, H=W.T), agree_to=c.agree_to
        )
        words.append(_verdict_said(answer, proved("T13a")))
        words += [Sentence(each, *words[0].evidence) for each in answer.stream_words()]
        theory["verdict"] = answer.to_json_object()
        rate = theory["log_rate"] = _log(answer.rate)
    promised = () if agreement["certified"] is None else (proved("T13b"),)
    words.append(Sentence(_words(c, **agreement), _ONE, *promised))
    theory["agreement"] = agreement | {"agree_to": c.agree_to}
    return run_result("streams", c, device, table, words, {"theory": theory}, rate)


def _agreement(c: StreamsConfiguration, mixing: Any, run: Any) -> dict[str, int | None]:
    """The first layer at which streams differ by at most agree_to of their first difference.

    simulated: in this run, layer by layer as far as it takes, or as far as is looked. certified: by
    tau(R_L ... R_1), for every branch and start; by_each_layer: by the product of tau(R_l). None
    where that is not reached in the layers looked at, or not promised (p no multiple of 1, R not
    row-stochastic).
    """
    certified = each = None
    stochastic = c.mixing in ("doubly-stochastic", "row-stochastic", "uniform", "identity")
    last = min(c.depth, _LOOKED_AT)
    if stochastic and not c.any_p and c.changing:
        certified, each = _first(mixing, c.agree_to, last)
    elif stochastic and not c.any_p:
        R = mixing.at(0, MIXING_STREAM)
        certified = agreement_depth(make_mixing(R), c.agree_to)
        tau = next(iter(contractions([R]))).product_of_each
        each = None if tau == 1 else 1
        if 0 < tau < 1:
            each = math.ceil(math.log(c.agree_to) / math.log(tau))
    last = last if certified is None else min(last, certified)
    spread = np.array(run(list(range(last + 1)), False).log_spread)
    with np.errstate(invalid="ignore"):
        below = np.flatnonzero(spread <= spread[0] + math.log(c.agree_to))
    simulated = int(below[0]) if len(below) else None
    return {"simulated": simulated, "certified": certified, "by_each_layer": each}


def _first(mixing: Any, eps: float, last: int) -> tuple[int | None, int | None]:
    """The first depths at which tau of the product, and the product of tau, are at most eps."""
    depths: dict[str, int] = {}
    for at in contractions(mixing.at(layer, MIXING_STREAM) for layer in range(last)):
        for name in ("of_product", "product_of_each"):
            if getattr(at, name) <= eps:
                depths.setdefault(name, at.depth)
        if len(depths) == 2:
            break
    return depths.get("of_product"), depths.get("product_of_each")


def _words(c: StreamsConfiguration, simulated: int | None, certified: int | None,
           by_each_layer: int | None) -> str:  # fmt: skip
    if c.streams == 1:
        return "one stream: there is nothing to agree."
    to = f"to {c.agree_to:g} of their initial difference"
    seen = f"The streams did not agree {to} in the layers looked at"
    if simulated is not None:
        seen = f"The streams agree {to} from layer {simulated} on in this run"
    if certified is None:
        return f"{seen}; no certificate says when they do."
    each = "" if by_each_layer is None else f", layer by layer {by_each_layer}"
    return (
        f"{seen}; the certificate, for every branch and start, gives layer {certified} "
        f"(tau of the product of mixings{each})."
    )
