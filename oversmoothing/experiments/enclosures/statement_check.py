"""Confirm or refuse an enclosure, by another order of operations at another precision.

A claim is confirmed when the checker's own ball lies within it; refused when the two have nothing
in common, and where more bits would be needed than a claim of its kind takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import flint

from oversmoothing.experiments.enclosures.ball_arrays import Ball, Balls
from oversmoothing.experiments.enclosures.ball_metrics import NAMES
from oversmoothing.experiments.enclosures.box_pass import refuse_unboxable
from oversmoothing.experiments.enclosures.boxing import changes
from oversmoothing.experiments.enclosures.enclosing import (
    MOST_TOKENS,
    WITHOUT,
    first_bits,
    names_of,
)
from oversmoothing.experiments.enclosures.network import Network
from oversmoothing.experiments.enclosures.other_box_pass import other_box_ratios
from oversmoothing.experiments.enclosures.other_metrics import other_metrics
from oversmoothing.experiments.enclosures.other_pass import transposed_streams
from oversmoothing.experiments.enclosures.statement import (
    BOX,
    CHANGE,
    Interval,
    Statement,
    exact_ends,
)
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.support.errors import InputError

# Bits beyond those of `enclosing`, and how often they are doubled at most.
MORE, DOUBLED = 96, 2


@dataclass(frozen=True)
class Checked:
    """accepted, and why or why not, in a sentence."""

    accepted: bool
    words: str


def check_statement(network: Network, read: Statement) -> Checked:
    """Whether every claim of the file holds of this network."""
    fault = misfit(network, read)
    if fault is None and read.kind == BOX:
        return _check_box(network, read)
    if fault is None:
        wanted = set(names_of(network, NAMES))
        layers = set(range(len(network.blocks) + 1))
        if set(read.claims) != layers or any(set(x) != wanted for x in read.claims.values()):
            fault = "it does not claim every metric of every layer"
    if fault is not None:
        return Checked(False, fault)
    bits = first_bits(network) + MORE
    words = ""
    for _ in range(DOUBLED + 1):
        with at_precision(bits):
            false, open_claims = _against(network, read)
        if false or not open_claims:
            break
        words = f": {open_claims[0]} is narrower than {bits} bits can confirm"
        bits *= 2
    if false:
        return Checked(False, f"false: {false} is elsewhere")
    if open_claims:
        return Checked(False, f"not confirmed{words}")
    number = sum(map(len, read.claims.values()))
    return Checked(
        True,
        f"{number} intervals of {len(read.claims)} streams, each around what was computed anew "
        f"with {bits} bits in another order",
    )


def _check_box(network: Network, read: Statement) -> Checked:
    last = max(read.claims)
    if min(read.claims) < 1 or last > len(network.blocks):
        return Checked(False, f"the network has the layers 1 to {len(network.blocks)}")
    try:
        refuse_unboxable(network, read.given.size, last)
    except InputError as error:
        return Checked(False, str(error))
    if any(set(claim) != {CHANGE} for claim in read.claims.values()):
        return Checked(False, "of a box the change of ln HFC/LFC is claimed, and nothing else")
    eps = float(read.eps)
    found = dict(enumerate(changes(other_box_ratios, network, read.given, eps, last), 1))
    for number, claim in sorted(read.claims.items()):
        low, high = claim[CHANGE]
        if number not in found:
            return Checked(False, f"not confirmed: the box is too large for layer {number}")
        own = found[number]
        if own[1] < low or high < own[0]:
            return Checked(False, f"false: the change over layer {number} is elsewhere")
        if not (low <= Fraction(own[0]) and Fraction(own[1]) <= high):
            return Checked(False, f"not confirmed: over layer {number} from {own[0]} to {own[1]}")
    words = "; ".join(said(number, claim[CHANGE]) for number, claim in sorted(read.claims.items()))
    return Checked(True, f"for every input within {eps:.6g} in every pixel {words}")


def said(number: int, ends: tuple[Fraction, Fraction] | tuple[float, float]) -> str:
    """What an interval for the change of ln HFC/LFC over a layer says."""
    low, high = map(float, ends)
    if low > 0 or high < 0:
        least, most = sorted((abs(low), abs(high)))
        word = "rises" if low > 0 else "falls"
        return f"HFC/LFC {word} over layer {number} (ln by {least:.4g} to {most:.4g})"
    return f"ln HFC/LFC changes by {low:.4g} to {high:.4g} over layer {number}"


def misfit(network: Network, read: Statement) -> str | None:
    """Why the file speaks of no input of this network, None where it does."""
    if read.network != network.digest():
        return "it speaks of another network: the digest of the weights differs"
    patches = network.patches
    if read.source != ("stream" if patches is None else "pixels"):
        return "its input is not what the network starts from"
    shape = read.given.shape
    if patches is None:
        fits = len(shape) == 2 and shape[1] == network.width
        fits = fits and 2 + network.cls <= shape[0] <= MOST_TOKENS
    else:
        tokens = len(patches.positions) - len(patches.first)
        fits = len(shape) == 3 and shape[1] == shape[2] and shape[1] % patches.side == 0
        fits = fits and (shape[1] // patches.side) ** 2 == tokens
        fits = fits and shape[0] * patches.side**2 == len(patches.W)
    return None if fits else f"its input has the shape {shape}, which the network does not read"


def _against(network: Network, read: Statement) -> tuple[str | None, list[str]]:
    """(the first claim that is false, those that this precision does not decide)."""
    undecided: list[str] = []
    for number, Z in enumerate(transposed_streams(network, read.given)):
        for name, ball in _metrics(network, Z).items():
            said = compared(ball, read.claims[number][name])
            if said is False:
                return f"{name} of layer {number}", []
            if said is None:
                undecided.append(f"{name} of layer {number}")
        if undecided:
            break
    return None, undecided


def _metrics(network: Network, Z: Balls) -> dict[str, Ball]:
    found = other_metrics(Z)
    if network.cls:
        rest = flint.arb_mat([row[1:] for row in Z.tolist()])
        found |= {f"{name}{WITHOUT}": ball for name, ball in other_metrics(rest).items()}
    return found


def compared(ball: Ball, claim: Interval) -> bool | None:
    """True: the ball lies within the claim. False: they share nothing. None: neither."""
    if not ball.is_finite():
        return None
    low, high = exact_ends(ball)
    if claim[0] <= low and high <= claim[1]:
        return True
    return False if high < claim[0] or claim[1] < low else None
