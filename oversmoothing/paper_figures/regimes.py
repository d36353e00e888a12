"""The four regimes of the metrics against depth: attention, H and X_0 of each, and limits (T4)."""

from typing import Any

import numpy as np

from oversmoothing.simulations.generators.attention import Softmax, SymmetricIndefinite, sinkhorn
from oversmoothing.simulations.generators.value_projection import chosen_spectrum
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, largest_modulus
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome, dominance, threshold

TOKENS = 8


def cases(seed: int) -> list[tuple[str, dict[str, Any], int]]:
    """Smoothing, non-smoothing, a tie by construction, and complex spectra on both sides: a name,
    A [n, n], H [d, d] and X0 [n, d] by their names, and how many layers are drawn."""
    streams = np.random.default_rng(seed).spawn(5)
    A = SymmetricIndefinite(temperature=0.6, dim=8).draw(TOKENS, rng=streams[0])
    balanced = sinkhorn(A)
    lowest = float(attention_spectrum(balanced).values.real.min())
    twisted = _complex_dominant(streams[1])

    def H(*eigenvalues: complex) -> Array:
        return chosen_spectrum(
            len(eigenvalues), rng=streams[2], eigenvalues=eigenvalues, basis="general"
        )

    values = (
        ("smoothing", A, H(0.4, 0.15, -0.4), 450),
        ("non-smoothing", A, H(-0.9, -0.5, -0.2), 60),
        ("tie", balanced, H(threshold(lowest), -0.3, -0.6), 60),
        ("complex", twisted, H(-0.5 + 0.45j, -0.5 - 0.45j, -0.2), 60),
    )
    X0 = streams[3].standard_normal((TOKENS, 3))
    return [(name, {"A": a, "H": h, "X0": X0}, depth) for name, a, h, depth in values]


def _complex_dominant(rng: np.random.Generator) -> Array:
    """The first softmax attention drawn whose dominant mode at h = -1/2 + 0.45i is non-real."""
    while True:
        A = Softmax(temperature=0.5, dim=8).draw(TOKENS, rng=rng)
        a = attention_spectrum(A).values
        found = dominance(a, np.array([-0.5 + 0.45j, -0.5 - 0.45j]))
        assert found.quotient_index is not None
        if abs(a[found.quotient_index[0]].imag) > 0.3:
            return A


def cosine_limit(A: Array, H: Array, answer: Outcome) -> float:
    """Limit of the mean cosine: 1 at consensus, ((n_+ - n_-)^2 - n) / (n (n - 1)) for one real
    dominant mode with n_+ positive and n_- negative tokens (T4a, T4b); NaN otherwise."""
    if answer is Outcome.SMOOTHING:
        return 1.0
    a, V = np.linalg.eig(A)
    h = np.linalg.eigvals(H).astype(np.complex128)
    _, i, j = largest_modulus(a, h)
    if answer is not Outcome.NON_SMOOTHING or abs(a[i].imag) > 0 or abs(h[j].imag) > 0:
        return float("nan")
    balance = float(np.sign(V[:, i].real).sum())
    n = len(a)
    return (balance**2 - n) / (n * (n - 1))
