"""X_L at any depth from the eigenbases of B and H: no iteration at all (T1a, T4).

With B = V a V^-1 and H = U h U^-1, Y_L = V ((1 + a_i h_j)^L o C) U^T and likewise for the pi-mean.
Powers are taken through log1p, so that depth 1e9 costs what depth 1 costs and nothing overflows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.checks import check_attention, check_square, check_states
from theory.errors import InputError
from theory.perron import stationary_distribution
from theory.quotient import complement_basis, quotient

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

# Condition number of an eigenbasis beyond which its expansion has lost half of the digits.
CONDITION_LIMIT = 1e8


@dataclass(frozen=True)
class ScaledState:
    """X_L = 2^log2_hfc_scale hfc + 1 (2^log2_mean_scale mean): hfc [n, d], mean [d].

    The two scales are separate, so that neither part swamps the other at great depth.
    """

    depth: int
    hfc: Array
    mean: Array
    log2_hfc_scale: float
    log2_mean_scale: float

    @property
    def log_hfc_lfc(self) -> float:
        """log(||HFC||_F / ||LFC||_F); nan where both vanish."""
        hfc = float(np.linalg.norm(self.hfc))
        lfc = float(np.linalg.norm(self.mean)) * np.sqrt(len(self.hfc))
        if hfc == 0 or lfc == 0:
            return float("nan") if hfc == lfc else (-np.inf if hfc == 0 else np.inf)
        scale = (self.log2_hfc_scale - self.log2_mean_scale) * np.log(2.0)
        return float(np.log(hfc) - np.log(lfc) + scale)


def log_multiplier(x: Complex) -> Complex:
    """log(1 + x), accurate for small x and for |1 + x| near 1 (-inf at x = -1)."""
    with np.errstate(divide="ignore"):
        modulus = np.log1p(2 * x.real + np.abs(x) ** 2) / 2
    return np.asarray(modulus + 1j * np.arctan2(x.imag, 1 + x.real), dtype=np.complex128)


def _eigenbasis(M: Array, name: str) -> tuple[Complex, Complex]:
    values, vectors = np.linalg.eig(M)
    condition = np.linalg.cond(vectors) if len(M) else 1.0
    if not condition < CONDITION_LIMIT:
        raise InputError(
            f"{name} is defective or nearly so (its eigenvectors have condition {condition:.1e}): "
            "the closed form would lose its digits, iterate instead"
        )
    return values.astype(np.complex128), vectors.astype(np.complex128)


def _powers(start: Complex, log_mu: Complex, depth: int) -> tuple[Complex, float]:
    """start o mu^depth, divided by 2^scale with the largest |entry| of order 1."""
    if depth == 0:
        return start, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        size = depth * log_mu.real + np.log(np.abs(start))
    top = float(size.max(initial=-np.inf))
    if top == -np.inf:
        return np.zeros_like(start), 0.0
    scale = float(np.ceil(top / np.log(2.0)))
    # The phase is reduced before the exponential; the modulus is at most 1.
    phase = np.remainder(depth * log_mu.imag, 2 * np.pi) + np.angle(start)
    modulus = np.where(np.isfinite(size), np.exp(size - scale * np.log(2.0)), 0.0)
    return modulus * np.exp(1j * phase), scale


def closed_form(*, A: Any, H: Any, X0: Any, depths: Iterable[int]) -> list[ScaledState]:
    """States at each of the depths for A [n, n], H [d, d], X0 [n, d] (float64).

    Raises `InputError` where H or the quotient B has no well-conditioned eigenbasis.
    """
    attention, value = check_attention(A), check_square(H)
    n, d = len(attention), len(value)
    start = check_states(X0, n, d)
    Q, pi = complement_basis(n), stationary_distribution(attention)
    a, V = _eigenbasis(quotient(attention), "the quotient of A")
    h, U = _eigenbasis(value, "H")
    y0, c0 = Q.T @ start, pi @ start
    in_basis = np.linalg.solve(V, y0.astype(np.complex128)) if n > 1 else y0.astype(np.complex128)
    C = np.linalg.solve(U, in_basis.T).T.astype(np.complex128)
    k = np.linalg.solve(U, c0.astype(np.complex128)).astype(np.complex128)
    log_quotient, log_consensus = log_multiplier(a[:, None] * h[None, :]), log_multiplier(h)
    eta = Q.T @ (1.0 / n - pi)
    states = []
    for depth in depths:
        powers, y_scale = _powers(C, log_quotient, depth)
        y = np.real(V @ powers @ U.T) if n > 1 else np.zeros((0, d))
        c_powers, c_scale = _powers(k, log_consensus, depth)
        c = np.real(c_powers @ U.T)
        # m = c + (1/n - pi)^T HFC, on the larger of the two scales.
        part = eta @ y
        scale = max(c_scale if c.any() else -np.inf, y_scale if part.any() else -np.inf)
        scale = scale if np.isfinite(scale) else 0.0
        mean = c * 2.0 ** max(c_scale - scale, -1074) + part * 2.0 ** max(y_scale - scale, -1074)
        states.append(ScaledState(int(depth), Q @ y, mean, y_scale, scale))
    return states
