"""Real matrices with a chosen spectrum, conjugated exactly and then rounded to binary64."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

# Entries of an exact matrix are integers over this.
SCALE = 3 << 20

Pair = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Chosen:
    """M [k, k] is the nearest matrix in binary64 to one of exactly this spectrum: (re, im) [k]."""

    M: np.ndarray
    spectrum: list[Pair]


def chosen(seed: int, k: int) -> Chosen:
    """Diagonal, turning, nearly equal and Jordan blocks under k to 3 k elementary similarities."""
    rng = np.random.default_rng([seed, k])
    D, spectrum, i = np.zeros((k, k), dtype=object), list[Pair](), 0
    kind = seed % 5
    while i < k:
        x = int(rng.integers(-2 * SCALE, 2 * SCALE))
        size = int(min(k - i, rng.integers(1, 4)))
        if kind == 1 and size >= 2:  # a pair x +- iy
            y = int(rng.integers(1, SCALE))
            D[i : i + 2, i : i + 2] = [[x, y], [-y, x]]
            spectrum += [
                (Fraction(x, SCALE), Fraction(y, SCALE)),
                (Fraction(x, SCALE), Fraction(-y, SCALE)),
            ]
            i += 2
            continue
        for p in range(size):
            # Equal ones in a chain (defective), or neighbours as near as the scale allows.
            D[i + p, i + p] = x + (p if kind == 3 else 0)
            if p and kind in (2, 3):
                D[i + p - 1, i + p] = SCALE if seed % 2 else 1
            if p and kind in (0, 1, 4):
                D[i + p, i + p] = int(rng.integers(-2 * SCALE, 2 * SCALE))
            spectrum.append((Fraction(int(D[i + p, i + p]), SCALE), Fraction(0)))
        i += size
    for _ in range(int(rng.integers(k, 3 * k + 1)) if k > 1 else 0):
        p, q = rng.choice(k, 2, replace=False)
        factor = int(rng.integers(-2, 3))
        D[p] = D[p] + factor * D[q]
        D[:, q] = D[:, q] - factor * D[:, p]
    return Chosen(np.array([[float(int(x) / SCALE) for x in row] for row in D]), spectrum)


def held(found, spectrum: list[Pair]) -> bool:
    """Whether each component of these discs holds as many of the numbers as it has discs."""
    centres = [(Fraction(z.real), Fraction(z.imag)) for z in found.centres.tolist()]
    radii = [Fraction(r) ** 2 for r in found.radii.tolist()]
    count = np.zeros(len(found), dtype=int)
    for re, im in spectrum:
        near = np.abs(found.centres - complex(re, im)) <= found.radii * 1.001 + 1e-9
        homes = {
            int(found.component[i])
            for i in np.flatnonzero(near)
            if (centres[i][0] - re) ** 2 + (centres[i][1] - im) ** 2 <= radii[i]
        }
        if len(homes) != 1:
            return False
        count[homes.pop()] += 1
    return bool((count[: found.component.max() + 1] == np.bincount(found.component)).all())
