"""Attention from logits, enclosed: the softmax of exact binary64 logits in ball arithmetic."""

from __future__ import annotations

import flint
import numpy as np
from numpy.typing import NDArray

from theory.exact import at_precision

Array = NDArray[np.float64]

_BITS = 96


def softmax_enclosure(logits: Array) -> tuple[Array, Array]:
    """(A, error): float64 A [n, n] and a bound with |softmax(logits) - A| <= error entrywise.

    Logits of -inf are masked (exactly 0); each row needs a finite one. exp in balls of 96 bits.
    """
    n = len(logits)
    A, error = np.zeros((n, n)), np.zeros((n, n))
    with at_precision(_BITS):
        for i, row in enumerate(logits):
            top = float(row.max())
            weights = [
                flint.arb(0) if np.isneginf(x) else (flint.arb(float(x)) - top).exp() for x in row
            ]
            total = sum(weights, flint.arb(0))
            for j, weight in enumerate(weights):
                share = weight / total
                A[i, j] = float(share.mid())
                gap = abs(share - flint.arb(A[i, j])).upper()
                error[i, j] = np.nextafter(float(gap), np.inf)
    return A, error
