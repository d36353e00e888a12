"""rho_C against rho_Q for one case, and what HFC/LFC tends to, exactly or by discs (T2-T6, T14)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import UNIT
from oversmoothing.theory.spectra.heads import ManyHeads
from oversmoothing.theory.spectra.heads_radius import DENSE_SIZE
from oversmoothing.theory.spectra.layer_discs import FEWEST_DIGITS, Interval, Spectrum
from oversmoothing.theory.verdict import by_discs
from oversmoothing.theory.verdict.answer import WRITE_EXACTLY, Pair, Verdict, compared, number
from oversmoothing.theory.verdict.by_discs import Comparison
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of, outcome_of_sign
from oversmoothing.theory.verdict.limits import UNKNOWN, ZERO, Limits, agreed, limits_of, merged

# What fractions, undecided cases and starts need loads when they come: others start in half the
# time.
if TYPE_CHECKING:
    from oversmoothing.theory.numbers.exact import Number
    from oversmoothing.theory.spectra.algebraic import Eigenvalue
    from oversmoothing.theory.verdict.by_fractions import ExactDominance, Mode


def compare_radii(case: Layer, relative: float = UNIT, dense_size: int = DENSE_SIZE) -> Comparison:
    """Exactly where the case allows it, else for everything within the rounding of its entries,
    with UNDECIDED where that decides. relative: how well they are known, if not as float64.
    dense_size: of the operator of several heads, up to which it is formed."""
    if case.decidable:
        return _exactly(case)
    if isinstance(case, ManyHeads):
        return _of_heads(case, dense_size)
    return _numerically(case, relative)


def _exactly(case: Layer) -> Comparison:
    from oversmoothing.theory.verdict.by_fractions import exact_dominance, roots_of

    dominance = exact_dominance(case.rational_A, case.rational_H, case.others)
    outcome = outcome_of_sign(dominance.comparison)
    rho_c, rho_q = dominance.radii()
    if isinstance(case, ManyHeads) and outcome is not Outcome.UNDECIDED:
        reason = _heads_reason(case, outcome, f"{rho_c:.6g}", f"{rho_q:.6g}", "")
    else:
        reason = _exact_reason(dominance, outcome, rho_c, rho_q) if dominance.quotient else ""
    answer = Verdict(outcome, "exact", rho_c, rho_q, reason)
    if not isinstance(case, ManyHeads):
        a, h = map(_in_floats, roots_of(case.rational_A, case.rational_H))
        answer = replace(answer, attention=a, value=h, pairs=exact_pairs(dominance))
    return Comparison(answer, dominance=dominance)


def _in_floats(roots: Iterable[Eigenvalue]) -> Spectrum:
    values = [complex(x.ball(64).mid()) for x in roots for _ in range(x.factor.multiplicity)]
    return Spectrum(np.array(values, dtype=np.complex128), np.ones(len(values), dtype=bool))


def _exact_reason(modes: ExactDominance, outcome: Outcome, rho_c: Number, rho_q: Number) -> str:
    if outcome is Outcome.UNDECIDED:
        return (
            f"the radii agree to over 16000 bits (rho_C = {rho_c:.12g}, rho_Q = {rho_q:.12g}); to "
            f"prove them equal would take {modes.bits_needed} bits, more than this tool spends."
        )
    pairs = (_pair(side[0]) for side in (modes.consensus, modes.quotient))
    words = (_words(pair.h, pair.a) for pair in pairs)
    reason = compared(outcome, f"{rho_c:.6g}", f"{rho_q:.6g}", *words)
    if outcome is Outcome.TIE:
        from oversmoothing.theory.verdict.by_fractions import jordan_size

        s_c, s_q = (max(map(jordan_size, x)) for x in (modes.consensus, modes.quotient))
        if not rho_c.high:
            return f"{reason} From layer {max(s_c, s_q)} on every state is exactly 0."
        does = (
            "it smooths, but slowly" if s_c > s_q else
            "they outgrow it, but slowly" if s_c < s_q else
            "neither outgrows the other"
        )  # fmt: skip
        reason += (
            f" The largest Jordan blocks there have size {s_c} (consensus) and {s_q} "
            "(differences), so from almost every X_0 the differences over the tokens' mean "
            f"weighted by pi go like L^{s_q - s_c} (T6b): {does}."
        )
    return reason


def exact_pairs(dominance: ExactDominance | None) -> tuple[Pair, ...]:
    """One dominant pair of each side that leads, consensus first; none where undecided."""
    modes = [] if dominance is None else dominance.dominant()
    return tuple(_pair(next(side)) for _, side in groupby(modes, lambda x: x.attention is None))


def _pair(mode: Mode) -> Pair:
    h, multiplier = complex(mode.value.ball(64).mid()), complex(mode.ball(64).mid())
    a = 1.0 + 0j if mode.attention is None else complex(mode.attention.ball(64).mid())
    return Pair(h, a, multiplier, mode.attention is None)


def _words(h: complex, a: complex) -> str:
    return f"h = {number(complex(h))}, a = {number(complex(a))}"


def _numerically(case: Layer, relative: float) -> Comparison:
    cell = by_discs.cell_discs(case, relative)
    decision = by_discs.decide_cell(cell)
    if decision.outcome is Outcome.UNDECIDED and (parts := by_discs.finer(cell)) is not None:
        cell, decision = parts, by_discs.decide_cell(parts)
    outcome, consensus, quotient = decision.outcome, decision.consensus, decision.quotient
    if outcome is Outcome.UNDECIDED and relative == UNIT:
        from oversmoothing.theory.verdict.by_cells import decided_in_cell

        outcome = decided_in_cell(case, None).outcome
    rho_c = consensus.shown
    rho_q = rho_c if outcome is Outcome.TIE else quotient.shown
    a, h = (Spectrum(x.centres, x.radii == 0) for x in (cell.attention, cell.value))
    digits = min(consensus.digits, quotient.digits)
    if quotient.index is None or consensus.index is None:
        reason = ""
    elif outcome is Outcome.UNDECIDED:
        reason = _overlap(consensus, quotient)
    else:
        i, j = quotient.index
        modes = _words(h.values[consensus.index[1]], 1), _words(h.values[j], a.values[i])
        sizes = _shown(consensus), _shown(quotient)
        apart = outcome_of(consensus.low - quotient.high, consensus.high - quotient.low)
        if digits < FEWEST_DIGITS and apart is Outcome.UNDECIDED and outcome is not Outcome.TIE:
            sizes = "", ""  # Beside a definite answer ranges that overlap read as a contradiction.
        reason = compared(outcome, *sizes, *modes)
    status = "numerical" if outcome is Outcome.UNDECIDED and case.n > 1 else "certified"
    answer = Verdict(outcome, status, rho_c, rho_q, reason, attention=a, value=h, digits=digits)
    return Comparison(replace(answer, margin_error=decision.error), cell)


def _of_heads(case: ManyHeads, dense_size: int) -> Comparison:
    """The radii of the operator of all heads in floats."""
    decision = by_discs.decide_heads(case, dense_size)
    outcome, fixed, moving = decision.outcome, decision.consensus, decision.quotient
    estimated, unknown = decision.method in ("arnoldi", "powers"), decision.reason
    status = "estimated" if estimated else "certified"
    if unknown:
        reason = f"rho_Q is not known: {unknown}. A larger dense_size settles it by LAPACK."
    elif outcome is Outcome.UNDECIDED:
        status = "numerical" if status == "certified" else status
        reason = _overlap(fixed, moving)
    else:
        reason = _heads_reason(case, outcome, _shown(fixed), _shown(moving), f", {decision.method}")
    if estimated and not unknown:
        by_chance = "The bound holds with probability 1 - 4e-13"
        reason += f" {by_chance if decision.method == 'powers' else 'This is an estimate'}: "
        reason += f"dense_size={(case.n - 1) * case.d} proves it."
    rho_q = None if unknown else moving.shown
    digits = fixed.digits if unknown else min(fixed.digits, moving.digits)
    answer = Verdict(outcome, status, fixed.shown, rho_q, reason, digits=digits)
    return Comparison(replace(answer, margin_error=decision.error))


def _heads_reason(case: ManyHeads, outcome: Outcome, rho_c: str, rho_q: str, how: str) -> str:
    heads = f"{case.heads} head" + ("s" if case.heads > 1 else "") + how
    operator = f"{'I + ' if case.residual else ''}sum_h H_h"
    return {
        Outcome.SMOOTHING: f"consensus dominates: the radius of {operator} is {rho_c}, that of the "
        f"differences between tokens {rho_q} ({heads}).",
        Outcome.NON_SMOOTHING: "consensus does not dominate: the radius of the differences between "
        f"tokens is {rho_q}, that of {operator} {rho_c} ({heads}).",
        Outcome.TIE: f"tie in modulus: the radius of {operator}, {rho_c}, is that of the "
        f"differences between tokens too ({heads}).",
    }.get(outcome, "")


def _overlap(consensus: Interval, quotient: Interval) -> str:
    if not (math.isfinite(consensus.high) and math.isfinite(quotient.high)):
        return f"1 + h a may be beyond the range of binary64 (1.8e308). {WRITE_EXACTLY}"
    return (
        f"rounding leaves it open: rho_C = {consensus.shown:.12g} +- "
        f"{(consensus.high - consensus.low) / 2:.1e} and rho_Q = {quotient.shown:.12g} +- "
        f"{(quotient.high - quotient.low) / 2:.1e} overlap. {WRITE_EXACTLY}"
    )


def _shown(radius: Interval) -> str:
    if radius.digits >= FEWEST_DIGITS:
        return f"{radius.shown:.{min(6, radius.digits)}g}"
    # Outwards, by more than printing rounds.
    return f"{0.99 * max(0.0, radius.low):.3g} to {1.01 * radius.high:.3g}"


def generic_limits(case: Layer, comparison: Comparison) -> Limits:
    """Limits for generic X_0.

    SMOOTHING is T4a. In floats the dominant pair decides, and what it leaves open the balls around
    all cases that round to the same. In fractions two seeded draws stand for all X_0 outside a null
    set: what they agree on holds for generic X_0 (the exceptions are algebraic), as far as such
    draws can show it; a limit on which they differ depends on X_0 and is None.
    """
    answer, outcome, cell = comparison.answer, comparison.answer.verdict, comparison.cell
    if isinstance(case, ManyHeads) and not case.decidable:
        if outcome is Outcome.NON_SMOOTHING:
            from oversmoothing.theory.verdict.disc_modes import limits_of_heads

            return limits_of_heads(case, None)
        return ZERO if outcome is Outcome.SMOOTHING else UNKNOWN
    if case.n == 1:
        lasts = cell is None or cell.consensus.radius().low > 0
        return ZERO if answer.rho_consensus and lasts else UNKNOWN
    if outcome is Outcome.SMOOTHING:
        return ZERO
    if cell is not None:
        from oversmoothing.theory.verdict.disc_modes import DiscModes

        behaviour = limits_of(DiscModes(cell), outcome)
        depends = outcome is Outcome.TIE and behaviour.tends_to == "constant"
        known = behaviour.whole or (depends and behaviour.limit_rank is not None)
        if known or cell.relative > UNIT:
            return behaviour
        from oversmoothing.theory.verdict.by_cells import decided_in_cell

        return merged(behaviour, second=decided_in_cell(case, None, known=True).limits)
    if outcome is Outcome.UNDECIDED:
        return UNKNOWN
    from oversmoothing.theory.verdict.by_fractions import generic_rank
    from oversmoothing.theory.verdict.of_start import drawn_limits

    behaviour, grows = agreed(*drawn_limits(case)), answer.rho_consensus or answer.rho_quotient
    rank = None if isinstance(case, ManyHeads) or not grows else generic_rank(comparison.dominance)
    return behaviour if rank is None else replace(behaviour, limit_rank=rank)
