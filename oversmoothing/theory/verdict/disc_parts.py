"""Left eigenvectors of a part of the indices, through the zeros of a matrix (T1h, T4e).

Where i leads to j by M_ij != 0, sets of indices that lead to one another are the diagonal blocks of
a block triangular matrix. An eigenvalue that repeats in M may be simple among the indices that one
set leads to: its left eigenvector there is one of M, 0 at all others. Of A the zeros are those of
every layer of the cell.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import flint
import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.attention import communicating, stationary_distribution
from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    Bounded,
    at_precision,
    inflated,
    solved,
)
from oversmoothing.theory.spectra.blocks import invariant_blocks
from oversmoothing.theory.spectra.discs import Discs, Failure, eigenvector, enclose
from oversmoothing.theory.spectra.heads import ManyHeads
from oversmoothing.theory.spectra.heads_radius import modulus_interval
from oversmoothing.theory.spectra.layer_discs import by_parts
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.by_discs import operator_within, shares_within, weights_within
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, infinite, limits_of_state

Indices = NDArray[np.intp]


def left_vectors(M: Array, error: Array) -> Iterator[tuple[Discs, Callable[[], Bounded | None]]]:
    """Eigenvalues a of M, each simple among the indices S that lead to one another, and w [k] with
    w^T M = a w^T that is 0 but at S and at what S leads to, R: w_R^T = w_S^T M_SR (a - M_RR)^-1.
    The fewest indices come first.
    """
    for S, R in _parts(M, error):
        inside, off = M[np.ix_(S, S)], error[np.ix_(S, S)]
        discs = enclose(inside, off)
        if isinstance(discs, Failure):
            continue
        for i in np.flatnonzero(discs.alone).tolist():
            a = Discs(discs.centres[[i]], discs.radii[[i]], np.zeros(1, dtype=np.intp))
            yield a, partial(_extended, M, error, S, R, discs, i)


def _parts(M: Array, error: Array) -> Iterator[tuple[Indices, Indices]]:
    """(S, R) as above, the fewest indices first."""
    k, there = len(M), (M != 0) | (error > 0)
    reach = there | np.eye(k, dtype=bool)
    for _ in range(k.bit_length()):
        reach = (reach.astype(np.float32) @ reach) > 0
    for S in sorted(communicating(there), key=lambda S: (int(reach[S[0]].sum()), S[0])):
        yield S, np.setdiff1d(np.flatnonzero(reach[S[0]]), S)


def _extended(
    M: Array, error: Array, S: Indices, R: Indices, discs: Discs, i: int
) -> Bounded | None:
    w = eigenvector(Bounded(M[np.ix_(S, S)].T, error[np.ix_(S, S)].T), discs, i)
    if w is None:
        return None
    value, off = np.zeros(len(M), dtype=np.complex128), np.zeros(len(M))
    value[S], off[S] = w.value, w.error
    if len(R):
        between = Bounded(M[np.ix_(S, R)].T, error[np.ix_(S, R)].T)
        shifted = discs.centres[i] * np.eye(len(R)) - M[np.ix_(R, R)].T
        near = error[np.ix_(R, R)].T + np.diag(discs.radii[i] + UNIT * np.abs(np.diag(shifted)))
        x = solved(Bounded(shifted, inflated(near, 4)), between @ w)
        if x is None:
            return None
        value[R], off[R] = x.value, x.error
    return Bounded(value, off)


def mean_of_class(A: Array, error: Array, S: Sequence[int]) -> Bounded | None:
    """pi of a closed class, 0 at the other tokens: (A^T - I) pi = 0, with sum(pi) = 1 for its last
    equation."""
    value, around = np.zeros(len(A)), np.zeros(len(A))
    value[S] = 1.0
    if len(S) > 1:
        equations, wide = A[np.ix_(S, S)].T - np.eye(len(S)), error[np.ix_(S, S)].T
        wide = wide + UNIT * np.diag(np.abs(np.diag(equations)))
        equations[-1], wide[-1] = 1.0, 0.0
        last = Bounded.near(np.eye(len(S))[-1], 0.0)
        pi = solved(Bounded(equations, inflated(wide, 2)), last)
        if pi is None:
            return None
        value[S], around[S] = pi.value, pi.error
    return Bounded(value, around)


# Rows of the operator of all heads that are looked at, and of those that lead; in balls, where
# eigenvalues repeat, and with how many bits; how many eigenvectors and parts are tried.
_OPERATOR, _LEADING, _BALLS, _BITS, _TRIED = 1024, 256, 64, 128, 8


def _operator(case: ManyHeads, n: int) -> tuple[Array, Array]:
    """(M, error), M [n d, n d] = [I +] sum_h H_h (x) A_h of the first n tokens."""
    A, off = shares_within(case.given["A"].floats, case.positive, UNIT)
    few = np.s_[None, :, :n, :n]
    operator, error = (x[0] for x in operator_within(A[few], off[few], *weights_within(case)))
    M = operator + case.residual * np.eye(len(operator))
    error = error + UNIT * np.diag(np.abs(np.diag(M)))
    return M, np.where(error > 0, inflated(error, 2), 0.0)


def _stacked(X0: Array) -> Bounded:
    """vec X_0, up to a power of two: HFC/LFC does not see the scale, and what is lost is below all
    numbers."""
    x = np.ldexp(X0.T.reshape(-1, 1), -int(np.frexp(np.abs(X0).max())[1]))
    return Bounded(x, UNIT * np.abs(x) + TINY)


def heads_contained(case: ManyHeads, X0: Array, rest: float) -> bool:
    """Whether X_0 [n, d] contains a mode that outgrows `rest`, for all X_0 and heads that round to
    these: w^T X_0 != 0 for a left eigenvector w of the layer, or of several for equal eigenvalues.

    Of causal heads the first tokens go by themselves: as many as there are rows for.
    """
    n, d = X0.shape
    if not np.triu(case.positive, 1).any():
        n = min(n, max(1, _OPERATOR // d))
    if n * d > _OPERATOR:
        return False
    M, error = _operator(case, n)
    start = _stacked(X0[:n])
    return _by_eigenvectors(M, error, start, rest) or _by_subspaces(M, error, start, rest)


def limits_of_heads(case: ManyHeads, X0: Array | None) -> Limits:
    """What generic X_0 (None), or this one, leads to for all heads that round to these, where
    consensus does not dominate: from the eigenvector of the one mu that leads, where X_0 contains
    it."""
    n, d = case.n, case.d
    if n * d > _LEADING:
        return UNKNOWN
    M, error = _operator(case, n)
    discs = by_parts(M, error)
    high = inflated(np.abs(discs.centres) + discs.radii, 4)
    low = np.abs(discs.centres) * (1 - 8 * UNIT) - discs.radii
    i = int(np.argmax(low))
    real = discs.alone[i] and discs.centres[i].imag == 0
    if not real or not low[i] > np.delete(high, i).max(initial=0.0):
        return UNKNOWN
    v, w = _simple(M.T, error.T, discs, i), _simple(M, error, discs, i)
    there = X0 is None or (w is not None and bool((w @ _stacked(X0)).nonzero.all()))
    if v is None or not there:
        return UNKNOWN
    X = Bounded(v.value.reshape(d, n).T, v.error.reshape(d, n).T)
    rank = min(n, d) if rank_at_least(X, min(n, d)) else None
    if all(not np.ptp(stationary_distribution(head.A)) for head in case.singly):
        return infinite(rank)
    return limits_of_state(X, rank)


def _simple(M: Array, error: Array, discs: Discs, i: int) -> Bounded | None:
    """The left eigenvector of the one eigenvalue in the disc i."""
    for mu, vector in left_vectors(M, error):
        near = np.abs(discs.centres - mu.centres) <= 2 * (discs.radii + mu.radii)
        if np.flatnonzero(near).tolist() == [i]:
            return vector()
    return None


def rank_at_least(X: Bounded, rank: int) -> bool:
    """Whether every matrix within X [n, d] has that rank: the discs of its Gram matrix say."""
    X = Bounded(X.value.real, X.error)
    gram = X @ X.T if len(X.value) <= X.value.shape[1] else X.T @ X
    M, turned = gram.value, gram.value.T
    discs = enclose((M + turned) / 2, gram.error + np.abs(M - turned))
    if isinstance(discs, Failure):
        return False
    free = Bounded(discs.centres, discs.radii).nonzero
    # A component of which every disc is free of 0 holds as many eigenvalues that are not 0.
    bad = np.unique(discs.component[~free])
    return int(np.count_nonzero(~np.isin(discs.component, bad))) >= rank


def _by_eigenvectors(M: Array, error: Array, start: Bounded, rest: float) -> bool:
    pairs = left_vectors(M, error)
    above = (vector for mu, vector in pairs if modulus_interval(mu, 0.0).low > rest)
    vectors = (vector() for vector in islice(above, _TRIED))
    return any(w is not None and (w @ start).nonzero.any() for w in vectors)


def _by_subspaces(M: Array, error: Array, start: Bounded, rest: float) -> bool:
    """The same where eigenvalues repeat within a part: by invariant subspaces in balls."""
    parts = (
        np.sort(np.concatenate([S, R]))
        for S, R in _parts(M, error)
        if len(S) + len(R) <= _BALLS and np.abs(np.linalg.eigvals(M[np.ix_(S, S)])).max() > rest
    )
    for T in islice(parts, _TRIED):
        table, columns = (
            [[flint.acb(flint.arb(x, r)) for x, r in zip(*row, strict=True)] for row in rows]
            for rows in (
                zip(M[np.ix_(T, T)].tolist(), error[np.ix_(T, T)].tolist(), strict=True),
                zip(start.value[T].tolist(), start.error[T].tolist(), strict=True),
            )
        )
        with at_precision(_BITS):
            for subspaces in invariant_blocks(table):
                content = (flint.acb_mat(subspaces.inverse) * flint.acb_mat(columns)).entries()
                for block in subspaces.blocks:
                    there = any(not content[i].contains(0) for i in block.columns)
                    if there and abs(block.value).lower() > rest:
                        return True
    return False
