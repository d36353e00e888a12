"""The largest sizes that are asked for in earnest: a larger one is a slip, refused in a sentence.

A matrix of SIZE x SIZE has 2 GiB in binary64. DEPTH and SEED fit 64-bit integers, and every depth
is exact in binary64. Real parameters are at most REAL; what their products make of them is the
outcome of a point. Also the kinds of arrays that are taken, and how numpy is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.support.errors import InputError

SIZE = 2**14
DEPTH = 10**15
POINTS = 10**5
SEED = 2**63 - 1
# Of a search for counterexamples: some days of them.
EXAMPLES = 10**9
REAL = 1e250


def refuse_extreme(name: str, value: object) -> None:
    """Raise `InputError` for an option of a generator beyond `SIZE` or `REAL`."""
    if isinstance(value, int) and value > SIZE:
        raise InputError(f"{name} is more than {SIZE}, the most here")
    if isinstance(value, float) and abs(value) > REAL:
        raise InputError(f"{name} = {value:g} is beyond {REAL:g}, the most here")


# What numpy does of itself: a public function does so too, whatever `np.seterr` was told.
USUAL: Any = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction
    from typing import TypeAlias

    import sympy as sp
    from numpy.typing import ArrayLike

    Array = NDArray[np.float64]
    Complex = NDArray[np.complex128]
    # A matrix, or a stack of them, as a user gives it: arrays and tensors (what has `__array__`),
    # nested lists of numbers, fractions as text ("3/4"), sympy expressions, sympy matrices.
    MatrixLike: TypeAlias = (
        ArrayLike | Sequence[Sequence[float | str | Fraction | sp.Expr]] | sp.MatrixBase
    )
    # The same of a weight, or its two factors.
    WeightLike: TypeAlias = MatrixLike | tuple[MatrixLike, MatrixLike]
else:
    MatrixLike = WeightLike = Any
    # From numpy 2.5 on NDArray[...] is no class, and jaxtyping asks for one.
    Array = Complex = np.ndarray
