"""One input of a network enclosed: the metrics of every layer, at the precision that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oversmoothing.experiments.enclosures.ball_arrays import Ball, Balls, middles, of_rows
from oversmoothing.experiments.enclosures.ball_metrics import ball_metrics
from oversmoothing.experiments.enclosures.ball_pass import TooWideError, streams
from oversmoothing.experiments.enclosures.network import SUPPORTED, Network
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.sizes import Array

WITHOUT = "_without_cls"
# Bits to start from: those that remain, and those that the radii of a trained ViT's block cost.
BASE, A_BLOCK = 128, 20
MOST = 2**13
# The radius of a metric, in units of the larger of 1 and its modulus, that is small enough.
RADIUS = 1e-9
# Of each token that a model gives in float64, relative to its length: another network differs by
# more.
SAME = 1e-9
# Tokens of an input: attention in balls takes their square.
MOST_TOKENS = 1024


@dataclass(frozen=True)
class Enclosed:
    """By layer, from the stream in front of the first block on: metrics by name, balls."""

    layers: tuple[dict[str, Ball], ...]
    bits: int


def first_bits(network: Network) -> int:
    """The precision that a trained network of this depth usually takes."""
    return BASE + A_BLOCK * len(network.blocks)


def names_of(network: Network, metrics: Sequence[str]) -> list[str]:
    """The names of the metrics of a layer: where there is a CLS token, without it too."""
    return [*metrics, *(f"{name}{WITHOUT}" for name in metrics if network.cls)]


def enclosed(network: Network, given: Array, seen: Sequence[Array] | None = None) -> Enclosed:
    """The metrics of every layer on pixels [c, s, s] or a stream X_0 [n, d], each within `RADIUS`.

    seen: the streams [n, d] that the model itself gave in float64, to be compared with: raises
    `InputError` where a layer is not the network's. Raises `InputError` for a stream of fewer than
    two tokens (three with CLS), and `RequirementError` where `MOST` bits do not suffice: a token
    or the mean of all is 0.
    """
    bits = first_bits(network)
    while bits <= MOST:
        with at_precision(bits):
            found = _at(network, given, seen)
        if found is not None:
            return Enclosed(found, bits)
        bits *= 2
    raise RequirementError(
        f"{MOST} bits do not tell the metrics of a layer: a token, or the mean of all, is 0 or "
        "nearly so"
    )


def _at(
    network: Network, given: Array, seen: Sequence[Array] | None
) -> tuple[dict[str, Ball], ...] | None:
    """The metrics by layer, None where they are too wide at this precision."""
    layers = []
    try:
        for number, X in enumerate(streams(network, given)):
            if seen is not None:
                _compare(X, seen[number], number)
            layers.append(_metrics(network, X))
            if not all(small(x) for x in layers[-1].values()):
                return None
    except TooWideError:
        return None
    return tuple(layers)


def small(x: Ball) -> bool:
    """Whether the radius of a metric is at most `RADIUS`."""
    return bool(x.is_finite() and x.rad() <= RADIUS * max(1.0, abs(float(x.mid()))))


def _metrics(network: Network, X: Balls) -> dict[str, Ball]:
    least = 2 + network.cls
    if X.nrows() < least:
        raise InputError(f"the stream has {X.nrows()} tokens: cosines need {least}")
    found = ball_metrics(X)
    if network.cls:
        patches = ball_metrics(of_rows(X.tolist()[1:]))
        found |= {f"{name}{WITHOUT}": value for name, value in patches.items()}
    return found


def _compare(X: Balls, seen: Array, number: int) -> None:
    own = middles(X)
    same = own.shape == seen.shape
    error = np.inf
    if same:
        lengths = np.linalg.norm(own - seen, axis=-1), np.linalg.norm(seen, axis=-1)
        error = float((lengths[0] / np.maximum(lengths[1], np.finfo(float).tiny)).max())
    if not error <= SAME:
        where = f"layer {number} gives" if number else "the embedding gives"
        raise InputError(
            f"{where} another stream than its parts do ({error:.1e} of a token's length): it "
            f"computes what cannot be enclosed (rotary positions, biases); {SUPPORTED}"
        )
