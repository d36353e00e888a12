"""What `evolve` is asked, checked once: A, W (dense or a head's factors) and X_0 (T1c-d, T11.9).

What every method returns are the two decoupled systems behind X,
    y_i = x_i - x_n,  y' = y + B' y W  with B'_ij = A_ij - A_nj,   and   c = pi^T X,  c' = c + c W,
each with its own power of two: HFC and mean never swamp one another.

Also what else an iteration accepts: depths and precisions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float64
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.simulations.state import centred, normalise
from oversmoothing.theory.layer.attention import row_deficits, stationary_distributions
from oversmoothing.theory.layer.layer import check_attention, check_square, check_states, one_of
from oversmoothing.theory.numbers.exact import plain
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

DEEPEST = 2**53


def check_depths(depth: int | Sequence[int]) -> tuple[int, ...]:
    """The depths to keep: (0, depth) for a number, else the increasing sequence itself.

    Raises `InputError` unless they are increasing integers from 0 to 2^53.
    """
    single = isinstance(depth, int | float | np.number) and not isinstance(depth, bool)
    values: Any = [depth] if single else depth
    try:
        # Also what is written as a float (1e6).
        asked = [
            int(v if isinstance(v, float) and v.is_integer() else v.__index__()) for v in values
        ]
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"depth must be an integer or a sequence of them, not {depth!r}"
        ) from error
    if not asked or asked[0] < 0 or asked != sorted(set(asked)):
        raise InputError(f"depths must be >= 0 and increasing, not {asked[:8]}")
    if asked[-1] > DEEPEST:
        raise InputError("a depth must be at most 2^53: beyond, powers of two outgrow 64 bits")
    if single and asked[0] > 0:
        asked = [0, *asked]
    return tuple(asked)


def row_tolerance(A: Any) -> float | None:
    """n eps of the precision A comes in, None for float64 (`check_attention` knows that one)."""
    if isinstance(A, Tensor) and A.dtype.is_floating_point:
        eps = torch.finfo(A.dtype).eps
    elif isinstance(A, np.ndarray) and A.dtype.kind == "f":
        eps = float(np.finfo(A.dtype).eps)
    else:
        return None
    return A.shape[-1] * eps if A.ndim >= 2 else None


def given_attention(A: Any) -> Array:
    """A [..., n, n] in float64: as it is where it comes in that, its rows sum to 1 within n eps; in
    a coarser precision with its rows divided by their sums. Raises `InputError`."""
    tolerance, raw = row_tolerance(A), plain(A, "A")
    checked = check_attention(raw, tolerance=tolerance)
    same = tolerance is None or getattr(raw, "dtype", None) == np.float64
    return np.asarray(raw, dtype=np.float64) if same else checked


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


def token_differences(A: Array) -> Array:
    """B'_ij = A_ij - A_nj [..., n-1, n-1] of the A whose rows sum to 1 exactly (T1c): where all
    rows are nearly equal, B' is of the order of what rounding took from them."""
    rows, given_back = (
        x[..., :-1, :-1] - x[..., -1:, :-1] for x in (A, row_deficits(A)[..., None] * A)
    )
    return np.asarray(rows + given_back)


Exponents = NDArray[np.int64]
# Of an element, in the dimensions of a batch.
Place = tuple[int, ...]

# Up to this size a norm is bounded by powers of the matrix, four products of its size.
_SMALL = 256


@dataclass(frozen=True)
class Problem:
    """X' = X + A X W (X' = A X W where residual is False), batched, in float64 on the CPU.

    A [*a, n, n]; W [*w, d, d], or P [*p, d, r] and Q [*q, r, d] with W = P Q; X0 [*x, n, d]; the
    batch shapes broadcast to `batch`.
    """

    A: Float64[Array, "*a n n"]
    W: Float64[Array, "*w d d"] | None
    P: Float64[Array, "*p d r"] | None
    Q: Float64[Array, "*q r d"] | None
    X0: Float64[Array, "*x n d"]
    batch: tuple[int, ...]
    residual: bool

    @property
    def n(self) -> int:
        return int(self.A.shape[-1])

    @property
    def d(self) -> int:
        return int(self.X0.shape[-1])

    @property
    def rank(self) -> int | None:
        """r of a head, None for a dense W."""
        return None if self.P is None else int(self.P.shape[-1])

    @property
    def number(self) -> int:
        return math.prod(self.batch)

    @cached_property
    def dense_weights(self) -> Float64[Array, "*w d d"]:
        """W [*w, d, d]."""
        if self.W is not None:
            return self.W
        assert self.P is not None and self.Q is not None
        return self.P @ self.Q

    @cached_property
    def pi(self) -> Float64[Array, "*a n"]:
        """pi [*a, n]."""
        n, batch = self.n, self.A.shape[:-1]
        return stationary_distributions(self.A.reshape(-1, n, n)).reshape(batch)

    @cached_property
    def offset(self) -> Float64[Array, "*a n"]:
        """1/n - pi [*a, n], so that mean = c + offset^T HFC (T1d)."""
        return 1.0 / self.n - self.pi

    @cached_property
    def quotient(self) -> Float64[Array, "*a n n"]:
        """B' with a 1 for the row c, [*a, n, n]: one product serves both systems."""
        extended = np.zeros_like(self.A)
        extended[..., :-1, :-1] = token_differences(self.A)
        extended[..., -1, -1] = 1.0
        return extended

    @cached_property
    def reach(self) -> Bool[np.ndarray, "*a n n"] | None:
        """Whether token k depends on token j after some layers, itself included, [*a, n, n].

        Read off the zeros of A; None where each depends on all.
        """
        positive = self.A > 0
        if positive.all():
            return None
        reach = (positive | np.eye(self.n, dtype=np.bool_)).astype(np.float32)
        for _ in range(max(1, (self.n - 1).bit_length())):
            reach = np.minimum(reach @ reach, 1.0)
        mask: NDArray[np.bool_] = reach > 0
        return None if mask.all() else mask

    @cached_property
    def causal(self) -> bool:
        """Whether no token of any A attends to a later one, and there are two tokens at least."""
        return self.n > 1 and not np.triu(self.A, 1).any()

    @cached_property
    def start(self) -> tuple[Array, Exponents, Array, Exponents]:
        """HFC [*x, n, d] and its exponent [*x], c [*b, d] and its exponent [*b]."""
        hfc, hfc_exponent, mean, mean_exponent = centred(torch.tensor(self.X0))
        # pi^T X_0 itself: what tokens of weight 0 hold must leave no rounding in it. With pi = 1/n
        # it is the mean, which the centring knows better.
        X, exponent = normalise(torch.tensor(self.X0), 2)
        c = (torch.tensor(self.pi).unsqueeze(-2) @ X).squeeze(-2)
        c, c_exponent = normalise(c, 1, exponent)
        uniform = torch.tensor((self.offset == 0).all(axis=-1))
        c = torch.where(uniform.unsqueeze(-1), mean, c)
        c_exponent = torch.where(uniform, mean_exponent, c_exponent)
        return hfc.numpy(), hfc_exponent.numpy(), c.numpy(), c_exponent.numpy()

    @cached_property
    def lost_in_c(self) -> Float64[Array, "*b"]:
        """By what cancellation in c = pi^T X_0 multiplies its rounding, [*b] >= 1.

        1 where c = 0 exactly: no token with pi > 0 is there, or pi = 1/n and the columns sum to 0.
        """
        _, _, c, exponent = self.start
        size = (self.pi[..., None, :] @ np.abs(self.X0))[..., 0, :]
        whole = size.max(axis=-1)
        left = np.ldexp(np.abs(c).max(axis=-1), np.clip(exponent, -2000, 2000))
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.maximum(1.0, whole / left)
        if (left == 0).any():
            batch = self.X0.shape[:-2]
            sums = [any(map(math.fsum, self.X0[at].T)) for at in np.ndindex(batch)]
            balanced = (self.offset == 0).all(axis=-1) & ~np.reshape(sums, batch)
            loss = np.where(left == 0, np.where((whole == 0) | balanced, 1.0, np.inf), loss)
        return np.asarray(loss)

    @cached_property
    def start_rows(self) -> tuple[Array, Exponents]:
        """The rows of y and then c [*batch, n, d] at X_0, and the exponents [*batch, 2] of both."""
        hfc, hfc_exponent, c, c_exponent = self.start
        y = hfc[..., :-1, :] - hfc[..., -1:, :]
        y = np.broadcast_to(y, self.batch + y.shape[-2:])
        c = np.broadcast_to(c, self.batch + c.shape[-1:])[..., None, :]
        exponents = [np.broadcast_to(e, self.batch) for e in (hfc_exponent, c_exponent)]
        return np.concatenate((y, c), axis=-2), np.stack(exponents, axis=-1).astype(np.int64)

    @cached_property
    def norm(self) -> float:
        """An upper bound on ||B'|| ||W|| over the batch: a layer grows a state by 1 + this."""
        return norm_bound(self.dense_weights) * norm_bound(self.quotient)

    def flat(self, x: NDArray[Any], trailing: int, *to: Any) -> Tensor:
        """x [*any, ...] as a tensor [number, ...]; what all the batch shares is stored once."""
        shape = x.shape[x.ndim - trailing :]
        if x.size == math.prod(shape):
            return torch.as_tensor(x.reshape(1, *shape).copy()).to(*to).expand(self.number, *shape)
        x = np.broadcast_to(x, self.batch + shape).reshape(self.number, *shape)
        return torch.as_tensor(x.copy()).to(*to)

    def element(self, x: NDArray[Any], trailing: int, place: Place) -> Place:
        """Where in the batch dimensions of x the batch element `place` is found."""
        own = x.shape[: x.ndim - trailing]
        tail = place[len(place) - len(own) :]
        return tuple(0 if size == 1 else k for size, k in zip(own, tail, strict=True))


class Asked(NamedTuple):
    """The states of a problem at these depths, on a device and in a precision."""

    problem: Problem
    depths: tuple[int, ...]
    device: torch.device
    dtype: torch.dtype


def make_problem(*, X0: Any, A: Any, W: Any, H: Any, residual: bool) -> Problem:
    """A checked problem. W may be a pair (W_V [*, d, r], W_proj [*, r, d]).

    A as `given_attention` takes it. Raises `InputError`.
    """
    attention = given_attention(A)
    name = one_of(H, W)
    dense = P = Q = None
    if isinstance(W, tuple):
        if len(W) != 2:
            raise InputError(f"a tuple W must be the two factors (W_V, W_proj), not {len(W)}")
        P, Q, weight_batch = _factors(*(plain(each, name) for each in W))
        d = P.shape[-2]
    else:
        given = check_square(H if W is None else W, name=name)
        dense = given if name == "W" else np.swapaxes(given, -1, -2)
        d, weight_batch = dense.shape[-1], dense.shape[:-2]
    start = check_states(X0, attention.shape[-1], d)
    batches = {"A": attention.shape[:-2], name: weight_batch, "X0": start.shape[:-2]}
    return Problem(attention, dense, P, Q, start, broadcast_batches(**batches), bool(residual))


def _factors(P: Any, Q: Any) -> tuple[Array, Array, tuple[int, ...]]:
    """Both, and their batch dimensions."""
    for name, factor in (("W_V", P), ("W_proj", Q)):
        if np.ndim(factor) < 2 or 0 in np.shape(factor)[-2:]:
            raise InputError(f"{name} has shape {list(np.shape(factor))}; it must be a matrix")
    P = check_states(P, *np.shape(P)[-2:], name="W_V")
    Q = check_states(Q, *np.shape(Q)[-2:], name="W_proj")
    if P.shape[-1] != Q.shape[-2] or P.shape[-2] != Q.shape[-1]:
        raise InputError(
            f"W_V {list(P.shape)} and W_proj {list(Q.shape)} are no factors of a square W: they "
            "must be [..., d, r] and [..., r, d]"
        )
    return P, Q, broadcast_batches(W_V=P.shape[:-2], W_proj=Q.shape[:-2])


def broadcast_batches(**batches: tuple[int, ...]) -> tuple[int, ...]:
    """The batch dimensions of all. Raises `InputError`, with the names, where they do not fit."""
    try:
        return np.broadcast_shapes(*batches.values())
    except ValueError as error:
        *others, last = (f"{name} {batch}" for name, batch in batches.items())
        raise InputError(
            f"the batch dimensions of {', '.join(others)} and {last} do not broadcast"
        ) from error


def norm_bounds(M: Array) -> Array:
    """Upper bounds on the spectral norms [...] of M [..., m, k], in O(size)."""
    size = np.abs(M)
    top = float(size.max(initial=0.0))
    if top == 0.0:
        return np.zeros(M.shape[:-2])
    size = size / top
    frobenius = np.sqrt((size * size).sum(axis=(-2, -1)))
    mixed = np.sqrt(size.sum(axis=-1).max(axis=-1)) * np.sqrt(size.sum(axis=-2).max(axis=-1))
    return np.asarray(top * np.minimum(frobenius, mixed))


def norm_bound(M: Array) -> float:
    """The largest of `norm_bounds`, of small matrices by Gelfand's formula (T10).

    ||M||^16 = ||(M^T M)^8|| <= its Frobenius norm, within m^(1/16) of the truth.
    """
    bound = norm_bounds(M)
    if max(M.shape[-2:]) <= _SMALL:
        M = M / np.where(bound > 0, bound, 1.0)[..., None, None]
        S = np.swapaxes(M, -1, -2) @ M
        for _ in range(3):
            S = S @ S
        gelfand = np.sqrt((S * S).sum(axis=(-2, -1))) ** (1 / 16)
        bound = np.minimum(bound, bound * gelfand * (1 + 1e-9))
    return float(bound.max(initial=0.0))
