"""What A alone says: its closed classes, pi, their periods, and the quotient B (T1c, T1d).

The eigenvalue 1 and pi are read off the zero pattern and off positive sums, so neither suffers from
cancellation. scipy loads where it is needed: most verdicts start without it.

With Q an orthonormal basis of the vectors orthogonal to 1, Y = Q^T X is autonomous,
Y' = Y + B Y W with B = Q^T A Q, and spec(B) is spec(A) without one copy of the eigenvalue 1.

An irreducible class of period p moves from each of p groups of tokens into the next; the p-th roots
of unity w are simple eigenvalues of it, with eigenvectors w^g on group g (Perron and Frobenius).
Where the groups are of one size, such an eigenvector has the mean 0 exactly.

Attention from logits is enclosed in balls, where nothing underflows, or in float64 with a proven
error of exp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import factorial, gcd

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers import flint
from oversmoothing.theory.numbers.exact import exact_stationary, normalised_rows, to_fractions
from oversmoothing.theory.numbers.rounding import (
    UNIT,
    at_precision,
    gamma,
    inflated,
    of_others,
    to_ball,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

_BLOCK = 32
# Below this size elimination is as quick as iterating.
_SMALL = 64
_STEPS = 24
# Elimination in fractions takes seconds up to this size.
_SMALL_IN_FRACTIONS = 32
# What rounding of the entries may do to pi, in units of n eps.
_NEAR = 64
# The least Doeblin mass: rounding of one step is amplified by no more than its inverse.
_MASS = 1 / 64


def closed_classes(A: Array) -> list[NDArray[np.intp]]:
    """The closed communicating classes of a row-stochastic A [n, n], as index arrays.

    Their number is the multiplicity of the eigenvalue 1. Zero entries alone decide, exactly.
    """
    return [S for S, closed in parts(A > 0) if closed]


def parts(positive: NDArray[np.bool_]) -> list[tuple[NDArray[np.intp], bool]]:
    """Each set of tokens that attend to one another, and whether they attend to no others."""
    return [(S, not np.delete(positive[S], S, axis=1).any()) for S in communicating(positive)]


def communicating(positive: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The sets of indices that lead to one another, where i leads to j if positive [n, n] does."""
    if positive.all():
        return [np.arange(len(positive))]
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(csr_matrix(positive), directed=True, connection="strong")
    return [np.flatnonzero(label == k) for k in range(count)]


def _irreducible_stationary(A: Array) -> Array:
    """pi of an irreducible A. Raises `InputError` where its ratios are beyond binary64, as of
    entries near 1e-320."""
    result: Array = _eliminated(A[None])[0]
    if np.isfinite(result).all():
        return result
    if (mixed := _mixing_stationary(A)) is not None:
        return mixed
    if len(A) > _SMALL_IN_FRACTIONS:
        raise InputError(
            "the stationary distribution of A is beyond binary64: rates of exit of its tokens are "
            "too far apart. Set entries near 1e-300 to 0 and divide the rows by their sums"
        )
    exact = exact_stationary(normalised_rows(to_fractions(A.tolist(), "A")), [range(len(A))])
    return np.array([float(x) for x in exact])


def _eliminated(A: Array) -> Array:
    """pi [m, n] of each of a stack of irreducible A [m, n, n], of floats or of balls, by the GTH
    elimination (Grassmann, Taksar, Heyman 1985): without a subtraction, so that each entry has a
    small relative error even where A is nearly reducible.
    """
    P, pi, n = A.copy(), np.ones(A.shape[:-1], A.dtype), A.shape[-1]
    with np.errstate(all="ignore"):
        for high in range(n, 1, -_BLOCK):
            low = max(1, high - _BLOCK)
            for k in range(high - 1, low - 1, -1):
                P[:, :k, k] /= P[:, k, :k].sum(axis=-1, keepdims=True)
                P[:, low:k, :k] += P[:, low:k, k, None] * P[:, k, None, :k]
                P[:, :low, low:k] += P[:, :low, k, None] * P[:, k, None, low:k]
            # What no later step of the block has asked for.
            P[:, :low, :low] += P[:, :low, low:high] @ P[:, low:high, :low]
        for k in range(1, n):
            pi[:, k] = (pi[:, :k] * P[:, :k, k]).sum(axis=-1)
        result: Array = pi / pi.sum(axis=-1, keepdims=True)
    return result


def _mixing_stationary(A: Array) -> Array | None:
    """pi of an A that forgets where it started within a few steps; None for any other.

    x -> x A adds positive numbers only, too. With the mass m = sum_j min_i A_ij > 0 each step
    shrinks differences by 1 - m at least (Doeblin): a small step means a small error.
    """
    if A.min(axis=0).sum() < _MASS:
        return None
    x: Array = A.mean(axis=0)
    for _ in range(_STEPS):
        x, before = x @ A, x
        if (np.abs(x - before) <= 16 * UNIT * x).all():
            return np.asarray(x / x.sum())
    return None


def stationary_distribution(A: Array) -> Array:
    """pi [n] >= 0 with pi^T A = pi^T and pi^T 1 = 1 (T1d: c = pi^T X then obeys c' = c (I + W)).

    Unique when the eigenvalue 1 is simple. Where it repeats, every stationary pi satisfies T1d; the
    mean over the closed classes is returned, or 1/n where that is stationary. An A whose columns
    sum to 1 within n eps, and whose pi is 1/n within rounding, is taken for doubly stochastic, as
    its maker meant it: pi = 1/n exactly, so that HFC/LFC of a state without consensus is infinite
    (T1f) and not 1/eps. (Sums alone do not tell: those of [[1, 0], [1e-20, 1]] round to 1.)
    """
    n = len(A)
    rounding = 2 * n * UNIT
    balanced = bool(np.abs(A.sum(axis=0) - 1).max() <= rounding)
    if balanced and A.min(axis=0).sum() >= _MASS:
        return np.full(n, 1.0 / n)
    if n > _SMALL and (mixed := _mixing_stationary(A)) is not None:
        return mixed
    pi = np.zeros(n)
    classes = closed_classes(A)
    for members in classes:
        share = len(members) / n if balanced else 1.0 / len(classes)
        pi[members] = share * _irreducible_stationary(A[np.ix_(members, members)])
    if balanced:
        pi /= pi.sum()
        if np.abs(n * pi - 1.0).max() <= _NEAR * rounding:
            return np.full(n, 1.0 / n)
    return pi


def stationary_distributions(A: Array) -> Array:
    """`stationary_distribution` of each of a stack A [m, n, n], in [m, n]; those that are positive,
    small and not balanced together."""
    n = A.shape[-1]
    balanced = np.abs(A.sum(axis=-2) - 1).max(axis=-1) <= 2 * n * UNIT
    together = (A > 0).all(axis=(-2, -1)) & ~balanced & (n <= _SMALL)
    pi = np.ones(A.shape[:-1])
    pi[together] = _eliminated(A[together])
    for i in np.flatnonzero(~together | ~np.isfinite(pi).all(axis=-1)).tolist():
        pi[i] = stationary_distribution(A[i])
    return pi


def class_families(A: Array) -> tuple[Array, Array]:
    """(Pi [m, n], W [n, m]) of the m closed classes: left and right eigenvectors of a = 1 (T14).

    Row k of Pi is the stationary distribution of class k, column k of W the probability that a
    token ends in class k: Pi W = I, and the columns of W sum to the vector of ones.
    """
    n, classes = len(A), closed_classes(A)
    if len(classes) == 1:
        return stationary_distribution(A)[None, :], np.ones((n, 1))
    means, absorbed = np.zeros((len(classes), n)), np.zeros((n, len(classes)))
    for k, members in enumerate(classes):
        means[k, members] = _irreducible_stationary(A[np.ix_(members, members)])
        absorbed[members, k] = 1.0
    transient = ~absorbed.any(axis=1)
    inside, steps = A[np.ix_(transient, transient)], A[transient] @ absorbed
    absorbed[transient] = np.linalg.solve(np.eye(len(inside)) - inside, steps)
    return means, absorbed


def perron_deviation(pi: Array) -> float:
    """delta = ||pi - 1/n||_2: 0 exactly when A is doubly stochastic (T1d-f)."""
    return float(np.linalg.norm(pi - 1.0 / len(pi)))


def complement_basis(n: int) -> Array:
    """Q [n, n-1]: orthonormal columns orthogonal to 1, from the Householder reflector that sends
    1/sqrt(n) to -e_1."""
    u = np.full(n, 1.0 / np.sqrt(n))
    u[0] += 1.0
    return np.ascontiguousarray((np.eye(n) - np.outer(u, u) / u[0])[:, 1:])


def quotient(A: Array) -> Array:
    """B = Q^T A Q, [..., n-1, n-1], for A [..., n, n] (T1c), in O(n^2).

    A is centred first, which Q^T removes anyway: entries of a nearly uniform A do not cancel in the
    product. Sums of rows and columns, 0 up to rounding, stay in: Q^T and Q remove what all share.
    """
    side = np.sqrt(A.shape[-1])
    C = A - A.mean(axis=-2, keepdims=True)
    half = C[..., 1:] - (C[..., :1] + C.sum(axis=-1, keepdims=True) / side) / (side + 1.0)
    top = half[..., :1, :] + half.sum(axis=-2, keepdims=True) / side
    result: Array = half[..., 1:, :] - top / (side + 1.0)
    return result


# Added and taken away, it leaves the nearest multiple of 2^-40.
_GRID = 1.5 * 2.0**12


def row_deficits(A: Array) -> Array:
    """1 - A 1 [..., n] of A [..., n, n], to some n 2^-94: what rounding took from the row sums."""
    top = (A + _GRID) - _GRID  # their sums are exact
    deficits: Array = (1.0 - top.sum(axis=-1)) - (A - top).sum(axis=-1)
    return deficits


def both_sides(C: Array, sign: float) -> Array:
    """Q^T C Q [..., n-1, n-1] of a centred C [..., n, n] for the sign -1: with rho = sqrt(n) + 1
    C_ij - C_i0 / rho - C_0j / rho + C_00 / rho^2, i, j >= 1. For 1 the same with pluses."""
    root = sign * (np.sqrt(C.shape[-1]) + 1.0)
    half = C[..., :, 1:] + C[..., :, :1] / root
    result: Array = half[..., 1:, :] + half[..., :1, :] / root
    return result


def rational_quotient(A: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """B'_ij = A_ij - A_nj for i, j < n: similar to B, and without square roots (T1c).

    Its coordinates are y_i = x_i - x_n.
    """
    last = A[-1]
    return [[row[j] - last[j] for j in range(len(A) - 1)] for row in A[:-1]]


def cyclic_groups(positive: NDArray[np.bool_], members: Sequence[int]) -> list[list[int]]:
    """The groups of a closed class (token indices) in the order in which they follow each other.

    positive [n, n]: where A_ij > 0. One group where the class is aperiodic.
    """
    level = {members[0]: 0}
    queue, period = [members[0]], 0
    for i in queue:
        for j in members:
            if not positive[i, j]:
                continue
            if j not in level:
                level[j] = level[i] + 1
                queue.append(j)
            else:
                period = gcd(period, level[i] + 1 - level[j])
    return [[i for i in members if level[i] % period == g] for g in range(period)]


# ------------------------------------------------------------------ attention from logits, enclosed


def softmax_balls(logits: Sequence[Sequence[Fraction | None]], bits: int) -> flint.arb_mat:
    """softmax of the rows in balls; None is masked (exactly 0)."""
    with at_precision(bits):
        rows = []
        for row in logits:
            top = max(x for x in row if x is not None)
            rows.append(shares(None if x is None else to_ball(x - top) for x in row))
        return flint.arb_mat(rows)


def shares(row: Iterable[flint.arb | None]) -> list[flint.arb]:
    """The softmax of a row in balls, where no weight underflows; None is masked."""
    weights = [flint.arb(0) if x is None else x.exp() for x in row]
    total = sum(weights, flint.arb(0))
    return [weight / total for weight in weights]


def stationary_balls(A: flint.arb_mat, closed: Sequence[Sequence[int]]) -> list[flint.arb]:
    """pi with pi^T A = pi^T, pi^T 1 = 1 in balls; the mean over the given closed classes."""
    table, pi = np.array(A.tolist(), dtype=object), [flint.arb(0)] * A.nrows()
    for members in closed:
        weights = _eliminated(table[np.ix_(members, members)][None])[0]
        for i, weight in zip(members, weights, strict=True):
            pi[i] = weight / flint.arb(len(closed))
    return pi


# The float64 exp is written out, so that its error is a theorem and not a library's promise. With
# k = rint(t log2 e), c the first 32 bits of log 2 (k c is exact) and c' the rest, r = (t - k c) -
# k c' has |r| < 0.36 and is off by less than 2u. The Taylor polynomial of degree 13 is off by less
# than 0.36^14 / 14! 1.44 < u / 8, and Horner's scheme by gamma_28 e^0.36, relative to e^r >=
# e^-0.36. Together less than 61 u, and 64 u pays for products of errors too; the power of two is
# exact, and an underflow loses at most 2^-1074.
EXP_ERROR = 64 * UNIT
_LOG2_HIGH = float.fromhex("0x1.62e42feep-1")
_LOG2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_LOWEST = -800.0


def bounded_exp(t: Array) -> Array:
    """exp(t) for -800 <= t <= 0, off by at most EXP_ERROR exp(t) + 2^-1074; exp(0) = 1 exactly."""
    k = np.rint(t * np.log2(np.e))
    r = (t - k * _LOG2_HIGH) - k * _LOG2_LOW
    value = np.full_like(t, 1 / factorial(13))
    for degree in range(12, -1, -1):
        value = value * r + 1 / factorial(degree)
    result: Array = np.ldexp(value, k.astype(np.int32))
    return result


def softmax_within(logits: Array, relative: float = 0.0) -> tuple[Array, Array]:
    """(A, error) [..., n, n]: every softmax of logits within `relative` of these, -inf masked
    (exactly 0), is within error of A. Each row needs a finite logit.

    A weight is off by its exponential, by the shift, rounded once (exp(t (1 + u)) / exp(t) - 1 <
    1.01 u |t|, with |t| <= 800), and by e^y - 1 <= y / (1 - y) for the y that its logit and the
    largest one may move by; by e <= 1/8 in all its share then changes as in `of_others`, with
    e (1 + 4 e) >= e / (1 - e)^2, and the division and the sum round. What underflows adds the
    smallest number, by `inflated`. 1 where the logits are too large for that.
    """
    masked = np.isneginf(logits)
    with np.errstate(over="ignore"):
        shifted = logits - logits.max(axis=-1, keepdims=True)
    # What lies below exp(-800) < 2^-1074 is below it still after rounding.
    weights = np.where(masked, 0.0, bounded_exp(np.maximum(shifted, _LOWEST)))
    A = weights / weights.sum(axis=-1, keepdims=True)
    size = np.where(masked, 0.0, np.abs(logits)).max(axis=-1, keepdims=True)
    y = inflated(2 * relative * size, 4)
    rounding = gamma(logits.shape[-1] + 4)
    with np.errstate(over="ignore", invalid="ignore"):
        e = EXP_ERROR + 1.01 * UNIT * np.minimum(2 * size, -_LOWEST) + y / (1 - np.minimum(y, 0.5))
        e = np.where(y < 0.0625, inflated(e * (1 + 4 * e), 12), np.inf)
        wide = (2 * e * of_others(inflated(A, 4)) + rounding) * (1 + 2 * rounding)
        return A, np.fmin(np.where(masked, 0.0, inflated(wide * A, 12)), 1.0)
