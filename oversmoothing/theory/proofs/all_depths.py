"""States at every depth L at once: a formula in sympy, proved by induction over the layers."""

from typing import Any

import sympy as sp

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs.checks import vanishes

L = sp.Symbol("L", integer=True, nonnegative=True)


def symbolic(X: Matrix) -> sp.Matrix:
    """The same matrix in sympy."""
    return sp.Matrix([[sp.Rational(x.numerator, x.denominator) for x in row] for row in X])


def induction(A: Matrix, H: Matrix, X0: Matrix, state: sp.Matrix) -> None:
    """X_L = state(L) for all L: X_0 at L = 0, and one layer takes state(L) to state(L + 1)."""
    a, w, x0 = symbolic(A), symbolic(H).T, symbolic(X0)
    vanishes(state.subs(L, 0) - x0)
    vanishes(state.subs(L, L + 1) - state - a * state * w)


def around(mean: Any, half: Any) -> sp.Matrix:
    """Two tokens of one feature: mean - half and mean + half."""
    return sp.Matrix([mean - half, mean + half])


def squared_ratio(state: sp.Matrix) -> sp.Expr:
    """(HFC/LFC)^2 of a state in sympy, real entries."""
    n = state.rows
    mean = [sum(state[i, j] for i in range(n)) / n for j in range(state.cols)]
    hfc = sum((state[i, j] - mean[j]) ** 2 for i in range(n) for j in range(state.cols))
    return sp.simplify(sp.expand(hfc) / sp.expand(n * sum(m**2 for m in mean)))


def ratio_is(state: sp.Matrix, squared: Any) -> None:
    """(HFC/LFC)^2 of the state is this expression in L."""
    vanishes(squared_ratio(state) - squared)
