"""The matrices of a point: one A and one H for each head, and X_0 (T7: X' = X + sum A_h X W_h).

Heads are drawn independently of each other; H_h carries a factor 1/heads, so that the sum over the
heads has the size of one head. X_0 has entries N(0, 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversmoothing.simulations.generators.attention import ATTENTION, row_softmax
from oversmoothing.simulations.generators.value_projection import (
    chosen_spectrum,
    defective,
    ginibre,
    goe,
    low_rank_factors,
)
from oversmoothing.simulations.sweep.points import Point, seed_of
from oversmoothing.theory.support.errors import InputError

Array = NDArray[np.float64]


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
    A = np.stack([_attention(point, n, rng) for rng in for_A.spawn(heads)])
    factors = None
    if point["value"] == "low_rank":
        parts = [_low_rank(point, d, heads, rng) for rng in for_H.spawn(heads)]
        H = np.stack([(W_V @ W_proj).T for W_V, W_proj in parts])
        factors = parts[0] if heads == 1 else None
    else:
        H = np.stack([_value(point, d, rng) for rng in for_H.spawn(heads)]) / heads
    return DrawnPoint(A, H, for_X0.standard_normal((n, d)), factors)


def _attention(point: Point, n: int, rng: np.random.Generator) -> Array:
    temperature, dim = float(point["temperature"]), int(point["dim"])
    if point["attention"] == "asymmetric":
        asymmetry = float(point["asymmetry"])
        return asymmetric_attention(
            n, rng=rng, asymmetry=asymmetry, temperature=temperature, dim=dim
        )
    options = {name: point[name] for name in ("coupling", "blocks") if name in point}
    generator = ATTENTION[str(point["attention"])]
    return generator(n, rng=rng, temperature=temperature, dim=dim, **options)


def asymmetric_attention(
    n: int,
    *,
    rng: np.random.Generator,
    asymmetry: float,
    temperature: float = 1.0,
    dim: int = 16,
) -> Array:
    """A = softmax(X M X^T / (sqrt(dim) temperature)) [n, n], M = W_Q W_K^T between two extremes.

    M = sqrt(1 - t) S + sqrt(t) K, t the asymmetry in [0, 1]: S symmetric and K antisymmetric, both
    Gaussian with entries of variance 1/dim off the diagonal. t = 0: real spectrum (T1g); t = 1/2:
    independent Gaussian entries off the diagonal; t is the share of ||M||_F^2 that is antisymmetric
    for large dim.
    """
    X = rng.standard_normal((n, dim))
    first, second = rng.standard_normal((2, dim, dim))
    S, K = first + first.T, second - second.T
    M = (math.sqrt(1.0 - asymmetry) * S + math.sqrt(asymmetry) * K) / math.sqrt(2.0 * dim)
    return row_softmax((X @ M) @ X.T / (math.sqrt(dim) * temperature))


def _low_rank(point: Point, d: int, heads: int, rng: np.random.Generator) -> tuple[Array, Array]:
    W_V, W_proj = low_rank_factors(d, rng=rng, rank=int(point["rank"]), scale=float(point["scale"]))
    return W_V, W_proj / heads


def _value(point: Point, d: int, rng: np.random.Generator) -> Array:
    kind = point["value"]
    if kind in ("goe", "ginibre"):
        return (goe if kind == "goe" else ginibre)(d, rng=rng, scale=float(point["scale"]))
    basis = str(point["basis"])
    if kind == "defective":
        return defective(
            d,
            rng=rng,
            eigenvalue=float(point["eigenvalue"]),
            size=int(point["size"]),
            basis=basis,
        )
    spectrum = {"interval": _interval, "disc": _disc, "plus_minus": _plus_minus}[str(kind)]
    return chosen_spectrum(d, rng=rng, eigenvalues=spectrum(point, d, rng), basis=basis)


def _interval(point: Point, d: int, rng: np.random.Generator) -> list[complex]:
    """d real eigenvalues, uniform in [low, high]."""
    low, high = float(point["low"]), float(point["high"])
    if low > high:
        raise InputError(f"low = {low} exceeds high = {high}: the interval is empty")
    return [complex(h) for h in rng.uniform(low, high, d)]


def _disc(point: Point, d: int, rng: np.random.Generator) -> list[complex]:
    """Conjugate pairs uniform in the disc; for odd d one more, uniform on its diameter."""
    centre, radius = float(point["centre"]), float(point["radius"])
    size = radius * np.sqrt(rng.uniform(size=d // 2))
    angle = rng.uniform(0.0, math.pi, d // 2)
    upper = centre + size * np.exp(1j * angle)
    values = [h for one in upper.tolist() for h in (one, one.conjugate())]
    if d % 2:
        values.append(complex(centre + radius * rng.uniform(-1.0, 1.0)))
    return values


def _plus_minus(point: Point, d: int, rng: np.random.Generator) -> list[complex]:
    """+scale for the nearest whole number to positive * d of the eigenvalues, -scale for others."""
    scale, plus = float(point["scale"]), round(float(point["positive"]) * d)
    return [complex(scale)] * plus + [complex(-scale)] * (d - plus)
