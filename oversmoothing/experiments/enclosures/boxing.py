"""The largest box around an input on which the change of ln HFC/LFC over a layer keeps its sign.

Both routes must prove the sign: what is claimed is the hull of their intervals, so that the checker
finds its own within. The largest box is found by halving, on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from math import sqrt

from oversmoothing.experiments.enclosures.box_pass import box_ratios, refuse_unboxable
from oversmoothing.experiments.enclosures.curves import LeftDomainError
from oversmoothing.experiments.enclosures.network import Network
from oversmoothing.experiments.enclosures.other_box_pass import other_box_ratios
from oversmoothing.experiments.enclosures.zonotope import Zonotope
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

Ratios = Callable[[Network, Array, float], Iterator[Zonotope]]
Ends = tuple[float, float]
# The first eps tried, the smallest, and how near to the largest one the search goes.
FIRST, LEAST, NEAR = 2.0**-8, 2.0**-40, 1.1


def changes(route: Ratios, network: Network, pixels: Array, eps: float, layers: int) -> list[Ends]:
    """Intervals for the change of ln HFC/LFC over the first layers, on all inputs within eps of
    pixels [c, s, s] in every pixel; as many as the route can prove."""
    found: list[Ends] = []
    try:
        for before, after in pairwise(islice(route(network, pixels, eps), layers + 1)):
            low, high = (after - before).interval()
            found.append((float(low[0, 0]), float(high[0, 0])))
    except LeftDomainError:
        pass
    return found


def signed(ends: Ends) -> bool:
    """Whether the change has one sign."""
    return ends[0] > 0 or ends[1] < 0


def both_routes(network: Network, pixels: Array, eps: float, layers: int) -> list[Ends]:
    """The hulls of what both routes prove of the first layers."""
    pairs = zip(
        changes(box_ratios, network, pixels, eps, layers),
        changes(other_box_ratios, network, pixels, eps, layers),
        strict=False,
    )
    return [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]


def on_box(
    network: Network, pixels: Array, eps: float, layers: Sequence[int] = ()
) -> dict[int, Ends]:
    """Of these layers, from 1 (all where none is named), those over which the sign of the change is
    proved on the box of eps.

    Raises `InputError` as `largest_box` does.
    """
    asked = layers or range(1, len(network.blocks) + 1)
    _refuse(network, pixels, asked)
    found = both_routes(network, pixels, eps, max(asked))
    return {
        number: ends for number, ends in enumerate(found, 1) if number in asked and signed(ends)
    }


def _refuse(network: Network, pixels: Array, layers: Sequence[int]) -> None:
    for layer in layers:
        if not 1 <= layer <= len(network.blocks):
            raise InputError(f"the network has the layers 1 to {len(network.blocks)}, not {layer}")
    refuse_unboxable(network, pixels.size, max(layers))


def largest_box(network: Network, pixels: Array, layer: int) -> tuple[float, Ends]:
    """(eps, the change of ln HFC/LFC over that layer, from 1): at `NEAR` times eps one of the
    routes proves no sign.

    Raises `InputError` where there is no such layer, where none of at least `LEAST` is proved, and
    for a network whose boxes cannot be enclosed.
    """
    _refuse(network, pixels, [layer])

    def proved(eps: float) -> Ends | None:
        found = both_routes(network, pixels, eps, layer)
        return found[-1] if len(found) == layer and signed(found[-1]) else None

    eps, best = FIRST, proved(FIRST)
    if best is None:
        high = eps
        while best is None:
            high, eps = eps, eps / 4
            if eps < LEAST:
                raise InputError(
                    f"the change of HFC/LFC over layer {layer} is too small to have a sign on any "
                    "box: choose another layer or image"
                )
            best = proved(eps)
    else:
        high = 2 * eps
        while (more := proved(high)) is not None:
            eps, best, high = high, more, 2 * high
    while high > NEAR * eps:
        middle = sqrt(eps * high)
        found = proved(middle)
        if found is None:
            high = middle
        else:
            eps, best = middle, found
    return eps, best
