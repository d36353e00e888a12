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

In this similarity an eigenvector of a disc that touches no other is near a unit vector: what
rounding, and the matrices within the error, can turn it by is read off the radii.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.numbers.rounding import TINY, UNIT, gamma, inflated, upper_product
from oversmoothing.theory.support.sizes import Array, Complex


@dataclass(frozen=True)
class Basis:
    """The similarity that proves some discs, for every M' with |M' - M| <= error.

    component, re, im, radii [k]: of the discs. M, error, P, Y, R, F [k, k]: R and F as computed.
    rows [k]: bounds of the row sums of |F|.
    """

    component: NDArray[np.intp]
    M: Array
    error: Array
    P: Array
    Y: Array
    R: Array
    F: Array
    re: Array
    im: Array
    radii: Array
    rows: Array

    @cached_property
    def partner(self) -> NDArray[np.intp]:
        """[k], the other column of a pair; itself for a real eigenvalue."""
        return np.arange(len(self.im)) + np.sign(self.im).astype(np.intp)

    def right(self, i: int) -> tuple[Complex, Array] | None:
        """(v, e) [k]: an eigenvector for disc i, which is alone, lies within e of v.

        Of the eigenvector y of the complex form D + E the largest entry is y_i, taken as 1: were it
        y_m, the eigenvalue would lie in disc m. So |y_m| <= r_m / (|D_i - D_m| - r_i), and the
        vector is P y. None where other discs are too near to say so.
        """
        y = self._others(i, self.radii)
        if y is None:
            return None
        # |p +- iq| <= |p| + |q| for both members of a pair.
        y = np.where(self.im != 0, y + y[self.partner], y)
        return self._complex(self.P.T, i, 1j), inflated(np.abs(self.P) @ y, len(y) + 4)

    def left(self, i: int) -> tuple[Complex, Array] | None:
        """The same for w^T M = lambda w^T: z^T (D + E) = lambda z^T and w^T = z^T P^-1.

        The column sums of |E| are in the place of r, and P^-1 = Y + F P^-1. None also where the
        disc of a column could hold the eigenvalue.
        """
        z = self._others(i, self.columns)
        if z is None:
            return None
        pair = self.im != 0
        z = np.where(pair, (z + z[self.partner]) / 2, z)
        weights, size = z.copy(), np.abs(self.Y)
        weights[[i, self.partner[i]]] += 0.5 if pair[i] else 1.0
        lost = float(weights @ self.rows) / (1 - float(self.rows.max()))
        error = inflated(z @ size + lost * size.max(axis=0), 2 * len(z) + 8)
        row = self._complex(self.Y, i, -1j)
        return (row / 2 if pair[i] else row), error

    def _complex(self, rows: Array, i: int, unit: complex) -> Complex:
        """Row i, or first + unit second of its pair, for the second with the other sign."""
        other = int(self.partner[i])
        if other == i:
            return np.asarray(rows[i], dtype=np.complex128)
        row: Complex = rows[min(i, other)] + (unit if i < other else -unit) * rows[max(i, other)]
        return row

    @cached_property
    def columns(self) -> Array:
        """Bounds of the column sums of |E| in complex form: at most those of |Y| |R| over
        1 - (the largest column sum of |F|), as |E| <= |Y| |R| + |F| |E|. Infinite without any."""
        k, P, M = len(self.im), np.abs(self.P), np.abs(self.M)
        sums = inflated(np.abs(self.Y).sum(axis=0), k)
        through = inflated(
            np.stack([sums, gamma(k + 2) * (sums @ M) + sums @ self.error]) @ P, 2 * k
        )
        values = through[0] * np.abs(self.re) + (through[0] * np.abs(self.im))[self.partner]
        top = sums @ np.abs(self.R) + through[1] + gamma(3) * values + 2 * k * k * TINY * sums.sum()
        defect = np.abs(self.F).sum(axis=0) + gamma(k + 1) * through[0] + 2 * k * k * TINY
        largest = float(inflated(defect, 2 * k).max())
        if not largest < 1:
            return np.full(k, np.inf)
        bounds = inflated(top, 4 * k) / (1 - largest)
        bounds = np.where(self.im != 0, bounds + bounds[self.partner], bounds)
        return inflated(bounds, 4)

    def _others(self, i: int, sums: Array) -> Array | None:
        """|y_m| <= sums_m / (|D_i - D_m| - r_i), [k], 0 at i; None where it may be 1."""
        if np.count_nonzero(self.component == self.component[i]) > 1:
            return None
        D = self.re + 1j * self.im
        gap = np.abs(D - D[i]) * (1 - 8 * UNIT) - self.radii[i]
        gap[i] = np.inf
        bounds = sums / gap
        if not ((gap > 0) & (bounds < 1)).all():
            return None
        result: Array = inflated(bounds, 4) * (sums > 0) * (gap < np.inf)
        return result


# Entries of a stack that are worked on together: more than fits a cache is slower than one by one.
_BLOCK = 2**14
# Matrices are scaled by a power of two unless their largest entry lies within this and its inverse.
_LARGE = 2.0**300


@dataclass(frozen=True)
class Discs:
    """Spectrum enclosed: centres complex [k], radii float [k], component int [k] (0, 1, ...).

    Every eigenvalue lies in the union; component c contains exactly as many eigenvalues (with
    multiplicity) as it has discs. basis: what proved them, where it was kept.
    """

    centres: Complex
    radii: Array
    component: NDArray[np.intp]
    basis: Basis | None = None

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


def interval_discs(middle: Array, radii: Array) -> Discs:
    """Real eigenvalues [k] known up to radii [k]."""
    centres = middle.astype(np.complex128)
    return Discs(centres, radii, components(centres, radii))


def with_zeros(discs: Discs, count: int) -> Discs:
    """The spectrum with `count` >= 1 exact zeros added; components are found for one of them."""
    centres, radii = np.append(discs.centres, 0.0), np.append(discs.radii, 0.0)
    component = components(centres, radii)
    again = np.zeros(count - 1)
    return Discs(
        np.append(centres, again),
        np.append(radii, again),
        np.append(component, np.full(count - 1, component[-1])),
        discs.basis,
    )


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
    bases: dict[int, Basis] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.centres)

    def __getitem__(self, i: int) -> Discs | Failure:
        if i in self.failures:
            return self.failures[i]
        return Discs(self.centres[i], self.radii[i], self.component[i], self.bases.get(i))

    def __iter__(self) -> Iterator[Discs | Failure]:
        return (self[i] for i in range(len(self)))


def enclose(M: Array, error: Array | None = None, keep: bool = False) -> Discs | Failure:
    """Discs for every real matrix M' with |M' - M| <= error entrywise.

    M [k, k] float64; error [k, k] >= 0, none by default. keep: with the basis, unless M is
    triangular. Returns a `Failure` where M is too close to defective for this method.
    """
    return enclose_all(M[None], None if error is None else error[None], keep)[0]


def enclose_all(M: Array, error: Array | None = None, keep: bool = False) -> DiscStack:
    """`enclose` for each of a stack, M [m, k, k] and error [m, k, k], in batched products."""
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


def by_vectors(M: Array, error: Array) -> Discs | Failure:
    """`enclose` with the basis, of a triangular M too (of moderate size)."""
    return _dense(M[None], error[None], True)[0]


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
    full = off[:, -1, 0] & off[:, 0, -1] if M.shape[-1] > 1 else np.zeros(len(M), dtype=bool)
    if not full.all():
        # The corners do not tell.
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
    symmetric = M[:, 0, -1] == M[:, -1, 0]
    if symmetric.any():
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
    if np.iscomplexobj(values):
        P = np.where(values.imag[:, None, :] < 0, -vectors.imag, vectors.real)
    else:
        P = vectors
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
    bases = {}
    if keep:
        parts = (label, M, error, P, Y, R, F, re, im, radii, f)
        bases = {i: Basis(*(x[i] for x in parts)) for i in range(m) if i not in failures}
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
    label = np.empty(centres.shape, dtype=np.intp)
    label[...] = np.arange(centres.shape[-1])
    joined = touching.sum(axis=(-2, -1)) > centres.shape[-1]
    for place in map(tuple, np.argwhere(joined).tolist()) if joined.any() else ():
        label[place] = _labels(touching[place])
    return label


def _labels(touching: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The component of each of k discs [k], by which of them touch [k, k]."""
    label: NDArray[np.intp] = np.full(len(touching), -1, dtype=np.intp)
    alone = touching.sum(axis=1) == 1
    count = int(np.count_nonzero(alone))
    label[alone] = np.arange(count)
    for start in np.flatnonzero(~alone).tolist():
        if label[start] >= 0:
            continue
        front = np.array([start])
        while len(front):
            label[front] = count
            front = np.flatnonzero(touching[front].any(axis=0) & (label < 0))
        count += 1
    return label


class Vectors:
    """Where the eigenvectors of some discs are found: in their basis, or in another one, `again`,
    where the discs stood on a diagonal."""

    def __init__(self, given: Discs, again: Callable[[], Discs | Failure]) -> None:
        self._given, self._again = given, again

    @cached_property
    def discs(self) -> Discs | None:
        """Those with the basis; None where there is none."""
        discs: Discs | Failure = self._given if self._given.basis is not None else self._again()
        return None if isinstance(discs, Failure) or discs.basis is None else discs

    def find(self, i: int) -> tuple[Basis, int] | None:
        """(basis, place) of the eigenvalue in the disc i, which is alone."""
        discs = self.discs
        if discs is None or discs.basis is None:
            return None
        if discs is self._given:
            return (discs.basis, i) if i < len(discs.basis.re) else None
        given = self._given
        near = np.abs(discs.centres - given.centres[i]) <= 2 * (discs.radii + given.radii[i])
        places = np.flatnonzero(near)
        alone = len(places) == 1 and discs.alone[places[0]]
        return (discs.basis, int(places[0])) if alone else None
