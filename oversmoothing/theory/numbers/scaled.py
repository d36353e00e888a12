"""An array with a power of two apart, value times 2^exponent, in numpy (T11.5).

Multiplying by a power of two is exact: a state may grow or shrink by any number of layers. One int
exponent for the whole array. simulations.states.scaled does the same to batches of torch tensors.
"""

import math

import numpy as np

from oversmoothing.theory.support.arrays import Array

# From the smallest subnormal past the largest float: beyond it is 0 or inf in any case.
_REACH = 2200


def scale(x: Array, exponent: int) -> Array:
    """x 2^exponent, exact but for over- and underflow."""
    result: Array = np.ldexp(x, max(-_REACH, min(_REACH, exponent)))
    return result


def normalise(x: Array, exponent: int = 0) -> tuple[Array, int]:
    """(y, e) with 2^exponent x = 2^e y and the largest entry of y in [1/2, 1).

    Zero and non-finite x stay as they are.
    """
    top = float(np.abs(x).max(initial=0.0))
    if top == 0.0 or not math.isfinite(top):
        return x, exponent
    shift = math.frexp(top)[1]
    return scale(x, -shift), exponent + shift


def add(a: Array, a_exponent: int, b: Array, b_exponent: int) -> tuple[Array, int]:
    """2^a_exponent a + 2^b_exponent b as (value, exponent), the larger of the non-zero parts."""
    if not b.any():
        return a, a_exponent
    if not a.any():
        return b, b_exponent
    top = max(a_exponent, b_exponent)
    return scale(a, a_exponent - top) + scale(b, b_exponent - top), top
