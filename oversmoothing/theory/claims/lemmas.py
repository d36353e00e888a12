"""Steps that several written proofs share."""

import sympy as sp

from oversmoothing.theory.proofs.kit import by
from oversmoothing.theory.proofs.symbolic import symbolic_matrix

SPECTRUM = by.step(
    "[] The eigenvalues of I + H (x) A are 1 + h_j a_i over all pairs, with multiplicity (T1a)."
)

POSITIVE_SPECTRUM = by.step(
    "[] A > 0 with A 1 = 1: the eigenvalue 1 is simple, every other has |a_i| < 1, and pi > 0 "
    "(Perron)."
)


def angle() -> sp.Expr:
    """[fixed size] 1 - |cos| = sin^2/(1 + |cos|), and |x|^2 |y|^2 sin^2 = |x ^ y|^2 is the sum of
    the squared 2 x 2 minors of the rows x, y; over all pairs of tokens these are all of X ^ X."""
    x, y = symbolic_matrix(1, 3, "x"), symbolic_matrix(1, 3, "y")
    minors = [x[i] * y[j] - x[j] * y[i] for i in range(3) for j in range(i)]
    return sp.expand(x.dot(x) * y.dot(y) - x.dot(y) ** 2 - sum(m * m for m in minors))


ANGLE = by.step(angle)
