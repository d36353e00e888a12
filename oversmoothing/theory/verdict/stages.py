"""The stages of a certified verdict: discs in float64, exact arithmetic, balls, UNDECIDED.

Input in fractions of moderate size is decided exactly at once. Otherwise the float64 discs are
asked first; where they overlap, exact arithmetic on what is rational and small, and discs of a
refined similarity in balls on what is larger or a softmax. Bounds are rounded outward throughout.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import repeat
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.layer.attention import rational_quotient, softmax_balls
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.exact import Number, to_flint
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra import layer_discs
from oversmoothing.theory.spectra.blocks import BITS, BallSpectrum, enclose_in_balls
from oversmoothing.theory.spectra.discs import Discs, Failure
from oversmoothing.theory.verdict import answer as sentences
from oversmoothing.theory.verdict.answer import WRITE_EXACTLY, Verdict
from oversmoothing.theory.verdict.by_discs import cell_discs
from oversmoothing.theory.verdict.by_fractions import (
    ExactDominance,
    distance_to_tie,
    exact_dominance,
)
from oversmoothing.theory.verdict.decide import exact_pairs
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of, outcome_of_sign

# An end of an interval.
End = float | Fraction


@dataclass(frozen=True)
class CertifiedDominance:
    """A certified comparison of rho_C and rho_Q.

    verdict: a TIE outside exact arithmetic is one by structure (an exact 0 in spec(H), or 1
    repeated in spec(A)). method: the stage. gap: bounds of rho_C - rho_Q where they are known
    better than from the two radii. radii: both, where more is known of them than floats say.
    """

    verdict: Outcome
    consensus: layer_discs.Interval | None
    quotient: layer_discs.Interval | None
    reason: str
    method: str
    gap: tuple[End, End] | None = None
    radii: tuple[Number, Number] | None = None

    @property
    def margin(self) -> tuple[End, End] | None:
        """(low, high) of rho_C - rho_Q, rounded outward."""
        if self.gap is not None or self.consensus is None or self.quotient is None:
            return self.gap
        c, q = self.consensus, self.quotient
        return _one_further(c.low - q.high, c.high - q.low)


def certify_spectra(
    attention: Discs | Failure, value: Discs | Failure, repeated: int = 0
) -> CertifiedDominance:
    """Compare the radii. repeated: further copies of the eigenvalue 1 that A is known to have."""
    method = "float64 with a-priori rounding bounds"
    c = None if isinstance(value, Failure) else layer_discs.consensus_radius(value)
    if isinstance(attention, Discs) and len(attention) == 0:
        reason = "one token only (n = 1): there is no quotient"
        return CertifiedDominance(Outcome.TRIVIAL, c, None, reason, method)
    for name, spectrum in (("A", attention), ("H", value)):
        if isinstance(spectrum, Failure):
            reason = f"spec({name}) was not enclosed: {spectrum.reason}"
            return CertifiedDominance(Outcome.UNDECIDED, None, None, reason, method)
    assert isinstance(attention, Discs) and isinstance(value, Discs) and c is not None
    q = layer_discs.quotient_radius(attention, value)
    if repeated:
        # rho_Q >= rho_C exactly: smoothing is excluded, and a tie cannot be told from enclosures.
        q = layer_discs.Interval(max(q.low, c.low), q.high)
    also = f" (the eigenvalue 1 of A occurs {repeated + 1} times)" if repeated else ""
    reasons = {
        Outcome.SMOOTHING: f"rho_C >= {c.low:.17g} > {q.high:.17g} >= rho_Q",
        Outcome.NON_SMOOTHING: f"rho_Q >= {q.low:.17g} > {c.high:.17g} >= rho_C",
        Outcome.TIE: f"rho_C = rho_Q = {c.low:.17g} by structure",
        Outcome.UNDECIDED: f"rho_C in [{c.low:.17g}, {c.high:.17g}] and rho_Q in "
        f"[{q.low:.17g}, {q.high:.17g}] overlap{also}",
    }
    outcome = outcome_of(c.low - q.high, c.high - q.low)
    return CertifiedDominance(outcome, c, q, reasons[outcome], method)


# Up to this n and d the exact values of binary64 numbers that float64 does not separate.
EXACT_FALLBACK_SIZE = 24
# Side of the largest matrix that goes through balls: some ten seconds for each doubling of its
# digits. A head counts by the side r of its core.
BALL_SIZE = 256
_BITS = 160


def decide(case: Layer) -> tuple[CertifiedDominance, ExactDominance | None]:
    """The verdict of the first stage that reaches one; its exact form where it was exact."""
    if case.decidable:
        return exact_stage(case)
    dominance = float_stage(case)
    # Of a tie exact arithmetic knows the Jordan blocks, too.
    unsettled = dominance.verdict in (Outcome.UNDECIDED, Outcome.TIE)
    if unsettled and case.logits is None and max(case.n, case.d) <= EXACT_FALLBACK_SIZE:
        return exact_stage(case)
    if dominance.verdict is Outcome.UNDECIDED and ball_side(case) <= BALL_SIZE:
        return ball_stage(case), None
    return dominance, None


# --------------------------------------------------------------------------------------- float64


def float_stage(case: Layer) -> CertifiedDominance:
    """Discs in float64 around all that rounds to the numbers: right, or UNDECIDED."""
    cell = cell_discs(case)
    return certify_spectra(cell.attention, cell.value, cell.repeated)


# ----------------------------------------------------------------------------------------- exact


def exact_stage(case: Layer) -> tuple[CertifiedDominance, ExactDominance]:
    """Roots of characteristic polynomials, and a gap bound for equality."""
    dominance = exact_dominance(case.rational_A, case.rational_H)
    trivial = case.n == 1
    verdict = Outcome.TRIVIAL if trivial else outcome_of_sign(dominance.comparison)
    reason = f"decided on the exact input; equality needs {dominance.bits_needed} bits"
    if len(case.classes) > 1:
        reason += "; the eigenvalue 1 of A repeats"
    method = "exact: isolated roots of characteristic polynomials, gap bound for equality"
    with at_precision(_BITS):
        consensus = _radius(dominance.radius(True, _BITS))
        if trivial:
            return CertifiedDominance(verdict, consensus, None, reason, method), dominance
        quotient = _radius(dominance.radius(False, _BITS))
    radii = dominance.radii()
    gap = (0.0, 0.0) if dominance.comparison == 0 else _exact_gap(radii[0].minus(radii[1]))
    known = None if dominance.comparison is None else radii
    return CertifiedDominance(verdict, consensus, quotient, reason, method, gap, known), dominance


def _exact_gap(gap: Number) -> tuple[End, End]:
    """Bounds of rho_C - rho_Q that show its sign where it has one: rounded outward, or fractions
    where binary64 does not reach so low."""
    low, high = _one_further(*(float(Number.of(x)) for x in (gap.low, gap.high)))
    hidden = low <= 0 <= high and (gap.low > 0 or gap.high < 0)
    # Room for the checker's own balls.
    room = abs(gap.low) / 2**40
    return (gap.low - room, gap.high + room) if hidden else (low, high)


def _one_further(low: float, high: float) -> tuple[float, float]:
    return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))


def outward(ball: flint.arb) -> tuple[float, float]:
    """The lower and the upper end of a ball, each one float further out."""
    return _one_further(float(ball.lower()), float(ball.upper()))


def _radius(ball: flint.arb) -> layer_discs.Interval:
    low, high = outward(ball)
    return layer_discs.Interval(max(0.0, low), high)


# ----------------------------------------------------------------------------------------- balls


def ball_side(case: Layer) -> int:
    """Side of the largest matrix that `ball_stage` works on."""
    return max(case.n, case.d if case.factors is None else min(case.factors[0].shape))


def attention_balls(case: Layer) -> flint.arb_mat:
    """A [n, n] in balls: the softmax of the logits, or the exact values with their row sums."""
    with at_precision(BITS):
        if case.logits is not None:
            return softmax_balls(case.given["logits"].masked, BITS)
        return flint.arb_mat(to_flint(case.rational_A))


def value_core(case: Layer) -> tuple[flint.fmpq_mat, int]:
    """A matrix with the spectrum of H up to that many exact zeros: (W_proj W_V)^T for a head."""
    if case.factors is None or case.factors[0].shape[1] >= case.d:
        return to_flint(case.rational_H), 0
    W_V, W_proj = (to_flint(factor) for factor in case.rational_factors)
    return (W_proj * W_V).transpose(), case.d - W_V.ncols()


def attention_spectra(case: Layer) -> Iterator[BallSpectrum]:
    """Finer and finer spectra of A without one copy of 1, through B'_ij = A_ij - A_nj (T1c)."""
    A: Any = attention_balls(case).tolist()
    with at_precision(BITS):
        B: Any = rational_quotient(A)
        return enclose_in_balls(flint.acb_mat(B))


def value_spectra(case: Layer) -> Iterator[BallSpectrum]:
    """Finer and finer spectra of the core of H."""
    with at_precision(BITS):
        return enclose_in_balls(flint.acb_mat(value_core(case)[0]))


def attention_boxes(case: Layer) -> Iterator[list[flint.acb]]:
    """The boxes of `attention_spectra`; of a causal A its diagonal without A_11 = 1 (T1h)."""
    if not np.triu(case.positive, 1).any():
        A = attention_balls(case)
        return repeat([flint.acb(A[i, i]) for i in range(1, case.n)])
    return (spectrum.boxes for spectrum in attention_spectra(case))


def ball_stage(case: Layer) -> CertifiedDominance:
    """The radii compared in balls, as finely as it takes."""
    method = f"balls: discs of a similarity refined in up to {BITS} bits"
    zeros = [flint.acb(0)] * bool(value_core(case)[1])
    reason = "no eigenvectors were proved independent, not even in balls"
    result = CertifiedDominance(Outcome.UNDECIDED, None, None, reason, method)
    for a_boxes, value in zip(attention_boxes(case), value_spectra(case), strict=False):
        with at_precision(BITS):
            h_boxes = value.boxes + zeros
            rho_c = layer_discs.radius_in_balls([flint.acb(1)], h_boxes)
            rho_q = layer_discs.radius_in_balls(a_boxes, h_boxes)
            difference = rho_c - rho_q
            reason = f"rho_C - rho_Q = {difference.str(6)}, rho_C = {rho_c.str(12)}"
            outcome = outcome_of(difference.lower(), difference.upper())
            radii = _radius(rho_c), _radius(rho_q)
            result = CertifiedDominance(outcome, *radii, reason, method, outward(difference))
        if outcome is not Outcome.UNDECIDED:
            known = Number.of(rho_c), Number.of(rho_q)
            return replace(result, radii=known) if min(x.low for x in known) > 0 else result
    return result


def certify_case(case: Layer, of_cell: Verdict) -> Verdict:
    """The verdict by the first stage that reaches one (theory.verdict.stages).

    of_cell: that on all that rounds to the case; what it decides holds for the case too.
    """
    dominance, exact = decide(case)
    special = of_cell.verdict in (Outcome.TRIVIAL, Outcome.UNDEFINED)
    word = of_cell.verdict if special else dominance.verdict
    if dominance.verdict is Outcome.UNDECIDED:
        if not special and of_cell.verdict is not Outcome.UNDECIDED:
            return replace(of_cell, point=True)
        reason = f"not certified: {dominance.reason} ({dominance.method})"
        return replace(of_cell, verdict=word, reason=reason, point=True)
    consensus, quotient = dominance.consensus, dominance.quotient
    radii = [None if x is None else x.shown for x in (consensus, quotient)]
    # Of these radii, not of those that `of_cell` compares.
    error = sum((x.high - x.low) / 2 for x in (consensus, quotient) if x is not None)
    rest, distance = of_cell.reason, of_cell.distance
    if of_cell.verdict is Outcome.UNDECIDED:
        # Of its words those on rounding are not about these numbers.
        rest = "This is about these numbers; on all that rounds to them the verdict is UNDECIDED."
        rest += of_cell.reason.partition(WRITE_EXACTLY)[2]
    digits = of_cell.digits if dominance.radii is None else layer_discs.ALL_DIGITS
    if dominance.radii is not None:
        radii, (first, second), error = [*dominance.radii], dominance.radii, 0.0
        if distance is not None or of_cell.margin is None:
            rest = rest.replace(sentences.near(distance or 0.0), "")
            # The same slope, and the gap that floats do not show.
            tie, gap = first is second, abs(float(first.minus(second)))
            distance = 0.0 if tie else distance_to_tie(case.A, case.H, gap)
            rest += sentences.near(distance) if distance else ""
    reason = f"certified: {dominance.reason} ({dominance.method}). {rest}"
    known = replace(of_cell, verdict=word, status="certified", reason=reason, distance=distance)
    known = replace(known, rho_consensus=radii[0], rho_quotient=radii[1], margin_error=error)
    return replace(known, digits=digits, point=True, pairs=exact_pairs(exact))
