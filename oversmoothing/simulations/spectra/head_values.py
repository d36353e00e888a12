"""What a decision needs of a head: the corners of its spectrum, rho_C, and how symmetric H is.

|1 + h a| is convex in h, so that only the corners of the convex hull of the h_j can be the largest
for any a. A head of rank r < d has d - r eigenvalues 0 exactly: their modes have modulus 1 whatever
a is, so that neither radius is below 1.

`asymmetry` is 0 for a symmetric H, infinite for an antisymmetric one. The share
||H - H^T||_F / (2 ||H||_F), which has the same two ends, is 1/sqrt(2) for independent entries; it
is r / sqrt(1 + r^2) of this ratio r and never exceeds 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Inexact

from oversmoothing.theory.spectra.discs import Discs, Failure
from oversmoothing.theory.spectra.layer_discs import (
    Interval,
    attention_discs,
    consensus_radius,
    head_discs,
    value_discs,
    within_norm,
    within_unit,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array, Complex

# A margin counts where it exceeds this many error estimates.
SAFETY = 10.0


@dataclass(frozen=True)
class HeadValues:
    """spec(H) of one head.

    discs: of all d eigenvalues, exact zeros included. corners [v]: complex, the vertices of the
    hull of the others, in the closed upper half plane and below it alike. floor: 1.0 where an exact
    zero is among the eigenvalues, else 0.0. consensus: rho_C. error: the largest radius of a disc.
    """

    discs: Discs
    corners: Complex
    floor: float
    consensus: Interval
    error: float

    @property
    def largest(self) -> float:
        """max |h_j|."""
        return float(np.abs(self.corners).max(initial=0.0))


def head_values(W_V: Array, W_O: Array) -> HeadValues:
    """The head with H = (W_V W_O)^T, W_V [d, r], W_O [r, d]: core r x r and d - r exact zeros.

    Raises `InputError` for factors of other shapes or with entries that are not finite.
    """
    first, second = np.asarray(W_V, dtype=np.float64), np.asarray(W_O, dtype=np.float64)
    if first.ndim != 2 or second.shape != first.shape[::-1] or first.size == 0:
        raise InputError(
            f"W_V and W_O have shapes {list(first.shape)} and {list(second.shape)}; a head needs "
            "[d, r] and [r, d]"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("W_V and W_O must be finite: replace NaN and infinite entries")
    return _values(head_discs(first, second), (first @ second).T)


def dense_values(H: Array) -> HeadValues:
    """The same for a whole H [d, d] (several heads together): no eigenvalue is known exactly."""
    whole = np.asarray(H, dtype=np.float64)
    return _values(value_discs(whole), whole)


def _values(found: Discs | Failure, H: Array) -> HeadValues:
    discs = known_values(found, H)
    zero = (discs.radii == 0) & (discs.centres == 0)
    return HeadValues(
        discs,
        hull_corners(discs.centres[~zero]),
        1.0 if zero.any() else 0.0,
        consensus_radius(discs),
        float(discs.radii.max(initial=0.0)),
    )


def known_attention(A: Array) -> Discs:
    """Discs of spec(A) without one 1; where there are none, all within the unit disc."""
    found = attention_discs(A)
    return within_unit(A) if isinstance(found, Failure) else found


def known_values(found: Discs | Failure, H: Array) -> Discs:
    """Discs of spec(H) where they were found, else all within the norm of H."""
    return within_norm(H) if isinstance(found, Failure) else found


def hull_corners(points: Inexact[np.ndarray, " k"]) -> Complex128[Complex, " v"]:
    """The vertices of the convex hull of complex points [k], by Andrew's monotone chain.

    A point that rounding places on an edge may be kept; a true vertex is never lost by more than
    rounding.
    """
    order = sorted({(float(p.real), float(p.imag)) for p in points})
    if len(order) <= 2:
        return np.array([complex(*p) for p in order], dtype=np.complex128)
    found = _chain(order) + _chain(order[::-1])
    return np.array([complex(*p) for p in found], dtype=np.complex128)


def _chain(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """One side of the hull, without its last point."""
    kept: list[tuple[float, float]] = []
    for p in points:
        while len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2], kept[-1]
            if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                break
            kept.pop()
        kept.append(p)
    return kept[:-1]


@dataclass(frozen=True)
class HeadTable:
    """Several heads as arrays, padded to one number of corners (by repeating one).

    corners [heads, v] complex; largest, floor, consensus_low, consensus_high, error: [heads].
    """

    corners: Complex
    largest: Array
    floor: Array
    consensus_low: Array
    consensus_high: Array
    error: Array


def head_table(heads: Sequence[HeadValues]) -> HeadTable:
    """The heads side by side; a repeated corner changes no maximum."""
    width = max(1, *(len(head.corners) for head in heads))
    corners = np.zeros((len(heads), width), dtype=np.complex128)
    for k, head in enumerate(heads):
        if len(head.corners):
            corners[k] = head.corners[0]
            corners[k, : len(head.corners)] = head.corners
    rows = [(h.largest, h.floor, h.consensus.low, h.consensus.high, h.error) for h in heads]
    return HeadTable(corners, *np.array(rows).reshape(-1, 5).T.copy())


def asymmetry_at_random(d: int) -> float:
    """The ratio of the root mean squares for H [d, d] whose entries have mean 0, one variance s^2
    and no correlation: sqrt((d - 1) / (d + 1)).

    E ||H - H^T||^2 = 2 d (d - 1) s^2, and the diagonal adds 4 d s^2 to E ||H + H^T||^2. The same
    holds of H = sum_h (W_V,h W_O,h)^T for independent W_V and W_O.
    """
    return math.sqrt((d - 1) / (d + 1))
