"""Arrays with a power of two apart, in float32 or float64 (`split_state` does it in float64)."""

from __future__ import annotations

import torch
from torch import Tensor

from oversmoothing.simulations.states.split_state import exponent_of, powers_of_two

# 2^k is normal for |k| <= this.
_HALF = {torch.float64: 1022, torch.float32: 126}
_UNUSED = torch.iinfo(torch.int64).min // 4


def shift(x: Tensor, exponent: Tensor, trailing: int) -> Tensor:
    """x * 2^exponent in the dtype of x; exponent [...] without the trailing dims of x.

    Exact but for over- and underflow; infinite entries stay, zeros stay.
    """
    half = _HALF[x.dtype]
    shape = exponent.shape + (1,) * trailing
    if bool((exponent.abs() <= half).all()):  # as always but at the ends of the range
        return x * powers_of_two(exponent).to(x.dtype).reshape(shape)
    e = exponent.clamp(-2 * half, 2 * half)
    first = torch.div(e, 2, rounding_mode="floor")
    low, high = (powers_of_two(k).to(x.dtype).reshape(shape) for k in (first, e - first))
    return x * low * high


def largest(x: Tensor, trailing: int) -> Tensor:
    """max |x| over the trailing dims; 0 where they are empty."""
    flat = x.flatten(x.ndim - trailing)
    if flat.shape[-1] == 0:
        return torch.zeros(flat.shape[:-1], dtype=x.dtype, device=x.device)
    low, high = flat.aminmax(dim=-1)
    return torch.maximum(-low, high)


def unit(x: Tensor, exponent: Tensor, trailing: int) -> tuple[Tensor, Tensor]:
    """2^exponent x again, its largest entry in [1/2, 1); of a zero the exponent is 0."""
    top = largest(x, trailing)
    e = exponent_of(top)
    return shift(x, -e, trailing), torch.where(top > 0, exponent + e, torch.zeros_like(e))


def add(terms: list[tuple[Tensor, Tensor]], trailing: int) -> tuple[Tensor, Tensor]:
    """sum 2^e x over terms (x, e), as (value, exponent) with its largest entry in [1/2, 1)."""
    used = [torch.where(largest(x, trailing) > 0, e, _UNUSED) for x, e in terms]
    common = used[0]
    for e in used[1:]:
        common = torch.maximum(common, e)
    common = torch.where(common == _UNUSED, torch.zeros_like(common), common)
    total = shift(terms[0][0], terms[0][1] - common, trailing)
    for x, e in terms[1:]:
        total = total + shift(x, e - common, trailing)
    return unit(total, common, trailing)
