"""Ties: two radii are equal when the norm of their difference leaves no room between them."""

from collections.abc import Callable

from oversmoothing.theory.checker.moduli import Modes, Sides, equal, equality_bits, largest
from oversmoothing.theory.checker.reading import Check, Given
from oversmoothing.theory.checker.spectra import TIE_SIZE, has_polynomial

# Bits spent on the proof of a tie.
TIE_BITS = 2**20
# Tried first: most pairs that are not equal separate there.
_FIRST_BITS = (320, 1280, 5120)


def check_tie(
    given: Given, jordan: tuple[int, int] | None, structure: Check | None = None
) -> Check:
    """rho_C = rho_Q, and the largest Jordan blocks there where they are stated.

    structure: what was found if the radii are known to be equal to the last bit.
    """
    if jordan is None and structure is not None:
        return Check(True, f"{structure.words}, equal by structure")
    if not given.rational:
        return Check(
            False, "a tie is confirmed for A and H in fractions or binary64 only", beyond=True
        )
    assert given.A is not None
    if not (has_polynomial(given.A, TIE_SIZE) and has_polynomial(given.H, TIE_SIZE)):
        words = f"a tie is confirmed up to n, d = {TIE_SIZE} only, and with no endless numbers"
        return Check(False, words, beyond=True)
    modes = Modes(given.A, given.H)
    found = tied(modes, lambda sides, bits: (largest(sides[0]), largest(sides[1])))
    if isinstance(found, float):
        words = f"the tie would take {found:.0f} bits to confirm, more than are spent"
        return Check(False, words, beyond=True)
    if found is None:
        return Check(False, "no tie: the squared radii differ")
    blocks = tuple(max(pair.block for pair in side) for side in found)
    if jordan is not None and blocks != jordan:
        return Check(False, f"the largest Jordan blocks at the tie are {blocks}, not {jordan}")
    words = "TIE: the squared radii are equal"
    if jordan is not None:
        words += f"; largest Jordan blocks {blocks[0]} and {blocks[1]}"
    return Check(True, words)


def tied(modes: Modes, chosen: Callable[[Sides, int], Sides]) -> Sides | float | None:
    """The modes of both sides that tie; None where they do not; the bits it would take if too many.

    chosen: of the modes of consensus and of the quotient, known to that many bits, those that may
    be the largest. Each of one side must equal each of the other: then whichever are the largest
    are equal.
    """
    sides = modes.pairs(_FIRST_BITS[0])
    for bits in _FIRST_BITS:
        sides = chosen(modes.refined(sides, bits), bits)
        found = {equal(c, q, bits) for c in sides[0] for q in sides[1]}
        if found == {False}:
            return None
        if found == {True}:
            return sides
    needed = max(equality_bits(c, q) for c in sides[0] for q in sides[1])
    if needed > TIE_BITS:
        return needed
    # Balls lose some bits to cancellation.
    bits = max(_FIRST_BITS[-1], int(needed) + 512)
    sides = chosen(modes.refined(sides, bits), bits)
    found = {equal(c, q, bits) for c in sides[0] for q in sides[1]}
    if found == {False}:
        return None
    return sides if found == {True} else needed
