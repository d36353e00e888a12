"""Discs that contain the spectrum of a real matrix, proved from float64 products (T10).

Approximate eigenvectors, real and imaginary parts side by side, are a real basis P in which M is
nearly D: the real eigenvalues, and a block [[x, y], [-y, x]] for each pair x +- iy. With any
Y ~ P^-1, F = I - Y P and R = M P - P D,

    P^-1 M P = D + E,  |E| <= |Y| |R| + |F| |E|,

so that the row sums of |E| are at most g_i + f_i max g / (1 - max f), g and f those of |Y| |R| and
of |F|, if max f < 1 (which also proves P invertible). Gershgorin's theorem for the complex diagonal
form of D + E gives a disc around each eigenvalue of D, and each connected component of discs
contains exactly as many eigenvalues as it has discs. The roundings of the two products are bounded
a priori, by products of moduli with vectors: docs/theory/t10.md derives every factor here.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers.rounding import (
    TINY,
    UNIT,
    Bounded,
    gamma,
    inflated,
    solved,
    upper_product,
)
from oversmoothing.theory.support.sizes import Array, Complex

# Entries of a stack that are worked on together: more than fits a cache is slower than one by one.
_BLOCK = 2**14
# Matrices are scaled by a power of two unless their largest entry lies within this and its inverse.
_LARGE = 2.0**300


@dataclass(frozen=True)
class Discs:
    """Spectrum enclosed: centres complex [k], radii float [k], component int [k] (0, 1, ...).

    Every eigenvalue lies in the union; component c contains exactly as many eigenvalues (with
    multiplicity) as it has discs. basis: the P and Y [k, k] that prove them, where they were kept.
    """

    centres: Complex
    radii: Array
    component: NDArray[np.intp]
    basis: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self.centres)

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """bool [k], which discs touch no other: each holds one eigenvalue, which is real where the
        centre is, as that of a real matrix."""
        result: NDArray[np.bool_] = np.bincount(self.component)[self.component] == 1
        return result


@dataclass(frozen=True)
class Failure:
    """Why no enclosure was found."""

    reason: str


def with_zeros(discs: Discs, count: int) -> Discs:
    """The spectrum with `count` >= 1 exact zeros added; components are found for one of them."""
    centres, radii = np.append(discs.centres, 0.0), np.append(discs.radii, 0.0)
    parts = centres, radii, components(centres, radii)
    centres, radii, component = (np.append(x, np.repeat(x[-1], count - 1)) for x in parts)
    return Discs(centres, radii, component)


@dataclass(frozen=True)
class DiscStack:
    """The spectra of a stack enclosed one by one, stack[i] being `Discs` or a `Failure`.

    centres complex [m, k], radii [m, k] (infinite where there is a failure), component int [m, k].
    failures: why, by place. bases: what proved them, where it was kept.
    """

    centres: Complex
    radii: Array
    component: NDArray[np.intp]
    failures: dict[int, Failure] = field(default_factory=dict)
    bases: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.centres)

    def __getitem__(self, i: int) -> Discs | Failure:
        if i in self.failures:
            return self.failures[i]
        return Discs(self.centres[i], self.radii[i], self.component[i], self.bases.get(i))

    def __iter__(self) -> Iterator[Discs | Failure]:
        return (self[i] for i in range(len(self)))


def enclose(M: Array, error: Array | None = None) -> Discs | Failure:
    """Discs for every real matrix M' with |M' - M| <= error entrywise.

    M [k, k] float64; error [k, k] >= 0, none by default. Returns a `Failure` where M is too close
    to defective for this method.
    """
    return enclose_all(M[None], None if error is None else error[None])[0]


def enclose_all(M: Array, error: Array | None = None, keep: bool = False) -> DiscStack:
    """`enclose` for each of a stack, M [m, k, k] and error [m, k, k], in batched products. keep:
    with the basis, unless M is triangular."""
    m, k = len(M), M.shape[-1]
    error = np.zeros_like(M) if error is None else error
    size = max(1, _BLOCK // max(1, k**2))
    if m > size:
        parts = range(0, m, size)
        return _joined([enclose_all(M[i : i + size], error[i : i + size], keep) for i in parts])
    largest = np.abs(M).max(axis=(1, 2), initial=0.0)
    # False of what is no number.
    if ((largest < _LARGE) & ((largest > 1 / _LARGE) | (largest == 0))).all():
        return _discs(M, error, keep)
    return _joined(list(map(_scaled, M[:, None], error[:, None], largest.tolist())))


def _failed(M: Array, why: Failure) -> DiscStack:
    """One matrix M [1, k, k] of which nothing is proved."""
    none = np.zeros(M.shape[:2], dtype=np.intp)
    return DiscStack(none.astype(np.complex128), np.full(none.shape, np.inf), none, {0: why})


def _joined(parts: Sequence[DiscStack]) -> DiscStack:
    """Several stacks as one."""
    starts = np.cumsum([0, *map(len, parts[:-1])]).tolist()
    moved = list(zip(parts, starts, strict=True))
    return DiscStack(
        np.concatenate([part.centres for part in parts]),
        np.concatenate([part.radii for part in parts]),
        np.concatenate([part.component for part in parts]),
        {start + i: why for part, start in moved for i, why in part.failures.items()},
        {start + i: kept for part, start in moved for i, kept in part.bases.items()},
    )


_NOT_FINITE = "the matrix has entries that are not finite"
_OVERFLOW = "the error bounds overflow: scale the matrix"
_SINGULAR = "the eigenvectors are not independent in float64"
_NOT_SMALL = (
    "||I - V^-1 V|| <= {:.1e} is not small: the eigenvectors are too ill-conditioned to prove "
    "anything in float64"
)


def _scaled(M: Array, error: Array, largest: float) -> DiscStack:
    """Of one M [1, k, k] times a power of two: entries lose what is below all numbers, no more."""
    if not math.isfinite(largest):
        return _failed(M, Failure(_NOT_FINITE))
    power = math.frexp(largest)[1]
    with np.errstate(all="ignore"):
        small = np.ldexp(M, -power)
        lost = np.where(np.ldexp(small, power) == M, 0.0, TINY)
        stack = _discs(small, np.ldexp(error, -power) + lost + TINY * (error > 0), False)
        if stack.failures:
            return stack
        centres = np.ldexp(stack.centres.real, power) + 1j * np.ldexp(stack.centres.imag, power)
        # What a power of two pushes below all normal numbers is rounded.
        radii = np.ldexp(stack.radii, power)
        radii = np.where((stack.radii == 0) & (power >= 0), radii, radii + 2 * TINY)
    if not (np.isfinite(centres).all() and np.isfinite(radii).all()):
        return _failed(M, Failure(_OVERFLOW))
    return DiscStack(centres, radii, components(centres, radii))


def _discs(M: Array, error: Array, keep: bool) -> DiscStack:
    """The discs of a stack, finite and of moderate size."""
    off = (M != 0) | (error > 0)
    full = np.tril(off, -1).any(axis=(1, 2)) & np.triu(off, 1).any(axis=(1, 2))
    if full.all() and len(M):
        return _dense(M, error, keep)
    diagonals = M.diagonal(axis1=1, axis2=2).astype(np.complex128)
    radii = error.diagonal(axis1=1, axis2=2).copy()
    component = components(diagonals, radii)
    if not full.any():
        return DiscStack(diagonals, radii, component)
    places, dense = np.flatnonzero(full), _dense(M[full], error[full], keep)
    diagonals[full], radii[full], component[full] = dense.centres, dense.radii, dense.component
    failures = {int(places[i]): why for i, why in dense.failures.items()}
    bases = {int(places[i]): kept for i, kept in dense.bases.items()}
    return DiscStack(diagonals, radii, component, failures, bases)


def _dense(M: Array, error: Array, keep: bool) -> DiscStack:
    try:
        values, P, Y = eigenbasis(M)
    except np.linalg.LinAlgError as problem:
        if len(M) == 1:
            return _failed(M, Failure(f"{_SINGULAR} ({problem})"))
        return _joined([_dense(M[i : i + 1], error[i : i + 1], keep) for i in range(len(M))])
    # Bounds that overflow or become NaN fail the comparisons below, as they should.
    with np.errstate(all="ignore"):
        return _proved(M, error, values, P, Y, keep)


def eigenbasis(M: Array) -> tuple[Complex, Array, Array]:
    """(values [m, k], P, Y [m, k, k]) of a stack: columns of P are eigenvectors, or the real and
    the imaginary part of one of a pair, and Y is nearly its inverse. Raises LinAlgError."""
    symmetric = (M.swapaxes(1, 2) == M).all(axis=(1, 2))
    if symmetric.all():
        real, P = np.linalg.eigh(M)
        return real.astype(np.complex128), P, np.ascontiguousarray(P.swapaxes(1, 2))
    if symmetric.any():
        values = np.empty(M.shape[:2], dtype=np.complex128)
        P, Y = np.empty_like(M), np.empty_like(M)
        for part in (symmetric, ~symmetric):
            values[part], P[part], Y[part] = eigenbasis(M[part])
        return values, P, Y
    values, vectors = np.linalg.eig(M)
    P = np.where(values.imag[:, None, :] < 0, -vectors.imag, vectors.real)
    return values.astype(np.complex128), P, np.linalg.inv(P)


def _proved(M: Array, error: Array, values: Complex, P: Array, Y: Array, keep: bool) -> DiscStack:
    m, k = values.shape
    re, im = values.real, values.imag
    R = M @ P - P * re[:, None, :]
    weight = np.ones_like(re)
    partner = None
    if im.any():
        partner = np.arange(k) + np.sign(im).astype(np.intp)
        R += _swapped(P, partner) * im[:, None, :]
        weight[im != 0] = 2.0
    F = Y @ P
    F.reshape(m, -1)[:, :: k + 1] -= 1.0
    size_P, size_Y = np.abs(P), np.abs(Y)
    sums = np.ones((m, k, 3))
    sums[..., 0], sums[..., 1] = weight, weight * (np.abs(re) + np.abs(im))
    sums = upper_product(size_P, inflated(sums, 1))
    first = sums[..., :1]
    through = np.abs(R) @ weight[..., None] + gamma(k + 2) * (np.abs(M) @ first) + error @ first
    through += gamma(3) * sums[..., 1:2] + 2 * k * (k + 2) * TINY
    sums[..., :1] = inflated(through, 2 * k + 8)
    both = upper_product(size_Y, sums)
    g = both[..., 0]
    f = inflated(np.abs(F).sum(axis=-1) + gamma(k + 1) * both[..., 2] + k * k * TINY, k + 4)
    norm = f.max(axis=-1, keepdims=True)
    radii = inflated(g + f * (g.max(axis=-1, keepdims=True) / (1 - norm)), 6)
    if partner is not None:
        radii = np.where(im != 0, inflated((radii + _swapped(radii, partner)) / 2, 2), radii)
    failures = {}
    # Not "above": what is no number proves nothing.
    bad = ~((norm[:, 0] < 0.5) & (radii.max(axis=-1) < np.inf))
    for i in np.flatnonzero(bad).tolist() if bad.any() else ():
        size, radii[i] = float(norm[i, 0]), np.inf
        failures[i] = Failure(_OVERFLOW if size < 0.5 else _NOT_SMALL.format(size))
    label = components(values, radii)
    bases = {i: (P[i], Y[i]) for i in range(m) if i not in failures} if keep else {}
    return DiscStack(values, radii, label, failures, bases)


def _swapped(x: Array, partner: NDArray[np.intp]) -> Array:
    """The last axis of a stack with the two of each pair exchanged."""
    if len(x) == 1:
        return x[..., partner[0]]
    if x.ndim == 3:
        partner = partner[:, None, :]
    return np.take_along_axis(x, partner, axis=-1)


def components(centres: Complex, radii: Array) -> NDArray[np.intp]:
    """Connected components of unions of k discs, [..., k] (touching within rounding joins)."""
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.abs(centres[..., :, None] - centres[..., None, :])
        far = radii * (1 + 8 * UNIT) + 4 * UNIT * np.abs(centres)
        # Not "at most": what is no number may touch.
        touching = ~(distance > far[..., :, None] + far[..., None, :])
    label = np.tile(np.arange(centres.shape[-1]), (*centres.shape[:-1], 1))
    joined = touching.sum(axis=(-2, -1)) > centres.shape[-1]
    if joined.any():
        label[joined] = _labels(touching[joined])
    return label


def _labels(touching: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The component of each disc [m, k], by which of them touch [m, k, k]."""
    m, k = touching.shape[:2]
    stack, places = np.arange(m)[:, None], np.arange(k)
    first, known = np.tile(places, (m, 1)), False
    while not known:
        # All that have one first follow where any of them touches an earlier one: chains of k
        # discs in any order are joined in some log k rounds.
        before, nearer = first, np.where(touching, first[:, None, :], k).min(axis=-1)
        first = before.copy()
        np.minimum.at(first, (stack, before), nearer)
        first = first[stack, first]
        known = np.array_equal(first, before)
    return np.take_along_axis(np.cumsum(first == places, axis=-1) - 1, first, axis=-1)


def eigenvector(M: Bounded, discs: Discs, i: int) -> Bounded | None:
    """v [k] with M' v = lambda v for every real M' within M, lambda its one eigenvalue in the disc
    i, which is alone. None where none is proved; a left one is that of the transpose.

    With v* and w near the right and the left one, (M' - lambda) v + w t = 0 and v*^H v = 1 have one
    solution, by `solved`, however ill-conditioned M is elsewhere, and that has t = 0: were
    v*^H v = 0 for an eigenvector v, (v, 0) would be sent to 0.
    """
    k, z, places = len(M.value), discs.centres[i], np.arange(len(M.value))
    if not discs.alone[i] or i >= k:
        return None
    z = z if z.imag else z.real
    table, wide = np.zeros((k + 1, k + 1), dtype=np.asarray(z).dtype), np.zeros((k + 1, k + 1))
    table[:k, :k], wide[:k, :k] = M.value, M.error
    table[places, places] -= z
    wide[places, places] += discs.radii[i] + 2 * UNIT * np.abs(table[places, places])
    nearly = table[:k, :k].copy()
    nearly[places, places] += 2.0**-40 * (np.abs(M.value).max() + TINY)
    with np.errstate(all="ignore"):
        try:
            v, w = (np.linalg.solve(x, np.cos(places)) for x in (nearly, nearly.T))
        except np.linalg.LinAlgError:
            return None
        table[:k, k], table[k, :k] = w.conj() / np.linalg.norm(w), v.conj() / np.linalg.norm(v)
        x = solved(Bounded(table, inflated(wide, 4)), Bounded.near(np.eye(k + 1)[k], 0.0))
    return None if x is None else x[:k]
