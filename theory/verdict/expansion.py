"""X_0 over the eigenvectors of A and H in float64, and the limits that follow (T4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.perron import closed_classes, stationary_distribution
from oversmoothing.theory.spectra.radii import multipliers
from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.support.arrays import Array, Complex
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, Term, limits

# Moduli closer than this (relative) but farther apart than rounding are neither equal nor different
# for the limits: which mode wins would show only at depths beyond 1/gap.
_GAP = 1e-7
# A mode counts as present in X_0 when its coefficient exceeds this share of the largest.
_PRESENT = 1e-10
# Beyond this condition of the eigenbases the expansion of X_0 is not trusted.
_CONDITION = 1e8


@dataclass(frozen=True)
class Expansion:
    """X_0 = sum c_ij v_i u_j^T over eigenvectors; index n - 1 of A is consensus."""

    attention: Complex
    value: Complex
    V: Complex
    U: Complex
    coefficients: Complex
    error: float


def expand(A: Array, H: Array, X0: Array) -> Expansion | None:
    """Coefficients of X_0 in the eigenbases; None where a basis is too ill-conditioned to trust.

    The eigenvector of a = 1 is the vector of ones, exactly; the others are made pi-free, which
    they are in exact arithmetic (pi^T v = 0), so that no consensus leaks into them.
    """
    n, d = X0.shape
    a, V = np.linalg.eig(A)
    h, U = np.linalg.eig(H)
    order = np.argsort(-np.abs(a - 1), kind="stable")
    a, V = a[order], V[:, order].astype(np.complex128)
    pi = stationary_distribution(A)
    if len(closed_classes(A)) == 1:
        a[-1] = 1.0
        V = V - np.outer(np.ones(n), pi @ V)
        V[:, -1] = 1.0
        lengths = np.linalg.norm(V, axis=0)
        if not lengths.all():
            return None
        V = V / lengths
    condition = np.linalg.cond(V) * np.linalg.cond(U)
    if not condition < _CONDITION:
        return None
    left = np.linalg.solve(V, X0.astype(np.complex128))
    coefficients = np.linalg.solve(U.astype(np.complex128), left.T).T
    return Expansion(
        a.astype(np.complex128),
        h.astype(np.complex128),
        V,
        U.astype(np.complex128),
        coefficients.astype(np.complex128),
        float(condition) * max(n, d) * EPS,
    )


def expansion_limits(expansion: Expansion) -> Limits:
    """T4 for the modes that X_0 contains; all None where near-ties leave the winner open."""
    mu = multipliers(expansion.attention, expansion.value)
    present = np.abs(expansion.coefficients) > _PRESENT * np.abs(expansion.coefficients).max()
    moduli = np.where(present, np.abs(mu), 0.0)
    if not moduli.any():
        return UNKNOWN
    terms = []
    shape = expansion.coefficients.shape
    for level, members in enumerate(_clusters(moduli, expansion.error)):
        if members is None:
            return UNKNOWN
        terms += _group(expansion, mu, members, -level)
    return limits(terms, shape)


def _clusters(moduli: Array, error: float) -> list[NDArray[np.bool_] | None]:
    """Masks of equal moduli from the largest down; None in the place of an unclear boundary.

    Only the leading level of HFC and of LFC matters; a handful of levels covers both, since an
    LFC-free leading level is followed by the consensus modes.
    """
    order = np.unique(moduli[moduli > 0])[::-1]
    found: list[NDArray[np.bool_] | None] = []
    start = 0
    for k in range(1, len(order) + 1):
        if k == len(order) or order[k] < order[k - 1] * (1 - _GAP):
            spread = order[start] / order[k - 1] - 1
            if spread > max(64 * error, 1e-12):
                found.append(None)
            else:
                found.append((moduli <= order[start]) & (moduli >= order[k - 1]))
            start = k
    return found


def _group(expansion: Expansion, mu: Complex, members: NDArray[np.bool_], level: int) -> list[Term]:
    """Terms of one modulus, one for each phase."""
    phases = np.angle(mu)
    left = members.copy()
    terms = []
    while left.any():
        phase = float(phases[left][0])
        same = left & (np.abs(np.exp(1j * phases) - np.exp(1j * phase)) < 1e-9)
        left &= ~same
        weights = np.where(same, expansion.coefficients, 0.0)
        G = expansion.V @ weights @ expansion.U.T
        mean = G.mean(axis=0)
        hfc = G - mean
        size = np.abs(G).max()
        small = max(1e-10, 16 * expansion.error)
        consensus_only = not same[:-1].any()
        if consensus_only or np.abs(hfc).max() <= small * size:
            hfc = np.zeros_like(hfc)
        if np.abs(mean).max() <= small * size:
            mean = np.zeros_like(mean)
        terms.append(Term(level, 0, phase, hfc, mean))
    return terms


def present_radii(expansion: Expansion) -> tuple[float, float]:
    """(rho_C, rho_Q) over the modes that X_0 contains (T4e), -1 where there is none."""
    mu = np.abs(multipliers(expansion.attention, expansion.value))
    size = np.abs(expansion.coefficients)
    present = size > _PRESENT * size.max()
    consensus = mu[-1][present[-1]]
    quotient = mu[:-1][present[:-1]]
    return float(consensus.max(initial=-1.0)), float(quotient.max(initial=-1.0))
