"""The points of a sweep in their order, and what is drawn for each: an A and an H a head, and X_0.

A point is the parameters that matter to it. Its seed is a hash of these alone, so that neither the
other points, nor the order, nor the division among workers can change what is drawn for it. Heads
are drawn independently of each other (T7: X' = X + sum A_h X W_h); H_h carries a factor 1/heads, so
that the sum over the heads has the size of one head. X_0 has entries N(0, 1).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping

import numpy as np

from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.options import Generator, choose
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION, LowRank
from oversmoothing.simulations.sweep.config import SCHEMA_VERSION, Config
from oversmoothing.simulations.sweep.parameters import PARAMETERS, Value
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.spectra.heads import layer_of_heads
from oversmoothing.theory.support.sizes import Array

Point = dict[str, Value]


def seed_of(point: Point) -> np.random.SeedSequence:
    """A SeedSequence of 256 bits: SHA-256 of the point, written canonically."""
    text = json.dumps([SCHEMA_VERSION, sorted(point.items())], allow_nan=False)
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))


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
    for_A, for_H, for_X0 = (np.random.default_rng(s) for s in seed_of(point).spawn(3))
    n, d, heads = int(point["n"]), int(point["d"]), int(point["heads"])
    attention = _generator("attention", ATTENTION, point)
    A = np.stack([attention.draw(n, rng=rng) for rng in for_A.spawn(heads)])
    value = _generator("value", VALUE_PROJECTION, point)
    W: Array | tuple[Array, ...]
    if isinstance(value, LowRank):
        drawn = [value.factors(d, rng=rng) for rng in for_H.spawn(heads)]
        parts = [(W_V, W_proj / heads) for W_V, W_proj in drawn]
        W = parts[0] if heads == 1 else np.stack([W_V @ W_proj for W_V, W_proj in parts])
    else:
        H = np.stack([value.draw(d, rng=rng) for rng in for_H.spawn(heads)]) / heads
        W = np.swapaxes(H, -1, -2)
    return layer_of_heads(A, W), for_X0.standard_normal((n, d))


def _generator(what: str, known: Mapping[str, type[Generator]], point: Point) -> Generator:
    """The generator of a point, with those of its parameters that are its options."""
    kind = str(point[what])
    options = {name: point[name] for name in known[kind].model_fields if name in point}
    return choose(what, known, kind, options)
