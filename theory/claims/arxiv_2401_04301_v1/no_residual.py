"""Without the residual attention is low-pass, whatever the weights."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from oversmoothing.theory.claims.lemmas import BLOCKS, COUPLING, GROWTH, POSITIVE_SPECTRUM
from oversmoothing.theory.numbers.exact_matrix import product, transposed
from oversmoothing.theory.numbers.rational import Matrix
from oversmoothing.theory.proofs import strategies as draw
from oversmoothing.theory.proofs.checks import equal
from oversmoothing.theory.proofs.claim import Claim, Hypothesis, Status
from oversmoothing.theory.proofs.evidence import Searched
from oversmoothing.theory.proofs.hypotheses import POSITIVE
from oversmoothing.theory.proofs.written import written
from oversmoothing.theory.spectra.algebraic import eigenvalues, factors

_NOT_NILPOTENT = Hypothesis(
    "H is not nilpotent",
    lambda case: not all(value.is_zero for value in eigenvalues(factors(case.H))),
)


def _centred(X: Matrix) -> Matrix:
    means = [sum(col, Fraction(0)) / len(X) for col in zip(*X, strict=True)]
    return [[x - m for x, m in zip(row, means, strict=True)] for row in X]


def _law(drawn: Any) -> None:
    """Two tokens: HFC_L = a^L HFC_0 W^L, and pi^T X_L = pi^T X_0 W^L."""
    (A, a), (H, _), numbers = drawn
    d, depth, W = len(H), 6, transposed(H)
    X = [[Fraction(numbers[i * 4 + j]) for j in range(d)] for i in range(2)]
    y, total = _centred(X), A[0][1] + A[1][0]
    pi = [[A[1][0] / total, A[0][1] / total]]
    c = product(pi, X)
    for _ in range(depth):
        X = product(product(A, X), W)
        y, c = [[a * v for v in row] for row in product(y, W)], product(c, W)
    equal(_centred(X), y)
    equal(product(pi, X), c)


CLAIM = Claim(
    name="P-2401.04301v1-no-residual",
    statement="Without the residual, X' = A X W, the family lambda_j^H lambda_n^A always dominates "
    "and the model is always low-pass (v1; in part from public reviews). It holds for every A > 0 "
    "and H not nilpotent, real or complex, defective or not, for X_0 outside a proper subspace.",
    latex=r"X_L = A^L X_0 W^L,\ A > 0,\ H\ \text{not nilpotent} \implies "
    r"\mathrm{HFC}/\mathrm{LFC} \to 0",
    source="arXiv 2401.04301 v1, remark on the residual (public reviews); our reading of its scope",
    on_record=Status.WRITTEN,
    hypotheses=(POSITIVE, _NOT_NILPOTENT),
    evidence=(
        written(
            "the residual taken out of both blocks",
            POSITIVE_SPECTRUM,
            BLOCKS,
            "Without the residual the same identities read Y' = B Y W and c' = c W: the "
            "blocks are H (x) B and H, of radii rho(H) |lambda_2| and rho(H) > 0, where "
            "|lambda_2| = max over i < n of |a_i| < 1.",
            GROWTH,
            COUPLING,
            "||HFC_L|| = O(L^q (rho(H) |lambda_2|)^L) and, for c_0 outside a proper "
            "subspace, ||c_L|| >= const rho(H)^L: t -> 0, so HFC/LFC -> 0.",
        ),
        Searched(
            "two tokens: HFC_L = a^L HFC_0 W^L in fractions",
            st.tuples(
                draw.two_token_attention(),
                draw.value_projections(3),
                st.lists(st.integers(-9, 9), min_size=8, max_size=8),
            ),
            _law,
        ),
    ),
    further="The rate is |lambda_2| whatever H (T9a, N-2312.06182-escalation).",
)
