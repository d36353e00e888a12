"""Which eigenvalue dominates a layer, image by image, with its radii and safe intervals (T1, T3).

Reading E2 of Table 1 of arXiv 2401.04301: one case is an (image, layer); A is the mean over the
heads, H the whole value-projection product, and the dominating eigenvalue is the largest
|1 + h_j a_i| over ALL pairs (j, i) (T1a). Where the heads share one H, I + H (x) mean(A) is the
layer's operator, exactly, up to LN and the FFN.

Spectra are complex in general. "smallest" is the class of the eigenvalue of A with the smallest
real part, which is the paper's lambda_1 where the spectrum is real; another eigenvalue may win
when it is not (T3a), the class "other".
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import NDArray

from oversmoothing.simulations.spectra.head_values import known_attention, known_values
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.spectra.layer_discs import value_discs
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import (
    Dominance,
    Outcome,
    disc_form,
    dominance,
    outcome_of,
    safe_interval,
)


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


def mean_attention(
    attention: Float[NDArray[np.floating], "m heads n n"],
) -> Float64[Array, "m n n"]:
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
    classes = [_class_of(found, a, value) for found, a in zip(decided, cases, strict=True)]
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
