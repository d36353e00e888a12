"""The largest sizes that are asked for in earnest: a larger one is a slip, refused in a sentence.

A matrix of SIZE x SIZE has 2 GiB in binary64. DEPTH and SEED fit 64-bit integers, and every depth
is exact in binary64. Real parameters are at most REAL; what their products make of them is the
outcome of a point. Also the kinds of arrays that are taken, and how numpy is asked.
"""

from __future__ import annotations

import re
import sys
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


# Types of a tensor that numpy has too, and its letters for what is no number.
_PLAIN = re.compile(r"bool|u?int(8|16|32|64)|b?float(16|32|64)|complex(64|128)")
_NO_NUMBERS = {"b": "truth values", "M": "dates", "m": "times", "V": "records"}


def refuse_odd_tensor(value: Any, name: str) -> None:
    """Raise `InputError` for a tensor that is meta, sparse, nested or quantised, or of fp8."""
    kind = str(value.dtype).removeprefix("torch.")
    marks = {
        "meta": value.is_meta, "nested": value.is_nested, "quantised": value.is_quantized,
        "sparse": "sparse" in str(value.layout), kind: not _PLAIN.fullmatch(kind),
    }  # fmt: skip
    odd = [mark for mark, is_so in marks.items() if is_so]
    if odd:
        raise InputError(
            f"{name} is a tensor that holds no plain numbers ({', '.join(odd)}): give a dense one "
            "of float32 or float64"
        )


def plain(value: Any, name: str) -> Any:
    """An array of any library (numpy, torch, pandas) as numpy's, in this machine's byte order; what
    is none, as nested lists, as it is.

    No number changes: bfloat16 becomes float32, and longdouble becomes float64 where every number
    has room in it. Raises `InputError` for masked entries, and for all that holds no plain numbers.
    """
    if hasattr(value, "detach"):
        refuse_odd_tensor(value, name)
        value = value.detach().cpu().resolve_conj().resolve_neg()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    # Nothing is masked before numpy.ma is loaded, which takes time.
    if "numpy.ma" in sys.modules and np.ma.is_masked(value):
        raise InputError(f"{name} has masked entries: fill them, or leave their tokens out")
    if not hasattr(value, "__array__"):
        return value
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind in _NO_NUMBERS:
        raise InputError(f"{name} holds {_NO_NUMBERS[kind]} ({array.dtype}), not numbers")
    if kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore", under="ignore"):
            narrow = array.astype(np.float64)
        if ((narrow != array) & ~np.isnan(array)).any():
            raise InputError(
                f"{name} is {array.dtype}, with digits that float64 has no room for: round it, "
                "or give fractions as strings"
            )
        return narrow
    return array.astype(array.dtype.newbyteorder("="), copy=False)


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
