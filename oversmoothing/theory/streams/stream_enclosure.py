"""rho_C and rho_Q of several streams from balls around the eigenvalues of A and H (T13a).

Each pair of balls gives t = h a in a ball and the active eigenvalues as roots of u - t v. Smith's
discs enclose them: with distinct x_i, every root of P lies within D |P(x_i)| / |lead prod_{j != i}
(x_i - x_j)| of some x_i, and each connected component of discs holds as many roots as discs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import flint
import numpy as np

from oversmoothing.theory.numbers.rounding import at_precision, largest
from oversmoothing.theory.spectra.algebraic import CloseRootsError
from oversmoothing.theory.streams.mixing import Mixing
from oversmoothing.theory.support.sizes import Complex
from oversmoothing.theory.verdict.formulas import Outcome

BITS = 160


@dataclass(frozen=True)
class EnclosedRadii:
    """Balls around three radii: what both families share for certain, and what each adds.

    shared: idle eigenvalues, and the family t = 0 where H is singular for certain. consensus,
    quotient: the active eigenvalues of each. repeated: the eigenvalue 1 of A repeats, so that the
    quotient has all that consensus has, beside what `quotient` holds.
    """

    shared: flint.arb
    consensus: flint.arb
    quotient: flint.arb
    repeated: bool = False

    @property
    def rho_consensus(self) -> flint.arb:
        """A ball around rho_C."""
        return largest([self.shared, self.consensus])

    @property
    def rho_quotient(self) -> flint.arb:
        """A ball around rho_Q."""
        more = [self.consensus] if self.repeated else []
        return largest([self.shared, self.quotient, *more])

    def outcome(self) -> Outcome:
        """The verdict, UNDECIDED where the balls overlap.

        It is a tie where neither side exceeds what they share.
        """
        c, q = self.consensus, self.quotient
        if self.repeated:
            floor = largest([self.shared, c])
            if q > floor:
                return Outcome.NON_SMOOTHING
            return Outcome.TIE if q.upper() <= floor.lower() else Outcome.UNDECIDED
        if c > q and c > self.shared:
            return Outcome.SMOOTHING
        if q > c and q > self.shared:
            return Outcome.NON_SMOOTHING
        if max(c.upper(), q.upper()) <= self.shared.lower():
            return Outcome.TIE
        return Outcome.UNDECIDED


def enclosed_radii(
    mixing: Mixing,
    attention: Sequence[flint.acb],
    value: Sequence[flint.acb],
    zero: bool = False,
    repeated: bool = False,
) -> EnclosedRadii:
    """The radii for balls around spec(A) without its eigenvalue 1, and around spec(H).

    Each ball must hold an eigenvalue, and every eigenvalue lie in one. zero: H has the eigenvalue 0
    exactly, beside those in `value`. Raises `CloseRootsError`.
    """
    with at_precision(BITS):
        shared = largest(abs(x.ball(BITS)) for x in mixing.idle_values)
        if zero:
            shared = largest([shared, _active_radius(mixing, flint.acb(0))])
        consensus = largest(_active_radius(mixing, h) for h in value)
        quotient = largest(_active_radius(mixing, h * a) for h in value for a in attention)
    return EnclosedRadii(shared, consensus, quotient, repeated)


def _active_radius(mixing: Mixing, t: flint.acb) -> flint.arb:
    """A ball around the largest modulus of a root of u - t v."""
    u, v = mixing.active
    if u.degree() < 1:
        return flint.arb(0)
    if u.degree() == 1:
        return abs(t * flint.acb(v[0]) - flint.acb(u[0]))
    return largest_root(flint.acb_poly(u) - flint.acb_poly(v) * t)


def largest_root(polynomial: flint.acb_poly) -> flint.arb:
    """A ball around the largest modulus of a root of a monic polynomial with balls as coefficients.

    Raises `CloseRootsError` where roots agree to more digits than are parted here.
    """
    degree = int(polynomial.degree())
    middle = flint.acb_poly([c.mid() for c in polynomial.coeffs()])
    found = np.roots([complex(c) for c in reversed(middle.coeffs())]).astype(np.complex128)
    # Distinct for certain: Smith's discs hold for whichever points.
    spread = 1e-9 * max(1.0, float(np.abs(found).max(initial=0.0)))
    points = [flint.acb(complex(z)) for z in _apart(found, spread)]
    for _ in range(8):
        points = [x - _weierstrass(middle, points, i) for i, x in enumerate(points)]
        points = [x.mid() for x in points]
        if not all(x.is_finite() for x in points):
            points = [flint.acb(complex(z)) for z in _apart(found, spread)]
            break
    radii = [abs(_weierstrass(polynomial, points, i)).upper() * degree for i in range(degree)]
    boxes = [
        x + flint.acb(flint.arb(0, r), flint.arb(0, r)) for x, r in zip(points, radii, strict=True)
    ]
    if not all(box.is_finite() for box in boxes):
        raise CloseRootsError(
            "eigenvalues of R + t p q^T agree to more digits than are parted here: not decided"
        )
    high = reduce(lambda a, b: a.max(b), (abs(box).upper() for box in boxes))
    lows = [
        reduce(lambda a, b: a.min(b), (abs(boxes[k]).lower() for k in group))
        for group in _components(boxes)
    ]
    return reduce(lambda a, b: a.max(b), lows).union(high)


def _weierstrass(P: flint.acb_poly, points: list[flint.acb], i: int) -> flint.acb:
    """P(x_i) / prod_{j != i} (x_i - x_j)."""
    product = flint.acb(1)
    for j, y in enumerate(points):
        if j != i:
            product = product * (points[i] - y)
    return P(points[i]) / product


def _apart(values: Complex, spread: float) -> list[complex]:
    """The values, those that nearly agree moved onto a small circle."""
    turn = np.exp(2j * np.pi * np.arange(len(values)) / max(1, len(values)))
    near = np.abs(values[:, None] - values[None, :]) < spread
    return [z + (spread * w if group.sum() > 1 else 0) for z, w, group in zip(
        values.tolist(), turn.tolist(), near, strict=True)]  # fmt: skip


def _components(boxes: list[flint.acb]) -> list[list[int]]:
    waiting, groups = set(range(len(boxes))), []
    while waiting:
        group, new = [], [waiting.pop()]
        while new:
            k = new.pop()
            group.append(k)
            met = [j for j in waiting if boxes[j].overlaps(boxes[k])]
            waiting.difference_update(met)
            new += met
        groups.append(group)
    return groups
