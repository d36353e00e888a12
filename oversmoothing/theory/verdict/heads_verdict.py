"""Does a layer of many heads oversmooth, all heads together (T7, E3)? Two radii compared."""

from typing import Any

from oversmoothing.theory.spectra.heads_operator import (
    DENSE_SIZE,
    checked_heads,
    consensus_block,
    dense_radius,
    other_radius,
)
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of
from oversmoothing.theory.verdict.words import ONE_TOKEN


def heads_verdict(
    *, A: Any, W: Any, residual: bool = True, dense_size: int = DENSE_SIZE
) -> Verdict:
    """Does X' = [X +] sum_h A_h X W_h oversmooth, all heads together (E3), for generic X_0?

    A [heads, n, n] row-stochastic (or [n, n]), W [heads, d, d] (or [d, d], or the factors
    (W_V [heads, d, r], W_O [heads, r, d]), which is quicker), by keyword only.
    rho_C against rho_Q, each with its error; estimated: UNDECIDED where the errors meet or
    Arnoldi's method does not converge, TIE only where both radii are exactly 0. Raises
    `InputError` on illegal input.
    """
    A = checked_heads(A, W)
    consensus = dense_radius(consensus_block(W, residual), "dense")
    rho_c = consensus.value
    _, n, _ = A.shape
    if n == 1:
        return Verdict(Outcome.TRIVIAL, "estimated", rho_c, None, ONE_TOKEN)
    quotient = other_radius(A, W, residual, dense_size, beside=consensus)
    rho_q = quotient.value
    if rho_c is None or rho_q is None:
        reason = f"rho_Q is not known: {quotient.reason}. A larger dense_size settles it by LAPACK."
        return Verdict(Outcome.UNDECIDED, "estimated", rho_c, None, reason)
    error = consensus.error + quotient.error
    outcome = outcome_of(rho_c - rho_q - error, rho_c - rho_q + error)
    heads = f"{len(A)} head" + ("s" if len(A) > 1 else "")
    reasons = {
        Outcome.SMOOTHING: "consensus dominates: the radius of "
        f"{'I + ' if residual else ''}sum_h H_h ({heads}) is {rho_c:.6g}, that of the quotient "
        f"{rho_q:.6g} ({quotient.method}).",
        Outcome.NON_SMOOTHING: "consensus does not dominate: the radius of the quotient is "
        f"{rho_q:.6g} ({heads}, {quotient.method}), that of consensus {rho_c:.6g}.",
        Outcome.TIE: f"both radii are {rho_c:.6g}, exactly ({heads}).",
        Outcome.UNDECIDED: f"rounding decides: rho_C = {rho_c:.12g} +- {consensus.error:.1e} and "
        f"rho_Q = {rho_q:.12g} +- {quotient.error:.1e} overlap.",
    }
    return Verdict(outcome, "estimated", rho_c, rho_q, reasons[outcome])
