"""Verdicts on several streams from enclosed spectra of A and H (T13a).

Each pair of balls gives t = h a in a ball and the active eigenvalues as roots of u - t v. Smith's
discs enclose them: with distinct x_i, every root of P lies within D |P(x_i)| / |lead prod_{j != i}
(x_i - x_j)| of some x_i, and each connected component of discs holds as many roots as discs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.numbers.rounding import at_precision, largest
from oversmoothing.theory.spectra.blocks import clusters
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.spectra.layer_discs import Spectrum
from oversmoothing.theory.streams.agreement import differences_alone, lone_family
from oversmoothing.theory.streams.stream_answer import StreamMode, StreamVerdict, reason_of
from oversmoothing.theory.streams.stream_modes import largest_modulus
from oversmoothing.theory.streams.streams import Mixing, Streams
from oversmoothing.theory.support.errors import CloseRootsError, InputError
from oversmoothing.theory.support.sizes import Complex
from oversmoothing.theory.verdict.by_discs import cell_discs
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.stages import (
    BALL_SIZE,
    attention_boxes,
    ball_side,
    value_core,
    value_spectra,
)

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
    roots = np.roots([complex(c) for c in reversed(middle.coeffs())]).astype(np.complex128)
    # Distinct for certain: Smith's discs hold for whichever points.
    spread = 1e-9 * max(1.0, float(np.abs(roots).max(initial=0.0)))
    points = [flint.acb(complex(z)) for z in _apart(roots, spread)]
    for _ in range(8):
        points = [x - _weierstrass(middle, points, i) for i, x in enumerate(points)]
        points = [x.mid() for x in points]
        if not all(x.is_finite() for x in points):
            points = [flint.acb(complex(z)) for z in _apart(roots, spread)]
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
        for group in clusters(degree, lambda i, j: bool(boxes[i].overlaps(boxes[j])))
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


# Pairs (h, a) whose eigenvalues are enclosed for an estimate, the largest ones.
_LEADING = 64
# Bits of a radius from which it is a number; below that its enclosure is said.
_BITS_KNOWN = 10


def verdict_from_balls(case: Streams, certified: bool, known: dict[str, Any]) -> StreamVerdict:
    """Estimated, or certified; known: fields of the answer that are known already."""
    mixing, layer = case.asked, case.layer
    cell = cell_discs(layer)
    spectra = cell.spectra
    outcome, radii = Outcome.UNDECIDED, None
    stages = (
        _certified(case) if certified else iter([_estimated(mixing, cell.attention, cell.value)])
    )
    for radii in stages:
        outcome = radii.outcome()
        if outcome is not Outcome.UNDECIDED:
            break
    status = "certified" if certified else "estimated"
    if radii is None:
        return StreamVerdict(
            Outcome.UNDECIDED,
            status,
            None,
            None,
            "spec(A) or spec(H) was not enclosed: too large, or eigenvectors not proved "
            "independent.",
            **known,
        )
    rho_c, rho_q = _known(radii.rho_consensus), _known(radii.rho_quotient)
    mode = _leading_mode(mixing, *spectra, radii, outcome)
    reason = reason_of(outcome, _words(radii.rho_consensus), _words(radii.rho_quotient), mode)
    if outcome is Outcome.UNDECIDED:
        reason = (
            f"rounding decides: rho_C = {radii.rho_consensus.str(12)} and rho_Q = "
            f'{radii.rho_quotient.str(12)} overlap. Write the entries as fractions ("-4/3") for '
            "an exact decision."
        )
    if layer.n == 1:
        outcome = Outcome.TRIVIAL
    rate, one = _agreement_in_balls(case, radii)
    return StreamVerdict(
        outcome, status, rho_c, None if layer.n == 1 else rho_q, reason, tuple(mode), rate, one,
        **known,
    )  # fmt: skip


def _known(radius: flint.arb) -> float | None:
    """The middle of a ball; None where rounding leaves no digit of it."""
    return None if radius.rel_accuracy_bits() < _BITS_KNOWN else float(radius.mid())


def _words(radius: flint.arb) -> str:
    known = _known(radius)
    if known is not None:
        return f"{known:.6g}"
    low, high = max(0.0, float(radius.lower())), float(radius.upper())
    return f"{0.99 * low:.3g} to {1.01 * high:.3g}"  # outwards, by more than printing rounds


def _certified(case: Streams) -> Iterator[EnclosedRadii]:
    """Finer and finer radii from spectra enclosed in balls."""
    layer = case.layer
    if ball_side(layer) > BALL_SIZE:
        return
    zeros = bool(value_core(layer)[1])
    a_boxes: Any = attention_boxes(layer) if layer.n > 1 else iter([[]] * 4)
    # A causal A comes as one endless enclosure.
    for boxes, value in islice(zip(a_boxes, value_spectra(layer), strict=False), 4):
        yield enclosed_radii(case.asked, boxes, value.boxes, zeros)


def _estimated(mixing: Mixing, attention: Discs, value: Discs) -> EnclosedRadii:
    """From discs in float64; the pairs far below the largest, by values in floats, are left out."""
    if not np.isfinite(value.centres).all():
        raise InputError("H has an eigenvalue beyond the range of binary64 (1.8e308): scale it")
    one = (attention.radii == 0) & (attention.centres == 1)
    zero = (value.radii == 0) & (value.centres == 0)
    a, h = _balls(attention), _balls(value)
    everything = [h[j] for j in np.flatnonzero(~zero)]
    radii = enclosed_radii(mixing, [], everything, bool(zero.any()), bool(one.any()))
    pairs = _leading(mixing, attention, value, ~one, ~zero)
    rest = enclosed_radii(mixing, [], [h[j] * a[i] for i, j in pairs])
    return replace(radii, quotient=rest.consensus)


def _leading(
    mixing: Mixing, attention: Discs, value: Discs, rows: Any, columns: Any
) -> list[tuple[int, int]]:
    """The pairs (i, j) with the largest moduli in float64."""
    i, j = (np.flatnonzero(x) for x in (rows, columns))
    if not len(i) or not len(j):
        return []
    t = attention.centres[i][:, None] * value.centres[j][None, :]
    moduli = _float_radii(mixing, t).ravel()
    order = np.argsort(-moduli, kind="stable")[:_LEADING]
    return [(int(i[k // len(j)]), int(j[k % len(j)])) for k in order.tolist()]


def _float_radii(mixing: Mixing, t: Complex) -> Any:
    """rho(R + t p q^T) for each t, in float64."""
    R = to_float(mixing.R)
    outer = np.outer(to_float([mixing.p])[0], to_float([mixing.q])[0])
    with np.errstate(over="ignore", invalid="ignore"):
        whole = R + t[..., None, None] * outer
    if not np.isfinite(whole).all():
        raise InputError("H times p and q is beyond the range of binary64 (1.8e308): scale H")
    scaled, power = _scaled(whole)
    with np.errstate(over="ignore"):  # an eigenvalue may be beyond the floats where no entry is
        return np.ldexp(np.abs(np.linalg.eigvals(scaled)).max(-1), power)


def _scaled(matrices: Complex) -> tuple[Complex, Any]:
    """Each matrix times 2^-power, near 1: LAPACK's products overflow where entries are near the
    largest float."""
    power = np.frexp(np.maximum(np.abs(matrices).max((-2, -1)), np.finfo(float).tiny))[1]
    return matrices * np.ldexp(1.0, -power)[..., None, None], power


def _balls(discs: Discs) -> list[flint.acb]:
    """For each disc a ball around its component, which holds an eigenvalue."""
    balls = [
        flint.acb(complex(z)) + flint.acb(flint.arb(0, float(r)), flint.arb(0, float(r)))
        if r
        else flint.acb(complex(z))
        for z, r in zip(discs.centres, discs.radii, strict=True)
    ]
    for i in np.flatnonzero(~discs.alone).tolist():
        for j in np.flatnonzero(discs.component == discs.component[i]).tolist():
            balls[i] = balls[i].union(balls[j])
    return balls


def _leading_mode(
    mixing: Mixing, attention: Spectrum, value: Spectrum, radii: EnclosedRadii, outcome: Outcome
) -> list[StreamMode]:
    """The mode that decides, as float64 has it."""
    if outcome not in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING):
        return []
    side = "consensus" if outcome is Outcome.SMOOTHING else "quotient"
    a = np.ones(1, dtype=complex) if side == "consensus" else attention.values
    t = a[:, None] * value.values[None, :]
    i, j = divmod(int(np.argmax(_float_radii(mixing, t))), t.shape[1])
    R = to_float(mixing.R)
    p, q = to_float([mixing.p])[0], to_float([mixing.q])[0]
    scaled, power = _scaled(R + t[i, j] * np.outer(p, q))
    values, vectors = np.linalg.eig(scaled)
    k = int(np.argmax(np.abs(values)))
    top = complex(np.ldexp(values[k].real, power), np.ldexp(values[k].imag, power))
    w = vectors[:, k] / vectors[np.argmax(np.abs(vectors[:, k])), k]
    return [
        StreamMode(side, top, complex(value.values[j]), complex(a[i]), tuple(complex(x) for x in w))
    ]


def _agreement_in_balls(case: Streams, radii: EnclosedRadii) -> tuple[float | None, bool | None]:
    mixing = case.mixing
    if case.start == "equal" or mixing.streams == 1:
        return None, None
    top = radii.rho_consensus.max(radii.rho_quotient)
    rest = differences_alone(mixing, case.layer.rational_H)
    if rest is None:
        # 1 is an eigenvector of one family at most, which rounding cannot name.
        special = lone_family(mixing) is not None or sum(mixing.q) == 0
        return (None, None) if special else (float(top.mid()), False)
    rate = abs(largest_modulus(rest)[0][0].ball(128))
    one = True if rate < top else False if rate >= top else None
    return float(rate.mid()), one
