"""X_0 over the eigenvectors of A and H in float64, and the limits that follow (T4)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversmoothing.theory.layer.perron import class_families
from oversmoothing.theory.spectra.radii import Interval, multipliers
from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.support.arrays import Array, Complex
from oversmoothing.theory.verdict.limits import UNKNOWN, Limits, Term, agreed, limits

# Positive entries below this have lost digits, or are about to: eigenvalues then are known where
# they stand on the diagonal.
_LEAST = 1e-290
# Moduli closer than this (relative) but farther apart than rounding are not equal, nor different:
# which wins would show only beyond 1/gap layers. Equal ones are within the second at most.
_GAP = 1e-7
_EQUAL = 1e-12
# A largest entry beyond 2^500, or below 2^-500, is brought to 1.
_FAR = 500
# What is below so many times its error estimate may be 0: it is neither there nor absent.
_DOUBT = 64
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

    @property
    def vanishing(self) -> float:
        """A multiplier up to this may be 0."""
        mu = multipliers(self.attention, self.value)
        return float(_DOUBT * self.error * (1 + np.abs(mu).max()))

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
    a, V = np.linalg.eig(A)
    h, U = np.linalg.eig(H)
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
        (size <= _DOUBT * error * largest) & (largest > 0),
        may_balance and bool((means == 1 / n).all()),
        m,
        triangular,
        not (above and below),
        not may_balance,
    )


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
    if members is None or not _determined(expansion, members):
        return UNKNOWN
    terms = _terms(expansion, mu, members)
    return UNKNOWN if terms is None else limits(terms, expansion.coefficients.shape)


def _leading(moduli: Array, error: float) -> NDArray[np.bool_] | None:
    """Mask of the largest moduli, equal within rounding; None where others are too close to them.

    They alone matter: where they leave the mean (or all but the mean) at 0, what is left of it
    grows more slowly.
    """
    top = moduli.max()
    equal = np.asarray(moduli >= top / (1 + min(_EQUAL, _DOUBT * error)))
    near = np.asarray(moduli >= top * (1 - _GAP))
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
    differ = small.any() and (len(small) < members.sum() or np.ptp(small) > 1e-9 * small.max())
    # What comes from logits stops at the least number.
    a = np.abs(expansion.attention[members.any(axis=1)])
    if differ or (len(a) > 1 and ((a > 0) & (a < _LEAST)).any()):
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
        small = _DOUBT * expansion.error * np.abs(G).max()
        if not same[:-1].any() and expansion.classes == 1:
            hfc = np.zeros_like(hfc)
        if expansion.balanced and not same[-1].any():
            mean = np.zeros_like(mean)
        if any(part.any() and np.abs(part).max() <= small for part in (hfc, mean)):
            return None
        if expansion.hidden and not mean.any():
            return None
        # Sums of the largest coefficients left what this is made of; a diagonal H mixes no columns.
        mixed = same.any(axis=0) | (np.count_nonzero(expansion.U) > len(expansion.U))
        largest = max(np.abs(G).max(), np.abs(expansion.coefficients[:, mixed]).max())
        terms.append(Term(phase, hfc, mean, float(expansion.error * largest)))
    return terms


def shows_from(expansion: Expansion) -> float | None:
    """About the depth from which the largest mode that is there outweighs the others (T4e).

    log(||X_0|| / size) / log(rho / rho'), size the norms of the parts of X_0 that grow like rho,
    summed over their phases: spectral projections, the same in every basis of repeated eigenvalues.
    None where modes that may be there or not would lead, or where their size is below all
    normal numbers.
    """
    mu = multipliers(expansion.attention, expansion.value)
    moduli, sure = np.abs(mu), expansion.present
    rho = _top(moduli, sure)
    if rho <= 0 or _top(moduli, expansion.doubtful) > rho:
        return None
    leading = sure & (moduli >= rho * (1 - _GAP))
    rest = _top(moduli, sure & ~leading)
    if rest <= 0:
        return 0.0
    size, left = 0.0, leading
    while left.any():
        same = left & (np.abs(mu - mu[left][0]) <= _GAP * rho)
        size += _norm(expansion, same)
        left = left & ~same
    if not 0 < size < math.inf:
        return None
    share = math.log(_norm(expansion, sure)) - math.log(size)
    return max(0.0, share / math.log(rho / rest))


def _norm(expansion: Expansion, kept: NDArray[np.bool_]) -> float:
    """The Frobenius norm of some modes of X_0 together, over the largest coefficient of all: its
    square may be below all numbers."""
    with np.errstate(all="ignore"):
        # A largest one below all normal numbers leaves nothing finite.
        weights = expansion.coefficients / np.abs(expansion.coefficients).max()
        part = np.abs(expansion.V @ np.where(kept, weights, 0.0) @ expansion.U.T)
    largest = float(part.max())
    return largest * float(np.linalg.norm(part / largest)) if largest else 0.0


@dataclass(frozen=True)
class PresentRadii:
    """The largest |mu| on each side over the modes that X_0 contains (T4e), -1 where there is none:
    from those that are there beyond doubt to those that may be there.

    tie: structure makes the two sides equal, and whatever else may be there is below.
    """

    consensus: Interval
    quotient: Interval
    tie: bool


def present_radii(expansion: Expansion) -> PresentRadii:
    """What of X_0 is in consensus, and what in differences between tokens.

    Several classes are at consensus among themselves as far as their means agree: where those of
    one h differ, |1 + h| stands on both sides. So does 1 where h = 0, whatever a is.
    """
    split = len(expansion.coefficients) - expansion.classes
    mu = np.abs(multipliers(expansion.attention, expansion.value))
    means = expansion.coefficients[split:]
    scale = _DOUBT * expansion.error * np.abs(expansion.coefficients).max()
    apart = np.abs(means - means[0]).max(axis=0)
    # Rows: the modes off a = 1, and the differences between the class means.
    sure = np.vstack([expansion.present[:split], (apart > scale)[None]])
    # Means that came out as equal may differ by less than their sums can show.
    several = np.full_like(apart, expansion.classes > 1, dtype=bool)
    possible = sure | np.vstack([expansion.doubtful[:split], several[None]])
    moduli = np.vstack([mu[:split], mu[-1:]])
    here = np.asarray(expansion.present[split:].any(axis=0))
    maybe = here | np.asarray(expansion.doubtful[split:].any(axis=0))
    consensus = Interval(_top(mu[-1], here), _top(mu[-1], maybe))
    quotient = Interval(_top(moduli, sure), _top(moduli, possible))
    top = here & (mu[-1] == consensus.low)
    equal = np.zeros_like(sure)
    equal[-1] = top
    if (top & (expansion.value == 0)).any():
        equal[:, expansion.value == 0] = True
    # Moduli that may be 0 may both have died out.
    below = consensus.low * (1 - max(_DOUBT * expansion.error, 1e-12))
    if consensus.low <= expansion.vanishing:
        below = -1.0
    rest = np.asarray(maybe & ~top)
    others = max(_top(moduli, np.asarray(possible & ~equal)), _top(mu[-1], rest))
    return PresentRadii(consensus, quotient, bool((sure & equal).any() and others < below))


def _top(moduli: Array, kept: NDArray[np.bool_]) -> float:
    return float(moduli[kept].max(initial=-1.0))
