"""Limits of a trajectory from its leading terms mu_g^L G_g, of one modulus |mu_g| (T4, T5a).

Given the terms, this file decides what HFC/LFC tends to, its limit, and the asymptotic rank. Which
terms lead is decided before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from oversmoothing.theory.spectra.spectrum import EPS
from oversmoothing.theory.support.arrays import Complex

# Directions and phases arrive in binary64 from data of at least that accuracy; what agrees to
# this relative tolerance is taken for equal.
TOLERANCE = 1e-9
# A limit is a number where errors leave less than this of it open (relative).
_KNOWN = 1e-7
# A singular value is there beyond so many times the errors of the terms.
_DOUBT = 64
# So many depths show every rank that is taken again and again.
_DEPTHS = 24
# Far below all rounding beside 1, and the rounding of what was rounded.
_LOST = 1e-40


@dataclass(frozen=True)
class Term:
    """mu^L G over |mu|^L, one of the leading terms of X_L.

    phase: arg mu. hfc [n, d] = P G, mean [d] = 1^T G / n, both complex, and how far an entry of
    either may be off.
    """

    phase: float
    hfc: Complex
    mean: Complex
    error: float = 0.0


@dataclass(frozen=True)
class Limits:
    """What HFC/LFC does as L grows, and the asymptotic rank of X_L (T4c).

    tends_to: "zero", "constant", "infinity", "oscillates" or None. limit: of HFC/LFC (inf where it
    diverges), None where there is none.
    """

    tends_to: str | None
    limit: float | None
    limit_rank: int | None

    @property
    def whole(self) -> bool:
        """Whether nothing is left open."""
        missing = self.tends_to == "constant" and self.limit is None
        return not missing and None not in (self.tends_to, self.limit_rank)


UNKNOWN = Limits(None, None, None)


def _frequencies(terms: list[Term], part: str) -> list[tuple[float, complex]]:
    """Coefficients of |sum_g e^(iL theta_g) G_g|^2 by frequency theta_g - theta_g'."""
    found: list[tuple[float, complex]] = []
    for s, t in product(terms, terms):
        value = complex(np.vdot(getattr(t, part), getattr(s, part)))
        angle = s.phase - t.phase
        for index, (known, total) in enumerate(found):
            if abs(np.exp(1j * known) - np.exp(1j * angle)) < TOLERANCE:
                found[index] = (known, total + value)
                break
        else:
            found.append((angle, value))
    return found


def _ratio(hfc: list[Term], lfc: list[Term], n: int) -> tuple[str | None, float | None]:
    """Is the squared ratio of the two almost periodic sums constant?

    It is, exactly if the coefficients are proportional frequency by frequency. None where the
    errors of the terms leave that open.
    """
    # Sizes apart: the square of a small mean would underflow.
    sizes = [
        max(float(abs(getattr(t, part)).max()) for t in terms)
        for terms, part in ((hfc, "hfc"), (lfc, "mean"))
    ]
    numerator = _frequencies([replace(t, hfc=t.hfc / sizes[0]) for t in hfc], "hfc")
    denominator = _frequencies([replace(t, mean=t.mean / sizes[1]) for t in lfc], "mean")

    def at(table: list[tuple[float, complex]], angle: float) -> complex:
        near = (v for a, v in table if abs(np.exp(1j * a) - np.exp(1j * angle)) < TOLERANCE)
        return sum(near, 0j)

    doubt = sum(
        t.error / size for size, terms in zip(sizes, (hfc, lfc), strict=True) for t in terms
    )
    # The coefficient at frequency 0 is a sum of squared norms: it is the largest and positive.
    top = at(numerator, 0.0).real
    scale = top / at(denominator, 0.0).real
    gap = max(
        abs(at(numerator, angle) - scale * at(denominator, angle))
        for angle, _ in numerator + denominator
    )
    if gap > (TOLERANCE + _DOUBT * doubt) * top:
        return "oscillates", None
    # Where nothing turns, the two are proportional whatever the errors.
    turning = len({t.phase for t in (*hfc, *lfc)}) > 1
    if turning and (gap > TOLERANCE * top or doubt > _KNOWN):
        return None, None
    limit = float(np.sqrt(scale / n)) * (sizes[0] / sizes[1])
    return "constant", limit if doubt <= _KNOWN and 0 < limit < np.inf else None


def _rank(terms: list[Term], shape: tuple[int, int]) -> int | None:
    """Largest rank that the leading sum takes: minors are almost periodic in L (T4c). None where a
    singular value is neither above all errors nor as small as rounding leaves a 0."""
    # With one phase the sum only turns as a whole: any depth will do.
    one_phase = len({term.phase for term in terms}) == 1
    depths = np.arange(1 if one_phase else _DEPTHS)
    G = np.array([term.hfc + term.mean for term in terms])
    # A feature so far below the others counts, and rounding is no cause of it.
    sizes = np.abs(G).max(axis=(0, 1))
    if ((sizes > 0) & (sizes < _LOST * sizes.max())).any():
        return None
    # In half turns, that those of them which come out even do so.
    half = np.array([term.phase for term in terms]) / np.pi
    turns = np.exp(1j * np.pi * np.fmod(np.multiply.outer(depths, half), 2.0))
    sigma = np.linalg.svd(np.einsum("lt,tnd->lnd", turns, G), compute_uv=False)
    error = sum(term.error for term in terms)
    error += 4 * len(depths) * EPS * float(np.abs(G).max(axis=(1, 2)).sum())
    low = EPS * max(shape) * sigma[:, :1] + error
    least, most = (
        int(np.count_nonzero(sigma > wide * low, axis=1).max()) for wide in (_DOUBT, 1.0)
    )
    # A sum that is there has a rank of 1 at least: errors as large as all of it say nothing.
    return least if least == most and (most or not G.any()) else None


def limits(terms: Sequence[Term], shape: tuple[int, int]) -> Limits:
    """Limits of HFC/LFC and rank for X_L [n, d] given by its leading terms (T1f, T4).

    No terms at all mean that X_L becomes 0: nothing is defined. What does not lead grows more
    slowly than the part that does: HFC/LFC tends to infinity where no term has a mean, to 0 where
    none has another part.
    """
    hfc, lfc = [t for t in terms if t.hfc.any()], [t for t in terms if t.mean.any()]
    if not hfc and not lfc:
        return UNKNOWN
    rank = _rank(list(terms), shape)
    if not hfc:
        return Limits("zero", 0.0, rank)
    if not lfc:
        return Limits("infinity", float("inf"), rank)
    return Limits(*_ratio(hfc, lfc, shape[0]), rank)


def agreed(first: Limits, second: Limits) -> Limits:
    """What two draws of X_0 have in common: None where they differ."""
    a, b = first.limit, second.limit
    same = a is not None and b is not None and (a == b or abs(a - b) <= 1e-8 * min(a, b))
    return Limits(
        first.tends_to if first.tends_to == second.tends_to else None,
        a if same else None,
        first.limit_rank if first.limit_rank == second.limit_rank else None,
    )
