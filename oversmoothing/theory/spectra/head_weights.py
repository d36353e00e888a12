"""The weights of a layer of many heads: W_h = P_h Q_h as the factors of a head, or dense (T7)."""

from dataclasses import dataclass
from typing import Any

from oversmoothing.theory.layer.input_checks import _real_array, check_square
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError


@dataclass(frozen=True)
class HeadWeights:
    """W_h = P_h Q_h for each head: P [heads, d, r] and Q [heads, r, d]; P None: W_h = Q_h dense."""

    P: Array | None
    Q: Array

    @property
    def heads(self) -> int:
        return len(self.Q)

    @property
    def d(self) -> int:
        return int(self.Q.shape[-1])

    def dense(self) -> Array:
        """W_h [heads, d, d]."""
        return self.Q if self.P is None else self.P @ self.Q


def head_weights(value: Any) -> HeadWeights:
    """The weights of one layer: W [heads, d, d] or [d, d], or the pair (W_V, W_O).

    W_V [heads, d, r] and W_O [heads, r, d] (W_proj cut into heads), or [d, r] and [r, d].
    Raises `InputError` on other shapes, NaN or infinite entries.
    """
    if isinstance(value, HeadWeights):
        return value
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InputError(f"weights as factors are a pair (W_V, W_O), not {len(value)} arrays")
        P, Q = (stacked(_real_array(x, f"W_{s}")) for x, s in zip(value, "VO", strict=True))
        if P.ndim != 3 or Q.shape != (P.shape[0], P.shape[2], P.shape[1]) or 0 in P.shape:
            raise InputError(
                f"W_V {list(P.shape)} and W_O {list(Q.shape)} do not belong together: they must "
                "be [heads, d, r] and [heads, r, d]"
            )
        return HeadWeights(P, Q)
    W = stacked(check_square(value, name="W"))
    if W.ndim != 3 or W.shape[0] == 0:
        raise InputError(f"W has shape {list(W.shape)}; it must be [d, d] or [heads, d, d]")
    return HeadWeights(None, W)


def stacked(x: Array) -> Array:
    """A single head as a stack of one."""
    return x[None] if x.ndim == 2 else x


def side_by_side(P: Array) -> Array:
    """[P_1 ... P_H] [d, heads r] for P [heads, d, r]."""
    return P.swapaxes(0, 1).reshape(P.shape[1], -1)
