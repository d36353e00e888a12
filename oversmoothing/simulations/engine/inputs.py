"""What `evolve` accepts besides matrices: depths, devices and precisions."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oversmoothing.theory.support.errors import InputError

DEEPEST = 2**53


def check_depths(depth: int | Sequence[int]) -> tuple[int, ...]:
    """The depths to keep: (0, depth) for a number, else the increasing sequence itself.

    Raises `InputError` unless they are increasing integers from 0 to 2^53.
    """
    single = isinstance(depth, int | float | np.number) and not isinstance(depth, bool)
    values = [depth] if single else depth
    try:
        asked = [_whole(v) for v in values]  # type: ignore[union-attr]
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"depth must be an integer or a sequence of them, not {depth!r}"
        ) from error
    if not asked or asked[0] < 0 or any(b <= a for a, b in itertools.pairwise(asked)):
        raise InputError(f"depths must be >= 0 and increasing, not {asked[:8]}")
    if asked[-1] > DEEPEST:
        raise InputError("a depth must be at most 2^53: beyond, powers of two outgrow 64 bits")
    if single and asked[0] > 0:
        asked = [0, *asked]
    return tuple(asked)


def _whole(value: Any) -> int:
    """An integer, also one that is written as a float (1e6)."""
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if whole else int(value.__index__())


# Kinds of device that hold numbers: "meta" and others of torch's names hold none.
_COMPUTING = ("cpu", "cuda", "mps", "xpu")


def choose_device(device: str) -> torch.device:
    """'auto' is cuda where there is one, else cpu. Raises `InputError` where it is not there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        if chosen.type not in _COMPUTING:
            raise RuntimeError("nothing is computed there")
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise InputError(
            f"the device '{device}' is not available here ({first}): use auto or cpu"
        ) from error
    return chosen


def as_numpy(x: Any) -> Any:
    """A tensor as a numpy array on the CPU (half precision as float32), anything else as it is."""
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return (x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x).numpy()
    return x


def row_tolerance(A: Any) -> float | None:
    """n eps of the precision A comes in, None for float64 (`check_attention` knows that one)."""
    if isinstance(A, Tensor) and A.dtype.is_floating_point:
        eps = torch.finfo(A.dtype).eps
    elif isinstance(A, np.ndarray) and A.dtype.kind == "f":
        eps = float(np.finfo(A.dtype).eps)
    else:
        return None
    return A.shape[-1] * eps if A.ndim >= 2 else None


def choose_precision(X0: Any, dtype: torch.dtype | None) -> torch.dtype:
    """dtype if given, else float32 for float32 X0 and float64 otherwise.

    Raises `InputError` for other dtypes.
    """
    if dtype is None:
        name = str(getattr(X0, "dtype", "float64")).removeprefix("torch.")
        return torch.float32 if name == "float32" else torch.float64
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"dtype must be torch.float32 or torch.float64, not {dtype}")
    return dtype
