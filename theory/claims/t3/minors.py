"""Norms and minors of exact states: what is read off a limit of rank 2."""

from fractions import Fraction
from itertools import combinations

import sympy as sp

from oversmoothing.theory.numbers.exact_matrix import dot
from oversmoothing.theory.numbers.rational import Matrix


def second_symmetric(X: Matrix) -> Fraction:
    """sum_{i<j} sigma_i^2 sigma_j^2: the sum of all squared 2 x 2 minors (Cauchy-Binet)."""
    return sum(
        (
            (X[i][k] * X[j][m] - X[i][m] * X[j][k]) ** 2
            for i, j in combinations(range(len(X)), 2)
            for k, m in combinations(range(len(X[0])), 2)
        ),
        Fraction(0),
    )


def third_minors_vanish(X: Matrix) -> bool:
    return all(
        sp.Matrix([[X[i][j] for j in columns] for i in rows]).det() == 0
        for rows in combinations(range(len(X)), 3)
        for columns in combinations(range(len(X[0])), 3)
    )


def plane_modulus(first: Matrix, second: Matrix, third: Matrix) -> Fraction:
    """|mu|^2 from X'' = 2 Re mu X' - |mu|^2 X, solved from two entries and checked on all."""
    flat = [[x for row in X for x in row] for X in (first, second, third)]
    points = list(zip(*flat, strict=True))
    for (a, b, c), (d, e, f) in combinations(points, 2):
        determinant = b * d - a * e
        if determinant != 0:
            twice: Fraction = (c * d - a * f) / determinant
            size: Fraction = (c * e - b * f) / determinant
            assert all(z == twice * y - size * x for x, y, z in points)
            return size
    raise AssertionError("the three states are parallel")


def frobenius(X: Matrix) -> Fraction:
    return sum((dot(row, row) for row in X), Fraction(0))
