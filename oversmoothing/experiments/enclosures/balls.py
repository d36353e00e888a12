"""Matrices of balls, with the operations of zonotopes, and the metrics of a stream in them.

The products are FLINT's, the rest is computed entry by entry. Radii grow by some 10^6 a block of a
trained ViT, which bits absorb. Metrics have the conventions of `simulations.state_metrics`.
Singular values: with U, V of a float64 SVD of the middles, taken as exact matrices that need not be
orthogonal, B = U^T X V is computed in balls; sigma_i(B) lies within the norm of what stands off its
diagonal of the i-th of its diagonal (Weyl), and sigma_i(X) within the factors 1 +- ||U^T U - I||,
1 +- ||V^T V - I|| of that (Ostrowski).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.support.sizes import Array

Ball = Any  # flint.arb, which carries no types
Entries = Any  # an array of them


@dataclass(frozen=True)
class Curve:
    """f, f' and f'' of a ball, the derivatives of those that boxes go through; most: an upper bound
    on |f''| everywhere, where there is one."""

    value: Callable[[Ball], Ball]
    first: Callable[[Ball], Ball] = lambda x: flint.arb("nan")
    second: Callable[[Ball], Ball] = lambda x: flint.arb("nan")
    most: float = float("inf")


def each(f: Callable[[Any], Any], values: Any) -> Entries:
    """f of every entry of an array."""
    return np.frompyfunc(f, 1, 1)(values)


def exact(values: Array) -> Entries:
    """Balls of exactly these numbers."""
    return each(flint.arb, values)


def product(P: Entries, Q: Entries | Array) -> Entries:
    """P Q, by FLINT; of exact numbers too."""
    left, right = (flint.arb_mat(len(X), X.shape[1], X.ravel().tolist()) for X in (P, Q))
    whole = np.empty(len(P) * Q.shape[1], dtype=object)
    whole[:] = (left * right).entries()
    return whole.reshape(len(P), -1)


def middles(X: Entries) -> Array:
    """The middles of balls, rounded to binary64."""
    numbers: Array = each(lambda x: float(x.mid()), X).astype(float)
    return numbers


@dataclass(frozen=True)
class Balls:
    """A matrix X [m, n] of balls at the working precision; operations as of `Zonotope`."""

    entries: Entries

    @classmethod
    def exact(cls, values: Array) -> Balls:
        """The matrix of exactly these numbers."""
        return cls(exact(values))

    @property
    def centre(self) -> Array:
        """The middles, rounded to binary64."""
        return middles(self.entries)

    def own(self) -> Balls:
        """The same: balls share no symbols."""
        return self

    def swapped(self) -> Balls:
        return Balls(self.entries.T)

    def __add__(self, other: Balls) -> Balls:
        return Balls(self.entries + other.entries)

    def __sub__(self, other: Balls) -> Balls:
        return Balls(self.entries - other.entries)

    def times(self, factor: Array | float, shift: Array | float = 0.0) -> Balls:
        return Balls(self.entries * factor + shift)

    def mapped(self, W: Array, b: Array | None = None) -> Balls:
        Y = product(self.entries, W)
        return Balls(Y if b is None else Y + b)

    def matmul(self, other: Balls) -> Balls:
        return Balls(product(self.entries, other.entries))

    def multiplied(self, other: Balls) -> Balls:
        return Balls(self.entries * other.entries)

    def tangent(self, f: Curve) -> Balls:
        return Balls(each(f.value, self.entries))

    chord = tangent

    def squares(self) -> Balls:
        return Balls(self.entries * self.entries).mean()

    def mean(self) -> Balls:
        return Balls(self.sums().entries / self.entries.shape[1])

    def centred(self) -> Balls:
        """X (I - 1 1^T / n), as n X - X 1 1^T over n."""
        n = self.entries.shape[1]
        return Balls((self.entries * n - self.sums().entries) / n)

    def sums(self) -> Balls:
        return Balls(self.entries.sum(-1, keepdims=True))

    def picked(self, columns: NDArray[np.intp]) -> Balls:
        return Balls(np.take_along_axis(self.entries, columns[:, None], 1))

    def below(self, first: Array) -> Balls:
        return Balls(np.concatenate([exact(first), self.entries]))

    def softmax(self, causal: bool) -> Balls:
        rows = self.entries.copy()
        for i, row in enumerate(self.entries):
            seen = i + 1 if causal else len(row)
            rows[i, :seen], rows[i, seen:] = softmax(row[:seen]), flint.arb(0)
        return Balls(rows)


def softmax(row: Entries) -> Entries:
    """exp(x - c) over its sum, for a number c near the largest."""
    powers = each(lambda x: x.exp(), row - max(middles(row).tolist()))
    return powers * (1 / powers.sum())


def ball_metrics(X: Entries) -> dict[str, Ball]:
    """The metrics `state_metrics.NAMES` of a stream [n, d] in balls, n >= 2.

    What cannot be told at this precision (a token or the mean that may be 0) is not finite.
    """
    n = len(X)
    mean = X.sum(0) / n
    apart = X - mean
    ratio = ((apart * apart).sum() / (n * (mean * mean).sum())).sqrt()
    sigma = singular_values(X)
    # Effective rank: exp of the entropy of sigma_i / sum sigma.
    entropy = each(_entropy_term, sigma / sigma.sum()).sum()
    return {
        "hfc_lfc": ratio,
        "log_hfc_lfc": ratio.log(),
        **_cosines(X),
        "effective_rank": entropy.exp(),
        "sigma2_sigma1": sigma[1] / sigma[0] if len(sigma) > 1 else flint.arb(0),
    }


def _cosines(X: Entries) -> dict[str, Ball]:
    units = X * each(lambda x: x.rsqrt(), (X * X).sum(1, keepdims=True))
    pairs = product(units, units.T)[np.tril_indices(len(X), -1)]
    sizes = abs(pairs)
    return {
        "cos_mean": pairs.sum() / len(pairs),
        "cos_min": reduce(lambda x, y: x.min(y), pairs),
        "cos_abs_mean": sizes.sum() / len(pairs),
        "cos_abs_min": reduce(lambda x, y: x.min(y), sizes),
    }


def singular_values(X: Entries) -> Entries:
    """Balls around sigma_1 >= sigma_2 >= ... of X [n, d], min(n, d) of them, none below 0."""
    middle, k = middles(X), min(X.shape)
    if not np.isfinite(middle).all():
        return exact(np.full(k, np.nan))
    U, _, Vt = np.linalg.svd(middle)
    left, right = exact(U), exact(Vt.T)
    B = product(product(left.T, X), right)
    diagonal, one = abs(B[range(k), range(k)]), flint.arb(0, 1)
    B[range(k), range(k)] = flint.arb(0)
    # At least the spectral norm of what is left of B: sqrt(||.||_1 ||.||_inf).
    rest = (_largest_sum(B) * _largest_sum(B.T)).sqrt().upper()
    skews = [_largest_sum(product(Q.T, Q) - np.eye(len(Q))) for Q in (left, right)]
    bent = skews[0] + skews[1] + skews[0] * skews[1]
    # sigma_i(X) = sigma_i(B) / t with t^2 between (1 - skew U)(1 - skew V) and (1 + ...)(1 + ...)
    scale = 1 / (1 + one * bent).sqrt()
    around = [(x + one * rest) * scale for x in in_order(diagonal)]
    return np.array([x if x > 0 else x.max(flint.arb(0)) for x in around])


def in_order(values: Entries) -> list[Ball]:
    """Balls around the i-th largest of numbers known by balls; ends are compared exactly."""
    lows = sorted((x.lower() for x in values), reverse=True)
    highs = sorted((x.upper() for x in values), reverse=True)
    return [low.union(high) for low, high in zip(lows, highs, strict=True)]


def _largest_sum(X: Entries) -> Ball:
    """A number at least the sum of moduli of every row."""
    return reduce(lambda x, y: x.max(y), each(lambda x: abs(x).upper(), X).sum(1)).upper()


def _entropy_term(p: Ball) -> Ball:
    """-p log p; on [0, high] with high < 1/e it runs from 0 to its value at high."""
    if p > 0:
        return -p * p.log()
    high = flint.arb(p.upper())
    if not high < flint.arb(-1).exp():
        return flint.arb("nan")
    return flint.arb(0).union(-high * high.log()) if high > 0 else flint.arb(0)
