"""Steps that several written proofs share: the two autonomous blocks, the coupling, and growth."""

from fractions import Fraction

import sympy as sp

from oversmoothing.theory.depth.ratios import squared_norms
from oversmoothing.theory.layer.symbolic import (
    characteristic_residual,
    consensus_residual,
    quotient_residual,
    symbolic_attention,
    symbolic_matrix,
)
from oversmoothing.theory.numbers.exact_matrix import layer, matrix
from oversmoothing.theory.proofs.kit import by, vanishes


def _blocks() -> None:
    vanishes(
        quotient_residual(
            symbolic_attention(3), symbolic_matrix(2, 2, "h"), symbolic_matrix(3, 2, "x")
        )
    )
    vanishes(
        consensus_residual(
            symbolic_attention(2), symbolic_matrix(2, 2, "h"), symbolic_matrix(2, 2, "x")
        )
    )


def _coupling() -> None:
    # pi = (1/3, 2/3), so n delta^2 = 2 (1/36 + 1/36) = 1/9; squares of both sides of the bounds.
    A, H = matrix("1/2 1/2; 1/4 3/4"), matrix("1/3 -1; 1/2 -1/4")
    X = matrix("1 2; -3 1")
    for _ in range(6):
        c = [X[0][j] / 3 + 2 * X[1][j] / 3 for j in range(2)]
        hfc, lfc = squared_norms(X)
        t_squared = hfc / (2 * (c[0] ** 2 + c[1] ** 2))
        k, t, ratio = Fraction(1, 3), float(t_squared) ** 0.5, float(hfc / lfc) ** 0.5
        assert 1 / (float(k) + 1 / t) <= ratio * (1 + 1e-12)
        assert 1 / t <= k or ratio <= (1 + 1e-12) / (1 / t - float(k))
        X = layer(A, H, X)


def _growth() -> None:
    L = sp.Symbol("L", integer=True, nonnegative=True)
    block = sp.Matrix([[2, 1], [0, 2]])
    power = sp.Matrix([[2**L, L * 2 ** (L - 1)], [0, 2**L]])
    vanishes(power.subs(L, 0) - sp.eye(2))
    vanishes(power.subs(L, L + 1) - power * block)


SPECTRUM = by.Step(
    "With complex Schur forms A = U S U*, H = V T V*, I + H (x) A is similar to I + T (x) S, upper "
    "triangular with diagonal 1 + h_j a_i: these are its eigenvalues, with multiplicity (T1a).",
    lambda: vanishes(
        sp.Matrix([characteristic_residual(symbolic_attention(2), symbolic_matrix(2, 2, "h"))])
    ),
)

BLOCKS = by.Step(
    "A 1 = 1 gives P A = P A P for P = I - 1 1^T / n: in an orthonormal basis of the vectors "
    "orthogonal to 1, HFC has coordinates Y with Y' = Y + B Y W, where spec(B) is spec(A) less one "
    "copy of 1. And pi^T A = pi^T gives c' = c (I + W) for c = pi^T X (T1c, T1d).",
    _blocks,
)

COUPLING = by.Step(
    "The mean is m = c + (1/n - pi)^T HFC, so | ||m|| - ||c|| | <= delta ||HFC||, delta = ||pi - "
    "1/n||. With t = ||HFC|| / (sqrt(n) ||c||) and k = sqrt(n) delta: 1/(k + 1/t) <= HFC/LFC, and "
    "HFC/LFC <= 1/(1/t - k) where 1/t > k (T1e).",
    _coupling,
)

GROWTH = by.Step(
    "Growth: for a real square T of spectral radius rho > 0, with largest Jordan block s at "
    "modulus rho, ||T^L y|| lies between two positive multiples of L^(s-1) rho^L for every y "
    "outside a proper subspace: T^L y = sum over eigenvalues and k < s of C(L, k) lambda^(L-k) N^k "
    "E y, and the leading terms N^(s-1) E y of different eigenvalues lie in independent subspaces, "
    "so they cannot cancel. The subspace to avoid is the kernel of one non-zero N^(s-1) E.",
    _growth,
)

POSITIVE_SPECTRUM = by.Step(
    "A > 0 with A 1 = 1: the eigenvalue 1 is simple, every other has |a_i| < 1, and pi > 0 "
    "(Perron)."
)
