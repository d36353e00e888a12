"""Float64 iterations, with and without scaling, for the claims on range and drift."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def naive_layers(A: Array, h: float, x: Array, depth: int) -> list[Array]:
    """The states x + h A x at layers 0 ... depth, with nothing split off."""
    states = [x]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            states.append(states[-1] + h * (A @ states[-1]))
    return states


def scaled_log_ratio(*, a: float, h: float, y: float, c: float, depth: int) -> float:
    """log |y_L/(2 c_L)| for y' = y + h a y, c' = c + h c, powers of two split off at each layer.

    For two tokens and a symmetric A: HFC = |y|/sqrt 2 with y = x_1 - x_2, LFC = sqrt 2 |c|.
    """
    exponent = 0
    for _ in range(depth):
        y, c = y + h * a * y, c + h * c
        y, shift_y = math.frexp(y)
        c, shift_c = math.frexp(c)
        exponent += shift_y - shift_c
    return math.log(abs(y / (2 * c))) + exponent * math.log(2)
