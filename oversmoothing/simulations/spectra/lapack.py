"""The reference: spec(A) by LAPACK (geev) and the decision over all pairs.

Values alone first. Where the margin is not clear of what LAPACK may have lost on an ill-conditioned
eigenvalue, discs (theory.spectra.discs) decide, or the answer is UNDECIDED.
"""

import numpy as np
from jaxtyping import Complex128, Float, Float64
from numpy.typing import NDArray

from oversmoothing.simulations.spectra.head_values import SAFETY, HeadValues
from oversmoothing.theory.layer.attention import closed_classes, quotient
from oversmoothing.theory.spectra.discs import Failure
from oversmoothing.theory.spectra.layer_discs import (
    EPS,
    attention_discs,
    largest_modulus,
    within_unit,
)
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict import by_discs
from oversmoothing.theory.verdict.formulas import Outcome

Values = Array | float

# Values alone are trusted to an eigenvalue condition of 1e7, more than trained attention has shown.
# Closer to a tie than that, discs decide.
TRUSTED_CONDITION = 1e7


def normalised(A: Float[NDArray[np.floating], "*batch n n"]) -> Float64[Array, "*batch n n"]:
    """A [n, n] in float64 with each row divided by its sum."""
    double = A.astype(np.float64)
    return np.asarray(double / double.sum(axis=-1, keepdims=True))


def quotient_values(A: Float64[Array, "n n"]) -> Complex128[Complex, " n-1"]:
    """spec(A) without one copy of 1 [n-1], by geev, for A [n, n] with rows summing to 1."""
    return np.linalg.eigvals(quotient(A)).astype(np.complex128)


def values_error(A: Array) -> float:
    """The error to which `quotient_values` is trusted: k eps ||B|| times `TRUSTED_CONDITION`."""
    size = float(np.linalg.norm(A - A.mean(axis=0))) + 4 * EPS * float(np.linalg.norm(A))
    return len(A) * EPS * size * TRUSTED_CONDITION


def decide(
    consensus_low: Values, consensus_high: Values, quotient_low: Values, quotient_high: Values
) -> NDArray[np.int8]:
    """1 SMOOTHING, -1 NON_SMOOTHING, 0 TIE (structure alone gives equal intervals), 2 undecided."""
    low, high = np.subtract(consensus_low, quotient_high), np.subtract(consensus_high, quotient_low)
    known = np.equal(consensus_low, consensus_high) & np.equal(quotient_low, quotient_high)
    return np.select([known & (low == 0), low > 0, high < 0], [0, 1, -1], 2).astype(np.int8)


def values_interval(a: Complex, head: HeadValues, error: float) -> tuple[float, float]:
    """(low, high) of rho_Q from computed values with that error each, `SAFETY` times over."""
    top = largest_modulus(a, head.corners)[0]
    size = float(np.abs(a).max(initial=0.0))
    reach = SAFETY * (head.largest * error + (size + error) * head.error + 4 * EPS * (1 + top))
    return max(top - reach, head.floor), max(top + reach, head.floor)


def disc_interval(A: Array, head: HeadValues) -> tuple[int, float, float]:
    """(verdict code, low, high) by discs of the matrices themselves."""
    found = attention_discs(A)
    attention = within_unit(A) if isinstance(found, Failure) else found
    decided = by_discs.decide(attention, head.discs, len(closed_classes(A)) - 1)
    codes = {Outcome.SMOOTHING: 1, Outcome.NON_SMOOTHING: -1, Outcome.TIE: 0}
    return codes.get(decided.outcome, 2), decided.quotient.low, decided.quotient.high


def class_of(a: Complex, head: HeadValues, error: float) -> str:
    """Which a dominates a NON_SMOOTHING pair: 'smallest' real part of spec(A), or 'other'."""
    place = largest_modulus(a, head.corners)[1]
    return "smallest" if a[place].real <= a.real.min() + 2 * error else "other"
