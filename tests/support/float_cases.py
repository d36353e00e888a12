"""Floats that tests draw: attention from uniform to one-hot, whole layers."""

import numpy as np
from hypothesis import strategies as st

from oversmoothing.theory.proofs.strategies import SEEDS
from oversmoothing.theory.support.sizes import Array


@st.composite
def floating_attention(draw: st.DrawFn, min_size: int = 1, max_size: int = 12) -> Array:
    """softmax(logits) in float64, from uniform to nearly one-hot."""
    n = draw(st.integers(min_size, max_size))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logits = draw(st.sampled_from([0.0, 0.3, 1.0, 4.0])) * rng.standard_normal((n, n))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    A: Array = weights / weights.sum(axis=1, keepdims=True)
    return A


@st.composite
def float_layers(
    draw: st.DrawFn, *, max_tokens: int = 4, max_features: int = 3, largest: float = 2.0
) -> tuple[Array, Array, Array]:
    """(A [n, n], H [d, d], X0 [n, d]): Dirichlet rows or causal ones, Gaussian H and X0."""
    n = draw(st.integers(1, max_tokens), label="n")
    d = draw(st.integers(1, max_features), label="d")
    size = draw(st.floats(0.0, largest), label="scale of H")
    causal = draw(st.booleans(), label="causal")
    rng = np.random.default_rng(draw(SEEDS, label="seed"))
    A = rng.dirichlet(np.ones(n), size=n)
    if causal:
        A = np.tril(A)
        A = A / A.sum(axis=1, keepdims=True)
    return A, size * rng.standard_normal((d, d)), rng.standard_normal((n, d))
