"""The largest sizes that are asked for in earnest: a larger one is a slip, refused in a sentence.

A matrix of SIZE x SIZE has 2 GiB in binary64. DEPTH and SEED fit 64-bit integers, and every depth
is exact in binary64. Real parameters lie within 1/REAL and REAL, so that no product of a few of
them overflows.
"""

from oversmoothing.theory.support.errors import InputError

SIZE = 2**14
DEPTH = 10**15
POINTS = 10**5
SEED = 2**63 - 1
REAL = 1e50


def refuse_extreme(name: str, value: object) -> None:
    """Raise `InputError` for an option of a generator beyond `SIZE`, or outside of `REAL`."""
    if isinstance(value, int) and value > SIZE:
        raise InputError(f"{name} is more than {SIZE}, the most here")
    if isinstance(value, float) and value and not 1 / REAL <= abs(value) <= REAL:
        raise InputError(f"{name} = {value:g}: its size must be 0 or from {1 / REAL:g} to {REAL:g}")
