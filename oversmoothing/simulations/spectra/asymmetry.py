"""How far a matrix is from symmetric: ||H - H^T||_F / ||H + H^T||_F.

0 for a symmetric H, infinite for an antisymmetric one. The share ||H - H^T||_F / (2 ||H||_F), which
has the same two ends, is 1/sqrt(2) for independent entries; it is r / sqrt(1 + r^2) of this ratio r
and never exceeds 1.
"""

import math

import numpy as np

from oversmoothing.theory.support.sizes import Array


def asymmetry(H: Array) -> float:
    """||H - H^T||_F / ||H + H^T||_F of H [d, d]; 0 for H = 0."""
    skew, even = float(np.linalg.norm(H - H.T)), float(np.linalg.norm(H + H.T))
    if even == 0.0:
        return math.inf if skew else 0.0
    return skew / even


def asymmetry_at_random(d: int) -> float:
    """The ratio of the root mean squares for H [d, d] whose entries have mean 0, one variance s^2
    and no correlation: sqrt((d - 1) / (d + 1)).

    E ||H - H^T||^2 = 2 d (d - 1) s^2, and the diagonal adds 4 d s^2 to E ||H + H^T||^2. The same
    holds of H = sum_h (W_V,h W_O,h)^T for independent W_V and W_O.
    """
    return math.sqrt((d - 1) / (d + 1))
