"""How far training has turned each H from where it was drawn: cos(H_start, H_end).

A spectrum says what training made of H only where H left its start: one that stands at .9 shows the
spectrum that was drawn. The start is drawn again from the seed, so that it need not be stored.
"""

import math
from collections.abc import Sequence

from torch import Tensor

UNKNOWN = "start unknown"


def cos_start(start: Tensor, end: Tensor) -> list[float]:
    """<H_start, H_end>_F / (||H_start||_F ||H_end||_F) by layer, of two stacks [depth, d, d].

    1: not turned; of an independent start 0 with a standard deviation of 1/d. NaN for an H of 0.
    """
    norms = start.double().flatten(1).norm(dim=1) * end.double().flatten(1).norm(dim=1)
    products = (start.double() * end.double()).flatten(1).sum(1)
    return [float(value) for value in products / norms]


def spread(cosines: Sequence[float] | None) -> str:
    """'0.86 to 0.89', smallest to largest; 'start unknown' where none is known."""
    known = [value for value in cosines or () if not math.isnan(value)]
    if not known:
        return UNKNOWN
    low, high = f"{min(known):.2f}", f"{max(known):.2f}"
    return low if low == high else f"{low} to {high}"


def in_words(cosines: Sequence[float] | None) -> str:
    """'cos(H_start, H_end) 0.86 to 0.89' over the layers; 'start unknown' where it is not known."""
    said = spread(cosines)
    return said if said == UNKNOWN else f"cos(H_start, H_end) {said}"
