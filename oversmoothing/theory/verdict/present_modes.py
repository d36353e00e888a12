"""What of X_0 is there: the radii of its modes, and from which depth they show (T4e)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.spectra.radii import Interval, multipliers
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.verdict.expansion import DOUBT, GAP, Expansion


def shows_from(expansion: Expansion) -> float | None:
    """About the depth from which the largest mode that is there outweighs the others (T4e).

    log(||X_0|| / size) / log(rho / rho'), size the norms of the parts of X_0 that grow like rho,
    summed over their phases: spectral projections, the same in every basis of repeated eigenvalues.
    None where modes that may be there or not would lead, or where their size is below all
    normal numbers.
    """
    mu = multipliers(expansion.attention, expansion.value)
    moduli, sure = np.abs(mu), expansion.present
    rho = _top(moduli, sure)
    if rho <= 0 or _top(moduli, expansion.doubtful) > rho:
        return None
    leading = sure & (moduli >= rho * (1 - GAP))
    rest = _top(moduli, sure & ~leading)
    if rest <= 0:
        return 0.0
    size, left = 0.0, leading
    while left.any():
        same = left & (np.abs(mu - mu[left][0]) <= GAP * rho)
        size += _norm(expansion, same)
        left = left & ~same
    if not 0 < size < math.inf:
        return None
    share = math.log(_norm(expansion, sure)) - math.log(size)
    return max(0.0, share / math.log(rho / rest))


def _norm(expansion: Expansion, kept: NDArray[np.bool_]) -> float:
    """The Frobenius norm of some modes of X_0 together, over the largest coefficient of all: its
    square may be below all numbers."""
    with np.errstate(all="ignore"):
        # A largest one below all normal numbers leaves nothing finite.
        weights = expansion.coefficients / np.abs(expansion.coefficients).max()
        part = np.abs(expansion.V @ np.where(kept, weights, 0.0) @ expansion.U.T)
    largest = float(part.max())
    return largest * float(np.linalg.norm(part / largest)) if largest else 0.0


@dataclass(frozen=True)
class PresentRadii:
    """The largest |mu| on each side over the modes that X_0 contains (T4e), -1 where there is none:
    from those that are there beyond doubt to those that may be there.

    tie: structure makes the two sides equal, and whatever else may be there is below.
    """

    consensus: Interval
    quotient: Interval
    tie: bool


def present_radii(expansion: Expansion) -> PresentRadii:
    """What of X_0 is in consensus, and what in differences between tokens.

    Several classes are at consensus among themselves as far as their means agree: where those of
    one h differ, |1 + h| stands on both sides. So does 1 where h = 0, whatever a is.
    """
    split = len(expansion.coefficients) - expansion.classes
    mu = np.abs(multipliers(expansion.attention, expansion.value))
    means = expansion.coefficients[split:]
    scale = DOUBT * expansion.error * np.abs(expansion.coefficients).max()
    apart = np.abs(means - means[0]).max(axis=0)
    # Rows: the modes off a = 1, and the differences between the class means.
    sure = np.vstack([expansion.present[:split], (apart > scale)[None]])
    # Means that came out as equal may differ by less than their sums can show.
    several = np.full_like(apart, expansion.classes > 1, dtype=bool)
    possible = sure | np.vstack([expansion.doubtful[:split], several[None]])
    moduli = np.vstack([mu[:split], mu[-1:]])
    here = np.asarray(expansion.present[split:].any(axis=0))
    maybe = here | np.asarray(expansion.doubtful[split:].any(axis=0))
    consensus = Interval(_top(mu[-1], here), _top(mu[-1], maybe))
    quotient = Interval(_top(moduli, sure), _top(moduli, possible))
    top = here & (mu[-1] == consensus.low)
    equal = np.zeros_like(sure)
    equal[-1] = top
    if (top & (expansion.value == 0)).any():
        equal[:, expansion.value == 0] = True
    # Moduli that may be 0 may both have died out.
    below = consensus.low * (1 - max(DOUBT * expansion.error, 1e-12))
    if consensus.low <= expansion.vanishing:
        below = -1.0
    rest = np.asarray(maybe & ~top)
    others = max(_top(moduli, np.asarray(possible & ~equal)), _top(mu[-1], rest))
    return PresentRadii(consensus, quotient, bool((sure & equal).any() and others < below))


def _top(moduli: Array, kept: NDArray[np.bool_]) -> float:
    return float(moduli[kept].max(initial=-1.0))
