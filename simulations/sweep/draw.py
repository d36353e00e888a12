"""The matrices of a point: one A and one H for each head, and X_0 (T7: X' = X + sum A_h X W_h).

Heads are drawn independently of each other; H_h carries a factor 1/heads, so that the sum over the
heads has the size of one head. X_0 has entries N(0, 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.options import Generator, choose
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION, LowRank
from oversmoothing.simulations.sweep.points import Point, seed_of
from oversmoothing.theory.support.arrays import Array


@dataclass(frozen=True, eq=False)
class DrawnPoint:
    """A [heads, n, n], H [heads, d, d], X0 [n, d]; X' = X + sum over h of A_h X H_h^T.

    factors: (W_V [d, r], W_proj [r, d]) of a single head of low rank, else None.
    """

    A: Array
    H: Array
    X0: Array
    factors: tuple[Array, Array] | None


def draw(point: Point) -> DrawnPoint:
    """Draw a point from its own seed. Raises `InputError` for parameters that do not fit."""
    for_A, for_H, for_X0 = (np.random.default_rng(s) for s in seed_of(point).spawn(3))
    n, d, heads = int(point["n"]), int(point["d"]), int(point["heads"])
    attention = _generator("attention", ATTENTION, point)
    A = np.stack([attention.draw(n, rng=rng) for rng in for_A.spawn(heads)])
    value = _generator("value", VALUE_PROJECTION, point)
    factors = None
    if isinstance(value, LowRank):
        drawn = [value.factors(d, rng=rng) for rng in for_H.spawn(heads)]
        parts = [(W_V, W_proj / heads) for W_V, W_proj in drawn]
        H = np.stack([(W_V @ W_proj).T for W_V, W_proj in parts])
        factors = parts[0] if heads == 1 else None
    else:
        H = np.stack([value.draw(d, rng=rng) for rng in for_H.spawn(heads)]) / heads
    return DrawnPoint(A, H, for_X0.standard_normal((n, d)), factors)


def _generator(what: str, known: Mapping[str, type[Generator]], point: Point) -> Generator:
    """The generator of a point, with those of its parameters that are its options."""
    kind = str(point[what])
    options = {name: point[name] for name in known[kind].model_fields if name in point}
    return choose(what, known, kind, options)
