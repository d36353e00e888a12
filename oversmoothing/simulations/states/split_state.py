"""A state X kept as its HFC and its mean, each with its own power of two.

X = 2^hfc_exponent hfc + 1 (2^mean_exponent mean): what a deep stack of layers leaves behind (a
spread of 1e-200 around a mean, a mean of 1e-300000) cannot be held in one array of floats, and
every smoothing metric is a function of these two parts (T11.5, T11.9). Multiplying by powers of
two is exact, so no digit is lost on the way.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from oversmoothing.simulations.states.scaled import add, normalise, scale
from oversmoothing.theory.support.errors import InputError


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


def tensor_of(X: Any) -> Tensor:
    """A tensor as it is; an array of numpy or nested lists of numbers as one."""
    if isinstance(X, Tensor):
        return X
    try:
        array = np.asarray(X, dtype=None if hasattr(X, "dtype") else np.float64)
        # torch warns of arrays that cannot be written: those of pandas, and of a broadcast.
        return torch.from_numpy(array if array.flags.writeable else array.copy())
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
    mean = X.mean(-2)
    # Near collapse x_i - mean is exact (Sterbenz); what rounding of the mean left is centred away.
    hfc = X - mean.unsqueeze(-2)
    left = hfc.mean(-2)
    return (*normalise(hfc - left.unsqueeze(-2), 2, exponent), *normalise(mean + left, 1, exponent))


def apart(
    X: Float64[Tensor, "*batch n d"], offset: Float64[Tensor, "*more n"]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """HFC and c = pi^T X = mean - offset^T HFC, offset = 1/n - pi, each with its exponent (T1d)."""
    hfc, hfc_exponent, mean, mean_exponent = centred(X)
    coupling = -(offset.unsqueeze(-2) @ hfc).squeeze(-2)
    return (hfc, hfc_exponent, *add((mean, mean_exponent), (coupling, hfc_exponent), trailing=1))


def join(hfc: Tensor, mean: Tensor, hfc_exponent: Tensor, mean_exponent: Tensor) -> SplitState:
    """A split state from its parts; hfc [..., n, d] must be centred, exponents integer [...]."""
    if hfc.shape[:-2] + hfc.shape[-1:] != mean.shape:
        raise InputError(
            f"hfc {tuple(hfc.shape)} and mean {tuple(mean.shape)} do not belong together: "
            "they must be [..., n, d] and [..., d]"
        )
    hfc, hfc_exponent = normalise(hfc.to(torch.float64), 2, hfc_exponent.to(torch.int64))
    mean, mean_exponent = normalise(mean.to(torch.float64), 1, mean_exponent.to(torch.int64))
    rows, common = add((hfc, hfc_exponent), (mean.unsqueeze(-2), mean_exponent), trailing=2)
    return SplitState(
        hfc, mean, hfc_exponent, mean_exponent, *normalise(rows, 1, common.unsqueeze(-1))
    )


def to_quotient(hfc: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n-1 d"]:
    """Y = Q^T hfc [..., n-1, d] for centred hfc [..., n, d], Q as in `complement_basis`.

    Q is the last n - 1 columns of I - u u^T / u_1, u = 1/sqrt(n) + e_1, so Y costs O(n d).
    """
    n = hfc.shape[-2]
    return hfc[..., 1:, :] - hfc[..., :1, :] / (math.sqrt(n) + 1.0)


def to_differences(hfc: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n-1 d"]:
    """y_i = x_i - x_n [..., n-1, d] for hfc [..., n, d]: the coordinates of B' (T1c)."""
    return hfc[..., :-1, :] - hfc[..., -1:, :]


def from_differences(y: Float[Tensor, "*batch k d"]) -> Float[Tensor, "*batch k+1 d"]:
    """hfc [..., n, d], centred, from y_i = x_i - x_n [..., n-1, d]."""
    mean = y.sum(-2, keepdim=True) / (y.shape[-2] + 1)
    return torch.cat((y - mean, -mean), dim=-2)
