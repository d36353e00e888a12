"""Steps that several written proofs share: the two autonomous blocks, the coupling, and growth."""

import sympy as sp

from oversmoothing.theory.proofs.kit import by

SPECTRUM = by.step(
    "[] The eigenvalues of I + H (x) A are 1 + h_j a_i over all pairs, with multiplicity (T1a)."
)

BLOCKS = by.step(
    "[] HFC has coordinates Y with Y' = Y + B Y W in an orthonormal basis of the vectors "
    "orthogonal to 1, where spec(B) is spec(A) less one copy of 1 (T1c); and c' = c (I + W) for c "
    "= pi^T X (T1d)."
)

COUPLING = by.step(
    "[] With t = ||HFC|| / (sqrt(n) ||c||), k = sqrt(n) delta and delta = ||pi - 1/n||: 1/(k + "
    "1/t) <= HFC/LFC, and HFC/LFC <= 1/(1/t - k) where 1/t > k (T1e)."
)


def _growth() -> list[sp.Expr]:
    """[instance] Growth: for a real square T of spectral radius rho > 0, with largest Jordan block
    s at modulus rho, ||T^L y|| lies between two positive multiples of L^(s-1) rho^L for every y
    outside a proper subspace: T^L y = sum over eigenvalues and k < s of C(L, k) lambda^(L-k) N^k E
    y, and the leading terms N^(s-1) E y of different eigenvalues lie in independent subspaces, so
    they cannot cancel. The subspace to avoid is the kernel of one non-zero N^(s-1) E."""
    L = sp.Symbol("L", integer=True, nonnegative=True)
    block = sp.Matrix([[2, 1], [0, 2]])
    power = sp.Matrix([[2**L, L * 2 ** (L - 1)], [0, 2**L]])
    return [*(power.subs(L, 0) - sp.eye(2)), *(power.subs(L, L + 1) - power * block)]


GROWTH = by.step(_growth)

POSITIVE_SPECTRUM = by.step(
    "[] A > 0 with A 1 = 1: the eigenvalue 1 is simple, every other has |a_i| < 1, and pi > 0 "
    "(Perron)."
)
