"""A-priori bounds on the rounding of float64 matrix products: what makes BLAS a proof.

Model: IEEE 754 binary64, round to nearest, products summed conventionally in any order, with or
without fused multiply-add (every BLAS that numpy ships with; not Strassen's algorithm). With
u = 2^-53 and gamma_k = k u / (1 - k u), a computed inner product of length k differs from the exact
one by at most gamma_k |x|^T |y| + k 2^-1074 (Higham, Accuracy and Stability, section 3.1, with
gradual underflow). Bounds computed in floats are inflated so that they stay bounds.
"""

from functools import cache

import numpy as np

from oversmoothing.theory.support.arrays import Array

UNIT = 2.0**-53
# Smallest positive subnormal: the most that one product can lose to underflow.
TINY = 2.0**-1074


@cache
def gamma(k: int) -> float:
    """k u / (1 - k u), rounded up. Raises `ValueError` for k u >= 1/2, where it means nothing."""
    if k * UNIT >= 0.5:
        raise ValueError(f"inner products of length {k} have no useful rounding bound")
    return k * UNIT / (1 - k * UNIT) * (1 + 8 * UNIT)


def inflated(x: Array, operations: int) -> Array:
    """x >= 0, computed by at most that many roundings on top of exact data, as an upper bound."""
    result: Array = x * (1 + 2 * gamma(operations + 2)) + operations * TINY
    return result


def upper_product(P: Array, Q: Array) -> Array:
    """An upper bound on P Q for P, Q >= 0 (each already an upper bound)."""
    return inflated(P @ Q, P.shape[-1])


def upper_sum(P: Array) -> Array:
    """An upper bound on the sum of P >= 0 along its last axis."""
    return inflated(P.sum(axis=-1), P.shape[-1])


def upper_modulus(real: Array, imaginary: Array) -> Array:
    """An upper bound on |real + i imaginary|."""
    return inflated(np.hypot(real, imaginary), 4)
