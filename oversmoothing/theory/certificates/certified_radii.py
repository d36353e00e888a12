"""Certified radii and verdicts from two enclosed spectra: nothing here can be wrong by rounding.

The float64 path proves discs around both spectra (theory.certificates.enclosure) and compares
moduli with outward rounding. What it cannot separate is left to theory.certificates.stages.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.certificates.enclosure import (
    Discs,
    Failure,
    enclose,
    enclose_all,
    interval_discs,
    with_zeros,
)
from oversmoothing.theory.certificates.rounding import UNIT, gamma, inflated, upper_product
from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.spectra.radii import Interval, multipliers
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of


@dataclass(frozen=True)
class CertifiedDominance:
    """A certified comparison of rho_C and rho_Q.

    verdict: SMOOTHING, NON_SMOOTHING, TIE (outside exact arithmetic by structure only: an exact 0
    in spec(H), or 1 repeated in spec(A)), TRIVIAL or UNDECIDED. gap: bounds of rho_C - rho_Q where
    they are known better than from the two radii.
    """

    verdict: Outcome
    consensus: Interval | None
    quotient: Interval | None
    reason: str
    method: str
    gap: tuple[float, float] | None = None

    @property
    def margin(self) -> tuple[float, float] | None:
        """(low, high) of rho_C - rho_Q, rounded outward."""
        if self.gap is not None or self.consensus is None or self.quotient is None:
            return self.gap
        low = np.nextafter(self.consensus.low - self.quotient.high, -np.inf)
        high = np.nextafter(self.consensus.high - self.quotient.low, np.inf)
        return float(low), float(high)


def attention_discs(A: Array, error: Array | None = None) -> Discs | Failure:
    """spec(A) without one copy of 1, A [n, n] float64 >= 0.

    Without error for exactly A_ij / sum_k A_ik; with it for every row-stochastic A' with
    |A' - A| <= error entrywise.
    """
    return attention_discs_all(A[None], None if error is None else error[None])[0]


def attention_discs_all(A: Array, error: Array | None = None) -> list[Discs | Failure]:
    """`attention_discs` for each of a stack [m, n, n].

    Through B'_ij = A_ij - A_nj (T1c), whose rounding error is bounded entrywise and enters the
    discs; a causal A shows its spectrum on the diagonal (T1h).
    """
    if error is None:
        # The sum of n terms and one division: n roundings on entries >= 0. A 0 stays one.
        zero = A == 0
        A = A / A.sum(axis=-1, keepdims=True)
        error = np.where(zero, 0.0, inflated(gamma(A.shape[-1] + 2) * A, 6))
    causal = np.asarray(~np.triu(A + error, 1).any(axis=(-2, -1)))
    B = A[..., :-1, :-1] - A[..., -1:, :-1]
    off = error[..., :-1, :-1] + error[..., -1:, :-1] + UNIT * np.abs(B)
    dense = iter(enclose_all(B[~causal], inflated(off, 4)[~causal]))
    return [
        # T1h: the spectrum of a lower triangular A is its diagonal, and A_11 = 1.
        interval_discs(np.diag(each)[1:], np.diag(slack)[1:]) if triangular else next(dense)
        for each, slack, triangular in zip(A, error, causal.tolist(), strict=True)
    ]


def value_discs(H: Array) -> Discs | Failure:
    """spec(H) for H [d, d], taken as the exact binary64 numbers."""
    return enclose(np.ascontiguousarray(H))


def head_discs(W_V: Array, W_proj: Array) -> Discs | Failure:
    """spec of W_V W_proj, W_V [d, r], W_proj [r, d]: the r x r core in discs, and d - r zeros.

    The product W_proj W_V is rounded; its error bound enters the discs.
    """
    d, r = W_V.shape
    if r >= d:
        product, error = W_V @ W_proj, upper_product(np.abs(W_V), np.abs(W_proj)) * gamma(r + 2)
        return enclose(product, error)
    core = enclose(W_proj @ W_V, upper_product(np.abs(W_proj), np.abs(W_V)) * gamma(d + 2))
    return core if isinstance(core, Failure) else with_zeros(core, d - r)


def consensus_radius(value: Discs) -> Interval:
    """rho_C = max |1 + h_j|."""
    moduli, slack = _moduli(np.ones(1), np.zeros(1), value)
    return _radius(moduli, slack, np.zeros(1, dtype=np.intp), value.component)


def quotient_radius(attention: Discs, value: Discs) -> Interval:
    """rho_Q = max over pairs |1 + h_j a_i|."""
    moduli, slack = _moduli(attention.centres, attention.radii, value)
    return _radius(moduli, slack, attention.component, value.component)


def _moduli(a: NDArray[np.complex128] | Array, radii: Array, value: Discs) -> tuple[Array, Array]:
    """|1 + h a| at the centres, and how far it may be off for points of the discs, [n-1, d]."""
    h = value.centres[None, :]
    moduli = np.abs(multipliers(a, value.centres))
    r_a, r_h = radii[:, None], value.radii[None, :]
    size_a, size_h = np.abs(a)[:, None], np.abs(h)
    slack = size_h * r_a + size_a * r_h + r_a * r_h
    # Two complex multiplications and additions and a modulus: fewer than 16 roundings. An exact
    # h = 0 gives 1 + 0 a = 1 without any.
    rounding = np.where((h == 0) & (r_h == 0), 0.0, 16 * UNIT * (1 + size_a * size_h))
    return moduli, inflated(slack * (1 + 16 * UNIT) + rounding, 8) * (slack + rounding > 0)


def _radius(
    moduli: Array, slack: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> Interval:
    """Upper: over all discs. Lower: each component holds an eigenvalue somewhere in its discs."""
    top = moduli + slack
    high = float(np.where(slack > 0, np.nextafter(top, np.inf), moduli).max())
    bottom = np.where(slack > 0, np.nextafter(moduli - slack, -np.inf), moduli)
    smallest = _minimum_by(_minimum_by(bottom, rows).T, columns)
    return Interval(max(0.0, float(smallest.max())), high)


def _minimum_by(values: Array, group: NDArray[np.intp]) -> Array:
    """Minimum over the rows of each group."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    result: Array = np.minimum.reduceat(values[order], starts, axis=0)
    return result


def certify_spectra(
    attention: Discs | Failure, value: Discs | Failure, repeated: int = 0
) -> CertifiedDominance:
    """Compare the radii. repeated: further copies of the eigenvalue 1 that A is known to have."""
    method = "float64 with a-priori rounding bounds"
    consensus = None if isinstance(value, Failure) else consensus_radius(value)
    if isinstance(attention, Discs) and len(attention) == 0:
        return CertifiedDominance(
            Outcome.TRIVIAL, consensus, None, "one token only (n = 1): there is no quotient", method
        )
    for name, found in (("A", attention), ("H", value)):
        if isinstance(found, Failure):
            return CertifiedDominance(
                Outcome.UNDECIDED,
                None,
                None,
                f"spec({name}) was not enclosed: {found.reason}",
                method,
            )
    assert isinstance(attention, Discs) and isinstance(value, Discs) and consensus is not None
    quotient = quotient_radius(attention, value)
    if repeated:
        # rho_Q >= rho_C exactly: smoothing is excluded, and a tie cannot be told from enclosures.
        quotient = Interval(max(quotient.low, consensus.low), quotient.high)
    return _decide(consensus, quotient, repeated, method)


def _decide(
    consensus: Interval, quotient: Interval, repeated: int, method: str
) -> CertifiedDominance:
    c, q = consensus, quotient
    also = f" (the eigenvalue 1 of A occurs {repeated + 1} times)" if repeated else ""
    reasons = {
        Outcome.SMOOTHING: f"rho_C >= {c.low:.12g} > {q.high:.12g} >= rho_Q",
        Outcome.NON_SMOOTHING: f"rho_Q >= {q.low:.12g} > {c.high:.12g} >= rho_C",
        Outcome.TIE: f"rho_C = rho_Q = {c.low:.12g} by structure",
        Outcome.UNDECIDED: f"rho_C in [{c.low:.12g}, {c.high:.12g}] and rho_Q in "
        f"[{q.low:.12g}, {q.high:.12g}] overlap{also}",
    }
    outcome = outcome_of(c.low - q.high, c.high - q.low)
    return CertifiedDominance(outcome, consensus, quotient, reasons[outcome], method)


def certified_dominance(
    A: Array, H: Array | None = None, factors: tuple[Array, Array] | None = None
) -> CertifiedDominance:
    """The fast path: A [n, n] float64 >= 0 (meaning A_ij / sum), H [d, d] or the head's factors.

    Success and UNDECIDED are the outcomes; a wrong verdict is not one of them.
    """
    return certified_dominances(A[None], given_discs(H, factors))[0]


def given_discs(H: Array | None, factors: tuple[Array, Array] | None) -> Discs | Failure:
    """spec(H) from whichever was given."""
    if factors is not None:
        return head_discs(*factors)
    if H is None:
        raise ValueError("give H or the factors of the head")
    return value_discs(H)


def certified_dominances(A: Array, value: Discs | Failure) -> list[CertifiedDominance]:
    """One value projection against each attention of a stack [m, n, n], in batched products."""
    return [
        certify_spectra(found, value, len(closed_classes(each)) - 1)
        for found, each in zip(attention_discs_all(A), A, strict=True)
    ]
