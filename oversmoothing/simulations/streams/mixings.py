"""Mixings of residual streams to simulate with, drawn from an explicit generator (T13)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from oversmoothing.simulations.generators.attention import DoublyStochastic, Softmax
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

MIXINGS = ("doubly-stochastic", "row-stochastic", "orthogonal", "identity", "uniform", "gaussian")
Kind = Literal[
    "doubly-stochastic", "row-stochastic", "orthogonal", "identity", "uniform", "gaussian"
]


def draw_mixing(kind: str, s: int, *, rng: np.random.Generator, temperature: float = 1.0) -> Array:
    """R [s, s] in float64.

    doubly-stochastic: Sinkhorn's iteration on a softmax of random logits; row-stochastic: that
    softmax (temperature low: sharp). orthogonal: uniform over the group. gaussian: entries N(0,
    1/s). identity; uniform: 11^T/s. Raises `InputError` for another kind or s < 1.
    """
    if s < 1:
        raise InputError(f"{s} streams: there must be at least 1")
    if kind == "identity":
        return np.eye(s)
    if kind == "uniform":
        return np.full((s, s), 1.0 / s)
    if kind == "doubly-stochastic":
        return np.asarray(DoublyStochastic(temperature=temperature).draw(s, rng=rng))
    if kind == "row-stochastic":
        return np.asarray(Softmax(temperature=temperature).draw(s, rng=rng))
    gaussian = rng.standard_normal((s, s))
    if kind == "gaussian":
        return np.asarray(gaussian / np.sqrt(s))
    if kind == "orthogonal":
        Q, upper = np.linalg.qr(gaussian)
        # The signs that make it uniform.
        return np.asarray(Q * np.sign(np.diag(upper)))
    raise InputError(f"mixing '{kind}' is none of {', '.join(MIXINGS)}")
