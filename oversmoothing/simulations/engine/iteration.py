"""Layer by layer: states over powers of two, moved in blocks, rescaled between (T1c-d, T11).

Iterated are Z = [y; c] <- Z + [B', 1] Z W. Iterating X itself, HFC / LFC saturates at the rounding
of A 1 = 1: 1.2e-7 in float32, 1.8e-16 in float64; here a ratio of 1e-100000 is measured. (The
orthonormal B = Q^T A Q would do as well, but its square roots cost the exact zeros: with h = -2 and
A = [[3/4, 1/4], [1/4, 3/4]] the ratio is 0 after one layer.) Two products a layer, in place: at
197 x 768 the speed of a large square product.

A head in its core: W = P Q of rank r moves n x r numbers a layer instead of n x d.

    Z = X P,  G = Q P,  Z <- Z + A Z G,  X_L = X_0 + A (sum_l Z_l) Q     (exact for any L and any G)
and X_L = A Z_{L-1} Q without the residual.

Where A is reducible (a causal mask, several groups) a token depends on the tokens that it reaches
alone. It may then lose the mode that dominates the others, and no accuracy relative to their size
says where it points. So the tokens are iterated themselves too (T4b, T11.10), token k relative to
the largest of the tokens that it reaches: the zeros of A keep all larger ones out of it exactly.

Many heads and layers that change (`evolve_heads`) and several streams (`evolve_streams`) are moved
by the same iteration.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from oversmoothing.simulations import state
from oversmoothing.simulations.engine.errors import States, carry_of, start_of
from oversmoothing.simulations.engine.problem import Asked, norm_bound
from oversmoothing.simulations.running import Bar
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

State = TypeVar("State")

# One layer may grow a state by so many bits ...
_RANGE_BITS = {torch.float64: 900, torch.float32: 96}
# ... a block of layers by so many, and may end no further below 1 than the next: then no state was
# lost to underflow on the way, for it could not have come back.
GROWTH_BITS = {torch.float64: 450, torch.float32: 56}
_SHRINK_BITS = {torch.float64: 500, torch.float32: 64}
_LONGEST = 1 << 20
# Multiplications of a layer from which threads share them: below, they wait longer than they work.
_SHARED = 1e6


def range_bits(x: float, size: int, dtype: torch.dtype, residual: bool) -> float:
    """What a layer may take of `GROWTH_BITS`, for x >= ||B'|| ||W|| and states of `size` numbers.

    One layer multiplies a norm by at most 1 + x and, with the residual and x < 1, at least by
    1 - x. Otherwise cancellation may shrink a state without bound: a block that ends below the
    range is repeated in shorter ones, and grows too little to hide a loss on the way.
    Raises `InputError` where one layer alone may overflow.
    """
    if not math.log2(1.0 + x) <= _RANGE_BITS[dtype] - math.log2(size):
        raise InputError(f"the weights are too large for {dtype} (norm up to {x:.1e}): scale them")
    if residual and x < 0.5:
        return max(-math.log2(1.0 - x), GROWTH_BITS[dtype] / _LONGEST)
    return math.log2(1.0 + max(x, 1.0))


# The state and its exponents after so many layers, and what is carried beside it.
Moved = tuple[Tensor, Tensor, int, Any]


class Iteration:
    """Z [N, rows, d] and the exponents [N, parts] of its parts, moved layer by layer.

    parts: how many consecutive rows share a power of two; None: each row has its own. beside: what
    is carried beside the state. How layers move it, `reach` and `block` say.
    """

    def __init__(
        self,
        Z: Float[Tensor, "N rows d"],
        exponents: Int64[Tensor, "N parts"],
        parts: Sequence[int] | None,
        beside: Any = None,
    ) -> None:
        self.Z, self.exponents, self.parts, self.beside = Z.contiguous(), exponents, parts, beside
        self.layer, self._longest = 0, _LONGEST
        lengths = [1] * Z.shape[-2] if parts is None else parts
        # Of each row the part that it is in.
        rows = [k for k, length in enumerate(lengths) for _ in range(length)]
        self.part = torch.tensor(rows, device=Z.device)
        self._smallest = 2.0 ** -_SHRINK_BITS[Z.dtype]
        self._scaled = False
        self._reach: Tensor | None = None

    def reach(self, layer: int) -> Tensor | None:
        """Which part feeds which from this layer on, [..., parts, parts]: a part is over the
        largest power of two of those that feed it. None: each by itself."""
        raise NotImplementedError

    def block(self, Z: Tensor, exponents: Tensor, most: int) -> Moved:
        """After at most `most` layers; what is given, and `beside`, stay as they are."""
        raise NotImplementedError

    def advance_to(self, target: int, bar: Bar) -> None:
        """Move the state on to the layer `target`."""
        threads = torch.get_num_threads()
        if self.Z.numel() * sum(self.Z.shape[-2:]) < _SHARED:
            torch.set_num_threads(1)
        try:
            while self.layer < target:
                self._advance(target, bar)
        finally:
            torch.set_num_threads(threads)

    def _advance(self, target: int, bar: Bar) -> None:
        most = min(target - self.layer, self._longest)
        scaled = self.rescaled(self.reach(self.layer))
        Z, exponents, number, beside = self.block(*scaled, most)
        # A part far below those that feed it is none that shrank.
        if number > 1 and bool((self._full & (self._largest(Z) < self._smallest)).any()):
            # Shrunk past the range of the floats within one block: again, in shorter blocks.
            self._longest = max(1, number // 2)
            return
        self.Z, self.exponents, self.beside, self._scaled = Z, exponents, beside, False
        self.layer += number
        self._longest = min(2 * self._longest, _LONGEST)
        bar.update(number)

    def rescaled(self, reach: Tensor | None = None) -> state.Scaled:
        """The state with the largest entry of a part in [1/2, 1), less where a larger one feeds it;
        reach as that of a layer."""
        if not self._scaled or self._reach is not reach:
            top = self._largest(self.Z)
            own = torch.where(top > 0, self.exponents + state.exponent_of(top), state.UNUSED)
            fed = own
            if reach is not None:
                fed = torch.where(reach, own.unsqueeze(-2), state.UNUSED).amax(-1)
            new = torch.where(fed == state.UNUSED, torch.zeros_like(fed), fed)
            self._full = own >= new - 1
            by = (self.exponents - new)[:, self.part]
            self.Z, self.exponents = state.scale(self.Z, by, 1), new
            self._scaled, self._reach = True, reach
        return self.Z, self.exponents

    def _largest(self, Z: Tensor) -> Tensor:
        """The largest |entry| of each part, [N, parts], 0 of an empty one."""
        # Ten times faster than the norm of order inf.
        rows = torch.maximum(Z.amax(-1), -Z.amin(-1))
        if self.parts is None:
            return rows
        none = rows.new_zeros(self.exponents.shape)
        return none.scatter_reduce(-1, self.part.expand_as(rows), rows, "amax")


class OneHead(Iteration):
    """Z <- Z + A Z W, or A Z W, with the same A and W in every layer.

    bits: of range that a layer takes. reach: the rows that each depends on, where each has a power
    of two of its own; else Z is [y; c]. summed: with the residual, the sum of all Z before is
    carried beside. carry: what multiplies the state, and that sum, in each layer of a twin.
    """

    def __init__(
        self,
        Z: Float[Tensor, "N n d"],
        exponents: Int64[Tensor, "N parts"],
        A: Float[Tensor, "N n n"],
        W: Float[Tensor, "N d d"],
        bits: float,
        residual: bool = True,
        reach: Bool[Tensor, "N n n"] | None = None,
        summed: bool = False,
        carry: Float[Tensor, "N n d"] | None = None,
    ) -> None:
        super().__init__(Z, exponents, (Z.shape[-2] - 1, 1) if reach is None else None)
        self.A, self.W, self.residual, self.dependence = A, W, residual, reach
        self.shared = W[0] if len(W) and (W.stride(0) == 0 or len(W) == 1) else None
        self.bits, self.summed, self.carry = bits, summed and residual, carry

    def reach(self, layer: int) -> Tensor | None:
        return self.dependence

    def matrix(self, exponents: Tensor) -> Tensor:
        """A for what stands over these powers of two; e_j <= e_k wherever row k depends on j."""
        if self.dependence is None:
            return self.A
        step = exponents.unsqueeze(-2) - exponents.unsqueeze(-1)
        return self.A * state.powers_of_two(step.clamp_max(0), self.A.dtype)

    def block(self, Z: Tensor, exponents: Tensor, most: int) -> Moved:
        """So many layers, without rescaling: T = Z W, then Z = Z + A T."""
        number = min(most, max(1, int(GROWTH_BITS[Z.dtype] / self.bits)))
        A, T, Z, rows = self.matrix(exponents), torch.empty_like(Z), Z.clone(), Z.shape[-1]
        total = torch.zeros_like(Z) if self.summed else None
        for _ in range(number):
            if self.carry is not None:
                Z.mul_(self.carry)
            if total is not None:
                if self.carry is not None:
                    total.mul_(self.carry)
                total.add_(Z)
            if self.shared is not None:
                torch.mm(Z.view(-1, rows), self.shared, out=T.view(-1, rows))
            else:
                torch.bmm(Z, self.W, out=T)
            if self.residual:
                Z.baddbmm_(A, T)
            else:
                torch.bmm(A, T, out=Z)
        return Z, exponents, number, None if total is None else self._summed(total, exponents)

    def _summed(self, more: Tensor, exponents: Tensor) -> state.Scaled:
        """The sum so far and more, on the larger of the two scales."""
        if self.beside is None:
            return more, exponents
        before, before_exponents = self.beside
        common = torch.maximum(before_exponents, exponents)
        old, new = (state.powers_of_two(e - common, more.dtype)[:, self.part].unsqueeze(-1)
                    for e in (before_exponents, exponents))  # fmt: skip
        return (before * old).addcmul_(more, new), common


def kept_at(
    depths: tuple[int, ...], progress: bool, state_at: Callable[[int, Bar], State]
) -> list[State]:
    """The states at the depths, with a bar of layers on stderr: on a terminal, or if asked for."""
    with torch.inference_mode(), Bar(depths[-1], "layer", progress) as shown:
        return [state_at(depth, shown) for depth in depths]


def stacked(kept: Iterable[state.Scaled]) -> state.Scaled:
    """Values and exponents over the depths."""
    values, exponents = zip(*kept, strict=True)
    return torch.stack(values), torch.stack(exponents)


def iterated(asked: Asked, progress: bool, in_core: bool) -> States:
    """The states at the depths, one layer after the other, and where A is reducible the tokens.

    O(n d (n + d)) a layer; in the core of a head O(n r (n + r)), and O(n r d) for each depth kept.
    Raises `InputError` in the core of a W that is not given by its factors.
    """
    problem, depths, device, dtype = asked
    # The draws of a twin come in this order.
    of_parts = start_of(problem, device, dtype)
    W, residual = problem.dense_weights, problem.residual
    P = Q = None
    if in_core:
        if problem.P is None or problem.Q is None:
            raise InputError(
                "method 'core' needs the factors of W: give W=(W_V, W_proj), or use 'plain'"
            )
        P, Q = (problem.flat(M, 2, device, dtype) for M in (problem.P, problem.Q))
        W = problem.Q @ problem.P
    weights = problem.flat(W, 2, device, dtype)

    def run(A: Array, norm: float, start: state.Scaled, reach: Tensor | None) -> state.Scaled:
        X, exponents = start
        Z = X.to(dtype) if P is None else X.to(dtype) @ P
        bits = range_bits(norm, problem.n * problem.d, dtype, residual)
        matrix = problem.flat(A, 2, device, dtype)
        carry = carry_of(problem, Z)
        head = OneHead(Z, exponents, matrix, weights, bits, residual, reach, in_core, carry)

        def state_at(depth: int, bar: Bar) -> state.Scaled:
            # X_L = A Z_{L-1} Q without the residual.
            behind = in_core and not residual
            head.advance_to(max(depth - behind, 0), bar)
            if depth == 0:
                return start
            if Q is None:
                moved = head.rescaled()
            else:
                Y, over = head.beside or head.rescaled(reach)
                moved = (head.matrix(over) @ Y) @ Q, over
            if reach is not None:
                moved = state.normalise(moved[0].to(torch.float64), 1, moved[1])
            if in_core and residual:
                return _sum_of(start, moved, by_rows=reach is not None)
            return moved

        return stacked(kept_at(depths, progress, state_at))

    # Of the core where it stands for W: that of W may be larger without end.
    size = norm_bound(W)
    parts = run(problem.quotient, size * norm_bound(problem.quotient), of_parts, None)
    offset = problem.flat(problem.offset, 1, device)
    if problem.reach is None:
        return States(*parts, offset)
    # The tokens' scales only shrink the entries of A.
    norm = size * norm_bound(problem.A)
    tokens = state.normalise(problem.flat(problem.X0, 2, device), 1)
    reach = problem.flat(problem.reach, 2, device)
    return States(*parts, offset, rows=run(problem.A, norm, tokens, reach))


def _sum_of(start: state.Scaled, moved: state.Scaled, by_rows: bool) -> state.Scaled:
    """The sum, token by token or of the rows of y and c each."""
    if by_rows:
        return state.normalised_sum(moved, start, trailing=1)
    (y, y_exponent), (c, c_exponent) = (
        state.normalised_sum(
            *((x[:, rows].to(torch.float64), e[:, k]) for x, e in (start, moved)), trailing=2
        )
        for k, rows in enumerate((slice(0, -1), slice(-1, None)))
    )
    return torch.cat((y, c), dim=-2).to(start[0].dtype), torch.stack((y_exponent, c_exponent), -1)
