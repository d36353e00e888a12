"""Matrices of fractions: written as text, put together, multiplied and iterated, all exactly.

A matrix is nested lists of `Fraction`, as everywhere; products and powers go through FLINT.
"""

from collections.abc import Iterable
from fractions import Fraction

import flint

from oversmoothing.theory.numbers.rational import Matrix, from_flint, to_flint

Entry = Fraction | int | str


def matrix(text: str) -> Matrix:
    """ "3/4 1/4; 1/4 3/4" as nested fractions."""
    return [[Fraction(entry) for entry in row.split()] for row in text.split(";")]


def column(text: str) -> Matrix:
    """ "1 2 4" as a state of one feature."""
    return [[Fraction(entry)] for entry in text.split()]


def diagonal(entries: str | Iterable[Entry]) -> Matrix:
    """diag(0, -1) from "0 -1" or from numbers."""
    values = [Fraction(x) for x in (entries.split() if isinstance(entries, str) else entries)]
    return [
        [x if i == j else Fraction(0) for j in range(len(values))] for i, x in enumerate(values)
    ]


def from_integers(rows: Iterable[Iterable[int]]) -> Matrix:
    """Integers (of Python or numpy) as fractions."""
    return [[Fraction(int(x)) for x in row] for row in rows]


def identity(size: int, scale: Entry = 1) -> Matrix:
    """scale I."""
    return diagonal([scale] * size)


def zeros(rows: int, columns: int) -> Matrix:
    return [[Fraction(0)] * columns for _ in range(rows)]


def uniform(n: int) -> Matrix:
    """11^T/n."""
    return [[Fraction(1, n)] * n for _ in range(n)]


def flat(a: Entry, n: int) -> Matrix:
    """a I + (1 - a) 11^T/n: positive for 0 <= a < 1, with all its eigenvalues but 1 equal to a."""
    return plus(identity(n, a), uniform(n), 1 - Fraction(a))


def product(*factors: Matrix) -> Matrix:
    found = to_flint(factors[0])
    for factor in factors[1:]:
        found = found * to_flint(factor)
    return from_flint(found)


def plus(X: Matrix, Y: Matrix, scale: Fraction | int = 1) -> Matrix:
    """X + scale Y."""
    return [[x + scale * y for x, y in zip(p, q, strict=True)] for p, q in zip(X, Y, strict=True)]


def plus_identity(M: Matrix, factor: Fraction | int = 1) -> Matrix:
    """I + factor M."""
    return plus(identity(len(M)), M, factor)


def scaled(factor: Entry, X: Matrix) -> Matrix:
    return [[Fraction(factor) * x for x in row] for row in X]


def transposed(X: Matrix) -> Matrix:
    return [list(column) for column in zip(*X, strict=True)]


def kronecker(X: Matrix, Y: Matrix) -> Matrix:
    return [[x * y for x in p for y in q] for p in X for q in Y]


def power(M: Matrix, exponent: int) -> Matrix:
    return from_flint(to_flint(M) ** exponent)


def determinant(M: Matrix) -> Fraction:
    found = to_flint(M).det()
    return Fraction(int(found.p), int(found.q))


def characteristic(M: Matrix) -> flint.fmpq_poly:
    """det(x I - M)."""
    return to_flint(M).charpoly()


def applied(A: Matrix, x: Iterable[Fraction]) -> list[Fraction]:
    """A x for a vector x."""
    return [row[0] for row in product(A, [[entry] for entry in x])]


def dot(x: Iterable[Fraction], y: Iterable[Fraction]) -> Fraction:
    """x^T y."""
    return sum((p * q for p, q in zip(x, y, strict=True)), Fraction(0))


def weighted_mean(weights: Iterable[Fraction], X: Matrix) -> list[Fraction]:
    """pi^T X: with pi uniform the mean over the tokens, with pi^T A = pi^T the pi-mean."""
    return product([list(weights)], X)[0]


def centred(X: Matrix) -> Matrix:
    """P X: the tokens without their mean."""
    return plus(X, product(uniform(len(X)), X), -1)


def squared_norms(X: Matrix) -> tuple[Fraction, Fraction]:
    """(||HFC||_F^2, ||LFC||_F^2) of a state in fractions."""
    n = len(X)
    hfc = sum((x * x for row in centred(X) for x in row), Fraction(0))
    totals = [sum(column, Fraction(0)) for column in zip(*X, strict=True)]
    return hfc, sum((x * x for x in totals), Fraction(0)) / n


def squared_ratio(X: Matrix) -> Fraction:
    """(HFC/LFC)^2 of a state in fractions with LFC != 0."""
    hfc, lfc = squared_norms(X)
    return hfc / lfc


def differences(X: Matrix) -> Matrix:
    """Rows x_i - x_n, i < n: coordinates of HFC without square roots."""
    return [[x - z for x, z in zip(row, X[-1], strict=True)] for row in X[:-1]]


def layer(A: Matrix, H: Matrix, X: Matrix, depth: int = 1) -> Matrix:
    """X_L for X' = X + A X W, W = H^T: one layer, or the same one `depth` times."""
    a, w, x = to_flint(A), to_flint(H).transpose(), to_flint(X)
    for _ in range(depth):
        x = x + a * x * w
    return from_flint(x)
