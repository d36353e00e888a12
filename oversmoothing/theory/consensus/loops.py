"""What a block does to consensus when it is applied again and again (T12).

A looped block sends equal tokens 1 c^T to 1 g(c)^T. Along that path c_t, gamma = log(|c_{t+1}|/
|c_t|) and log|lambda| of the derivative across consensus (T8c) say whether HFC/LFC of a small
perturbation falls. Where |c_t| grows linearly, as of a Pre-LN block whose branch is homogeneous of
degree 0 far out, gamma ~ 1/t and log|lambda| ~ kappa/(c t), and HFC/LFC goes like t^(kappa/c - 1):
the exponent is log|lambda|/gamma - 1 (T12c, at first order; at these `loops`: the direction of the
equal tokens may still turn, see `settled`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from oversmoothing.theory.layer.layer import check_attention, check_square, check_states
from oversmoothing.theory.spectra.layer_discs import largest_modulus
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# log|c_2T/c_T| in units of log 2 between which |c_t| is said to grow like a power of t.
POWER = (0.5, 1.5)


@dataclass(frozen=True)
class LoopLaw:
    """Local stability of consensus under a looped block, at its loop number `loops`.

    along: gamma, the log of the growth of |c| in one loop; across: log|lambda|, of the eigenvalue
    of largest modulus of the derivative across consensus; power: log|c_T/c_{T/2}| / log 2, 1 where
    |c_t| grows linearly, 0 where it is bounded; turning: the angle between c_T and g(c_T), radians.
    """

    loops: int
    along: float
    across: float
    power: float
    turning: float

    @property
    def rate(self) -> float:
        """The slope of log HFC/LFC a loop, at that loop."""
        return self.across - self.along

    @property
    def polynomial(self) -> bool:
        """Whether |c_t| grows like a power of t about 1, so that HFC/LFC moves like a power too;
        not where it shrinks in that very loop."""
        return self.along > 0 and POWER[0] <= self.power <= POWER[1]

    @property
    def exponent(self) -> float:
        """kappa/c - 1 of HFC/LFC ~ t^exponent; NaN where |c| does not grow."""
        return self.across / self.along - 1 if self.along > 0 else math.nan

    @property
    def settled(self) -> bool:
        """Whether the path of equal tokens turns by less in a loop than it grows: needed for a
        direction that it converges to, which the law assumes, and not enough."""
        return self.turning <= max(abs(self.along), 1e-6)

    @property
    def attracts(self) -> bool:
        """Whether small differences between tokens fall behind consensus."""
        return self.rate < 0

    def loops_to(self, now: float, wanted: float) -> float:
        """Loops from HFC/LFC = `now` near consensus down to `wanted`; inf where it does not fall.

        A power law counts from where |c_t| extrapolates to 0: (t + t_0)^exponent, t_0 = 1/along -
        loops. Raises `InputError` unless both are positive.
        """
        if not (now > 0 and wanted > 0):
            raise InputError(f"HFC/LFC from {now} to {wanted}: give positive numbers")
        if wanted >= now:
            return 0.0
        if not self.attracts:
            return math.inf
        if not self.polynomial:
            return math.log(wanted / now) / self.rate
        start = max(1.0, 1 / self.along - self.loops)
        log_factor = math.log(wanted / now) / self.exponent
        return start * math.expm1(log_factor) if log_factor < 700 else math.inf


@dataclass(frozen=True)
class RecallLimit:
    """X' = X + A X W + beta X_0: its fixed point X* [n, d] (T12a).

    attracts: whether every start converges to it, radius = max |1 + h_j a_i| < 1. The fixed point
    is unique, since A and W are invertible; its tokens are all equal iff those of X_0 are.
    """

    state: Array
    radius: float

    @property
    def attracts(self) -> bool:
        return self.radius < 1


def recall_limit(A: ArrayLike, H: ArrayLike, X0: ArrayLike, beta: float) -> RecallLimit:
    """X* = -beta A^-1 X_0 W^-1 with W = H^T, for A [n, n], H [d, d], X0 [n, d] (T12a).

    Raises `InputError` on illegal input, for beta = 0 (no recall) and where A or H is singular:
    there is no fixed point for most X_0 then, and where there is one, it is not unique.
    """
    attention, value = check_attention(A), check_square(H)
    start = check_states(X0, len(attention), len(value))
    if beta == 0:
        raise InputError("beta = 0 recalls nothing: ask the layer without recall")
    for name, M in (("A", attention), ("H", value)):
        if np.linalg.matrix_rank(M) < len(M):
            raise InputError(
                f"{name} is singular in float64: X + A X W + beta X_0 has no fixed point for most "
                "X_0, and never a unique one"
            )
    solved = np.linalg.solve(attention, np.linalg.solve(value, start.T).T)
    a, h = (np.linalg.eigvals(M).astype(np.complex128) for M in (attention, value))
    state: Array = -beta * solved
    return RecallLimit(state, largest_modulus(a, h)[0])
