"""Whether X_0 contains the dominant mode: its coefficient, recomputed with left eigenvectors."""

from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.checker.containment import Bounds, contained, show
from oversmoothing.theory.checker.discs import Discs, left_eigenvector
from oversmoothing.theory.checker.reading import Check, Given
from oversmoothing.theory.checker.spectra import (
    POLYNOMIAL_SIZE,
    attention_balls,
    attention_discs,
    exact,
    value_discs,
)


def check_genericity(given: Given, stated: Bounds, consensus: bool) -> Check:
    """|w^T X_0 z| / (||w|| ||z|| ||X_0||) is not 0 and lies in the stated interval."""
    missing = "the coefficient of the dominant mode could not be confirmed"
    # More bits for contents close to 0, where they are quick.
    more = (640, 2560) if max(given.n, given.d) <= POLYNOMIAL_SIZE else ()
    for bits in (160, 288, *more):
        ball = coefficient(given, consensus, bits)
        if ball is None or not ball > 0:
            continue
        # By the inequality of Cauchy and Schwarz it is at most 1.
        inside = contained(ball, stated, Fraction(0), Fraction(1))
        if inside is False:
            return Check(False, f"the coefficient is {show(ball)}, outside the stated interval")
        if inside:
            return Check(True, f"X_0 contains the dominant mode with coefficient {show(ball)}")
    return Check(False, missing, beyond=True)


def coefficient(given: Given, consensus: bool, bits: int) -> Any:
    """The coefficient in a ball, None where the dominant pair could not be singled out."""
    value, lift, _ = value_discs(given, bits)
    attention = None if consensus else attention_discs(given, bits)
    if value is None or (attention is None and not consensus):
        return None
    with flint.ctx.workprec(bits):
        pair = _dominant(attention, value)
        if pair is None:
            return None
        z = left_eigenvector(value, pair[1]).transpose()
        if lift is not None:
            z = lift * z
        w = _stationary(given, bits) if attention is None else None
        if attention is not None:
            # The differences z_i = x_1 - x_(i+1): v^T z = w^T x with w = (sum v, -v).
            v = left_eigenvector(attention, pair[0]).entries()
            w = [sum(v, flint.acb(0)), *(-x for x in v)]
        if w is None:
            return None
        X0 = flint.acb_mat(exact(given.X0 or []))
        found = abs((flint.acb_mat([w]) * X0 * z)[0, 0])
        return found / (_length(w) * _length(z.entries()) * _length(X0.entries()))


def _length(entries: list[Any]) -> Any:
    squares = (x.real * x.real + x.imag * x.imag for x in entries)
    return sum(squares, flint.arb(0)).sqrt()


def _dominant(attention: Discs | None, value: Discs) -> tuple[int, int] | None:
    """The pair of largest |1 + h a| (a = 1 without attention), alone but for its conjugate."""
    a_boxes = [flint.acb(1)] if attention is None else attention.boxes
    pairs = [
        (abs(1 + a * h), i, j) for i, a in enumerate(a_boxes) for j, h in enumerate(value.boxes)
    ]
    best, i, j = max(pairs, key=lambda entry: float(entry[0].mid()))
    if not value.single[j] or not (attention is None or attention.single[i]):
        return None
    mirrored = (a_boxes[i].conjugate(), value.boxes[j].conjugate())
    partner = (
        [k for k, box in enumerate(a_boxes) if box.overlaps(mirrored[0])],
        [k for k, box in enumerate(value.boxes) if box.overlaps(mirrored[1])],
    )
    if len(partner[0]) != 1 or len(partner[1]) != 1:
        return None
    allowed = {(i, j), (partner[0][0], partner[1][0])}
    rivals = {(k, m) for modulus, k, m in pairs if not modulus < best}
    return (i, j) if rivals <= allowed else None


def _stationary(given: Given, bits: int) -> list[Any] | None:
    """pi in balls: the first equation of pi^T (A - I) = 0 replaced by sum pi = 1."""
    n, A = given.n, attention_balls(given, bits).tolist()
    system = [[flint.arb(1)] * n]
    system += [[A[j][i] - int(i == j) for j in range(n)] for i in range(1, n)]
    try:
        pi = flint.arb_mat(system).solve(flint.arb_mat(n, 1, [1] + [0] * (n - 1)))
    except ZeroDivisionError:
        return None
    return [flint.acb(x) for x in pi.entries()]
