"""A state X kept as its HFC and its mean, each with its own power of two (T1c, T11).

X = 2^hfc_exponent hfc + 1 (2^mean_exponent mean): what a deep stack leaves behind (a spread of
1e-200 around a mean, a mean of 1e-300000) no one array of floats holds, and every smoothing metric
is a function of the two (T11.5, T11.9). Powers of two lose no digit. Exponents are int64 [...],
without the trailing dimensions of the value that share them; float32 or float64, any device.
theory.numbers.rounding does the same to numpy arrays, without torch.

Also how torch is asked: on which device, on one thread, and whatever its defaults were told to be.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from oversmoothing.theory.numbers.exact import plain, refuse_odd_tensor
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import USUAL

# (x, e): x times 2^e; e lacks the trailing dimensions that share it.
Scaled = tuple[Tensor, Tensor]

# The bits of a fraction, what is added to an exponent, and the integers of the same size.
_FORM = {torch.float64: (52, 1023, torch.int64), torch.float32: (23, 127, torch.int32)}
# The exponent of what is 0: it must not decide a common one.
UNUSED = torch.iinfo(torch.int64).min // 4
# Kinds of device that hold numbers: "meta" and others of torch's names hold none.
_COMPUTING = ("cpu", "cuda", "mps", "xpu")


def powers_of_two(exponent: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """2^exponent in dtype, exactly, from the bits; 0 below the normal range, inf above it."""
    bias = _FORM[dtype][1]
    return _from_bits(exponent.clamp(-bias, bias + 1), dtype)


def _from_bits(exponent: Tensor, dtype: torch.dtype) -> Tensor:
    fraction, bias, integers = _FORM[dtype]
    return ((exponent + bias) << fraction).to(integers).view(dtype)


def log_of_two_to(exponent: Tensor) -> Tensor:
    """exponent * log 2 in float64 (an integer tensor times a float would be float32)."""
    return exponent.to(torch.float64) * math.log(2.0)


def log_norm(x: Tensor, exponent: Tensor, trailing: int) -> Tensor:
    """log ||2^exponent x|| in float64, over the trailing dimensions; -inf of 0."""
    size = torch.linalg.vector_norm(x.to(torch.float64), dim=tuple(range(-trailing, 0)))
    return torch.log(size) + log_of_two_to(exponent)


def scale(x: Tensor, exponent: Tensor, trailing: int) -> Tensor:
    """x 2^exponent in the dtype of x, rounded once at most; 0 and inf stay.

    `torch.ldexp` forms 2^exponent in float32, which overflows at 128. There are always two factors,
    one of them mostly 1: to ask whether the other is enough would wait for the device.
    """
    # 2^k is a normal number for |k| <= half.
    half = _FORM[x.dtype][1] - 1
    shape = exponent.shape + (1,) * trailing
    last = exponent.clamp(-half, half)
    # Of one sign, the smaller one first: what it rounds, the other takes to 0.
    first = (exponent - last).clamp(-half, half)
    one, other = (_from_bits(k, x.dtype).reshape(shape) for k in (first, last))
    return x * one * other


def largest(x: Tensor, trailing: int) -> Tensor:
    """max |x| over the trailing dimensions, NaN where one is; 0 where they are empty."""
    flat = x.flatten(x.ndim - trailing) if trailing else x.unsqueeze(-1)
    if flat.shape[-1] == 0:
        return torch.zeros(flat.shape[:-1], dtype=x.dtype, device=x.device)
    # Twenty times faster than `aminmax` and the norm of order inf.
    return torch.maximum(flat.amax(-1), -flat.amin(-1))


def exponent_of(x: Tensor) -> Tensor:
    """The int64 e with |x| in [2^(e-1), 2^e), elementwise; 0 for zero and non-finite x."""
    e = torch.frexp(x).exponent.to(torch.int64)
    return torch.where(torch.isfinite(x), e, torch.zeros_like(e))


def normalise(x: Tensor, trailing: int, exponent: Tensor | int = 0) -> Scaled:
    """(y, e) with 2^exponent x = 2^e y and the largest entry of y in [1/2, 1).

    Non-finite x keeps its exponent; that of zero x is 0.
    """
    top = largest(x, trailing)
    e = exponent_of(top)
    return scale(x, -e, trailing), torch.where(top == 0, e, e + exponent)


def add(*terms: Scaled, trailing: int) -> Scaled:
    """The sum of 2^e x over terms (x, e) as (value, exponent), the largest that any term has."""
    used = (torch.where(largest(x, trailing) == 0, UNUSED, e) for x, e in terms)
    common = reduce(torch.maximum, used)
    common = torch.where(common == UNUSED, torch.zeros_like(common), common)
    return reduce(torch.add, (scale(x, e - common, trailing) for x, e in terms)), common


def normalised_sum(*terms: Scaled, trailing: int) -> Scaled:
    """`add`, its largest entry in [1/2, 1); of a sum that is 0 the exponent is 0."""
    total, exponent = add(*terms, trailing=trailing)
    return normalise(total, trailing, exponent)


@dataclass(frozen=True)
class SplitState:
    """X = 2^hfc_exponent * hfc + 1 (2^mean_exponent * mean), batched.

    hfc [..., n, d] and mean [..., d]: float64; the columns of hfc sum to zero up to rounding.
    hfc_exponent, mean_exponent [...]: int64. Unless a part is zero, its largest entry lies in
    [1/2, 1); of a zero part the exponent means nothing.
    rows [..., n, d], row_exponent [..., n]: X itself, token by token, as exactly as it is known (a
    token much shorter than the mean is not recovered from the other two).
    """

    hfc: Float64[Tensor, "*batch n d"]
    mean: Float64[Tensor, "*batch d"]
    hfc_exponent: Int64[Tensor, "*batch"]
    mean_exponent: Int64[Tensor, "*batch"]
    rows: Float64[Tensor, "*batch n d"]
    row_exponent: Int64[Tensor, "*batch n"]

    @property
    def n(self) -> int:
        return self.hfc.shape[-2]

    @property
    def d(self) -> int:
        return self.hfc.shape[-1]

    def dense(self) -> Tensor:
        """X as one array [..., n, d]; overflows to inf and underflows to 0 as floats do."""
        return scale(self.rows, self.row_exponent, 1)


@contextmanager
def undisturbed() -> Iterator[None]:
    """numpy and torch as they are of themselves, within the context (or decorated function),
    whatever `np.seterr` and `torch.set_default_device` were told."""
    with ExitStack() as ways:
        ways.enter_context(np.errstate(**USUAL))
        if torch.get_default_device().type != "cpu":
            ways.enter_context(torch.device("cpu"))
        yield


def fetched(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each on the CPU. A card is waited for once: what was asked of it before the last copy is done
    when that one is."""
    away = [k for k, each in enumerate(tensors) if not each.is_cpu]
    early = len({tensors[k].device for k in away}) == 1
    return [each.to("cpu", non_blocking=early and k != away[-1]) for k, each in enumerate(tensors)]


# From this side on a card was quicker than 16 processor cores (`benchmarks/gpu-2026-11-27.json`).
_QUICKER_ON_A_CARD = 512


def for_eigenvalues(side: int, device: torch.device) -> torch.device:
    """Where those of a matrix of that side are found, of a run on `device`."""
    return device if device.type == "cuda" and side >= _QUICKER_ON_A_CARD else torch.device("cpu")


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
        raise InputError(
            f"the device '{device}' is not available here.\nUse auto or cpu."
        ) from error
    return chosen


def tensor_of(X: Any) -> Tensor:
    """A tensor as it is; an array of numpy or nested lists of numbers as one."""
    if isinstance(X, Tensor):
        refuse_odd_tensor(X, "X")
        return X
    array = plain(X, "X")
    kept = hasattr(array, "dtype") and array.dtype != object
    try:
        array = np.asarray(array, dtype=None if kept else np.float64)
        # torch warns of arrays that cannot be written, those of pandas and of a broadcast, and
        # reads none backwards.
        odd = not array.flags.writeable or min(array.strides, default=0) < 0
        return torch.from_numpy(array.copy() if odd else array)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"X is a {type(X).__name__} that holds no numbers [..., n, d]: give a tensor or an "
            "array of numpy"
        ) from error


def split(X: Any) -> SplitState:
    """The split state of X [..., n, d], any float dtype and device.

    Centred first and in float64: a one-pass |X|^2 - n |m|^2 is off 110-fold at a spread of 1e-5.
    X needs n >= 1 and d >= 1; an array of numpy or nested lists will do. NaN and infinite entries
    make the metrics of their batch element NaN. Raises `InputError` for X without the two
    dimensions or not of a floating dtype.
    """
    X = tensor_of(X)
    if X.ndim < 2 or 0 in X.shape[-2:]:
        raise InputError(f"X must be [..., n, d] with n, d >= 1, not {tuple(X.shape)}")
    if not X.dtype.is_floating_point:
        raise InputError(f"X must be of a floating dtype, not {X.dtype}: convert it first")
    X = X.to(torch.float64)
    hfc, hfc_exponent, mean, mean_exponent = centred(X)
    return SplitState(hfc, mean, hfc_exponent, mean_exponent, *normalise(X, 1))


def centred(
    X: Float64[Tensor, "*batch n d"],
) -> tuple[
    Float64[Tensor, "*batch n d"],
    Int64[Tensor, "*batch"],
    Float64[Tensor, "*batch d"],
    Int64[Tensor, "*batch"],
]:
    """(HFC [..., n, d], its exponent [...], mean [..., d], its exponent [...]) of X [..., n, d]."""
    X, exponent = normalise(X, 2)
    n = X.shape[-2]
    # Tokens that all but cancel leave a mean far below them: leading parts have an exact sum.
    grid = 1.5 * 2.0 ** max(1, (n - 1).bit_length())
    top = (X + grid) - grid
    mean = (top.sum(-2) + (X - top).sum(-2)) / n
    # Near collapse x_i - mean is exact (Sterbenz); what rounding of the mean left is centred away.
    hfc = X - mean.unsqueeze(-2)
    hfc = hfc - hfc.mean(-2, keepdim=True)
    return (*normalise(hfc, 2, exponent), *normalise(mean, 1, exponent))


def join(hfc: Tensor, mean: Tensor, hfc_exponent: Tensor, mean_exponent: Tensor) -> SplitState:
    """A split state from its parts: centred hfc [..., n, d], mean [..., d], integers [...]."""
    hfc, hfc_exponent = normalise(hfc.to(torch.float64), 2, hfc_exponent.to(torch.int64))
    mean, mean_exponent = normalise(mean.to(torch.float64), 1, mean_exponent.to(torch.int64))
    rows, common = add((hfc, hfc_exponent), (mean.unsqueeze(-2), mean_exponent), trailing=2)
    return SplitState(
        hfc, mean, hfc_exponent, mean_exponent, *normalise(rows, 1, common.unsqueeze(-1))
    )


def to_differences(hfc: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n-1 d"]:
    """y_i = x_i - x_n [..., n-1, d] for hfc [..., n, d]: the coordinates of B' (T1c)."""
    return hfc[..., :-1, :] - hfc[..., -1:, :]


def from_differences(y: Float[Tensor, "*batch k d"]) -> Float[Tensor, "*batch k+1 d"]:
    """hfc [..., n, d], centred, from y_i = x_i - x_n [..., n-1, d]."""
    mean = y.sum(-2, keepdim=True) / (y.shape[-2] + 1)
    return torch.cat((y - mean, -mean), dim=-2)


@contextmanager
def one_thread() -> Iterator[None]:
    """torch and every BLAS on one thread within the context (or decorated function).

    Sums are split by thread, so that another number of cores would give other last digits; and two
    thread pools side by side slow each other down many times.
    """
    # Only the extra that experiments need brings it.
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(before)
