"""A product of float64 tensors with what its rounding left, as theory's `two_product` of arrays."""

from torch import Tensor

# 2^27 + 1 splits 53 bits in two halves (Dekker).
_SPLIT = 134217729.0


def two_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """(p, e) with p = fl(a b) and p + e = a b exactly, barring over- and underflow."""
    p = a * b
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    shifted = a * _SPLIT
    top = shifted - (shifted - a)
    return top, a - top
