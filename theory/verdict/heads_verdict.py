"""Does a layer of many heads oversmooth, all heads together (T7, E3)? Two radii compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oversmoothing.theory.spectra.heads_operator import (
    DENSE_SIZE,
    Radius,
    checked_heads,
    consensus_block,
    dense_radius,
    other_radius,
)
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of
from oversmoothing.theory.verdict.words import ONE_TOKEN


@dataclass(frozen=True)
class HeadsComparison:
    """The outcome for generic X_0, with both radii; quotient is None for one token."""

    outcome: Outcome
    consensus: Radius
    quotient: Radius | None


def compare_heads(
    A: Any, W: Any, residual: bool = True, dense_size: int = DENSE_SIZE
) -> HeadsComparison:
    """rho_C against rho_Q of X' = [X +] sum_h A_h X W_h; shapes and errors of `heads_verdict`."""
    A = checked_heads(A, W)
    consensus = dense_radius(consensus_block(W, residual), "dense")
    if A.shape[-1] == 1:
        return HeadsComparison(Outcome.TRIVIAL, consensus, None)
    quotient = other_radius(A, W, residual, dense_size, beside=consensus)
    if consensus.value is None or quotient.value is None:
        return HeadsComparison(Outcome.UNDECIDED, consensus, quotient)
    gap, error = consensus.value - quotient.value, consensus.error + quotient.error
    return HeadsComparison(outcome_of(gap - error, gap + error), consensus, quotient)


def heads_verdict(
    *, A: Any, W: Any, residual: bool = True, dense_size: int = DENSE_SIZE
) -> Verdict:
    """Does X' = [X +] sum_h A_h X W_h oversmooth, all heads together (E3), for generic X_0?

    A [heads, n, n] row-stochastic (or [n, n]), W [heads, d, d] (or [d, d], or the factors
    (W_V [heads, d, r], W_O [heads, r, d]), which is quicker), by keyword only.
    rho_C against rho_Q, each with its error; numerical: UNDECIDED where the errors meet or
    Arnoldi's method does not converge, TIE only where both radii are exactly 0. Raises
    `InputError` on illegal input.
    """
    found = compare_heads(A, W, residual, dense_size)
    rho_c = found.consensus.value
    if found.quotient is None:
        return Verdict(found.outcome, "numerical", rho_c, None, ONE_TOKEN)
    rho_q = found.quotient.value
    reason = _reason(found, found.quotient, len(checked_heads(A, W)), residual)
    return Verdict(found.outcome, "numerical", rho_c, rho_q, reason)


def _reason(found: HeadsComparison, quotient: Radius, count: int, residual: bool) -> str:
    rho_c, rho_q = found.consensus.value, quotient.value
    if rho_q is None:
        return f"rho_Q is not known: {quotient.reason}. A larger dense_size settles it by LAPACK."
    heads = f"{count} head" + ("s" if count > 1 else "")
    if found.outcome is Outcome.SMOOTHING:
        return (
            f"consensus dominates: the radius of {'I + ' if residual else ''}sum_h H_h ({heads}) "
            f"is {rho_c:.6g}, that of the quotient {rho_q:.6g} ({quotient.method})."
        )
    if found.outcome is Outcome.NON_SMOOTHING:
        return (
            f"consensus does not dominate: the radius of the quotient is {rho_q:.6g} ({heads}, "
            f"{quotient.method}), that of consensus {rho_c:.6g}."
        )
    if found.outcome is Outcome.TIE:
        return f"both radii are {rho_c:.6g}, exactly ({heads})."
    return (
        f"rounding decides: rho_C = {rho_c:.12g} +- {found.consensus.error:.1e} and rho_Q = "
        f"{rho_q:.12g} +- {quotient.error:.1e} overlap."
    )
