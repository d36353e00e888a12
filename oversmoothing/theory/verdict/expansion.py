"""X_0 over the eigenvectors of A and H in float64, and the limits that follow (T4)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.perron import class_families
from oversmoothing.theory.spectra.radii import multipliers
from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.support.arrays import Array, Complex
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, Term, agreed, limits

# Positive entries below this have lost digits, or are about to: eigenvalues then are known where
# they stand on the diagonal.
_LEAST = 1e-290
# Moduli closer than this (relative) but farther apart than rounding are not equal, nor different:
# which wins would show only beyond 1/gap layers. Equal ones are within the second at most.
GAP = 1e-7
_EQUAL = 1e-12
# Eigenvalues known to the last bit and nearer than this may have moduli nearer than rounding shows.
_CLOSE = 1e-9
# A largest entry beyond 2^500, or below 2^-500, is brought to 1.
_FAR = 500
# What is below so many times its error estimate may be 0: it is neither there nor absent.
DOUBT = 64
# Directions that rounding may turn by more than this are not trusted.
_TURNED = 1e-6
# Beyond this condition of the eigenbases the expansion of X_0 is not trusted.
_CONDITION = 1e8


@dataclass(frozen=True)
class Expansion:
    """X_0 = sum c_ij v_i u_j^T over eigenvectors; the last `classes` rows are a = 1 (T14).

    error: an estimate of the error of a coefficient, relative to the largest that it mixes with.
    doubtful: bool [n, d], the modes that may be there or not. balanced: A is doubly stochastic, so
    that the mean is consensus alone; hidden: it may look so and not be, so that a mean that came
    out as 0 may not be 0. triangular, diagonal: the eigenvalues of A, of H, stand on its diagonal.
    zeros: how many eigenvalues of A are 0 for certain, by rows that are equal. centred: bool [d],
    which columns of X_0 sum to 0, without rounding.
    """

    attention: Complex
    value: Complex
    V: Complex
    U: Complex
    coefficients: Complex
    error: float
    doubtful: NDArray[np.bool_]
    balanced: bool
    classes: int
    triangular: bool = False
    diagonal: bool = False
    hidden: bool = False
    zeros: int = 0
    centred: NDArray[np.bool_] | None = None

    @property
    def vanishing(self) -> float:
        """A multiplier up to this may be 0."""
        mu = multipliers(self.attention, self.value)
        return float(DOUBT * self.error * (1 + np.abs(mu).max()))

    @property
    def present(self) -> NDArray[np.bool_]:
        """The modes that X_0 contains beyond doubt."""
        return np.asarray((self.coefficients != 0) & ~self.doubtful)


def expand(A: Array, H: Array, X0: Array, may_balance: bool = True) -> Expansion | None:
    """Coefficients of X_0 in the eigenbases; None where a basis is too ill-conditioned to trust.

    The eigenvectors of a = 1 are where tokens end (the vector of ones for one closed class); the
    others are made free of the class means, which they are in exact arithmetic (pi_k^T v = 0), so
    that no consensus leaks into them. may_balance: see `Case`. None also where X_0 has numbers that
    are lost beside its largest.
    """
    n, d = X0.shape
    top = int(np.frexp(np.abs(X0).max())[1])
    if abs(top) > _FAR:
        # HFC/LFC does not see the scale: sums of the largest numbers would overflow.
        given, X0 = X0, np.ldexp(X0, -top)
        if (np.ldexp(X0, top) != given).any():
            return None
    triangular = not np.triu(A, 1).any()
    if A[A > 0].min() < _LEAST and not triangular:
        return None
    (a, V), (h, U) = _eigenvectors(A), _eigenvectors(H)
    order = np.argsort(-np.abs(a - 1), kind="stable")
    a, V = a[order], V[:, order].astype(np.complex128)
    means, ends = class_families(A)
    m = len(means)
    a[n - m :] = 1.0
    V = V - ends @ (means @ V)
    V[:, n - m :] = ends
    lengths = np.linalg.norm(V, axis=0)
    if not lengths.all():
        return None
    # The families of a = 1 keep their lengths: their coefficients are the class means.
    V[:, : n - m] /= lengths[: n - m]
    condition = np.linalg.cond(V) * np.linalg.cond(U)
    if not condition < _CONDITION:
        return None
    left = np.linalg.solve(V, X0.astype(np.complex128))
    coefficients = np.linalg.solve(U.astype(np.complex128), left.T).T
    error = float(condition) * max(n, d) * EPS
    size = np.abs(coefficients)
    above, below = np.triu(H, 1).any(), np.tril(H, -1).any()
    # A diagonal H mixes no columns, so that a column of zeros is certainly absent.
    largest = np.broadcast_to(size.max() if above or below else size.max(axis=0), size.shape)
    return Expansion(
        a.astype(np.complex128),
        h.astype(np.complex128),
        V,
        U.astype(np.complex128),
        coefficients.astype(np.complex128),
        error,
        (size <= DOUBT * error * largest) & (largest > 0),
        may_balance and bool((means == 1 / n).all()),
        m,
        triangular,
        not (above and below),
        not may_balance,
        n - len(np.unique(A, axis=0)),
        np.array([math.fsum(x) == 0 for x in X0.T]),
    )


def _eigenvectors(M: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Orthogonal ones where M is symmetric: of repeated eigenvalues too."""
    return np.linalg.eigh(M) if (M == M.T).all() else np.linalg.eig(M)


def expansion_limits(expansion: Expansion) -> Limits:
    """T4 for the modes that X_0 contains; None where near-ties or modes in doubt leave it open."""
    sure = _limits_of(expansion, expansion.present)
    if not expansion.doubtful.any():
        return sure
    return agreed(sure, _limits_of(expansion, expansion.present | expansion.doubtful))


def _limits_of(expansion: Expansion, present: NDArray[np.bool_]) -> Limits:
    mu = multipliers(expansion.attention, expansion.value)
    moduli = np.where(present, np.abs(mu), 0.0)
    # A multiplier that may be 0 has died out, or is far below whatever else is left.
    moduli[moduli <= expansion.vanishing] = 0.0
    if not moduli.any():
        return UNKNOWN
    members = _leading(moduli, expansion.error)
    if members is not None and _determined(expansion, members):
        terms = _terms(expansion, mu, members)
        if terms is not None:
            return limits(terms, expansion.coefficients.shape)
    return _whichever_leads(expansion, moduli)


def _whichever_leads(expansion: Expansion, moduli: Array) -> Limits:
    """What holds of any of the largest modes where rounding leaves open which of them lead: without
    a mean all of them, they outgrow it."""
    near = moduli >= moduli.max() * (1 - GAP)
    apart = DOUBT * expansion.error < GAP
    if expansion.balanced and apart and not near[-expansion.classes :].any():
        return Limits("infinity", float("inf"), None)
    return UNKNOWN


def _leading(moduli: Array, error: float) -> NDArray[np.bool_] | None:
    """Mask of the largest moduli, equal within rounding; None where others are too close to them.

    They alone matter: where they leave the mean (or all but the mean) at 0, what is left of it
    grows more slowly.
    """
    top = moduli.max()
    equal = np.asarray(moduli >= top / (1 + min(_EQUAL, DOUBT * error)))
    near = np.asarray(moduli >= top * (1 - GAP))
    return equal if (equal == near).all() else None


def _determined(expansion: Expansion, members: NDArray[np.bool_]) -> bool:
    """Whether rounding leaves the directions of these modes alone: it turns an eigenvector by its
    error over the distance to the next eigenvalue of no member."""
    for values, inside in (
        (expansion.attention, members.any(axis=1)),
        (expansion.value, members.any(axis=0)),
    ):
        if inside.all():
            continue
        gap = np.abs(values[inside, None] - values[~inside]).min()
        if expansion.error * max(1.0, np.abs(values).max()) > _TURNED * gap:
            return False
    return True


def _terms(expansion: Expansion, mu: Complex, members: NDArray[np.bool_]) -> list[Term] | None:
    """The leading terms, one for each phase; None where a part may be 0, or moduli may differ."""
    # On a diagonal h a is known however small it is: 1 + h a that round to 1 may differ.
    product = np.abs(np.outer(expansion.attention, expansion.value))
    known = np.full_like(members, expansion.triangular)
    known[-expansion.classes :] |= expansion.diagonal
    small = product[members & known & (product < 1e-12)]
    differ = small.any() and (len(small) < members.sum() or np.ptp(small) > 0)
    # What comes from logits stops at the least number.
    a = np.abs(expansion.attention[members.any(axis=1)])
    if differ or _may_differ(expansion, members) or (len(a) > 1 and ((a > 0) & (a < _LEAST)).any()):
        return None
    phases, left = np.angle(mu), members.copy()
    terms = []
    while left.any():
        phase = float(phases[left][0])
        same = left & (np.abs(np.exp(1j * phases) - np.exp(1j * phase)) < 1e-9)
        left &= ~same
        weights = np.where(same, expansion.coefficients, 0.0)
        G = expansion.V @ weights @ expansion.U.T
        mean = G.mean(axis=0)
        hfc = G - mean
        small = DOUBT * expansion.error * np.abs(G).max()
        if not same[:-1].any() and expansion.classes == 1:
            hfc = np.zeros_like(hfc)
        if expansion.balanced and not same[-1].any():
            mean = np.zeros_like(mean)
        if any(part.any() and np.abs(part).max() <= small for part in (hfc, mean)):
            return None
        # A diagonal H mixes no columns.
        mixed = same.any(axis=0) | (np.count_nonzero(expansion.U) > len(expansion.U))
        # Class means that cancel do so by luck, unless these columns of X_0 sum to 0.
        exactly = expansion.centred is not None and expansion.centred[mixed].all()
        lucky = weights[-expansion.classes :].any() and not exactly
        if not mean.any() and (expansion.hidden or lucky):
            return None
        # Sums of the largest coefficients left what this is made of.
        largest = max(np.abs(G).max(), np.abs(expansion.coefficients[:, mixed]).max())
        terms.append(Term(phase, hfc, mean, float(expansion.error * largest)))
    return terms


def _may_differ(expansion: Expansion, members: NDArray[np.bool_]) -> bool:
    """Whether several a or h of these modes may differ by less than their errors, so that moduli
    that came out as equal may not be.

    Those that stand on a diagonal are known: two close ones are equal or are not. Of other a, all
    that come out as 1 and that no closed class puts there are in doubt; those at 0 are believed
    of an A that was given, of the softmax of logits only where rows are equal.
    """
    # Where h = 0, 1 + h a is 1 whatever a is.
    rows = members[:, expansion.value != 0].any(axis=1)
    a, h = expansion.attention[rows], expansion.value[members.any(axis=0)]
    if (expansion.triangular and _close(a)) or (expansion.diagonal and _close(h)):
        return True
    doubt = DOUBT * expansion.error
    off = np.arange(rows.size) < rows.size - expansion.classes
    at_one = rows & (np.abs(expansion.attention - 1) <= doubt)
    return bool(
        ((at_one & off).any() and at_one.sum() > 1)
        or (expansion.hidden and (np.abs(a) <= doubt).sum() > max(1, expansion.zeros))
    )


def _close(values: Complex) -> bool:
    return bool((np.diff(np.unique(values.real)) < _CLOSE).any())
