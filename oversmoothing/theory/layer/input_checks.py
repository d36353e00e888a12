"""What counts as legal input: a row-stochastic A, a square H, states X_0 of the right shape.

A declared property is verified here, never believed. Every refusal names the place and the remedy.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

EPS = float(np.finfo(np.float64).eps)


def _real_array(value: ArrayLike, name: str) -> Array:
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{name} is ragged: every row must have the same length") from error
    if raw.dtype.kind == "c":
        raise InputError(f"{name} is complex; the theory is about real matrices")
    try:
        array = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is not a number: {error}") from error
    if array.size and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(
            f"{name}{list(place)} is {array[place]}: replace NaN and infinite entries "
            "before asking for a verdict"
        )
    return array


def check_square(H: ArrayLike, *, name: str = "H") -> Array:
    """H as float64 [..., d, d], d >= 1. Raises `InputError` on other shapes, NaN or infinity."""
    array = _real_array(H, name)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise InputError(
            f"{name} has shape {list(array.shape)}; it must be square, [..., d, d] with d >= 1"
        )
    return array


def row_sum_tolerance(n: int) -> float:
    """n eps: what rounding the n entries of a row to binary64 can do to its sum."""
    return n * EPS


def check_attention(A: ArrayLike, *, tolerance: float | None = None) -> Array:
    """A as float64 [..., n, n] with every row divided by its sum.

    Entries must be >= 0 and each row must sum to 1 within `tolerance` (n eps unless given, the
    rounding of binary64; give more for an A computed in float32). Zero entries are legal (causal
    masks). Raises `InputError` naming the first offending row.
    """
    array = check_square(A, name="A")
    n = array.shape[-1]
    if (array < 0).any():
        place = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise InputError(
            f"A{list(place)} = {array[place]:.6g} is negative: attention is row-stochastic, "
            "so entries are >= 0 (did you pass logits? apply softmax over the last axis first)"
        )
    sums = array.sum(axis=-1)
    allowed = row_sum_tolerance(n) if tolerance is None else tolerance
    wrong = np.abs(sums - 1) > allowed
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"A is not row-stochastic: row {list(place)} sums to {sums[place]:.17g}, "
            f"more than {allowed:.1e} from 1 (divide each row by its sum, or, if the columns "
            "sum to 1, pass the transpose)"
        )
    normalised: Array = array / sums[..., None]
    return normalised


def check_states(X0: ArrayLike, n: int, d: int, *, name: str = "X0") -> Array:
    """X_0 as float64 [..., n, d] (rows = tokens). Raises `InputError` on any other shape."""
    array = _real_array(X0, name)
    if array.ndim < 2 or array.shape[-2:] != (n, d):
        hint = " (it looks transposed)" if array.shape[-2:] == (d, n) else ""
        raise InputError(
            f"{name} has shape {list(array.shape)}; A is {n} x {n} and H is {d} x {d}, so it must "
            f"be [..., {n}, {d}]: one row a token{hint}"
        )
    return array


def one_of(H: Any, W: Any) -> str:
    """Which of H and W = H^T was given. Raises `InputError` unless exactly one was."""
    if (H is None) == (W is None):
        raise InputError(
            "give exactly one of H and W: X' = X + A X W with W = W_V W_proj, and H = W^T"
        )
    return "H" if W is None else "W"
