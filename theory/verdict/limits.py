"""Limits of a trajectory from the terms of X_L = sum_g C(L, k) mu_g^(L-k) G_g (T4, T5a, T6b).

Given the terms with their order of growth, this file decides what HFC/LFC tends to, its limit, and
the asymptotic rank. Where the terms come from (exact projectors or floating eigenvectors) does not
matter here.
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


@dataclass(frozen=True)
class Term:
    """C(L, k) mu^(L-k) G, one term of X_L.

    modulus: |mu|, given as a rank order `level` (equal levels are equal moduli, decided by the
    caller; larger is larger) so that no tie is decided here. k: the power of the nilpotent part.
    phase: arg mu. hfc [n, d] = P G, mean [d] = 1^T G / n, both complex, and how far an entry of
    either may be off.
    """

    level: int
    k: int
    phase: float
    hfc: Complex
    mean: Complex
    error: float = 0.0

    @property
    def order(self) -> tuple[int, int]:
        """Order of growth |mu|^L L^k, lexicographically."""
        return self.level, self.k


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


def _leading(terms: Sequence[Term], part: str) -> list[Term]:
    present = [t for t in terms if getattr(t, part).any()]
    top = max((t.order for t in present), default=None)
    return [t for t in present if t.order == top]


def _frequencies(terms: list[Term], part: str) -> list[tuple[float, complex]]:
    """Coefficients of |sum_g e^(iL theta_g) G_g|^2 by frequency theta_g - theta_g'."""
    found: list[tuple[float, complex]] = []
    for s, t in product(terms, terms):
        # C(L,k) mu^(L-k): the phase of mu^-k belongs to the coefficient.
        shift = np.exp(-1j * (s.k * s.phase - t.k * t.phase))
        value = complex(np.vdot(getattr(t, part), getattr(s, part)) * shift)
        angle = s.phase - t.phase
        for index, (known, total) in enumerate(found):
            if abs(np.exp(1j * known) - np.exp(1j * angle)) < TOLERANCE:
                found[index] = (known, total + value)
                break
        else:
            found.append((angle, value))
    return found


def _ratio(hfc: list[Term], lfc: list[Term], n: int) -> tuple[str, float | None]:
    """HFC and LFC of the same order: is the squared ratio of the two almost periodic sums constant?

    It is, exactly if the coefficients are proportional frequency by frequency.
    """
    # Sizes apart: the square of a small mean would underflow.
    sizes = [
        max(abs(getattr(t, part)).max() for t in terms)
        for terms, part in ((hfc, "hfc"), (lfc, "mean"))
    ]
    numerator = _frequencies([replace(t, hfc=t.hfc / sizes[0]) for t in hfc], "hfc")
    denominator = _frequencies([replace(t, mean=t.mean / sizes[1]) for t in lfc], "mean")
    top = max(abs(value) for _, value in numerator)
    bottom = max(abs(value) for _, value in denominator)

    def at(table: list[tuple[float, complex]], angle: float) -> complex:
        near = (v for a, v in table if abs(np.exp(1j * a) - np.exp(1j * angle)) < TOLERANCE)
        return sum(near, 0j)

    # The coefficient at frequency 0 is a sum of squared norms: it is the largest and positive.
    doubt = sum(
        t.error / size for size, terms in zip(sizes, (hfc, lfc), strict=True) for t in terms
    )
    scale = at(numerator, 0.0).real / at(denominator, 0.0).real
    for angle, _ in numerator + denominator:
        gap = abs(at(numerator, angle) - scale * at(denominator, angle))
        if gap > TOLERANCE * max(top, scale * bottom):
            return "oscillates", None
    if doubt > _KNOWN:
        return "constant", None
    return "constant", float(np.sqrt(scale / n) * (sizes[0] / sizes[1]))


def _rank(terms: list[Term], shape: tuple[int, int]) -> int | None:
    """Largest rank that the leading sum takes: minors are almost periodic in L (T4c). None where a
    singular value is neither above all errors nor as small as rounding leaves a 0."""
    # With one phase the sum only turns as a whole: any depth will do.
    one_phase = len({term.phase for term in terms}) == 1
    depths = np.arange(1 if one_phase else _DEPTHS)
    total = np.zeros((len(depths), *shape), dtype=np.complex128)
    error = 0.0
    for term in terms:
        G = term.hfc + term.mean
        # In half turns, that those of them which come out even do so.
        turn = np.fmod((depths - term.k) * (term.phase / np.pi), 2.0)
        total += np.exp(1j * np.pi * turn)[:, None, None] * G
        error += term.error + 4 * len(depths) * EPS * float(np.abs(G).max())
    sigma = np.linalg.svd(total, compute_uv=False)
    low = EPS * max(shape) * sigma[:, :1] + error
    least, most = (
        int(np.count_nonzero(sigma > wide * low, axis=1).max()) for wide in (_DOUBT, 1.0)
    )
    return least if least == most else None


def limits(terms: Sequence[Term], shape: tuple[int, int]) -> Limits:
    """Limits of HFC/LFC and rank for X_L [n, d] given by its terms (T1f, T4, T6b).

    No terms at all mean that X_L becomes 0: nothing is defined.
    """
    everything = [t for t in terms if t.hfc.any() or t.mean.any()]
    if not everything:
        return UNKNOWN
    top = max(t.order for t in everything)
    rank = _rank([t for t in everything if t.order == top], shape)
    hfc, lfc = _leading(terms, "hfc"), _leading(terms, "mean")
    if not hfc:
        return Limits("zero", 0.0, rank)
    if not lfc or hfc[0].order > lfc[0].order:
        return Limits("infinity", float("inf"), rank)
    if hfc[0].order < lfc[0].order:
        return Limits("zero", 0.0, rank)
    tends_to, limit = _ratio(hfc, lfc, shape[0])
    return Limits(tends_to, limit, rank)


def agreed(first: Limits, second: Limits) -> Limits:
    """What two draws of X_0 have in common: None where they differ."""
    a, b = first.limit, second.limit
    same = a is not None and b is not None and (a == b or abs(a - b) <= 1e-8 * min(a, b))
    return Limits(
        first.tends_to if first.tends_to == second.tends_to else None,
        a if same else None,
        first.limit_rank if first.limit_rank == second.limit_rank else None,
    )
