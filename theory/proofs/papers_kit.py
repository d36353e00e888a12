"""Small exact mathematics for the papers' claims: layers, inductions, ratios, and predicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy as sp

from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs.claim import Hypothesis, Instance
from oversmoothing.theory.proofs.evidence import Step
from oversmoothing.theory.spectra.algebraic import Eigenvalue, eigenvalues, factors

Entry = int | str | Fraction


def matrix(*rows: Sequence[Entry]) -> Matrix:
    """Nested fractions from rows of "3/4" and the like."""
    return [[Fraction(entry) for entry in row] for row in rows]


def column(*entries: Entry) -> Matrix:
    """A state of one feature."""
    return matrix(*[[entry] for entry in entries])


def equal(found: object, expected: object) -> None:
    """Raise unless the two are equal."""
    assert found == expected, f"found {found}, expected {expected}"


def true(condition: object, words: str) -> None:
    """Raise with these words unless the condition holds."""
    assert condition, words


def product(X: Matrix, Y: Matrix) -> Matrix:
    return [
        [
            sum((x * y for x, y in zip(row, col, strict=True)), Fraction(0))
            for col in zip(*Y, strict=True)
        ]
        for row in X
    ]


def transposed(X: Matrix) -> Matrix:
    return [list(col) for col in zip(*X, strict=True)]


def layer(A: Matrix, H: Matrix, X: Matrix) -> Matrix:
    """X + A X W with W = H^T."""
    moved = product(product(A, X), transposed(H))
    return [[x + y for x, y in zip(u, v, strict=True)] for u, v in zip(X, moved, strict=True)]


def scaled(factor: Fraction, X: Matrix) -> Matrix:
    return [[factor * x for x in row] for row in X]


# ------------------------------------------------------------------------- all depths at once

L = sp.Symbol("L", integer=True, nonnegative=True)


def symbolic(X: Matrix) -> sp.Matrix:
    """The same matrix in sympy."""
    return sp.Matrix([[sp.Rational(x.numerator, x.denominator) for x in row] for row in X])


def vanishes(M: sp.Matrix) -> None:
    """Raise unless every entry is identically zero."""
    for entry in M:
        left = sp.simplify(sp.expand(entry, power_exp=True))
        assert left == 0, f"{left} is not 0"


def induction(A: Matrix, H: Matrix, X0: Matrix, state: sp.Matrix) -> None:
    """X_L = state(L) for all L: X_0 at L = 0, and one layer takes state(L) to state(L + 1)."""
    a, w, x0 = symbolic(A), symbolic(H).T, symbolic(X0)
    vanishes(state.subs(L, 0) - x0)
    vanishes(state.subs(L, L + 1) - state - a * state * w)


def squared_ratio(state: sp.Matrix) -> sp.Expr:
    """(HFC/LFC)^2 of a state in sympy, real entries."""
    n = state.rows
    mean = [sum(state[i, j] for i in range(n)) / n for j in range(state.cols)]
    hfc = sum((state[i, j] - mean[j]) ** 2 for i in range(n) for j in range(state.cols))
    return sp.simplify(sp.expand(hfc) / sp.expand(n * sum(m**2 for m in mean)))


def ratio_is(state: sp.Matrix, squared: Any) -> None:
    """Raise unless (HFC/LFC)^2 of the state is this expression in L."""
    left = sp.simplify(squared_ratio(state) - squared)
    assert left == 0, f"(HFC/LFC)^2 differs from {squared} by {left}"


# --------------------------------------------------------------------------------- predicates


def positive(instance: Instance) -> bool:
    """A > 0 entrywise with rows that sum to 1: what a softmax yields."""
    return all(x > 0 for row in instance.A for x in row) and all(
        sum(row) == 1 for row in instance.A
    )


def is_real(M: Matrix) -> bool:
    return all(value.is_real for value in eigenvalues(factors(M)))


def diagonalisable(M: Matrix) -> bool:
    return all(size == 1 for factor in factors(M) for size in factor.jordan)


def simple(M: Matrix) -> bool:
    return all(factor.multiplicity == 1 for factor in factors(M))


def rational(value: Eigenvalue) -> Fraction | None:
    """The eigenvalue, where it is rational."""
    if value.factor.degree != 1:
        return None
    c = value.factor.polynomial
    return Fraction(-int(c[0]), int(c[1]))


def values(M: Matrix) -> list[Fraction]:
    """The eigenvalues with multiplicity, ascending, all rational (raises otherwise)."""
    found: list[Fraction] = []
    for value in eigenvalues(factors(M)):
        number = rational(value)
        assert number is not None, "an eigenvalue is irrational"
        found += [number] * value.factor.multiplicity
    return sorted(found)


def within(M: Matrix, condition: Callable[[Any], bool]) -> bool:
    """Every eigenvalue of M is real and satisfies a condition whose end points are rational."""
    for value in eigenvalues(factors(M)):
        if not value.is_real:
            return False
        number = rational(value)
        # An irrational number is separated from every rational end point by its ball.
        if not condition(value.ball(256).real if number is None else number):
            return False
    return True


def has_value(M: Matrix, condition: Callable[[Any], bool]) -> bool:
    """Some eigenvalue of M is real and satisfies the condition."""
    for value in eigenvalues(factors(M)):
        if value.is_real:
            number = rational(value)
            if condition(value.ball(256).real if number is None else number):
                return True
    return False


def consensus(X: Matrix) -> bool:
    """All tokens equal: HFC = 0."""
    return all(row == X[0] for row in X)


def has_low(X: Matrix) -> bool:
    """LFC != 0."""
    return any(sum(col) != 0 for col in zip(*X, strict=True))


POSITIVE = Hypothesis("A > 0 with rows that sum to 1 (softmax)", positive)
REAL_A = Hypothesis("the eigenvalues of A are real", lambda case: is_real(case.A))
REAL_H = Hypothesis("the eigenvalues of H are real", lambda case: is_real(case.H))
EIGENBASIS_A = Hypothesis("A is diagonalisable", lambda case: diagonalisable(case.A))
EIGENBASIS_H = Hypothesis("H is diagonalisable", lambda case: diagonalisable(case.H))
TOKENS = Hypothesis("at least two tokens (n >= 2)", lambda case: len(case.A) > 1)


def meets(hypotheses: Sequence[Hypothesis], A: Matrix, H: Matrix, X0: Matrix | None = None) -> None:
    """Raise unless the instance satisfies every hypothesis."""
    unmet = [h.words for h in hypotheses if not h.holds(Instance(A, H, X0))]
    assert not unmet, f"not satisfied: {unmet}"


def hypotheses_hold(
    hypotheses: Sequence[Hypothesis], A: Matrix, H: Matrix, X0: Matrix | None = None
) -> Step:
    """The first step of every counterexample: the paper's hypotheses hold."""
    words = "; ".join(h.words for h in hypotheses)
    return Step(f"The hypotheses hold: {words}.", lambda: meets(hypotheses, A, H, X0))


HALF = matrix(["1/2", "1/2"], ["1/2", "1/2"])
QUARTERS = matrix(["3/4", "1/4"], ["1/4", "3/4"])
