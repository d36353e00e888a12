"""Attention matrices to simulate with, drawn from an explicit generator (T1g, T1h, T11.2).

A generator is a model with its options as fields; `draw` gives float64 [*batch, n, n] with rows
summing to 1 within n eps. Queries and keys are drawn with unit variance logits: x_i in R^dim with
entries N(0, 1), W_Q and W_K [dim, dim] with entries N(0, 1/dim), logits
x_i W_Q W_K^T x_k^T / (sqrt(dim) temperature). A low temperature makes A sharp.

Mixings of residual streams (T13), which are such matrices and others, come from `draw_mixing`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from pydantic import Field

from oversmoothing.simulations.generators.options import Options
from oversmoothing.simulations.generators.value_projection import random_orthogonal
from oversmoothing.theory.layer.layer import row_sum_tolerance
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Sinkhorn converges like the square of the second singular value of the limit per round: of sharp
# attention, which has one near 1, Newton's steps do the rest, in a few dozen.
_SINKHORN_ROUNDS, _NEWTON_STEPS = 1000, 200
# Rounds of two or three tokens, an ulp of a row too many in a column, before that is taken out.
_LAST_ROUNDS = 200


Tokens = Float64[Array, "*batch n dim"]
Square = Float64[Array, "*batch n n"]
Drawn = Float64[Array, "*batch {n} {n}"]
Places = NDArray[np.intp]


def row_softmax(logits: Square) -> Square:
    """softmax over the last axis, float64 [..., n, n]; -inf is a masked entry (T11.10).

    Raises `InputError` for NaN, +inf or a row that is masked altogether.
    """
    top = logits.max(axis=-1, keepdims=True)
    if not np.isfinite(top).all():
        raise InputError(
            "logits must be finite or -inf, with at least one finite entry in each row"
        )
    weights = np.exp(logits - top)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def sinkhorn(K: Square) -> Square:
    """The doubly stochastic D_1 K D_2 of a positive K [..., n, n], rows and columns within n eps.

    Raises `InputError` where none is found.
    """
    n = K.shape[-1]
    if not K.any(axis=-2).all():
        raise _too_sharp(1.0)
    # One unit in the last place of a row is the least that the two normalisations can leave.
    allowed = max(row_sum_tolerance(n), row_sum_tolerance(4))
    A: Array = K
    for _ in range(_SINKHORN_ROUNDS):
        A = A / A.sum(axis=-2, keepdims=True)
        A = A / A.sum(axis=-1, keepdims=True)
        if np.abs(A.sum(axis=-2) - 1.0).max() <= allowed:
            break
    each = A.reshape(-1, n, n)
    return np.stack([_settled(_balanced(one, allowed)) for one in each]).reshape(A.shape)


def _balanced(A: Array, allowed: float) -> Array:
    """D_1 A D_2 for A [n, n] whose rows sum to 1, by Newton's method for the logarithm of D_2, no
    step longer than 1 (D_1 keeps the rows): columns within `allowed`. Raises `InputError`."""
    for _ in range(_NEWTON_STEPS):
        columns = A.sum(axis=0)
        off = float(np.abs(columns - 1.0).max())
        if off <= allowed:
            return A
        # Constants change nothing: 1 is in the kernel.
        slopes = np.diag(columns) - A.T @ A + 1.0 / len(A)
        right = np.linalg.lstsq(slopes, 1.0 - columns)[0]
        right -= right.mean()
        A = A * np.exp(right / max(1.0, np.abs(right).max()))
        A = A / A.sum(axis=1, keepdims=True)
    if off <= 4 * allowed:
        return A
    raise _too_sharp(off)


def _settled(A: Array) -> Array:
    """One A [n, n] that is doubly stochastic within 4 eps, within n eps. Raises `InputError`."""
    n = len(A)
    for k in range(2 * _LAST_ROUNDS):
        over = A.sum(axis=0) - 1.0
        off = float(np.abs(over).max())
        if off <= row_sum_tolerance(n):
            return A
        if k >= _LAST_ROUNDS:
            # The rounding goes round in circles: what columns have too much leaves one row.
            A = A.copy()
            widest = A.min(axis=1).argmax()
            A[widest] = np.maximum(A[widest] - over, 0.0)
        else:
            A = A / A.sum(axis=0)
        A = A / A.sum(axis=1, keepdims=True)
    raise _too_sharp(off)


def _too_sharp(off: float) -> InputError:
    return InputError(
        f"no doubly stochastic attention was found: columns stay {off:.1e} from 1\n"
        "the attention is too sharp: raise the temperature"
    )


class AttentionGenerator(Options):
    """Softmax of logits of random tokens; a kind says which logits, and what becomes of A."""

    temperature: float = Field(default=1.0, gt=0, description="divides the logits")
    dim: int = Field(default=16, ge=1, description="width of queries and keys")

    def draw(self, n: int, *, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> Drawn:
        """A [*batch, n, n]. Raises `InputError` for sizes that do not fit."""
        if n < 1:
            raise InputError(f"n must be at least 1, not {n}")
        logits = self._logits(rng.standard_normal((*batch, n, self.dim)), rng)
        return row_softmax(logits / (math.sqrt(self.dim) * self.temperature))

    def _logits(self, X: Tokens, rng: np.random.Generator) -> Square:
        """X W_Q W_K^T X^T."""
        return X @ _weights(X, rng) @ np.matrix_transpose(X @ _weights(X, rng))


def _weights(X: Array, rng: np.random.Generator) -> Array:
    dim = X.shape[-1]
    return rng.standard_normal((*X.shape[:-2], dim, dim)) / math.sqrt(dim)


class Softmax(AttentionGenerator):
    """Random tokens, queries and keys: A > 0, mostly complex spectrum."""


class SymmetricPsd(AttentionGenerator):
    """W_Q = W_K, so that W_Q W_K^T is symmetric and PSD: spec(A) is real and in [0, 1] (T1g)."""

    def _logits(self, X: Tokens, rng: np.random.Generator) -> Square:
        queries = X @ _weights(X, rng)
        return queries @ np.matrix_transpose(queries)


class SymmetricIndefinite(AttentionGenerator):
    """W_Q W_K^T symmetric with eigenvalues of both signs: real spectrum, in (-1, 1] (T1g)."""

    def _logits(self, X: Tokens, rng: np.random.Generator) -> Square:
        W = _weights(X, rng)
        signs = np.where(np.arange(self.dim) % 2 == 0, 1.0, -1.0)
        return X @ (W * signs) @ np.matrix_transpose(X @ W)


class Masked(AttentionGenerator):
    """Random tokens of which some are hidden from others."""

    def seen(self, i: Places, j: Places) -> Any:
        """Whether token i sees token j, truth values [n, n]."""
        raise NotImplementedError

    def _logits(self, X: Tokens, rng: np.random.Generator) -> Square:
        seen = self.seen(*np.indices((X.shape[-2], X.shape[-2])))
        return np.where(seen, super()._logits(X, rng), -np.inf)


class Causal(Masked):
    """Masked softmax, lower triangular: spec(A) is the diagonal, in (0, 1], and pi = e_1 (T1h)."""

    def seen(self, i: Places, j: Places) -> Any:
        return j <= i


class Local(Masked):
    """Token i sees those within `reach` of it: one closed class, and a gap that closes like
    (reach/n)^2, so that smoothing takes many layers (T1, T11.2)."""

    reach: int = Field(default=2, ge=1, description="tokens seen on either side of A's own")

    def seen(self, i: Places, j: Places) -> Any:
        return np.abs(i - j) <= self.reach


class Strided(Masked):
    """Token i sees every `stride`-th from it on: min(n, stride) closed classes, so that 1 is an
    eigenvalue as often, and tokens of different classes never meet (T1d)."""

    stride: int = Field(default=2, ge=1, description="steps between the tokens that A sees")

    def seen(self, i: Places, j: Places) -> Any:
        return (i - j) % self.stride == 0


class Axial(Masked):
    """Tokens on a grid see their row and their column: A has zeros, A^2 none.

    The grid's side is the largest divisor of n up to its square root; of a prime n all see all.
    """

    def seen(self, i: Places, j: Places) -> Any:
        n = len(i)
        width = n // next(side for side in range(math.isqrt(n), 0, -1) if n % side == 0)
        return (i // width == j // width) | (i % width == j % width)


class DoublyStochastic(AttentionGenerator):
    """Softmax attention after Sinkhorn's iteration: rows and columns sum to 1, pi = 1/n (T1f).

    Both within n eps. Raises `InputError` where the iteration does not get there.
    """

    def draw(self, n: int, *, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> Drawn:
        return sinkhorn(super().draw(n, rng=rng, batch=batch))


class Asymmetric(AttentionGenerator):
    """W_Q W_K^T = sqrt(1 - t) S + sqrt(t) K between two extremes, t the asymmetry.

    S is symmetric and K antisymmetric, both Gaussian with entries of variance 1/dim off the
    diagonal. t = 0: real spectrum (T1g); t = 1/2: independent Gaussian entries off the diagonal; t
    is the share of the squared Frobenius norm that is antisymmetric for large dim.
    """

    asymmetry: float = Field(
        default=0.5, ge=0, le=1, description="share of ||W_Q W_K^T||^2 that is antisymmetric"
    )

    def _logits(self, X: Tokens, rng: np.random.Generator) -> Square:
        size = (*X.shape[:-2], self.dim, self.dim)
        first, second = rng.standard_normal(size), rng.standard_normal(size)
        S, K = first + np.matrix_transpose(first), second - np.matrix_transpose(second)
        t = self.asymmetry
        M = (math.sqrt(1.0 - t) * S + math.sqrt(t) * K) / math.sqrt(2.0 * self.dim)
        return X @ M @ np.matrix_transpose(X)


class NearlyReducible(AttentionGenerator):
    """(1 - coupling) (block-diagonal attention) + coupling (full attention).

    blocks - 1 eigenvalues lie within about coupling of 1: smoothing takes about 1/coupling layers
    (T11.2). Raises `InputError` for more blocks than tokens.
    """

    coupling: float = Field(default=1e-3, gt=0, le=1, description="between the blocks of A")
    blocks: int = Field(default=2, ge=1, description="blocks of A")

    def draw(self, n: int, *, rng: np.random.Generator, batch: tuple[int, ...] = ()) -> Drawn:
        if self.blocks > n:
            raise InputError(f"blocks must lie between 1 and n = {n}, not {self.blocks}")
        full = super().draw(n, rng=rng, batch=batch)
        group = np.arange(n) * self.blocks // n
        inside = np.where(group[:, None] == group, full, 0.0)
        inside = inside / inside.sum(axis=-1, keepdims=True)
        A = (1.0 - self.coupling) * inside + self.coupling * full
        return np.asarray(A / A.sum(axis=-1, keepdims=True))


ATTENTION: dict[str, type[AttentionGenerator]] = {
    "softmax": Softmax, "symmetric_psd": SymmetricPsd, "symmetric_indefinite": SymmetricIndefinite,
    "causal": Causal, "local": Local, "strided": Strided, "axial": Axial,
    "doubly_stochastic": DoublyStochastic, "asymmetric": Asymmetric,
    "nearly_reducible": NearlyReducible,
}  # fmt: skip


# R [s, s] of a kind, from s, randomness and a temperature.
_MIXED: dict[str, Callable[[int, np.random.Generator, float], Array]] = {
    "doubly-stochastic": lambda s, rng, t: DoublyStochastic(temperature=t).draw(s, rng=rng),
    "row-stochastic": lambda s, rng, t: Softmax(temperature=t).draw(s, rng=rng),
    "orthogonal": lambda s, rng, _: random_orthogonal(s, rng=rng),
    "identity": lambda s, _, __: np.eye(s),
    "uniform": lambda s, _, __: np.full((s, s), 1.0 / s),
    "gaussian": lambda s, rng, _: rng.standard_normal((s, s)) / np.sqrt(s),
}
MIXINGS = tuple(_MIXED)


def draw_mixing(kind: str, s: int, *, rng: np.random.Generator, temperature: float = 1.0) -> Array:
    """R [s, s] in float64.

    doubly-stochastic: Sinkhorn's iteration on a softmax of random logits; row-stochastic: that
    softmax (temperature low: sharp). orthogonal: uniform over the group. gaussian: entries N(0,
    1/s). identity; uniform: 11^T/s. Raises `InputError` for another kind or s < 1.
    """
    if s < 1:
        raise InputError(f"{s} streams: there must be at least 1")
    if kind not in _MIXED:
        raise InputError(f"mixing '{kind}' is none of {', '.join(MIXINGS)}")
    return np.asarray(_MIXED[kind](s, rng, temperature))
