"""Tensors with a power of two apart, value times 2^exponent: float32 or float64, any device (T11).

Multiplying by a power of two is exact, so that a spread of 1e-200 and a mean of 1e-300000 keep
their digits. Exponents are int64 [...], without the trailing dimensions of the value that share
them. theory.numbers.scaled does the same to numpy arrays: theory and the workers of a sweep start
without torch.
"""

import math

import torch
from torch import Tensor

# 2^k is a normal number for |k| <= this; two factors reach every finite ratio.
HALF = {torch.float64: 1022, torch.float32: 126}
# The exponent of what is 0: it must not decide a common one.
UNUSED = torch.iinfo(torch.int64).min // 4


def powers_of_two(exponent: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """2^exponent in dtype, exactly, from the bits; 0 below the normal range, inf above it."""
    if dtype == torch.float64:
        return ((exponent.clamp(-1023, 1024) + 1023) << 52).view(torch.float64)
    return ((exponent.clamp(-127, 128) + 127) << 23).to(torch.int32).view(torch.float32)


def log_of_two_to(exponent: Tensor) -> Tensor:
    """exponent * log 2 in float64 (an integer tensor times a float would be float32)."""
    return exponent.to(torch.float64) * math.log(2.0)


def scale(x: Tensor, exponent: Tensor, trailing: int) -> Tensor:
    """x 2^exponent in the dtype of x, rounded once at most; 0 and inf stay.

    `torch.ldexp` forms 2^exponent in float32, which overflows at 128. There are always two factors,
    the second mostly 1: to ask whether one is enough would wait for the device.
    """
    half = HALF[x.dtype]
    shape = exponent.shape + (1,) * trailing
    e = exponent.clamp(-2 * half, 2 * half)
    # Two factors of the same sign: an intermediate never leaves the range of the two ends.
    halved = torch.div(e, 2, rounding_mode="floor")
    first = torch.where(e.abs() <= half, e, halved)
    one, other = (powers_of_two(k, x.dtype).reshape(shape) for k in (first, e - first))
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


def normalise(x: Tensor, trailing: int, exponent: Tensor | int = 0) -> tuple[Tensor, Tensor]:
    """(y, e) with 2^exponent x = 2^e y and the largest entry of y in [1/2, 1).

    Non-finite x keeps its exponent; that of zero x is 0.
    """
    top = largest(x, trailing)
    e = exponent_of(top)
    return scale(x, -e, trailing), torch.where(top == 0, e, e + exponent)


def add(*terms: tuple[Tensor, Tensor], trailing: int) -> tuple[Tensor, Tensor]:
    """The sum of 2^e x over terms (x, e) as (value, exponent), the largest that any term has."""
    used = [torch.where(largest(x, trailing) == 0, UNUSED, e) for x, e in terms]
    common = used[0]
    for e in used[1:]:
        common = torch.maximum(common, e)
    common = torch.where(common == UNUSED, torch.zeros_like(common), common)
    parts = [scale(x, e - common, trailing) for x, e in terms]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total, common


def normalised_sum(*terms: tuple[Tensor, Tensor], trailing: int) -> tuple[Tensor, Tensor]:
    """`add`, its largest entry in [1/2, 1); of a sum that is 0 the exponent is 0."""
    total, exponent = add(*terms, trailing=trailing)
    return normalise(total, trailing, exponent)
