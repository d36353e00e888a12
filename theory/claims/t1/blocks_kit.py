"""Hypotheses, instances and step helpers shared by the claims T1, T9 and T11."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import flint
import sympy as sp

from oversmoothing.theory.depth.ratios import exact_state
from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.layer.quotient import rational_quotient
from oversmoothing.theory.numbers.rational import (
    Matrix,
    exact_stationary,
    from_flint,
    to_flint,
    to_float,
)
from oversmoothing.theory.proofs.claim import Hypothesis, Instance
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors

# --------------------------------------------------------------------------------- instances


def matrix(text: str) -> Matrix:
    """ "3/4 1/4; 1/4 3/4" as nested Fractions."""
    return [[Fraction(entry) for entry in row.split()] for row in text.split(";")]


AA = matrix("3/4 1/4; 1/4 3/4")
A3 = matrix("4/5 1/10 1/10; 3/10 3/5 1/10; 1/2 1/5 3/10")
# 1/5 I + 4/5 J/3 + u w^T/10, u = (1,-1,0), w = (1,1,-2): the eigenvalue 1/5 is defective.
DEFECTIVE = matrix("17/30 11/30 1/15; 1/6 11/30 7/15; 4/15 4/15 7/15")
# 1 pi^T + 1/5 (I - 1 pi^T) + u w^T/10, pi = (2,1,1)/4: 1/5 is defective, pi is not uniform.
SKEW_DEFECTIVE = matrix("3/5 3/10 1/10; 2/5 3/10 3/10; 2/5 1/10 1/2")
CAUSAL = matrix("1 0 0; 1/2 1/2 0; 1/2 1/4 1/4")


def uniform_mix(n: int, share: Fraction) -> Matrix:
    """(1 - share) I + share 11^T/n."""
    return [
        [share / n + (1 - share if i == j else Fraction(0)) for j in range(n)] for i in range(n)
    ]


def diagonal(*entries: Fraction | int | str) -> Matrix:
    size = len(entries)
    return [
        [Fraction(entries[i]) if i == j else Fraction(0) for j in range(size)] for i in range(size)
    ]


def stationary(A: Matrix) -> list[Fraction]:
    """pi^T A = pi^T, pi^T 1 = 1 in fractions (the mean over the closed classes)."""
    return exact_stationary(A, [list(map(int, c)) for c in closed_classes(to_float(A))])


def pi_mean(pi: list[Fraction], X: Matrix) -> list[Fraction]:
    return [
        sum((p * row[j] for p, row in zip(pi, X, strict=True)), Fraction(0))
        for j in range(len(X[0]))
    ]


def squared_deviation(pi: list[Fraction]) -> Fraction:
    """delta^2 = ||pi - 1/n||^2."""
    return sum(((p - Fraction(1, len(pi))) ** 2 for p in pi), Fraction(0))


def layers(A: Matrix, H: Matrix, X: Matrix, depth: int = 1) -> Matrix:
    """X_L in fractions."""
    return exact_state(A, H, X, [depth])[depth]


def characteristic(M: Matrix) -> flint.fmpq_poly:
    return to_flint(M).charpoly()


def plus_identity(M: Matrix, factor: Fraction | int = 1) -> Matrix:
    """I + factor M."""
    return [[int(i == j) + factor * x for j, x in enumerate(row)] for i, row in enumerate(M)]


def kronecker(H: Matrix, A: Matrix) -> Matrix:
    return [[h * a for h in top for a in row] for top in H for row in A]


def power(M: Matrix, exponent: int) -> Matrix:
    return from_flint(to_flint(M) ** exponent)


def is_zero(M: Iterable[Iterable[Fraction]]) -> bool:
    return not any(entry for row in M for entry in row)


# -------------------------------------------------------------------------------- hypotheses


def _row_stochastic(instance: Instance) -> bool:
    return all(sum(row) == 1 and min(row) >= 0 for row in instance.A)


def _positive(instance: Instance) -> bool:
    return _row_stochastic(instance) and all(min(row) > 0 for row in instance.A)


def simple_one(instance: Instance) -> bool:
    """Whether the eigenvalue 1 of A is simple: det(I - B') != 0."""
    B = rational_quotient(instance.A)
    return not B or to_flint(plus_identity(B, -1)).det() != 0


def _not_nilpotent(instance: Instance) -> bool:
    return not is_zero(power(instance.H, len(instance.H)))


def _not_flat(instance: Instance) -> bool:
    X = instance.X0
    return X is not None and any(row != X[0] for row in X)


def _causal(instance: Instance) -> bool:
    A = instance.A
    return _row_stochastic(instance) and all(
        (entry > 0) == (j <= i) for i, row in enumerate(A) for j, entry in enumerate(row)
    )


def all_real(M: Matrix) -> bool:
    """Whether every eigenvalue is real, decided exactly."""
    return all(value.is_real for value in eigenvalues(factors(M)))


ROW_STOCHASTIC = Hypothesis("A is row-stochastic: A >= 0 and A 1 = 1", _row_stochastic)
POSITIVE = Hypothesis("A is row-stochastic with all entries positive", _positive)
TWO_TOKENS = Hypothesis("there are at least two tokens", lambda instance: len(instance.A) >= 2)
NOT_FLAT = Hypothesis("X_0 is given and not all of its rows are equal", _not_flat)
NOT_NILPOTENT = Hypothesis("H is not nilpotent", _not_nilpotent)
CAUSAL_MASK = Hypothesis("A is the softmax of causally masked logits", _causal)


# ------------------------------------------------------------------------------------- steps


def vanishes(residual: Callable[[], Any]) -> Callable[[], None]:
    """A check that a sympy residual (scalar, matrix or list) is identically zero."""

    def check() -> None:
        found = residual()
        entries = list(found) if isinstance(found, sp.MatrixBase | list | tuple) else [found]
        for entry in entries:
            assert sp.expand(entry) == 0 or sp.simplify(entry) == 0, f"the residual is {entry}"

    return check


def symbolic_pi(n: int) -> sp.Matrix:
    """pi^T [1, n] in symbols, its last entry 1 minus the others."""
    free = list(sp.symbols(f"p1:{n}", real=True))
    return sp.Matrix([[*free, 1 - sum(free)]])


def complement(n: int) -> sp.Matrix:
    """Q [n, n-1] in sympy: Helmert's orthonormal basis of the vectors orthogonal to 1."""
    columns = [
        sp.Matrix([1] * k + [-k] + [0] * (n - k - 1)) / sp.sqrt(k * (k + 1)) for k in range(1, n)
    ]
    return sp.Matrix.hstack(*columns)
