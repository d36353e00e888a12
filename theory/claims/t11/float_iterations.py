"""Float64 iterations, with and without scaling, for the claims on range and drift."""

import math

import numpy as np

from oversmoothing.theory.proofs.kit import by
from oversmoothing.theory.support.arrays import Array


def naive_layers(A: Array, h: float, x: Array, depth: int) -> list[Array]:
    """The states x + h A x at layers 0 ... depth, with nothing split off."""
    states = [x]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            states.append(states[-1] + h * (A @ states[-1]))
    return states


def scaled_row(h: float, exact: float) -> by.Measurement:
    """log |y_L/(2 c_L)| after 20000 layers y' = y + h y/2, c' = c + h c from (1, 3/2).

    Powers of two are split off at each layer.

    For two tokens and a symmetric A with a = 1/2: HFC = |y|/sqrt 2 with y = x_1 - x_2, and
    LFC = sqrt 2 |c|. One rounding a layer in y, none in c, then those of the logarithm.
    """
    depth, exponent, y, c = 20000, 0, 1.0, 1.5
    for _ in range(depth):
        y, shift_y = math.frexp(y + h * 0.5 * y)
        c, shift_c = math.frexp(c + h * c)
        exponent += shift_y - shift_c
    found = math.log(abs(y / (2 * c))) + exponent * math.log(2)
    tolerance = depth * 2.0**-53 + abs(exact) * 2.0**-52
    return by.Measurement(f"log HFC/LFC at L = {depth}", exact, found, tolerance)
