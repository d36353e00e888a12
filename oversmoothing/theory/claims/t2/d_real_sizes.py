"""T2d at the sizes of trained models, n = 197 and d = 64 or 768, settled by certificates.

Float64 discs enclose both spectra (theory.certificates); what follows from the enclosed spectra by
the closed form must be what follows from the enclosed radii.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from oversmoothing.theory.certificates import certified_radii as certified
from oversmoothing.theory.certificates.enclosure import Discs, Failure
from oversmoothing.theory.proofs.kit import by
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.verdict.dominance import real_verdict, threshold

N, D, WIDTH = 197, 64, 768


def symmetric_attention(rng: np.random.Generator) -> Array:
    """A = A^T > 0 with row sums of exactly 1 in binary64: a real spectrum, exactly.

    Multiples of 2^-30, the diagonal making up for what the others leave.
    """
    grid = 2**30
    upper = np.triu(rng.integers(grid // (8 * N), grid // N, size=(N, N)), 1)
    off = upper + upper.T
    A: Array = (off + np.diag(grid - off.sum(axis=1))) / grid
    return A


def with_real_spectrum(rng: np.random.Generator, low: float, high: float) -> Array:
    """H = H^T [64, 64] with spectrum in [low, high], both ends nearly attained."""
    Q, _ = np.linalg.qr(rng.standard_normal((D, D)))
    values = np.concatenate([[low, high], rng.uniform(low, high, D - 2)])
    H = (Q * values) @ Q.T
    return np.asarray((H + H.T) / 2)


def _real_ends(discs: Discs) -> tuple[tuple[float, float], tuple[float, float]]:
    """Intervals for the smallest and the largest eigenvalue of a real spectrum."""
    low, high = discs.centres.real - discs.radii, discs.centres.real + discs.radii
    alone = np.bincount(discs.component)[discs.component] == 1
    if not alone[low.argmin()] or not alone[high.argmax()]:
        return (low.min(), high.max()), (low.min(), high.max())
    return (low.min(), high[low.argmin()]), (low[high.argmax()], high.max())


def closed_form_at_real_size(effort: by.Effort) -> by.Settled:
    """T2d: the verdict from the enclosed q, p and a against the one from the enclosed radii.

    Spectra around the threshold t = -2/(1+a), on both sides of it, positive ones and a head of
    rank 64 in width 768.
    """
    rng = np.random.default_rng([197, effort.seed])
    A = symmetric_attention(rng)
    attention = certified.attention_discs(A)
    if isinstance(attention, Failure):
        yield False
        return
    a = _real_ends(attention)[0]
    t = threshold(a[0])
    spectra = [(t * (1 - 1e-6), -0.1), (t * (1 + 1e-6), -0.1), (-0.9, 0.4), (-3.0, 0.01)]
    values: list[Callable[[], Discs | Failure]] = [
        lambda ends=ends: certified.value_discs(with_real_spectrum(rng, *ends))  # type: ignore[misc]
        for ends in spectra
    ]
    Q, _ = np.linalg.qr(rng.standard_normal((WIDTH, D)))
    weights = rng.uniform(-1.5, 0.5, D)
    values.append(lambda: certified.head_discs(Q, weights[:, None] * Q.T))
    for k, make in enumerate(values):
        value = make()
        found = certified.certify_spectra(attention, value)
        if isinstance(value, Failure) or found.verdict == "UNDECIDED":
            yield False
            continue
        q, p = _real_ends(value)
        predicted = {real_verdict(*corner) for corner in product(q, p, a)}
        if len(predicted) > 1:
            yield False
        else:
            agree = predicted == {found.verdict}
            yield agree or f"case {k}: {predicted}, certified {found.reason}"
