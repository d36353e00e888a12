"""The points of a sweep in their order, and the randomness that belongs to each.

A point is the parameters that matter to it. Its seed is a hash of these alone, so that neither the
other points, nor the order, nor the division among workers can change what is drawn for it.
"""

import hashlib
import json
from collections.abc import Iterator

import numpy as np

from oversmoothing.simulations.sweep.config import SCHEMA_VERSION, Config
from oversmoothing.simulations.sweep.parameters import PARAMETERS, Value

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
        axes = self.config.axes
        lengths = [len(values) for values in axes.values()]
        digits = np.indices(lengths, dtype=np.int32, sparse=True)
        keep = np.ones(lengths, dtype=bool)
        kinds = [axes.get(name) or (self.config.fixed[name],) for name in ("attention", "value")]
        place = [
            list(axes).index(name) if name in axes else None for name in ("attention", "value")
        ]
        for number, name in enumerate(axes):
            used = np.array(
                [[PARAMETERS[name].used_by(str(a), str(v)) for v in kinds[1]] for a in kinds[0]]
            )
            at = [0 if k is None else digits[k] for k in place]
            keep &= (digits[number] == 0) | used[at[0], at[1]]
        return np.flatnonzero(keep)
