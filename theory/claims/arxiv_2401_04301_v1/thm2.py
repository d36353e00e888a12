"""Thm 2 of arXiv 2401.04301: the dominating term of X_L, with the hypotheses it needs."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import SPECTRUM
from oversmoothing.theory.numbers.exact_matrix import (
    column,
    layer,
    matrix,
    product,
    scaled,
    transposed,
)
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs import strategies as draw
from oversmoothing.theory.proofs.all_depths import L, induction
from oversmoothing.theory.proofs.checks import equal
from oversmoothing.theory.proofs.claim import Claim, Status
from oversmoothing.theory.proofs.evidence import Searched
from oversmoothing.theory.proofs.hypotheses import EIGENBASIS_A, EIGENBASIS_H, POSITIVE
from oversmoothing.theory.proofs.instances import AA
from oversmoothing.theory.proofs.written import written


def _example() -> None:
    """X_0 = sum of s_ij v_i u_j^T, hence X_L = sum of mu_ij^L s_ij v_i u_j^T. For A = [[3/4, 1/4],
    [1/4, 3/4]], h = 1/2, X_0 = (1, 2): X_L = (3/2)^(L+1) (1, 1) + (5/4)^L/2 (-1, 1), by
    induction."""
    third, mean = sp.Rational(5, 4) ** L / 2, sp.Rational(3, 2) ** (L + 1)
    induction(AA, matrix("1/2"), column("1 2"), sp.Matrix([[mean - third], [mean + third]]))


def _projectors(M: Matrix, spectrum: list[Fraction]) -> dict[Fraction, Matrix]:
    """Spectral projectors of a diagonalisable M by Lagrange interpolation."""
    size = range(len(M))
    identity = [[Fraction(int(i == j)) for j in size] for i in size]
    found = {}
    for value in set(spectrum):
        E = identity
        for other in set(spectrum) - {value}:
            factor = [[M[i][j] - other * identity[i][j] for j in size] for i in size]
            E = scaled(1 / (value - other), product(E, factor))
        found[value] = E
    return found


Drawn = tuple[tuple[Matrix, Fraction], tuple[Matrix, list[Fraction]], list[int]]


def _law(drawn: Drawn) -> None:
    (A, a), (H, h_values), numbers = drawn
    d, depth = len(H), 5
    X0 = [[Fraction(numbers[i * 4 + j]) for j in range(d)] for i in range(2)]
    total = [[Fraction(0)] * d for _ in range(2)]
    for alpha, E in _projectors(A, [Fraction(1), a]).items():
        for h, F in _projectors(H, h_values).items():
            part = scaled((1 + h * alpha) ** depth, product(product(E, X0), transposed(F)))
            total = [
                [x + y for x, y in zip(u, v, strict=True)] for u, v in zip(total, part, strict=True)
            ]
    X = X0
    for _ in range(depth):
        X = layer(A, H, X)
    equal(total, X)


CLAIM = Claim(
    name="P-2401.04301v1-thm2",
    statement="Thm 2 (v1; from public reviews): where mu = 1 + lambda_j^H lambda_i^A alone has the "
    "largest modulus, X_L / mu^L tends to s v_i^A (v_j^H)^T (s the coefficient of X_0), with 1 "
    "(v_j^H)^T for i = n; with ties, X_L minus the sum of the tied terms is of smaller order. It "
    "holds for A and H diagonalisable, which its Q^{-1} presupposes; -> is read after division by "
    "mu^L (our reading), and s may be 0 for special X_0.",
    latex=r"X_L = \textstyle\sum_{(i,j)\,\mathrm{dominant}} \mu_{ij}^L s_{ij} v_i^A (v_j^H)^\top + "
    r"o(\rho^L)",
    source="arXiv 2401.04301 v1, Thm 2 (public reviews)",
    on_record=Status.WRITTEN,
    hypotheses=(POSITIVE, EIGENBASIS_A, EIGENBASIS_H),
    evidence=(
        written(
            "power iteration in the eigenbasis",
            SPECTRUM,
            "With eigenbases v_i of A and u_j of H the matrices v_i u_j^T are n d "
            "independent eigenvectors: A v_i u_j^T W = h_j a_i v_i u_j^T.",
            _example,
            "The terms with |mu_ij| < rho sum to O(rho'^L), rho' < rho; divided by mu^L "
            "they vanish. A single dominant term leaves s v_i u_j^T, v_n = 1.",
        ),
        Searched(
            "the sum over spectral projectors is X_5, in fractions",
            st.tuples(
                draw.two_token_attention(),
                draw.value_projections(3),
                st.lists(st.integers(-9, 9), min_size=8, max_size=8),
            ),
            _law,
        ),
    ),
    further="Defective A or H: P-2401.04301v1-thm2-any-weights and T6b.",
)
