"""The layer X' = X + A X W as an object: its operator, its two spectra, its decoupling (T1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oversmoothing.theory.layer.checks import check_attention, check_square, check_states, one_of
from oversmoothing.theory.layer.perron import perron_deviation, stationary_distribution
from oversmoothing.theory.layer.quotient import complement_basis, quotient
from oversmoothing.theory.spectra.spectrum import (
    Spectrum,
    attention_spectrum,
    head_spectrum,
    value_projection_spectrum,
)
from oversmoothing.theory.support.errors import InputError

Array = NDArray[np.float64]

# Side of the largest dense I + H (x) A that is built on request: 512 MiB.
KRONECKER_LIMIT = 8192


@dataclass(frozen=True, eq=False)
class Update:
    """One layer. A [n, n] row-stochastic, H = (W_V W_proj)^T [d, d], both float64.

    factors: (W_V [d, r], W_proj [r, d]) where the value projection was given as one head.
    """

    A: Array
    H: Array
    factors: tuple[Array, Array] | None = None

    @classmethod
    def of(cls, *, A: ArrayLike, H: ArrayLike | None = None, W: Any = None) -> Update:
        """From A and exactly one of H = W^T and W (a matrix, or the pair (W_V, W_proj)).

        Raises `InputError` on illegal input.
        """
        attention = check_attention(A)
        if attention.ndim != 2:
            raise InputError(f"A has shape {list(attention.shape)}; one layer has one A, [n, n]")
        if one_of(H, W) == "W" and isinstance(W, tuple):
            first = np.asarray(W[0], dtype=np.float64)
            second = np.asarray(W[1], dtype=np.float64)
            return cls(attention, check_square((first @ second).T), (first, second))
        value = check_square(np.asarray(H)) if W is None else check_square(W, name="W").T
        return cls(attention, np.ascontiguousarray(value))

    @property
    def n(self) -> int:
        """Number of tokens."""
        return len(self.A)

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.H)

    @cached_property
    def attention(self) -> Spectrum:
        """spec(A) without one copy of the eigenvalue 1: n - 1 values, through the quotient."""
        return attention_spectrum(self.A)

    @cached_property
    def value_projection(self) -> Spectrum:
        """spec(H): d values; through the r x r core where the head's factors are known."""
        if self.factors is not None:
            return head_spectrum(*self.factors)
        return value_projection_spectrum(self.H)

    @cached_property
    def basis(self) -> Array:
        """Q [n, n-1]: orthonormal basis of the vectors orthogonal to 1."""
        return complement_basis(self.n)

    @cached_property
    def B(self) -> Array:
        """Q^T A Q [n-1, n-1] (T1c)."""
        return quotient(self.A)

    @cached_property
    def pi(self) -> Array:
        """Left Perron vector [n] of A (T1d)."""
        return stationary_distribution(self.A)

    @cached_property
    def delta(self) -> float:
        """||pi - 1/n||_2, 0 iff A is doubly stochastic; sets the floor of T1f."""
        return perron_deviation(self.pi)

    @property
    def non_smoothing_floor(self) -> float:
        """1/(sqrt(n) delta): HFC/LFC of every state with pi^T X = 0 is at least this (T1f)."""
        return np.inf if self.delta == 0 else 1.0 / (np.sqrt(self.n) * self.delta)

    def step(self, X: ArrayLike) -> Array:
        """X + A X W for X [n, d]."""
        state = check_states(X, self.n, self.d, name="X")
        return state + self.A @ state @ self.H.T

    def decouple(self, X: ArrayLike) -> tuple[Array, Array]:
        """(Y, c) = (Q^T X [n-1, d], pi^T X [d]): Y' = Y + B Y W and c' = c (I + W) (T1c-d)."""
        state = check_states(X, self.n, self.d, name="X")
        return self.basis.T @ state, self.pi @ state

    def recouple(self, Y: Array, c: Array) -> Array:
        """X [n, d] from (Y, c): HFC = Q Y and the mean is m = c + (1/n - pi)^T HFC (T1d)."""
        hfc = self.basis @ Y
        result: Array = hfc + c + (1.0 / self.n - self.pi) @ hfc
        return result

    def kronecker(self) -> Array:
        """The dense I + H (x) A [n d, n d] on vec(X) (columns stacked): a check, not a method.

        Raises `InputError` above KRONECKER_LIMIT rows: at n = 197, d = 768 it would take 183 GB.
        """
        side = self.n * self.d
        if side > KRONECKER_LIMIT:
            raise InputError(
                f"I + H (x) A would be {side} x {side} ({8 * side**2 / 2**30:.1f} GiB); use the "
                "spectra or step() instead"
            )
        return np.eye(side) + np.kron(self.H, self.A)
