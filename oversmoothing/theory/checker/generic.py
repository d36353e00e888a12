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
        pair = dominant(attention, value)
        if pair is None:
            return None
        z = left_eigenvector(value, pair[1]).transpose()
        if lift is not None:
            z = lift * z
        if attention is None:
            w = _stationary(given, bits)
        else:
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


def dominant(attention: Discs | None, value: Discs) -> tuple[int, int] | None:
    """The pair of largest |1 + h a| (a = 1 without attention), alone but for its conjugate."""
    sides = ([flint.acb(1)], [True]), (value.boxes, value.single)
    if attention is not None:
        sides = (attention.boxes, attention.single), (value.boxes, value.single)
    (a_boxes, a_single), (h_boxes, h_single) = sides
    pairs = [(abs(1 + a * h), i, j) for i, a in enumerate(a_boxes) for j, h in enumerate(h_boxes)]
    # Balls are compared where they are disjoint, as one that wins is from all others.
    best, i, j = max(pairs)
    if not (a_single[i] and h_single[j]):
        return None
    mirror = _mirror(a_boxes, a_single, i), _mirror(h_boxes, h_single, j)
    rivals = {(k, m) for modulus, k, m in pairs if not modulus < best}
    return (i, j) if rivals <= {(i, j), mirror} else None


def _mirror(boxes: list[Any], single: list[bool], i: int) -> int | None:
    """The box of the conjugate of the eigenvalue in box i, None unless it is alone there."""
    found = [k for k, box in enumerate(boxes) if box.overlaps(boxes[i].conjugate())]
    return found[0] if len(found) == 1 and single[found[0]] else None


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
