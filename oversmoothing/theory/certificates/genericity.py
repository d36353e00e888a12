"""Does this X_0 contain the dominant mode? An enclosure of its coefficient, in balls (T4, T10).

For the dominant pair (a, h) with left eigenvectors w^T A = a w^T and z^T H = h z^T (w = pi for
consensus) the coefficient is |w^T X_0 z| / (||w|| ||z|| ||X_0||_F), a number in [0, 1]; a complex
pair and its conjugate have the same. w^T X_L z = (1 + h a)^L w^T X_0 z, so where it is not 0 the
verdict for generic X_0 is the verdict for this one: SMOOTHING leaves ||c_L|| >= const rho_C^L over
HFC = O(poly rho_Q^L), NON_SMOOTHING the other way about.
"""

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import flint

from oversmoothing.theory.certificates.ball_spectra import BITS, BallSpectrum
from oversmoothing.theory.certificates.stages import (
    BALL_SIZE,
    attention_balls,
    attention_spectra,
    ball_side,
    outward,
    value_spectra,
)
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.numbers.balls import at_precision, norm
from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.verdict.outcome import Outcome


@dataclass(frozen=True)
class Genericity:
    """claim: {"mode", "coefficient": bounds} where the coefficient is not 0, else None; and why."""

    claim: dict[str, Any] | None
    reason: str


def genericity(case: Case, verdict: Outcome) -> Genericity:
    """Whether X_0 contains the dominant mode, and how much of it."""
    mode = {Outcome.SMOOTHING: "consensus", Outcome.NON_SMOOTHING: "quotient"}.get(verdict)
    if mode is None:
        return Genericity(None, f"{verdict}: no single mode dominates")
    if ball_side(case) > BALL_SIZE:
        return Genericity(None, f"matrices beyond side {BALL_SIZE} are not enclosed in balls")
    reason = "no eigenvectors were proved independent"
    sides = repeat(None) if mode == "consensus" else attention_spectra(case)
    for attention, value in zip(sides, value_spectra(case), strict=False):
        with at_precision(BITS):
            pair = dominant(attention, value)
            if isinstance(pair, str):
                reason = pair
                continue
            ball = _coefficient(case, attention, value, pair)
        low, high = outward(ball)
        # Below the smallest binary64 number a bound above 0 cannot be written.
        if low > 0:
            reason = f"|w^T X_0 z| / (||w|| ||z|| ||X_0||) = {ball.str(6)} of the dominant mode"
            bounds = [low.hex(), min(1.0, high).hex()]
            return Genericity({"mode": mode, "coefficient": bounds}, reason)
        reason = "the coefficient of the dominant mode is 0, or too small to tell from it"
    return Genericity(None, reason)


def dominant(attention: BallSpectrum | None, value: BallSpectrum) -> tuple[int, int] | str:
    """(i, j) of the largest |1 + h_j a_i|, or of |1 + h_j| without attention (then i = 0).

    Unique up to complex conjugation, and both eigenvalues isolated; or why there is no such pair.
    """
    a_boxes = [flint.acb(1)] if attention is None else attention.boxes
    moduli = {
        (i, j): abs(1 + h * a) for i, a in enumerate(a_boxes) for j, h in enumerate(value.boxes)
    }
    first = max(moduli, key=lambda pair: float(moduli[pair].mid()))
    tops = {pair for pair, modulus in moduli.items() if not modulus < moduli[first]}
    i, j = first
    if not (value.alone[j] and (attention is None or attention.alone[i])):
        return "the dominant eigenvalue is repeated, or too close to another to isolate"
    if tops != {first, (_conjugate(a_boxes, i), _conjugate(value.boxes, j))}:
        return "several modes share the largest modulus, or are too close to tell"
    return first


def _conjugate(boxes: list[flint.acb], i: int) -> int:
    """The index of the conjugate of an isolated eigenvalue, -1 where several boxes may hold it."""
    mirrored = boxes[i].conjugate()
    found = [k for k, box in enumerate(boxes) if box.overlaps(mirrored)]
    return found[0] if len(found) == 1 else -1


def _coefficient(
    case: Case, attention: BallSpectrum | None, value: BallSpectrum, pair: tuple[int, int]
) -> flint.arb:
    assert case.rational_X0 is not None
    i, j = pair
    z = flint.acb_mat(len(value.boxes), 1, value.left_vector(j))
    if len(value.boxes) < case.d:
        # z = W_V u for u^T (W_proj W_V)^T = h u^T.
        z = flint.acb_mat(to_flint(case.rational_factors[0])) * z
    if attention is None:
        w = stationary_balls(case)
    else:
        # In y_k = x_k - x_n, k < n: v^T y = w^T x with w = (v, -sum v).
        v = attention.left_vector(i)
        w = [*v, -sum(v, flint.acb(0))]
    X0 = flint.acb_mat(to_flint(case.rational_X0))
    content = abs((flint.acb_mat(1, case.n, w) * X0 * z)[0, 0])
    return content / (norm(w) * norm(z.entries()) * norm(X0.entries()))


def stationary_balls(case: Case) -> list[flint.acb]:
    """pi of an A whose eigenvalue 1 is simple, in balls."""
    n, A = case.n, attention_balls(case).tolist()
    system = [[A[j][i] - int(i == j) for j in range(n)] for i in range(n - 1)]
    system.append([flint.arb(1)] * n)
    right = flint.arb_mat(n, 1, [0] * (n - 1) + [1])
    solution: list[Any] = flint.arb_mat(system).solve(right).entries()
    return [flint.acb(x) for x in solution]
