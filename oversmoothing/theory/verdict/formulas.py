"""The answers there are, and which eigenvalue 1 + lambda_H lambda_A dominates (T2, T3): start here.

Everything here is a formula over spectra; `theory.verdict.verdict` turns it into a verdict with a
status. The real closed forms take any ordered field (Fraction, float, sympy), so that tests and
proofs evaluate the very same code exactly.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from oversmoothing.theory.support.sizes import Complex


class Outcome(StrEnum):
    """Does HFC/LFC tend to 0? Each member is its own name, so it stands in JSON as it is.

    SMOOTHING: rho_C > rho_Q, it does for generic X_0. NON_SMOOTHING: rho_C < rho_Q, it does not.
    TIE: equal moduli, even where Jordan blocks then decide (T6b). TRIVIAL: n = 1, or X_0 at
    consensus. UNDEFINED: the state is 0, every metric 0/0. UNDECIDED: the method cannot tell.
    """

    SMOOTHING = "SMOOTHING"
    NON_SMOOTHING = "NON_SMOOTHING"
    TIE = "TIE"
    TRIVIAL = "TRIVIAL"
    UNDEFINED = "UNDEFINED"
    UNDECIDED = "UNDECIDED"


# Those that compare the largest modes.
COMPARED = (Outcome.SMOOTHING, Outcome.TIE, Outcome.NON_SMOOTHING)


def outcome_of(low: Any, high: Any) -> Outcome:
    """The outcome where rho_C - rho_Q is known to lie in [low, high], in any ordered field.

    Both ends 0 is a tie; an interval that holds 0 beside other numbers decides nothing. Of two
    radii known by intervals, low = consensus.low - quotient.high, high the other way about.
    """
    if low > 0:
        return Outcome.SMOOTHING
    if high < 0:
        return Outcome.NON_SMOOTHING
    return Outcome.TIE if low == high == 0 else Outcome.UNDECIDED


def outcome_of_sign(sign: int | None) -> Outcome:
    """The outcome by the sign of rho_C - rho_Q, None where it is not known."""
    return Outcome.UNDECIDED if sign is None else outcome_of(sign, sign)


@dataclass(frozen=True)
class Dominance:
    """Radii of the consensus block I + H and of the quotient block I + H (x) B (T1).

    consensus_index: j of the largest |1 + h_j|. quotient_index: (i, j) of the largest
    |1 + h_j a_i| over i < n. Both None for n = 1, where there is no quotient (rho_quotient 0).
    """

    rho_consensus: float
    rho_quotient: float
    consensus_index: int
    quotient_index: tuple[int, int] | None

    @property
    def margin(self) -> float:
        """rho_C - rho_Q: positive when consensus dominates."""
        return self.rho_consensus - self.rho_quotient

    @property
    def rate(self) -> float:
        """r = rho_Q / rho_C (T5a), inf where rho_C = 0."""
        return np.inf if self.rho_consensus == 0 else self.rho_quotient / self.rho_consensus


def dominance(attention_values: Complex, value_values: Complex) -> Dominance:
    """Radii over all pairs; attention_values [n-1] are the eigenvalues without one copy of 1.

    |1 + h a| is convex in a and in h, but n d products are cheaper than two hulls at these sizes.
    """
    # Whatever asks for an outcome alone need not load the eigenvalue discs.
    from oversmoothing.theory.spectra.layer_discs import largest_modulus

    rho_c, _, j = largest_modulus(np.array([1.0]), value_values)
    rho_q, i, k = largest_modulus(attention_values, value_values)
    return Dominance(rho_c, rho_q, j, None if i < 0 else (i, k))


def threshold(a: Any) -> Any:
    """h* = -2/(1+a), -1 < a < 1 real: a real h loses at consensus iff h* < h < 0 (T2b)."""
    return -2 / (1 + a)


def real_verdict(q: Any, p: Any, a: Any) -> Outcome:
    """The closed form of T2d for real spectra, in any ordered field.

    q = min h_j, p = max h_j, a = min spec(A) in (-1, 1), A > 0 with n >= 2. Returns SMOOTHING,
    NON_SMOOTHING or TIE. No radius is computed: this is the independent check of `dominance`.
    """
    low = q * (1 + a)
    if p > 0:
        if p > a * q or low < -2:
            return Outcome.SMOOTHING
        if p == a * q or low == -2:
            return Outcome.TIE
        return Outcome.NON_SMOOTHING
    if p == 0:
        if q < -2 and low < -2:
            return Outcome.SMOOTHING
        return Outcome.NON_SMOOTHING if a < 0 and q < 0 and low > -2 else Outcome.TIE
    t = min(-2 / (1 + a), -2 - a * p)
    if q == t:
        return Outcome.TIE
    return Outcome.NON_SMOOTHING if q > t else Outcome.SMOOTHING


def disc(a: complex) -> tuple[complex, float]:
    """Centre and radius of D(a), |a| < 1: h in D(a) iff |1 + h| < |1 + h a| (T3b)."""
    gap = 1 - abs(a) ** 2
    return -(1 - a.conjugate()) / gap, abs(1 - a) / gap


def disc_form(h: Any, a: Any) -> Any:
    """|h|^2 (1 - |a|^2) + 2 Re(h (1 - a)), equal to |1+h|^2 - |1+ha|^2 (T3b).

    Negative inside D(a), 0 on its boundary. h and a complex (numpy arrays broadcast).
    """
    h, a = np.asarray(h), np.asarray(a)
    return np.abs(h) ** 2 * (1 - np.abs(a) ** 2) + 2 * np.real(h * (1 - a))


def in_universal_disc(h: complex) -> bool:
    """|h + 1/2| <= 1/2 and h != 0: such an h loses at consensus for every positive A (T3c).

    Evaluated as |h|^2 + Re h <= 0, which is exact at real end points.
    """
    return h != 0 and h.real * h.real + h.imag * h.imag + h.real <= 0


def safe_interval(attention_values: Complex) -> float:
    """s such that a real h loses at consensus iff -s < h < 0 (T3b).

    s = max over i < n of 2 (1 - Re a_i) / (1 - |a_i|^2), 2/(1 + a_1) when the spectrum is real;
    inf where some |a_i| = 1 with a_i != 1; 0 for n = 1, where nothing can beat consensus.
    """
    a = np.asarray(attention_values, dtype=np.complex128)
    gap, on_circle = 1 - np.abs(a) ** 2, np.where(a.real < 1, np.inf, 0.0)
    return float(np.divide(2 * (1 - a.real), gap, out=on_circle, where=gap > 0).max(initial=0.0))
