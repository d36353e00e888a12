"""What the claims T4, T5 and T6 share: matrices, hypotheses, and measuring at a far depth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import flint
import numpy as np
import sympy as sp
from hypothesis import assume
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from oversmoothing.theory.depth import rates_measured as measured
from oversmoothing.theory.layer.perron import closed_classes
from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.numbers.rational import Matrix, exact_stationary, to_float
from oversmoothing.theory.proofs.claim import Hypothesis, Instance
from oversmoothing.theory.verdict.exact_comparison import (
    ExactDominance,
    exact_dominance,
    jordan_size,
)
from oversmoothing.theory.verdict.modes import ModeContent, mode_content

# Digits for states at a far depth within a search.
BITS = 1536


def matrix(*rows: str) -> Matrix:
    """matrix("3/4 1/4", "1/4 3/4")."""
    return [[Fraction(entry) for entry in row.split()] for row in rows]


AA = matrix("3/4 1/4", "1/4 3/4")
AQ = matrix("1/4 3/4", "3/4 1/4")
J2 = matrix("1/2 1/2", "1/2 1/2")
A3 = matrix("4/5 1/10 1/10", "3/10 3/5 1/10", "1/2 1/5 3/10")
CAUSAL = matrix("1 0 0", "1/2 1/2 0", "1/3 1/3 1/3")
# Eigenvalues 1 and (1 +- 3i)/10, pi = (3, 3, 4)/10.
ROTATING = matrix("23/50 3/50 12/25", "12/25 7/25 6/25", "9/200 99/200 23/50")


def identity(n: int, scale: Fraction | int = 1) -> Matrix:
    return [[Fraction(scale) * int(i == j) for j in range(n)] for i in range(n)]


def diagonal(*values: str) -> Matrix:
    return [
        [Fraction(value) * int(i == j) for j in range(len(values))]
        for i, value in enumerate(values)
    ]


def uniform_plus(weight: Fraction, n: int) -> Matrix:
    """w I + (1 - w) 11^T/n: the eigenvalue w occurs n - 1 times."""
    return [[weight * int(i == j) + (1 - weight) / n for j in range(n)] for i in range(n)]


def stationary(A: Matrix) -> list[Fraction]:
    classes = [list(map(int, members)) for members in closed_classes(to_float(A))]
    return exact_stationary(A, classes)


def product(X: Matrix, Y: Matrix) -> Matrix:
    columns = list(zip(*Y, strict=True))
    return [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in columns]
        for row in X
    ]


def plus(X: Matrix, Y: Matrix, scale: Fraction | int = 1) -> Matrix:
    """X + scale Y."""
    return [[x + scale * y for x, y in zip(r, s, strict=True)] for r, s in zip(X, Y, strict=True)]


def step(A: Matrix, H: Matrix, X: Matrix) -> Matrix:
    """X + A X H^T in fractions."""
    return plus(X, product(product(A, X), [list(column) for column in zip(*H, strict=True)]))


def content(A: Matrix, H: Matrix, X0: Matrix) -> ModeContent:
    return mode_content(A, H, X0, stationary(A))


# --------------------------------------------------------------------------------- hypotheses


def _generic(instance: Instance) -> bool:
    """X_0 contains a dominant mode on either side (no X_0: meant for almost all)."""
    if instance.X0 is None or len(instance.A) == 1:
        return True
    return contains_both_radii(instance.A, instance.H, instance.X0)


def contains_both_radii(A: Matrix, H: Matrix, X0: Matrix) -> bool:
    """Whether X_0 has a component at rho_C and at rho_Q."""
    if not any(map(any, X0)):
        return False
    found, present = exact_dominance(A, H), content(A, H, X0)
    wanted = float(found.radius(True).mid()), float(found.radius(False).mid())
    have = present.consensus, present.quotient
    return all(
        x is not None and abs(x - y) <= 1e-9 * (1 + y) for x, y in zip(have, wanted, strict=True)
    )


def dominant_semisimple(instance: Instance) -> bool:
    return all(
        jordan_size(mode) == 1 for mode in exact_dominance(instance.A, instance.H).dominant()
    )


def one_real_pair(instance: Instance) -> bool:
    return single_pair(exact_dominance(instance.A, instance.H))


def single_pair(found: ExactDominance) -> bool:
    """One dominant pair (a, h), each simple (and then real)."""
    modes = found.dominant()
    if len(modes) != 1:
        return False
    attention = modes[0].attention
    many = 1 if attention is None else attention.factor.multiplicity
    return many * modes[0].value.factor.multiplicity == 1


def _verdict(comparison: int) -> Hypothesis:
    words = {1: "SMOOTHING: rho_C > rho_Q", -1: "NON_SMOOTHING: rho_C < rho_Q", 0: "TIE"}
    return Hypothesis(
        words[comparison], lambda i: exact_dominance(i.A, i.H).comparison == comparison
    )


POSITIVE = Hypothesis(
    "A > 0 entrywise, rows summing to 1",
    lambda i: all(x > 0 for row in i.A for x in row) and all(sum(row) == 1 for row in i.A),
)
STOCHASTIC = Hypothesis(
    "A row-stochastic",
    lambda i: all(x >= 0 for row in i.A for x in row) and all(sum(row) == 1 for row in i.A),
)
SEVERAL = Hypothesis("n >= 2 tokens", lambda i: len(i.A) >= 2)
GENERIC = Hypothesis("X_0 outside a null set: it contains modes at rho_C and at rho_Q", _generic)
SEMISIMPLE = Hypothesis("the dominant eigenvalues are semisimple", dominant_semisimple)
ONE_REAL_PAIR = Hypothesis("one simple dominant pair (then real)", one_real_pair)
SMOOTHING, NON_SMOOTHING, TIE = _verdict(1), _verdict(-1), _verdict(0)


# ------------------------------------------------------------------------------ far away states


def far_state(A: Matrix, H: Matrix, X0: Matrix, rate: float, digits: float = 12) -> flint.arb_mat:
    """X_L at a depth where rate^L is about 10^-digits (polynomial factors not counted)."""
    assume(rate < 0.98)
    depth = 12 if rate == 0 else max(12, math.ceil(digits * math.log(10) / -math.log(rate)))
    return measured.states(A, H, X0, [depth], BITS)[depth]


def middle(x: flint.arb) -> float:
    return float(x.mid())


def cosines(X: flint.arb_mat) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """All pairwise cosines [n, n], with their signs."""
    n = X.nrows()
    return np.array([[middle(measured.cosine(X, i, k, BITS)) for k in range(n)] for i in range(n)])


def radii(found: ExactDominance) -> tuple[float, float]:
    """(rho_C, rho_Q) as floats."""
    return float(found.radius(True).mid()), float(found.radius(False).mid())


def term_rank(pattern: Sequence[Sequence[bool]]) -> int:
    """Maximum matching of a bipartite graph."""
    matching = maximum_bipartite_matching(csr_matrix(np.array(pattern)), perm_type="column")
    return int(np.count_nonzero(matching >= 0))


def is_zero(value: sp.Expr | sp.MatrixBase) -> bool:
    """Whether an expression, or every entry of a matrix, simplifies to 0."""
    entries = list(value) if isinstance(value, sp.MatrixBase) else [value]
    return all(sp.simplify(entry) == 0 for entry in entries)


def certain(condition: object) -> None:
    """Assert a comparison of balls: true only where every point of the balls satisfies it."""
    with at_precision(BITS):
        assert condition
