"""One drawn run of several streams beside what the theory says of it (T13)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.simulations.against_theory.simulate import log_spaced_depths
from oversmoothing.simulations.engine.evolve_streams import (
    MIXING_STREAM,
    StreamTrajectory,
    evolve_streams,
)
from oversmoothing.simulations.engine.layers import Drawn, Fixed
from oversmoothing.simulations.generators.attention import MIXINGS, Causal, Softmax, draw_mixing
from oversmoothing.theory.streams.agreement import agreement_depth, contractions
from oversmoothing.theory.streams.stream_verdict import stream_verdict
from oversmoothing.theory.streams.streams import make_mixing, read_streams
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_number

# So many layers are looked at one by one for where streams agree.
_LOOKED_AT = 5000


@dataclass(frozen=True)
class StreamsConfiguration:
    """What one run is made of.

    mixing: one of `MIXINGS`, the same in every layer or, with changing, drawn for each. n tokens, d
    features, s streams. scale: the entries of W are N(0, scale^2/d). mixing_temperature: of the
    softmax that stochastic mixings come from. any_p, any_q: drawn from N(0, 1) instead of 1 and
    1/s. points: about how many log-spaced layers are measured. agree_to: the share of their first
    difference to which streams shall agree.
    """

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
        if self.mixing not in MIXINGS:
            raise InputError(f"mixing '{self.mixing}' is none of {', '.join(MIXINGS)}")
        if min(self.streams, self.n, self.d) < 1:
            raise InputError("streams, n and d must be at least 1")
        positive = (self.temperature, self.mixing_temperature)
        if self.seed < 0 or not 0 <= self.scale < math.inf or min(positive) <= 0:
            raise InputError("seed and scale must be >= 0 and the temperatures positive")
        if not 0 < self.agree_to < 1:
            raise InputError("agree_to must lie between 0 and 1: a share of the first difference")


@dataclass(frozen=True)
class Agreement:
    """The first layer at which streams differ by at most agree_to of their first difference.

    simulated: in this run. certified: by tau(R_L ... R_1), for every branch and start;
    by_each_layer: by the product of tau(R_l). None where that is not reached in the layers looked
    at, or not promised (p no multiple of 1, R not row-stochastic).
    """

    simulated: int | None
    certified: int | None
    by_each_layer: int | None


def simulate_streams(
    configuration: StreamsConfiguration, *, device: str = "auto", progress: bool = False
) -> tuple[pd.DataFrame, str, dict[str, Any]]:
    """The metrics by layer, what the theory says in words, and the same as a JSON object."""
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
    words: list[str] = []
    theory: dict[str, Any] = {"kind": "changing" if c.changing else "fixed"}
    if not c.changing:
        found = stream_verdict(
            read_streams(R=mixing.at(0, MIXING_STREAM), p=p, q=q, A=A, H=W.T), agree_to=c.agree_to
        )
        words.append(str(found))
        theory["verdict"] = found.to_json_object()
        rate = found.rate
        theory["log_rate"] = json_number(math.log(rate) if rate else None)
    words.append(_words(c, agreement))
    theory["agreement"] = vars(agreement) | {"agree_to": c.agree_to}
    return table, "\n".join(words), theory


def _agreement(c: StreamsConfiguration, mixing: Any, run: Any) -> Agreement:
    """Layer by layer as far as it takes, or as far as is looked."""
    certified = each = None
    stochastic = c.mixing in ("doubly-stochastic", "row-stochastic", "uniform", "identity")
    last = min(c.depth, _LOOKED_AT)
    if stochastic and not c.any_p:
        if c.changing:
            certified, each = _first(mixing, c.agree_to, last)
        else:
            R = make_mixing(mixing.at(0, MIXING_STREAM))
            certified = agreement_depth(R, c.agree_to)
            tau = next(iter(contractions([mixing.at(0, MIXING_STREAM)]))).product_of_each
            if 0 < tau < 1:
                each = math.ceil(math.log(c.agree_to) / math.log(tau))
            else:
                each = None if tau == 1 else 1
        if certified is not None:
            last = min(last, certified)
    spread = np.array(run(list(range(last + 1)), False).log_spread)
    with np.errstate(invalid="ignore"):
        below = np.flatnonzero(spread <= spread[0] + math.log(c.agree_to))
    return Agreement(int(below[0]) if len(below) else None, certified, each)


def _first(mixing: Any, eps: float, last: int) -> tuple[int | None, int | None]:
    """The first depths at which tau of the product, and the product of tau, are at most eps."""
    found: dict[str, int] = {}
    layers = (mixing.at(layer, MIXING_STREAM) for layer in range(last))
    for at in contractions(layers):
        for name in ("of_product", "product_of_each"):
            if getattr(at, name) <= eps:
                found.setdefault(name, at.depth)
        if len(found) == 2:
            break
    return found.get("of_product"), found.get("product_of_each")


def _words(c: StreamsConfiguration, found: Agreement) -> str:
    if c.streams == 1:
        return "one stream: there is nothing to agree."
    to = f"to {c.agree_to:g} of their first difference"
    if found.simulated is None:
        seen = f"The streams did not agree {to} in the layers looked at"
    else:
        seen = f"The streams agree {to} from layer {found.simulated} on in this run"
    if found.certified is None:
        return f"{seen}; no certificate says when they do."
    each = "" if found.by_each_layer is None else f", layer by layer {found.by_each_layer}"
    return (
        f"{seen}; the certificate, for every branch and start, says layer {found.certified} "
        f"(tau of the product of mixings{each})."
    )
