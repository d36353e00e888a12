"""What a decision needs of a head, and which eigenvalue dominates a whole layer (T1, T3).

|1 + h a| is convex in h, so that only the corners of the convex hull of the h_j can be the largest
for any a. A head of rank r < d has d - r eigenvalues 0 exactly: their modes have modulus 1 whatever
a is, so that neither radius is below 1.

`layer_dominance` is reading E2 of Table 1 of arXiv 2401.04301: one case is an (image, layer); A is
the mean over the heads, H the whole value-projection product, and the dominating eigenvalue is the
largest |1 + h_j a_i| over ALL pairs (j, i) (T1a). Where the heads share one H, I + H (x) mean(A) is
the layer's operator, exactly, up to LN and the FFN. Spectra are complex in general. "smallest" is
the class of the eigenvalue of A with the smallest real part, which is the paper's lambda_1 where
the spectrum is real; another eigenvalue may win when it is not (T3a), the class "other".

`asymmetry` is 0 for a symmetric H, infinite for an antisymmetric one. The share
||H - H^T||_F / (2 ||H||_F), which has the same two ends, is 1/sqrt(2) for independent entries; it
is r / sqrt(1 + r^2) of this ratio r and never exceeds 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex128, Float, Float64, Inexact
from numpy.typing import NDArray

from oversmoothing.theory.layer.layer import check_attention
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
from oversmoothing.theory.verdict.formulas import (
    Dominance,
    Outcome,
    disc_form,
    dominance,
    outcome_of,
    safe_interval,
)

CLASSES = ("consensus", "smallest", "other", "tie")
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


def _values(spectrum: Discs | Failure, H: Array) -> HeadValues:
    discs = known_values(spectrum, H)
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
    discs = attention_discs(A)
    return within_unit(A) if isinstance(discs, Failure) else discs


def known_values(discs: Discs | Failure, H: Array) -> Discs:
    """Discs of spec(H) where they were found, else all within the norm of H."""
    return within_norm(H) if isinstance(discs, Failure) else discs


def hull_corners(points: Inexact[np.ndarray, " k"]) -> Complex128[Complex, " v"]:
    """The vertices of the convex hull of complex points [k], by Andrew's monotone chain.

    A point that rounding places on an edge may be kept; a true vertex is never lost by more than
    rounding.
    """
    order = sorted({(float(p.real), float(p.imag)) for p in points})
    if len(order) <= 2:
        return np.array([complex(*p) for p in order], dtype=np.complex128)
    vertices = _chain(order) + _chain(order[::-1])
    return np.array([complex(*p) for p in vertices], dtype=np.complex128)


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


def asymmetry_at_random(d: int) -> float:
    """The ratio of the root mean squares for H [d, d] whose entries have mean 0, one variance s^2
    and no correlation: sqrt((d - 1) / (d + 1)).

    E ||H - H^T||^2 = 2 d (d - 1) s^2, and the diagonal adds 4 d s^2 to E ||H + H^T||^2. The same
    holds of H = sum_h (W_V,h W_O,h)^T for independent W_V and W_O.
    """
    return math.sqrt((d - 1) / (d + 1))


@dataclass(frozen=True)
class LayerDominance:
    """One layer over m images.

    classes [m]: 'consensus', 'smallest', 'other' or 'tie'. rho_consensus: max_j |1 + h_j|, the same
    for every image. rho_quotient [m]. safe [m]: s of the interval (-s, 0) in which a real h loses
    at consensus (T3b). outside [m]: share of the eigenvalues h_j at which consensus does not lose,
    counted alone, j by j; for real h the share outside (-s, 0). h [d] complex: eigenvalues of H.
    subdominant [m]: the second largest |a|, 0 for one token.
    """

    classes: NDArray[np.str_]
    rho_consensus: float
    rho_quotient: NDArray[np.float64]
    safe: NDArray[np.float64]
    outside: NDArray[np.float64]
    h: NDArray[np.complex128]
    subdominant: NDArray[np.float64]

    def share(self, name: str) -> float:
        """The share of the images in one class."""
        return float((self.classes == name).mean())

    @property
    def within_unit(self) -> bool:
        """Whether every h_j is real in [-1, 0): then no image can be won by consensus (T3d)."""
        return bool(((self.h.imag == 0) & (self.h.real >= -1) & (self.h.real < 0)).all())


def mean_attention(attention: Float[np.ndarray, "m heads n n"]) -> Float64[Array, "m n n"]:
    """Attention of the heads [m, heads, n, n] -> mean over heads [m, n, n], float64, rows sum to 1.

    The model's float32 rows sum to 1 within rounding; each is divided by its sum. Raises
    `InputError` for anything that is not row-stochastic to that precision.
    """
    tolerance = attention.shape[-1] * float(np.finfo(attention.dtype).eps)
    return check_attention(attention.astype(np.float64).mean(axis=1), tolerance=tolerance)


def layer_dominance(
    attention: NDArray[np.floating], H: NDArray[np.float64] | Discs
) -> LayerDominance:
    """Reading E2 for one layer: attention [m, heads, n, n] of m images, H [d, d] float64, or its
    eigenvalues in discs.

    Raises `InputError` where the attention is not row-stochastic.
    """
    value = H if isinstance(H, Discs) else known_values(value_discs(H), H)
    h = value.centres
    cases = [known_attention(A) for A in mean_attention(attention)]
    decided = [dominance(a.centres, h) for a in cases]
    loses = [(disc_form(h[None, :], a.centres[:, None]) < 0).any(axis=0) for a in cases]
    classes = [_class_of(decision, a, value) for decision, a in zip(decided, cases, strict=True)]
    return LayerDominance(
        classes=np.array(classes),
        rho_consensus=decided[0].rho_consensus,
        rho_quotient=np.array([each.rho_quotient for each in decided]),
        safe=np.array([safe_interval(a.centres) for a in cases]),
        outside=np.array([1 - each.mean() for each in loses]),
        h=h,
        subdominant=np.array([np.abs(a.centres).max(initial=0.0) for a in cases]),
    )


def _class_of(result: Dominance, attention: Discs, value: Discs) -> str:
    a, h = attention.centres, value.centres
    if result.quotient_index is None:
        return "consensus"
    i, j = result.quotient_index
    # What |1 + h_j| - |1 + h_k a_i| may be off by over the discs.
    error = (
        value.radii[result.consensus_index]
        + abs(a[i]) * value.radii[j]
        + abs(h[j]) * attention.radii[i]
        + np.finfo(np.float64).eps * (result.rho_consensus + result.rho_quotient)
    )
    outcome = outcome_of(result.margin - error, result.margin + error)
    if outcome is not Outcome.NON_SMOOTHING:
        return "consensus" if outcome is Outcome.SMOOTHING else "tie"
    # A conjugate pair shares its real part, so equality up to the errors counts.
    smallest = int(np.argmin(a.real))
    reach = attention.radii[i] + attention.radii[smallest]
    return "smallest" if a[i].real <= a[smallest].real + reach else "other"
