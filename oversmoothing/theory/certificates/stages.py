"""The stages of a certified verdict: discs in float64, exact arithmetic, balls, UNDECIDED.

Input in fractions of moderate size is decided exactly at once. Otherwise the float64 discs are
asked first; where they overlap, exact arithmetic on what is rational and small, and discs of a
refined similarity in balls on what is larger or a softmax. The method of what comes back names the
stage.
"""

from collections.abc import Iterator
from itertools import repeat

import flint
import numpy as np

from oversmoothing.theory.certificates.ball_spectra import BITS, BallSpectrum, enclose_in_balls
from oversmoothing.theory.certificates.certified_radii import (
    CertifiedDominance,
    certify_spectra,
    given_discs,
)
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.softmax_in_balls import softmax_balls
from oversmoothing.theory.layer.softmax_in_floats import nearest, softmax_in_floats
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import to_flint
from oversmoothing.theory.spectra.discs import Discs, Failure, enclose, with_zeros
from oversmoothing.theory.spectra.layer_discs import attention_discs
from oversmoothing.theory.spectra.radii import Interval, radius_in_balls
from oversmoothing.theory.verdict.exact_comparison import (
    EXACT_BITS,
    ExactDominance,
    exact_dominance,
)
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of, outcome_of_sign

# Up to this n and d the exact values of binary64 numbers that float64 does not separate.
EXACT_FALLBACK_SIZE = 24
# Side of the largest matrix that goes through balls: some ten seconds for each doubling of its
# digits. A head counts by the side r of its core.
BALL_SIZE = 256
_BITS = 160


def decide(case: Case) -> tuple[CertifiedDominance, ExactDominance | None]:
    """The verdict of the first stage that reaches one; its exact form where it was exact."""
    if case.decidable:
        return exact_stage(case)
    found = float_stage(case)
    if found.verdict not in (Outcome.UNDECIDED, Outcome.TIE):
        return found, None
    # Of a tie exact arithmetic knows the Jordan blocks, too.
    if case.logits is None and max(case.n, case.d) <= EXACT_FALLBACK_SIZE:
        return exact_stage(case)
    if found.verdict is Outcome.TIE:
        return found, None
    if ball_side(case) <= BALL_SIZE:
        return ball_stage(case), None
    return found, None


# --------------------------------------------------------------------------------------- float64


def float_stage(case: Case) -> CertifiedDominance:
    """Discs in float64 around the numbers as given, or around fractions rounded once."""
    attention: Discs | Failure
    if case.numbers == "fractions":
        core, zeros = value_core(case)
        attention = attention_discs(*nearest(attention_balls(case)))
        with at_precision(BITS):
            value = enclose(*nearest(flint.arb_mat(core)))
        if zeros and isinstance(value, Discs):
            value = with_zeros(value, zeros)
    else:
        value = given_discs(case.H, case.factors)
        if case.logits is None:
            attention = attention_discs(case.given["A"].floats)
        else:
            attention = attention_discs(*softmax_in_floats(case.logits))
    return certify_spectra(attention, value, len(case.classes) - 1)


# ----------------------------------------------------------------------------------------- exact


def exact_stage(case: Case) -> tuple[CertifiedDominance, ExactDominance]:
    """Roots of characteristic polynomials, and a gap bound for equality."""
    found = exact_dominance(case.rational_A, case.rational_H)
    trivial = case.n == 1
    verdict = Outcome.TRIVIAL if trivial else outcome_of_sign(found.comparison)
    reason = f"decided on the exact input; equality needs {found.bits_needed} bits"
    if len(case.classes) > 1:
        reason += "; the eigenvalue 1 of A repeats"
    method = "exact: isolated roots of characteristic polynomials, gap bound for equality"
    with at_precision(_BITS):
        consensus = _radius(found.radius(True, _BITS))
        quotient = None if trivial else _radius(found.radius(False, _BITS))
    gap = None if trivial else _exact_gap(found)
    return CertifiedDominance(verdict, consensus, quotient, reason, method, gap), found


def _exact_gap(found: ExactDominance) -> tuple[float, float]:
    """Outward rounded bounds of rho_C - rho_Q, fine enough to show its sign where there is one."""
    if found.comparison == 0:
        return 0.0, 0.0
    bits = _BITS
    while True:
        with at_precision(bits):
            gap = found.radius(True, bits) - found.radius(False, bits)
            if gap > 0 or gap < 0 or found.comparison is None or bits > EXACT_BITS:
                return outward(gap)
        bits *= 4


def outward(ball: flint.arb) -> tuple[float, float]:
    """The lower and the upper end of a ball, each one float further out."""
    low, high = float(ball.lower()), float(ball.upper())
    return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))


def _radius(ball: flint.arb) -> Interval:
    low, high = outward(ball)
    return Interval(max(0.0, low), high)


# ----------------------------------------------------------------------------------------- balls


def ball_side(case: Case) -> int:
    """Side of the largest matrix that `ball_stage` works on."""
    return max(case.n, case.d if case.factors is None else min(case.factors[0].shape))


def attention_balls(case: Case) -> flint.arb_mat:
    """A [n, n] in balls: the softmax of the logits, or the exact values with their row sums."""
    with at_precision(BITS):
        if case.logits is not None:
            return softmax_balls(case.given["logits"].masked, BITS)
        return flint.arb_mat(to_flint(case.rational_A))


def value_core(case: Case) -> tuple[flint.fmpq_mat, int]:
    """A matrix with the spectrum of H up to that many exact zeros: (W_proj W_V)^T for a head."""
    if case.factors is None or case.factors[0].shape[1] >= case.d:
        return to_flint(case.rational_H), 0
    W_V, W_proj = (to_flint(factor) for factor in case.rational_factors)
    return (W_proj * W_V).transpose(), case.d - W_V.ncols()


def attention_spectra(case: Case) -> Iterator[BallSpectrum]:
    """Finer and finer spectra of A without one copy of 1, through B'_ij = A_ij - A_nj (T1c)."""
    with at_precision(BITS):
        A = attention_balls(case).tolist()
        B = [[x - y for x, y in zip(row[:-1], A[-1][:-1], strict=True)] for row in A[:-1]]
        quotient = flint.acb_mat(B)
    return enclose_in_balls(quotient)


def value_spectra(case: Case) -> Iterator[BallSpectrum]:
    """Finer and finer spectra of the core of H."""
    with at_precision(BITS):
        core = flint.acb_mat(value_core(case)[0])
    return enclose_in_balls(core)


def attention_boxes(case: Case) -> Iterator[list[flint.acb]]:
    """The boxes of `attention_spectra`; of a causal A its diagonal without A_11 = 1 (T1h)."""
    if not np.triu(case.positive, 1).any():
        A = attention_balls(case)
        return repeat([flint.acb(A[i, i]) for i in range(1, case.n)])
    return (found.boxes for found in attention_spectra(case))


def ball_stage(case: Case) -> CertifiedDominance:
    """The radii compared in balls, as finely as it takes."""
    method = f"balls: discs of a similarity refined in up to {BITS} bits"
    zeros = [flint.acb(0)] * bool(value_core(case)[1])
    reason = "no eigenvectors were proved independent, not even in balls"
    consensus = quotient = gap = None
    outcome = Outcome.UNDECIDED
    for a_boxes, value in zip(attention_boxes(case), value_spectra(case), strict=False):
        with at_precision(BITS):
            h_boxes = value.boxes + zeros
            rho_c = radius_in_balls([flint.acb(1)], h_boxes)
            rho_q = radius_in_balls(a_boxes, h_boxes)
            difference = rho_c - rho_q
            consensus, quotient = _radius(rho_c), _radius(rho_q)
            gap = outward(difference)
            reason = f"rho_C - rho_Q = {difference.str(6)}, rho_C = {rho_c.str(12)}"
            outcome = outcome_of(difference.lower(), difference.upper())
        if outcome is not Outcome.UNDECIDED:
            break
    return CertifiedDominance(outcome, consensus, quotient, reason, method, gap)
