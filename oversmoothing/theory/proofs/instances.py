"""Matrices of fractions as proofs write them, and those on which proofs are executed.

Each of these is known by what it shows. What a verdict or a stream needs of such matrices is in
`theory.numbers.exact`; for claims (`kit.exact`) it stands here under the same names.

>>> from oversmoothing import exact
>>> exact.squared_norms(exact.layer(exact.AA, [[-1]], [[1], [2]]))
(Fraction(1, 8), Fraction(0, 1))
"""

from collections.abc import Iterable
from fractions import Fraction

from oversmoothing.theory.numbers.exact import (
    Matrix,
    applied as applied,
    centred as centred,
    characteristic as characteristic,
    dot as dot,
    from_flint,
    identity as identity,
    kronecker as kronecker,
    layer as layer,
    plus as plus,
    plus_identity as plus_identity,
    product as product,
    squared_norms as squared_norms,
    to_flint,
    transposed as transposed,
    uniform as uniform,
    weighted_mean as weighted_mean,
    zeros as zeros,
)

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


def flat(a: Entry, n: int) -> Matrix:
    """a I + (1 - a) 11^T/n: positive for 0 <= a < 1, with all its eigenvalues but 1 equal to a."""
    return plus(identity(n, a), uniform(n), 1 - Fraction(a))


def scaled(factor: Entry, X: Matrix) -> Matrix:
    return [[Fraction(factor) * x for x in row] for row in X]


def power(M: Matrix, exponent: int) -> Matrix:
    return from_flint(to_flint(M) ** exponent)


def determinant(M: Matrix) -> Fraction:
    value = to_flint(M).det()
    return Fraction(int(value.p), int(value.q))


def squared_ratio(X: Matrix) -> Fraction:
    """(HFC/LFC)^2 of a state in fractions with LFC != 0."""
    hfc, lfc = squared_norms(X)
    return hfc / lfc


def differences(X: Matrix) -> Matrix:
    """Rows x_i - x_n, i < n: coordinates of HFC without square roots."""
    return [[x - z for x, z in zip(row, X[-1], strict=True)] for row in X[:-1]]


# Symmetric attention of two tokens with the second eigenvalue 1/2, 0, -1/2 and -3/4.
AA = matrix("3/4 1/4; 1/4 3/4")
J2 = matrix("1/2 1/2; 1/2 1/2")
AQ = matrix("1/4 3/4; 3/4 1/4")
AM = matrix("1/8 7/8; 7/8 1/8")
# Spectrum {1, 1/2, 1/5}, pi = (26, 9, 5)/40.
A3 = matrix("4/5 1/10 1/10; 3/10 3/5 1/10; 1/2 1/5 3/10")
# Circulant, 1 and -7/20 +- (7 sqrt 3/20) i.
C3 = matrix("1/10 4/5 1/10; 1/10 1/10 4/5; 4/5 1/10 1/10")
# Eigenvalues 1 and (1 +- 3i)/10, pi = (3, 3, 4)/10.
ROTATING = matrix("23/50 3/50 12/25; 12/25 7/25 6/25; 9/200 99/200 23/50")
# 1/5 I + 4/5 J/3 + u w^T/10, u = (1,-1,0), w = (1,1,-2): the eigenvalue 1/5 is defective.
DEFECTIVE = matrix("17/30 11/30 1/15; 1/6 11/30 7/15; 4/15 4/15 7/15")
# 1 pi^T + 1/5 (I - 1 pi^T) + u w^T/10, pi = (2,1,1)/4: 1/5 is defective, pi is not uniform.
SKEW_DEFECTIVE = matrix("3/5 3/10 1/10; 2/5 3/10 3/10; 2/5 1/10 1/2")
# Causal: with the spectra {1, 1/2, 1/4} and {1, 1/2, 1/3}, uniform rows in the second.
CAUSAL = matrix("1 0 0; 1/2 1/2 0; 1/2 1/4 1/4")
CAUSAL_MEANS = matrix("1 0 0; 1/2 1/2 0; 1/3 1/3 1/3")
