"""A state X kept as its HFC and its mean, each with its own power of two.

X = 2^hfc_exponent hfc + 1 (2^mean_exponent mean): what a deep stack of layers leaves behind (a
spread of 1e-200 around a mean, a mean of 1e-300000) cannot be held in one array of floats, and
every smoothing metric is a function of these two parts (T11.5, T11.9). Multiplying by powers of
two is exact, so no digit is lost on the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from oversmoothing.theory.support.errors import InputError

# 2^k is a normal float64 for |k| <= HALF; two factors reach every finite ratio of float64.
HALF = 1022


@dataclass(frozen=True)
class SplitState:
    """X = 2^hfc_exponent * hfc + 1 (2^mean_exponent * mean), batched.

    hfc [..., n, d] and mean [..., d]: float64; the columns of hfc sum to zero up to rounding.
    hfc_exponent, mean_exponent [...]: int64. Unless a part is zero, its largest entry lies in
    [1/2, 1); of a zero part the exponent means nothing.
    rows [..., n, d], row_exponent [..., n]: X itself, token by token, as exactly as it is known (a
    token much shorter than the mean is not recovered from the other two).
    """

    hfc: Tensor
    mean: Tensor
    hfc_exponent: Tensor
    mean_exponent: Tensor
    rows: Tensor
    row_exponent: Tensor

    @property
    def n(self) -> int:
        return self.hfc.shape[-2]

    @property
    def d(self) -> int:
        return self.hfc.shape[-1]

    def dense(self) -> Tensor:
        """X as one array [..., n, d]; overflows to inf and underflows to 0 as floats do."""
        return scale(self.rows, self.row_exponent, 1)


def powers_of_two(exponent: Tensor) -> Tensor:
    """2^exponent in float64, exactly, for integer |exponent| <= 1022 (built from the bits)."""
    return ((exponent.to(torch.int64) + 1023) << 52).view(torch.float64)


def log_of_two_to(exponent: Tensor) -> Tensor:
    """exponent * log 2 in float64 (an integer tensor times a float would be float32)."""
    return exponent.to(torch.float64) * math.log(2.0)


def scale(x: Tensor, exponent: Tensor, trailing: int) -> Tensor:
    """x * 2^exponent, exact but for over- and underflow; x float64 [..., *trailing dims].

    `torch.ldexp` forms 2^exponent in float32, which overflows at 128.
    """
    e = exponent.clamp(-2 * HALF, 2 * HALF)
    first = torch.div(e, 2, rounding_mode="floor")
    shape = e.shape + (1,) * trailing
    # Two factors of the same sign: an intermediate never leaves the range of the two ends.
    return x * powers_of_two(first).reshape(shape) * powers_of_two(e - first).reshape(shape)


def normalise(x: Tensor, trailing: int) -> tuple[Tensor, Tensor]:
    """(y, e) with x = 2^e y and the largest entry of y in [1/2, 1), over the trailing dims.

    Zero and non-finite x keep e = 0.
    """
    flat = x.flatten(x.ndim - trailing) if trailing else x.unsqueeze(-1)
    if flat.shape[-1] == 0:
        return x, torch.zeros(x.shape[: x.ndim - trailing], dtype=torch.int64, device=x.device)
    e = exponent_of(torch.linalg.vector_norm(flat, ord=math.inf, dim=-1))
    return scale(x, -e, trailing), e


def exponent_of(x: Tensor) -> Tensor:
    """The int64 e with |x| in [2^(e-1), 2^e), elementwise; 0 for zero and non-finite x."""
    e = torch.frexp(x).exponent.to(torch.int64)
    return torch.where(torch.isfinite(x), e, torch.zeros_like(e))


def split(X: Tensor) -> SplitState:
    """The split state of X [..., n, d], any float dtype and device.

    Centred first and in float64: a one-pass |X|^2 - n |m|^2 is off 110-fold at a spread of 1e-5.
    X needs n >= 1 and d >= 1. NaN and infinite entries make the metrics of their batch element NaN.
    Raises `InputError` for X without the two dimensions or not of a floating dtype.
    """
    if X.ndim < 2 or 0 in X.shape[-2:]:
        raise InputError(f"X must be [..., n, d] with n, d >= 1, not {tuple(X.shape)}")
    if not X.dtype.is_floating_point:
        raise InputError(f"X must be of a floating dtype, not {X.dtype}: convert it first")
    X = X.to(torch.float64)
    rows, row_exponent = normalise(X, 1)
    X, exponent = normalise(X, 2)
    mean = X.mean(-2)
    # Near collapse x_i - mean is exact (Sterbenz); what rounding of the mean left is centred away.
    hfc = X - mean.unsqueeze(-2)
    left = hfc.mean(-2)
    hfc, hfc_exponent = normalise(hfc - left.unsqueeze(-2), 2)
    mean, mean_exponent = normalise(mean + left, 1)
    return SplitState(
        hfc, mean, hfc_exponent + exponent, mean_exponent + exponent, rows, row_exponent
    )


def join(hfc: Tensor, mean: Tensor, hfc_exponent: Tensor, mean_exponent: Tensor) -> SplitState:
    """A split state from its parts; hfc [..., n, d] must be centred, exponents integer [...]."""
    if hfc.shape[:-2] + hfc.shape[-1:] != mean.shape:
        raise InputError(
            f"hfc {tuple(hfc.shape)} and mean {tuple(mean.shape)} do not belong together: "
            "they must be [..., n, d] and [..., d]"
        )
    hfc, shift = normalise(hfc.to(torch.float64), 2)
    hfc_exponent = hfc_exponent.to(torch.int64) + shift
    mean, shift = normalise(mean.to(torch.float64), 1)
    mean_exponent = mean_exponent.to(torch.int64) + shift
    rows, common = add_scaled(hfc, hfc_exponent, mean.unsqueeze(-2), mean_exponent, trailing=2)
    rows, row_exponent = normalise(rows, 1)
    row_exponent = row_exponent + common.unsqueeze(-1)
    return SplitState(hfc, mean, hfc_exponent, mean_exponent, rows, row_exponent)


def add_scaled(
    a: Tensor, a_exponent: Tensor, b: Tensor, b_exponent: Tensor, trailing: int = 1
) -> tuple[Tensor, Tensor]:
    """2^a_exponent a + 2^b_exponent b as (value, exponent); a, b have `trailing` own dimensions."""
    dims = tuple(range(-trailing, 0))
    has_a, has_b = (a != 0).any(dims), (b != 0).any(dims)
    # The exponent of a zero must not decide the common one.
    unused = torch.iinfo(torch.int64).min // 4
    common = torch.maximum(
        torch.where(has_a, a_exponent, unused), torch.where(has_b, b_exponent, unused)
    )
    common = torch.where(has_a | has_b, common, torch.zeros_like(common))
    total = scale(a, a_exponent - common, trailing) + scale(b, b_exponent - common, trailing)
    return total, common


def to_quotient(hfc: Tensor) -> Tensor:
    """Y = Q^T hfc [..., n-1, d] for centred hfc [..., n, d], Q as in `complement_basis`.

    Q is the last n - 1 columns of I - u u^T / u_1, u = 1/sqrt(n) + e_1, so Y costs O(n d).
    """
    n = hfc.shape[-2]
    return hfc[..., 1:, :] - hfc[..., :1, :] / (math.sqrt(n) + 1.0)


def to_differences(hfc: Tensor) -> Tensor:
    """y_i = x_i - x_n [..., n-1, d] for hfc [..., n, d]: the coordinates of B' (T1c)."""
    return hfc[..., :-1, :] - hfc[..., -1:, :]


def from_differences(y: Tensor) -> Tensor:
    """hfc [..., n, d], centred, from y_i = x_i - x_n [..., n-1, d]."""
    mean = y.sum(-2, keepdim=True) / (y.shape[-2] + 1)
    return torch.cat((y - mean, -mean), dim=-2)
